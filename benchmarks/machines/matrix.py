#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs espbench in bare Debian 12 and 13, under Debian's stock kernel 6.1 and the newest one: `make test-matrix`.

Each root is made by mmdebstrap and set up by `make setup`; at first it has no Rust. Each kernel is Debian's package. It
boots in an emulated x86 machine (emulated_x86.py) with the root over 9p, under a temporary overlay, and with all
modules of the kernel. In each cell (a root and a kernel) the machine then runs:

    doctor      must say that static ESP and both IKE daemons can be measured
    quick plan  plain, xfrm, strongSwan and libreswan; `dut: auto` must choose namespaces with the kernel's own ESP
    clean-up    after the run nothing may be left; a second run is killed by SIGKILL, and `espbench clean` must leave
                nothing either

A result is a file in build/matrix/results, with the seconds of each step and the first fault. A cell that passed with
the code of HEAD is not run again, and roots and kernels are kept. So an interrupted matrix can be continued.
Uncommitted changes are not tested. Needs root and x86-64; both CPUs are busy for 10 to 30 minutes in each cell.

    .venv/bin/python benchmarks/machines/matrix.py [trixie/newest …] [--table]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

import emulated_x86
from bare_roots import (
    PROJECT,
    REPOSITORY,
    Tried,
    checked,
    end_by_signals,
    end_processes,
    make_root,
    mirror,
    mmdebstrap,
    run_inside,
    step,
    tell,
)

from espbench.errors import EspbenchError
from espbench.results import RunDirectory
from espbench.terms import WITH_FIGURE

WORK = REPOSITORY / "build/matrix"
# Kernel → the release with its linux-image-amd64. Debian's newest kernels are in unstable, which is sid.
KERNELS = {"6.1": "bookworm", "newest": "sid"}
CELLS = ("trixie/newest", "trixie/6.1", "bookworm/6.1", "bookworm/newest")
SET_UP_READS = ("traffic", "scripts", "requirements.lock", "pyproject.toml")
# A mirror that is no longer updated can be used too; apt still checks its signature.
ANY_AGE = 'Acquire::Check-Valid-Until "false"'
TESTED = (*SET_UP_READS, "harness", "benchmarks/machines")
FETCH_DAEMONS = "from espbench.stacks.daemons import packages as p; [p.unpacked(d) for d in p.PACKAGES]"
CASES = 4
PLAN = """\
name: matrix
topology: gateway-to-gateway
dut: auto
stacks: [plain, xfrm, strongswan, libreswan]
suites: [aes128gcm16]
frame_sizes: [512]
directions: [one-way]
tests:
  - throughput: {minimum: 500fps, maximum: 8000fps, loss_goals: [0], trial: 500ms, final_trial: 2s, resolution: 10%,
                 settle: 50ms, residue: 500ms, warm_up: 200ms, learning: 100ms}
"""
BEFORE_ROOT = (
    "virtio_pci",
    "virtio_rng",
    "9pnet_virtio",
    "9p",
    "overlay",
)  # the kernel loads other modules by modprobe
PATIENCE_S = 3 * 3600
MARK = emulated_x86.MARK
GUEST = f"""\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
export PYTHONDONTWRITEBYTECODE=1
cd /{PROJECT}
ip link set lo up
state() {{
    ls /sys/class/net
    ls /run/netns
    ip xfrm state
    ip xfrm policy
    cut -d ' ' -f 2,3 /proc/mounts | grep -v '^/run/netns '  # ip(8) leaves the folder of namespaces mounted
    for process in /proc/[0-9]*; do tr '\\0' ' ' < $process/cmdline; echo; done
}} > /run/out/$1.state 2> /dev/null
uname -r > /run/out/kernel.txt
.venv/bin/python --version > /run/out/python.txt
echo "{MARK} boot"
state before
.venv/bin/espbench doctor --json > /run/out/doctor.json 2> /run/out/doctor.txt; echo $? > /run/out/doctor.exit
echo "{MARK} doctor"
.venv/bin/espbench run --out /run/runs /run/out/plan.yaml > /run/out/run.txt 2>&1; echo $? > /run/out/run.exit
cp -r /run/runs /run/out
echo "{MARK} quick plan"
state after
.venv/bin/espbench run --out /run/killed /run/out/plan.yaml > /run/out/killed.txt 2>&1 &
run=$!
while kill -0 $run && ! cat /run/killed/*/trials.jsonl | grep -q .; do sleep 1; done 2> /dev/null
kill -KILL $run
wait $run; echo $? > /run/out/killed.exit
state killed
.venv/bin/espbench clean > /run/out/clean.txt 2>&1; echo $? > /run/out/clean.exit
state cleaned
echo "{MARK} clean-up"
echo "{MARK} done"
sync
echo o > /proc/sysrq-trigger
sleep 60
"""


@dataclass
class Result:
    """The result of one cell, with the keys of its file; `failed` is the first fault, or empty."""

    cell: str
    kernel: str = ""
    python: str = ""
    commit: str = ""
    code: str = ""
    ended: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    statuses: dict[str, int] = field(default_factory=dict)
    failed: str = ""


def main() -> int:
    """Run the cells that have not passed yet; return the exit code."""
    parser = argparse.ArgumentParser(description="espbench in bare Debian roots, under Debian's kernels")
    parser.add_argument("cells", nargs="*", help=f"of {', '.join(CELLS)}; default: all")
    parser.add_argument(
        "--table", action="store_true", help="print the table of all results, and run nothing"
    )
    given = parser.parse_args()
    if unknown := set(given.cells) - set(CELLS):
        parser.error(f"no such cell: {', '.join(sorted(unknown))}; expected some of {', '.join(CELLS)}")
    results = WORK / "results"
    if given.table:
        print(table(results_in(results)))
        return 0
    end_by_signals()
    if platform.machine() != "x86_64":
        sys.exit(f"matrix: expected an x86_64 host, on which the roots are set up, got {platform.machine()}")
    results.mkdir(parents=True, exist_ok=True)
    code = digest(TESTED)
    for cell in given.cells or CELLS:
        if has_passed(results_in(results), cell, code):
            print(f"{cell}: passed before, with this code")
            continue
        result = attempt(cell, code)
        write_whole(results / f"{cell.replace('/', '-')}.json", json.dumps(asdict(result), indent=2) + "\n")
    print(table(results_in(results)))
    return int(not all(has_passed(results_in(results), cell, code) for cell in given.cells or CELLS))


def results_in(folder: Path) -> list[Result]:
    """Read the results of all cells, in the order of CELLS."""
    results = [Result(**json.loads(file.read_text())) for file in folder.glob("*.json")]
    return sorted(results, key=lambda result: CELLS.index(result.cell))


def has_passed(results: Iterable[Result], cell: str, code: str) -> bool:
    """Return whether this cell passed with this code."""
    return any(each.cell == cell and each.code == code and not each.failed for each in results)


def write_whole(path: Path, text: str) -> None:
    """Write a file atomically: readers see it complete or not at all."""
    beside = path.with_name(f".{path.name}")
    beside.write_text(text)
    beside.replace(path)


def digest(names: Sequence[str]) -> str:
    """Return a digest of the content of these files and folders in HEAD."""
    ids = checked(["git", "-C", str(REPOSITORY), "rev-parse", *(f"HEAD:{name}" for name in names)])
    return hashlib.sha256(ids.encode()).hexdigest()[:12]


def table(results: Sequence[Result]) -> str:
    """Return the results as a table in Markdown."""
    lines = [
        "| root | kernel | Python | ended | commit | steps | results | first fault |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in results:
        steps = ", ".join(f"{name} {seconds:.0f} s" for name, seconds in each.seconds.items())
        statuses = ", ".join(f"{n} {status}" for status, n in sorted(each.statuses.items())) or "–"
        fault = " ".join(each.failed.split()).replace("|", "\\|") or "–"
        cells = (
            each.cell.split("/")[0],
            each.kernel,
            each.python,
            each.ended,
            f"`{each.commit}`",
            steps,
            statuses,
            fault,
        )
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def attempt(cell: str, code: str) -> Result:
    """Set up the root, boot the kernel, and return the cell's result."""
    release, kernel = cell.split("/")
    tried = Tried(cell)
    result = Result(
        cell,
        commit=checked(["git", "-C", str(REPOSITORY), "rev-parse", "--short", "HEAD"]).strip(),
        code=code,
    )
    out = WORK / "out" / cell.replace("/", "-")
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    try:
        root = prepared_root(release, tried)
        with step(tried, "fetching the kernel"):
            computer = computer_with(KERNELS[kernel], root)
            machine = emulated_x86.fetched()
        (out / "plan.yaml").write_text(PLAN)
        (out / "guest.sh").write_text(GUEST)
        with step(tried, "machine"):
            heard = emulated_x86.start(machine, computer, out)
        tried.seconds |= durations(heard)
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {error.cmd[-1]}", *said])
    except EspbenchError as error:
        tried.failed = str(error)
    with suppress(OSError):
        result.kernel = (out / "kernel.txt").read_text().strip()
        result.python = (out / "python.txt").read_text().split()[-1]
    tried.statuses.update(statuses(out / "runs"))
    tried.failed = tried.failed or first_fault(out)
    tell(tried)
    result.seconds, result.statuses, result.failed = tried.seconds, dict(tried.statuses), tried.failed
    result.ended = time.strftime("%Y-%m-%d %H:%M", time.gmtime())
    return result


def durations(heard: Sequence[tuple[str, float]]) -> dict[str, float]:
    """Return the seconds of each step; the machine prints a mark at the end of a step."""
    begins = [0.0, *(seconds for _, seconds in heard)]
    return {what: end - begin for (what, end), begin in zip(heard, begins, strict=False) if what != "done"}


def prepared_root(release: str, tried: Tried) -> Path:
    """Return a root in which `make setup` was done and the daemons were fetched, with the files of HEAD."""
    root = WORK / "roots" / f"{release}-{digest(SET_UP_READS)}"
    if not root.is_dir():
        for old in (WORK / "roots").glob(f"{release}-*"):
            shutil.rmtree(old)
        new = WORK / "roots" / f"new-{release}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(parents=True)
        try:
            with step(tried, "root"):
                make_root(release, new)
            with step(tried, "set-up"):
                run_inside(new, f"cd /{PROJECT} && make setup")
            with step(tried, "fetching daemons"):
                run_inside(new, f"cd /{PROJECT} && .venv/bin/python -c '{FETCH_DAEMONS}'")
        finally:
            tried.left += end_processes(new)
        new.rename(root)
    replace_files(root / PROJECT)
    return root


def replace_files(project: Path) -> None:
    """Put HEAD's files into a root's clone, except those that its set-up has read, which are the same."""
    names = checked(["git", "-C", str(REPOSITORY), "ls-tree", "--name-only", "HEAD"]).splitlines()
    names = [name for name in names if name not in SET_UP_READS]
    subprocess.run(["rm", "-rf", *(str(project / name) for name in names)], check=True)
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", "HEAD", *names], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(project)], input=archive, check=True)


def computer_with(suite: str, root: Path) -> emulated_x86.Computer:
    """Return a computer with Debian's kernel of a release, unpacked once, and its modules."""
    folder = WORK / "kernels" / suite
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as name:
            new = Path(name) / suite
            source = f"deb {mirror()} {suite} main"
            wanted = ["--variant=extract", "--include=linux-image-amd64", f"--aptopt={ANY_AGE}"]
            mmdebstrap(*wanted, suite, str(new), source)
            kernel = emulated_x86.kernel_of(new)
            checked(["depmod", "-b", str(modules_of(new).parents[1]), emulated_x86.version_of(kernel)])
            new.rename(folder)
    kernel = emulated_x86.kernel_of(folder)
    modules = modules_of(folder)
    first = emulated_x86.modules(modules / emulated_x86.version_of(kernel), BEFORE_ROOT)
    return emulated_x86.Computer(kernel, first, root, modules, patience_s=PATIENCE_S)


def modules_of(folder: Path) -> Path:
    """Return the folder of modules in an unpacked kernel package; /lib may be a link to /usr/lib or not."""
    places = [folder / "usr/lib/modules", folder / "lib/modules"]
    return next((place for place in places if place.is_dir()), places[0])


def statuses(runs: Path) -> dict[str, int]:
    """Count the results of the runs in this folder by their status."""
    counts: dict[str, int] = {}
    for folder in runs.glob("*"):
        with suppress(EspbenchError), RunDirectory.open(folder) as run:
            for each in run.results():
                counts[each.status] = counts.get(each.status, 0) + 1
    return counts


def first_fault(out: Path) -> str:
    """Return the first fault in the files that the machine left; empty if there is none."""
    for step_of in (fault_of_doctor, fault_of_run, fault_of_clean_up):
        try:
            if fault := step_of(out):
                return fault
        except (OSError, EspbenchError) as error:
            return f"not done: {error}"
    return ""


def fault_of_doctor(out: Path) -> str:
    """Return why doctor's answer is wrong for a Debian kernel; empty if it is right."""
    if (status := text(out / "doctor.exit")) != "0":
        return f"doctor: exit {status}: {last_line(out / 'doctor.txt')}"
    answers = json.loads((out / "doctor.json").read_text())
    ready = {each["name"] for kind in ("platform", "stack") for each in answers[kind] if each["ready"]}
    missing = {"netns", "xfrm", "strongswan", "libreswan"} - ready
    return f"doctor: not ready: {', '.join(sorted(missing))}" if missing else ""


def fault_of_run(out: Path) -> str:
    """Return the fault of the quick plan's run; empty if there is none."""
    if (status := text(out / "run.exit")) not in ("0", "3"):
        return f"run: exit {status}: {last_line(out / 'run.txt')}"
    (folder,) = (out / "runs").glob("*")
    with RunDirectory.open(folder) as run:
        if run.manifest.platform != "netns":
            return f"run: gateways are {run.manifest.platform}, expected netns"
        results = run.results()
    if not (folder / "report.html").is_file():
        return "run: no report"
    for each in results:
        if each.status not in WITH_FIGURE:
            why = each.words or "; ".join(map(str, each.reasons))
            return f"run: {each.stack}: {each.status}, {why}"
    return "" if len(results) == CASES else f"run: {len(results)} results, expected {CASES}"


def fault_of_clean_up(out: Path) -> str:
    """Return what a run or `espbench clean` left behind; empty if nothing."""
    if left := state(out, "after") - state(out, "before"):
        return f"left behind by the run: {'; '.join(sorted(left))}"
    if (status := text(out / "killed.exit")) != "137":
        return f"the second run: expected to be killed (137), exit {status}: {last_line(out / 'killed.txt')}"
    if (status := text(out / "clean.exit")) != "0":
        return f"clean: exit {status}: {last_line(out / 'clean.txt')}"
    if left := state(out, "cleaned") - state(out, "before"):
        return f"left behind by clean: {'; '.join(sorted(left))}"
    return ""


def state(out: Path, when: str) -> set[str]:
    """Return the interfaces, namespaces, SAs, mounts and processes of the machine at a moment."""
    lines = (out / f"{when}.state").read_text().splitlines()
    return {line for line in lines if line.strip()}


def text(path: Path) -> str:
    """Return a file's text without the space around it."""
    return path.read_text().strip()


def last_line(path: Path) -> str:
    """Return the last line that a command printed."""
    return (text(path).splitlines() or ["it printed nothing"])[-1]


if __name__ == "__main__":
    sys.exit(main())
