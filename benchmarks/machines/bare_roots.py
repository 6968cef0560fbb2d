#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `make demo` in bare Debian roots, as a new user would: only make and git are installed, and no Rust.

Each root is made by mmdebstrap from the mirror that apt uses here. It gets this checkout's HEAD and this machine's
settings for package registries, and is entered in a mount namespace of its own. Prints, for each root, the time of each
step and the statuses in results.csv; the exit code is 1 if a root failed, left something behind, or has a figure (OK or
LOWER_BOUND) for fewer than 16 of the demo's 18 results. docs/tried.md says which release passed when.

Needs root and Debian. Run it from anywhere: `python benchmarks/machines/bare_roots.py [releases]`.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import fcntl
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
RELEASES = ("bookworm", "trixie")
WITH_FIGURE = ("OK", "LOWER_BOUND")
RESULTS, LEAST = 18, 16  # the demo's results; at least 16 must have a figure on a machine that others use too
CONTENTS = "ca-certificates,git,make"
PROJECT = "root/espbench"
CERTIFICATES = "etc/ssl/certs/ca-certificates.crt"
# This machine may need these settings to reach Debian, PyPI and crates.io; a new root does not have them.
SETTINGS = re.compile(
    r"(?i)^(https?|ftp|all|no)_proxy$|^PIP_(?!FIND_LINKS)|^CARGO_(HTTP|NET|REGISTR|SOURCE)|^SSL_CERT_|_CA_BUNDLE$"
)
CONFIGURATION = {
    "etc/pip.conf": ("/etc/pip.conf", "~/.config/pip/pip.conf", "~/.pip/pip.conf"),
    "root/.cargo/config.toml": ("~/.cargo/config.toml", "~/.cargo/config"),
    "etc/resolv.conf": ("/etc/resolv.conf",),
    CERTIFICATES: (f"/{CERTIFICATES}",),
}
ENTER = """
mount --bind "$1" "$1" && cd "$1"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
exec chroot . /bin/sh -ec "$2"
"""


@dataclass
class Tried:
    """The result of one root. seconds: step → duration. statuses: the number of cases by status.

    failed: the first failure; empty if there is none. left: processes and files that stayed.
    """

    release: str
    seconds: dict[str, float] = field(default_factory=dict)
    statuses: Counter[str] = field(default_factory=Counter)
    failed: str = ""
    left: list[str] = field(default_factory=list)


def main() -> int:
    """Try each release; return the exit code."""
    parser = argparse.ArgumentParser(description="make demo in bare Debian roots")
    parser.add_argument("releases", nargs="*", default=RELEASES)
    parser.add_argument("--lock", type=Path, help="hold this file's lock (flock) while frames flow")
    given = parser.parse_args()
    end_by_signals()
    if os.geteuid():
        sys.exit("bare_roots: making a root and entering it needs root")
    tried = []
    for release in given.releases:
        tried.append(attempt(release, given.lock))
        tell(tried[-1])
    return int(any(each.failed or each.left for each in tried))


def end_by_signals() -> None:
    """Let signals end this program so that it removes its root; under nohup(1) SIGHUP stays ignored."""
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, lambda got, _: sys.exit(128 + got))


def tell(tried: Tried) -> None:
    """Print the result of one root."""
    steps = ", ".join(f"{step} {seconds:.0f} s" for step, seconds in tried.seconds.items())
    statuses = ", ".join(f"{n} {status}" for status, n in sorted(tried.statuses.items()))
    wrong = [tried.failed] if tried.failed else []
    wrong += [f"left behind: {what}" for what in tried.left]
    print(f"{tried.release}: {'FAIL' if wrong else 'pass'} ({steps}); {statuses or 'no results'}")
    print("".join(f"  {line}\n" for what in wrong for line in what.splitlines()), end="", flush=True)


def attempt(release: str, lock: Path | None) -> Tried:
    """Make a root, run the demo in it, remove it."""
    tried = Tried(release)
    root = Path(tempfile.mkdtemp(prefix=f"bare-{release}-"))
    root.chmod(0o755)
    try:
        with step(tried, "root"):
            make_root(release, root)
        with step(tried, "set-up"):
            run_inside(root, f"cd /{PROJECT} && make setup")
        with held(lock), step(tried, "demo"):
            run_inside(root, f"cd /{PROJECT} && make demo")
        tried.statuses = statuses(root / PROJECT / "runs")
        tried.failed = too_few_figures(tried.statuses)
        if any((root / PROJECT / "runs").glob("*-virtual-quick")):
            tried.failed = (
                "the demo measured in virtual time, although root can have gateways in real time here"
            )
    except subprocess.CalledProcessError as error:
        said = error.stdout.strip().splitlines()[-15:] if error.stdout else []
        tried.failed = "\n".join([f"exit {error.returncode}: {shlex.join(error.cmd)}", *said])
    finally:
        tried.left = end_processes(root)
        subprocess.run(["rm", "-rf", "--one-file-system", str(root)], check=False)
        if root.exists():
            tried.left.append(str(root))
    return tried


@contextlib.contextmanager
def step(tried: Tried, name: str) -> Iterator[None]:
    """Print that a step begins, and record its duration."""
    print(f"{tried.release}: {name} …", file=sys.stderr, flush=True)
    began = time.monotonic()
    try:
        yield
    finally:
        tried.seconds[name] = time.monotonic() - began


@contextlib.contextmanager
def held(lock: Path | None) -> Iterator[None]:
    """Hold the lock of a file while the context lasts, if a file is given."""
    if lock is None:
        yield
        return
    with lock.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def mmdebstrap(*arguments: str) -> None:
    """Run mmdebstrap, which is installed if it is missing."""
    if not shutil.which("mmdebstrap"):
        checked(["apt-get", "install", "-qq", "-y", "--no-install-recommends", "mmdebstrap"])
    checked(["mmdebstrap", "--quiet", *arguments])


def make_root(release: str, root: Path) -> None:
    """Make a minimal Debian with the project's HEAD, and with this machine's settings for package registries."""
    source = f"deb {mirror()} {release} main"
    mmdebstrap("--variant=apt", f"--include={CONTENTS}", release, str(root), source)
    for target, sources in CONFIGURATION.items():
        for path in (Path(name).expanduser() for name in sources):
            if path.is_file():
                (root / target).parent.mkdir(parents=True, exist_ok=True)
                (root / target).write_bytes(path.read_bytes())
                break
    (root / "etc/apt/apt.conf.d/99host").write_text(apt_settings())
    (root / PROJECT).mkdir()
    archive = subprocess.run(
        ["git", "-C", str(REPOSITORY), "archive", "HEAD"], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(root / PROJECT)], input=archive, check=True)


def mirror() -> str:
    """Return the mirror from which apt here gets Debian's main archive."""
    wanted = ["Created-By: Packages", "Origin: Debian", "Label: Debian"]
    done = checked(["apt-get", "indextargets", "--format", "$(REPO_URI)", *wanted])
    if not done:
        sys.exit("bare_roots: apt knows no mirror of Debian here; apt-get update, on a Debian machine")
    return done.splitlines()[0]


def apt_settings() -> str:
    """Return this machine's apt settings for fetching: proxies and checks."""
    lines = checked(["apt-config", "dump"]).splitlines()
    wanted = re.compile(r"Acquire::((http|https|ftp)::|Check-|Retries)")
    return "".join(f"{line}\n" for line in lines if wanted.match(line))


def run_inside(root: Path, command: str) -> str:
    """Run a shell command in the root, and return its output.

    Of this machine's environment, the command gets only the settings for package registries.
    """
    settings = {name: value for name, value in os.environ.items() if SETTINGS.search(name)}
    home = {"HOME": "/root", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8"}
    argv = ["unshare", "--mount", "sh", "-ec", ENTER, "sh", str(root), command]
    return checked(argv, env=settings | home)


def checked(argv: list[str], env: dict[str, str] | None = None) -> str:
    """Run a command, and return its output; CalledProcessError has all of it if the command fails."""
    done = subprocess.run(
        argv,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=True,
    )
    return done.stdout


def statuses(runs: Path) -> Counter[str]:
    """Count the cases of the runs in this folder by their status."""
    counts: Counter[str] = Counter()
    for table in runs.glob("*/results.csv"):
        with table.open(newline="") as file:
            counts += Counter(row["status"] for row in csv.DictReader(file))
    return counts


def too_few_figures(statuses: Counter[str]) -> str:
    """Say how many of the demo's results have a figure, if these are too few; empty if enough have one."""
    have = sum(statuses[status] for status in WITH_FIGURE)
    if statuses.total() == RESULTS and have >= LEAST:
        return ""
    return f"{have} of {statuses.total()} results have a figure, expected at least {LEAST} of {RESULTS}"


def end_processes(root: Path) -> list[str]:
    """End the processes that a run left behind in this root, and return their names."""
    left: dict[str, str] = {}
    any_left = True
    while any_left:  # a process that was just ended may have started another one
        any_left = False
        for process in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                if (process / "root").readlink() == root:
                    left[process.name] = (process / "comm").read_text().strip()
                    os.kill(int(process.name), signal.SIGKILL)
                    any_left = True
        time.sleep(0.1)
    return [f"process {pid} ({name})" for pid, name in left.items()]


if __name__ == "__main__":
    sys.exit(main())
