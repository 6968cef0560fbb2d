#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows on a real kernel with CONFIG_IRQ_TIME_ACCOUNTING=y that espbench refuses the CPU figures of namespaces.

Such a kernel accounts the time of softirqs to no thread, and decrypted ESP frames are processed in a softirq (decision
0031). User-Mode Linux cannot have the option (its architecture does not offer HAVE_IRQ_TIME_ACCOUNTING), so the kernel
is built from Debian's source for x86-64 with irq_time.frag, and runs in the emulated machine of emulated_x86.py. It is
booted twice:

    with the accounting      a run of namespaces with ESP must have no CPU figure, and say why
    with tsc=noirqtime       the same kernel accounts interrupts to threads again

In both, espbench's own test (this_machine/irq_time.py) measures the share of a thread's time that is not accounted.
The exit code is 1 if a result is not as expected. Needs flex, bison, bc and libelf-dev; it builds for some minutes,
then runs for five.

    .venv/bin/python benchmarks/machines/irq_time_kernel.py [--work FOLDER]
"""

from __future__ import annotations

import argparse
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

import emulated_x86

from espbench.errors import EspbenchError
from espbench.paths import cache_dir
from espbench.platforms.virtual.parts import kernel, recipe, sources, tools
from espbench.platforms.virtual.parts.tools import Runner
from espbench.results import RunDirectory
from espbench.terms import WITH_FIGURE, Outcome
from espbench.this_machine.registry import Registry

FRAGMENT = Path(__file__).with_name("irq_time.frag")
# The guest prints the share of time that is not accounted, and espbench's verdict with and without the kernel's
# configuration.
TRIAL = """\
{python} -c 'from espbench.this_machine import irq_time as it
print("by its configuration:", it.left_out() or "whole")
shares = [it.share_left_out() for _ in range(5)]
it.CONFIGS = ()
print("by trial:", it.left_out() or "whole")
print("shares:", *shares)' > /run/out/{name}.txt 2>&1
"""
ACCOUNTED = "accounted"
# The kernel uses the accounting only with a clock that it considers stable, which an emulated CPU's is not by default.
TRUSTED = "tsc=reliable"
BOOTED = """\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
export PYTHONPATH={harness} PYTHONDONTWRITEBYTECODE=1
cd {clone}
ip link set lo up
echo "{mark} booted"
"""
DONE = """\
echo "{mark} done"
sync
echo o > /proc/sysrq-trigger
sleep 60
"""


def main() -> None:
    """Build the kernel, boot it twice, and print the results; the exit code is 1 if one is not as expected."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, help="where the kernel is built and stays; default: in the cache"
    )
    work = parser.parse_args().work or cache_dir() / "irq-time-kernel"
    trial = TRIAL.replace("{name}", ACCOUNTED)
    try:
        image = built(work)
        machine = emulated_x86.fetched()
        faults = []
        guest = emulated_x86.GUEST.replace('echo "{mark} surveyed"', trial + 'echo "{mark} surveyed"')
        with tempfile.TemporaryDirectory(prefix="espbench-irq-") as name:
            emulated_x86.boot(machine, Path(name), kernel=image, options=TRUSTED, guest=guest)
            faults += left_out_faults(Path(name) / "out", left_out=True) + refused(Path(name) / "out")
        with tempfile.TemporaryDirectory(prefix="espbench-irq-") as name:
            emulated_x86.boot(
                machine,
                Path(name),
                kernel=image,
                options=f"{TRUSTED} tsc=noirqtime",
                guest=BOOTED + trial + DONE,
            )
            faults += left_out_faults(Path(name) / "out", left_out=False)
    except EspbenchError as error:
        sys.exit(f"irq_time_kernel: {error}")
    print("\n".join(f"FAULT: {fault}" for fault in faults) or "as expected")
    sys.exit(1 if faults else 0)


def built(work: Path) -> Path:
    """Return the kernel of Debian's source with irq_time.frag; build it in the folder `work` if it is not there."""
    image = work / f"bzImage-{recipe.digest(FRAGMENT)[:8]}"
    if image.is_file():
        return image
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    tree = work / "linux"
    source = recipe.used()["linux"]
    with Registry(secrets.token_hex(3)) as registry:
        runner = Runner(registry, work / "log", lambda line: None)
        print(
            f"building Linux {source.version} with CONFIG_IRQ_TIME_ACCOUNTING=y: some minutes, once",
            flush=True,
        )
        sources.fetch(["linux"], runner, print)
        sources.unpack(source, tree, runner)
        make = ["make", "ARCH=x86_64", f"-j{tools.processors()}"]
        runner.run([*make, "allnoconfig"], tree, "configuring", env={"KCONFIG_ALLCONFIG": str(FRAGMENT)})
        if lost := kernel.lost_options(FRAGMENT.read_text(), (tree / ".config").read_text()):
            raise EspbenchError(f"{FRAGMENT}: Linux {source.version} did not take {', '.join(lost)}")
        runner.run([*make, "bzImage"], tree, "building the kernel")
    shutil.copyfile(tree / "arch/x86/boot/bzImage", image)
    shutil.rmtree(tree)
    return image


def left_out_faults(out: Path, *, left_out: bool) -> list[str]:
    """Print the result of the guest's test; return the faults. left_out: whether time is expected to be left out."""
    text = (out / f"{ACCOUNTED}.txt").read_text()
    print(text, flush=True)
    lines = {name: value for name, _, value in (line.partition(": ") for line in text.splitlines())}
    if "shares" not in lines:
        return [f"the guest's trial failed: {text}"]
    if (lines["by trial"] != "whole") != left_out:
        return [f"expected espbench's trial to find {'that' if left_out else 'nothing'} left out: {text}"]
    if left_out and "CONFIG_IRQ_TIME_ACCOUNTING=y" not in lines["by its configuration"]:
        return [f"expected the kernel's configuration to tell: {text}"]
    return []


def refused(out: Path) -> list[str]:
    """Print the results of the run in the guest; return the faults: CPU figures, or missing throughput figures."""
    runs = list((out / "runs").glob("*"))
    if not runs:
        said = [(out / name).read_text() for name in ("doctor.txt", "run.txt") if (out / name).is_file()]
        return ["no run inside: " + "\n".join(said)]
    faults = []
    with RunDirectory.open(runs[0]) as run:
        facts = {
            str(value) for value in _leaves(run.manifest.model_dump(mode="json")) if "IRQ_TIME" in str(value)
        }
        print(*sorted(facts), sep="\n")
        if not facts:
            faults.append("the manifest does not say why there is no CPU figure")
        for result in run.results():
            percent = [result.cpu_home_pct, result.cpu_office_pct] if isinstance(result, Outcome) else []
            print(f"{result.case}: {result.status}, {result.words}, CPU {percent}")
            if any(value is not None for value in percent):
                faults.append(f"{result.case} has a CPU figure")
            if result.status not in WITH_FIGURE:
                faults.append(f"{result.case} has no figure: {'; '.join(map(str, result.reasons))}")
    return faults


def _leaves(value: object) -> list[object]:
    if isinstance(value, dict):
        return [leaf for item in value.items() for part in item for leaf in _leaves(part)]
    if isinstance(value, list):
        return [leaf for part in value for leaf in _leaves(part)]
    return [value]


if __name__ == "__main__":
    main()
