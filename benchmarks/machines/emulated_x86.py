#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs espbench on a machine with late timers: Debian's stock kernel in an emulated x86 machine.

    QEMU (multi-threaded TCG, 2 CPUs) ── 9p, read-only ── this machine's root     the guest's root, under an overlay
                                      └─ 9p ── a temporary folder                 for the plan and the run directory

Kernel, QEMU and BusyBox are Debian's packages. They are fetched by apt and unpacked into the cache, like a plan's
daemons; nothing is installed. The guest runs this clone with this interpreter: first `espbench doctor`, then a plan of
two namespaces with ESP by the guest's kernel, with a throughput search and a flood at 4,000 frames/s. Late timers must
neither keep frames back nor leave a case without an answer: the exit code is 1 if less than 99.9 % of a flood's frames
leave, or if a throughput has no figure (OK or LOWER_BOUND). Whether a flood is INVALID does not matter: this machine
stands still too often to judge it. Needs neither root nor KVM; both CPUs are busy for about ten minutes.

    .venv/bin/python benchmarks/machines/emulated_x86.py [--keep FOLDER]
"""

from __future__ import annotations

import argparse
import lzma
import os
import platform
import re
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from espbench.errors import EspbenchError
from espbench.generators.native import binary
from espbench.paths import clone_root
from espbench.platforms.placement import NICE
from espbench.platforms.virtual.parts import cpio
from espbench.results import RunDirectory
from espbench.stacks.daemons import packages
from espbench.terms import WITH_FIGURE, Finding, Outcome, Trial
from espbench.this_machine.registry import Registry, Surroundings

PACKAGES = ("linux-image-amd64", "qemu-system-x86", "busybox-static")
CPUS, MEMORY_MB = 2, 3072
PATIENCE_S = 1200
SELF_PATCHING = 7  # the first major version of Linux that patches running code when it gives up the TSC
LOAD_FPS = 4000
LEAST_LEFT = 0.999  # of the frames of a flood
PLAN = f"""\
name: emulated-x86
topology: gateway-to-gateway
dut: netns
stacks: [plain, xfrm]
suites: [aes128gcm16]
frame_sizes: [512]
directions: [one-way]
tests:
  - throughput: {{minimum: 500fps, maximum: 8000fps, loss_goals: [0], trial: 500ms, final_trial: 2s, resolution: 10%,
                 settle: 50ms, residue: 500ms, warm_up: 200ms, learning: 100ms}}
  - flood: {{maximum: {LOAD_FPS}fps, trial: 2s, settle: 50ms, residue: 500ms, warm_up: 200ms, learning: 100ms}}
"""
# These modules are needed for the guest's root and for namespaces with ESP. Some are no dependency of another module:
# without drbg every SA is refused ("Kernel was unable to initialize cryptographic operations").
MODULES = (
    "virtio_pci", "virtio_rng", "9pnet_virtio", "9p", "overlay", "veth", "xfrm_user", "xfrm_interface", "esp4", "esp6",
    "sha1_generic", "sha256_generic", "sha512_generic", "hmac", "ctr", "jitterentropy_rng", "drbg", "cbc", "ecb",
    "des_generic", "authenc", "gcm", "ghash_generic", "ghash_clmulni_intel", "aesni_intel", "seqiv", "echainiv",
)  # fmt: skip
# The guest's first process loads the modules, mounts the host's root under a temporary overlay, and runs GUEST.
INIT = """\
#!/bin/busybox sh
export PATH=/bin
/bin/busybox --install -s /bin
mkdir -p /proc /sys /dev /low /up /root
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
for module in /modules/*; do insmod $module || echo "espbench-guest: no $module"; done
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose,msize=262144 root /low || exec poweroff -f
mount -t tmpfs up /up; mkdir /up/upper /up/work
mount -t overlay -o lowerdir=/low,upperdir=/up/upper,workdir=/up/work root /root || exec poweroff -f
for each in proc sys dev; do mount --move /$each /root/$each; done
mkdir -p /root/dev/pts /root/dev/shm
mount -t devpts pts /root/dev/pts; mount -t tmpfs shm /root/dev/shm; mount -t tmpfs run /root/run
{modules}
mkdir /root/run/out; mount -t 9p -o trans=virtio,version=9p2000.L out /root/run/out
exec switch_root /root /bin/sh /run/out/guest.sh
"""
MOUNT_MODULES = """\
mkdir -p /root/usr/lib/modules
mount -t 9p -o ro,trans=virtio,version=9p2000.L,cache=loose modules /root/usr/lib/modules || exec poweroff -f
"""
GUEST = """\
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb
export PYTHONPATH={harness} PYTHONDONTWRITEBYTECODE=1
cd {clone}
ip link set lo up
uname -srv; cat /sys/devices/system/clocksource/clocksource0/current_clocksource
echo "{mark} booted"
{python} -m espbench doctor > /run/out/doctor.txt 2>&1; echo $? > /run/out/doctor.exit
echo "{mark} surveyed"
{python} -m espbench run --no-report --out /run/runs /run/out/plan.yaml 2>&1 | tee /run/out/run.txt
cp -r /run/runs /run/out
echo "{mark} done"
sync
echo o > /proc/sysrq-trigger
sleep 60
"""
MARK = "espbench-guest:"


@dataclass(frozen=True)
class Computer:
    """A machine to boot: its kernel, its root, and its modules.

    first_modules: (name, content) of modules that are loaded before the root is mounted. root, modules: folders of this
    machine; modules is mounted at /usr/lib/modules, from where the kernel loads further modules by itself. options:
    further words of the kernel's command line. patience_s: the longest time that the machine may run.
    """

    kernel: Path
    first_modules: Sequence[tuple[str, bytes]] = ()
    root: Path = Path("/")
    modules: Path | None = None
    options: str = ""
    patience_s: float = PATIENCE_S


class Left(NamedTuple):
    """The results of a trial at LOAD_FPS.

    share: the share of its frames that left the tester. offered: offered load by intended load. lost: the loss ratio.
    """

    case: str
    share: float
    offered: float
    lost: float
    validity: str


def main() -> None:
    """Boot the guest, measure, and print the results; the exit code is 1 if a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--keep", type=Path, help="copy the guest's console, answers and run into this folder"
    )
    keep = parser.parse_args().keep
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that QEMU and the folder are removed
    with tempfile.TemporaryDirectory(prefix="espbench-x86-") as name:
        folder = Path(name)
        try:
            machine = fetched()
            times = boot(machine, folder)
        except EspbenchError as error:
            sys.exit(f"emulated_x86: {error}")
        finally:
            if keep and (folder / "out").is_dir():
                shutil.copytree(folder / "out", keep, dirs_exist_ok=True)
        missed = report(folder / "out", times)
    print("".join(f"missed: {goal}\n" for goal in missed), end="")
    sys.exit(1 if missed else 0)


def fetched() -> Path:
    """Fetch Debian's kernel, QEMU and BusyBox if needed, and return their folder."""
    packages.PACKAGES.setdefault("emulated-x86", PACKAGES)
    packages._SAME_VERSION.setdefault("emulated-x86", PACKAGES[:1])
    return packages.unpacked("emulated-x86", on_note=print)


def boot(
    machine: Path, folder: Path, *, kernel: Path | None = None, options: str = "", guest: str = GUEST
) -> list[tuple[str, float]]:
    """Run the script `guest` inside; return its marks, each as (text, seconds since QEMU was started).

    kernel: used instead of Debian's; it must need no modules. options: further words of its command line.
    """
    clone, out = clone_root(), folder / "out"
    if platform.machine() != "x86_64":
        raise EspbenchError(
            f"expected an x86_64 host, whose programs the guest runs, got {platform.machine()}"
        )
    if clone is None:
        raise EspbenchError(
            "expected to run from a clone, which the guest sees as well; this is an installed wheel"
        )
    binary()  # raises an error with a remedy if the generator is not built
    out.mkdir()
    (out / "plan.yaml").write_text(PLAN)
    (out / "guest.sh").write_text(
        guest.format(clone=clone, harness=clone / "harness", python=sys.executable, mark=MARK)
    )
    if kernel is None:
        kernel = kernel_of(machine)
        loaded = modules(machine / "usr/lib/modules" / version_of(kernel), MODULES)
    else:
        loaded = []
    return start(machine, Computer(kernel, loaded, options=options), out)


def start(machine: Path, computer: Computer, out: Path) -> list[tuple[str, float]]:
    """Boot a computer that runs out/guest.sh; return its marks, each as (text, seconds since the start).

    machine: the folder with QEMU and BusyBox. out: a folder, which the computer has as /run/out. The console's log is
    out/console.log.
    """
    initramfs = out / "initramfs.gz"
    initramfs.write_bytes(cpio.zipped(first_root(machine, computer)))
    console = out / "console.log"
    libraries = machine / "usr/lib/x86_64-linux-gnu"
    with Registry(secrets.token_hex(3)) as registry, console.open("wb") as log:
        # QEMU runs at a high priority, so that the guest's timers are late because of the emulation alone.
        qemu = registry.spawn(
            command(machine, computer, initramfs, out),
            "qemu emulated-x86",
            Surroundings(
                env=os.environ | {"LD_LIBRARY_PATH": str(libraries), "QEMU_MODULE_DIR": str(libraries / "qemu")},
                nice=NICE,
            ),
            stdout=log,
            stderr=log,
            grace_s=0,
        )  # fmt: skip
        return watch(qemu, console, computer.patience_s)


def kernel_of(machine: Path) -> Path:
    """Return the kernel of the newest linux-image among the packages; since Linux 7 it is beside its modules."""
    kernels = [
        *sorted((machine / "boot").glob("vmlinuz-*")),
        *sorted((machine / "usr/lib/modules").glob("*/vmlinuz")),
    ]
    if not kernels:
        raise EspbenchError(
            f"{machine}: expected a kernel in boot/ or usr/lib/modules/*/, got none: delete that folder"
        )
    return kernels[-1]


def version_of(kernel: Path) -> str:
    """Return the version in the name of a kernel's file, or of its folder."""
    return kernel.parent.name if kernel.name == "vmlinuz" else kernel.name.removeprefix("vmlinuz-")


def command(machine: Path, computer: Computer, initramfs: Path, out: Path) -> list[str]:
    """Return QEMU's command line: no disk, no network, the console on its standard output."""
    share = machine / "usr/share"
    words = [
        str(machine / "usr/bin/qemu-system-x86_64"), "-L", str(share / "qemu"), "-L", str(share / "seabios"),
        "-M", "q35", "-accel", "tcg,thread=multi", "-cpu", "max", "-smp", str(CPUS), "-m", str(MEMORY_MB),
        "-nodefaults", "-display", "none", "-no-reboot", "-serial", "stdio", "-device", "virtio-rng-pci",
        *shared("root", computer.root, "readonly=on,multidevs=remap"), *shared("out", out),
    ]  # fmt: skip
    if computer.modules:
        words += shared("modules", computer.modules, "readonly=on,multidevs=remap")
    options = [
        "console=ttyS0",
        "panic=-1",
        "quiet",
        *clock_options(version_of(computer.kernel)),
        computer.options,
    ]
    return [*words, "-kernel", str(computer.kernel), "-initrd", str(initramfs), "-append", " ".join(options)]


def clock_options(version: str) -> list[str]:
    """Return the options with which a kernel of this version, such as 6.1.0-50-amd64, keeps the TSC as its clock.

    Linux 7 patches its own code when it gives up the TSC (ktime_get_mono_fast_ns), while the other CPU executes that
    code. The other CPU of QEMU may meet a breakpoint that is gone: "Oops: int3". Older kernels get no option: they give
    up the TSC for a clock that is slow to read, which is what a machine with late timers is like.
    """
    major = re.match(r"\d+", version)
    return ["tsc=reliable"] if major and int(major[0]) >= SELF_PATCHING else []


def shared(tag: str, folder: Path, options: str = "") -> list[str]:
    """Return QEMU's options for a folder that the guest mounts by 9p."""
    path = str(folder).replace(",", ",,")
    device = f"local,id={tag},path={path},security_model=none" + (f",{options}" if options else "")
    return ["-fsdev", device, "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]


def first_root(machine: Path, computer: Computer) -> bytes:
    """Return the initial RAM file system: BusyBox, the first modules in the order of loading, and /init."""
    init = INIT.format(modules=MOUNT_MODULES if computer.modules else "")
    folders = ("bin", "modules")
    files = [
        cpio.Entry.file("init", init.encode(), mode=0o755),
        cpio.Entry.file("bin/busybox", (machine / "usr/bin/busybox").read_bytes(), mode=0o755),
    ]
    for number, (name, data) in enumerate(computer.first_modules):
        files.append(cpio.Entry.file(f"modules/{number:03}-{name}.ko", data))
    return cpio.archive([*map(cpio.Entry.folder, folders), *files])


def modules(folder: Path, wanted: Iterable[str]) -> list[tuple[str, bytes]]:
    """Return (name, content) of these modules and their dependencies, each after its dependencies.

    Modules that are built into the kernel are left out.
    """
    files = {f.name.split(".ko")[0].replace("-", "_"): f for f in folder.glob("kernel/**/*.ko*")}
    loaded: dict[str, bytes] = {}

    def load(name: str) -> None:
        if name in loaded or name not in files:
            return
        data = files[name].read_bytes()
        if files[name].suffix == ".xz":
            data = lzma.decompress(data)
        needs = re.search(rb"\0depends=([^\0]*)\0", data)
        for need in needs[1].decode().split(",") if needs else ():
            load(need.replace("-", "_"))
        loaded[name] = data

    for name in wanted:
        load(name.replace("-", "_"))
    return list(loaded.items())


def watch(
    qemu: subprocess.Popen[bytes], console: Path, patience_s: float = PATIENCE_S
) -> list[tuple[str, float]]:
    """Wait until the guest's machine is off; return its marks, each as (text, seconds).

    EspbenchError if the machine is not off after patience_s, or ended before the mark `done`.
    """
    begun = time.monotonic()
    heard: list[tuple[str, float]] = []
    while True:
        ended = qemu.poll() is not None
        lines = console.read_text(errors="replace").splitlines()
        said = [line.split(MARK, 1)[1].strip() for line in lines if MARK in line]
        heard += [(text, time.monotonic() - begun) for text in said[len(heard) :]]
        if ended:
            break
        if time.monotonic() - begun > patience_s:
            raise EspbenchError(f"the guest was not done after {patience_s} s; it last said: {lines[-1:]}")
        time.sleep(0.5)
    if "done" not in (text for text, _ in heard):
        raise EspbenchError("the guest ended early; its console ends:\n  " + "\n  ".join(lines[-15:]))
    return heard


def report(out: Path, times: Sequence[tuple[str, float]]) -> list[str]:
    """Print the results; return the goals that are missed, in words."""
    print((out / "console.log").read_text(errors="replace").partition(f"{MARK} booted")[0].strip()[-200:])
    print(", ".join(f"{what} after {seconds:.0f} s" for what, seconds in times))
    print(f"espbench doctor: exit {(out / 'doctor.exit').read_text().strip()}")
    runs = sorted((out / "runs").glob("*")) if (out / "runs").is_dir() else []
    if not runs:
        return ["no run:\n" + (out / "run.txt").read_text()]
    with RunDirectory.open(runs[0]) as run:
        floods = at_load(run.trials())
        for left in floods:
            print(
                f"{left.case}: {100 * left.share:.1f} % of the frames left, offered/intended {left.offered:.3f}, "
                f"{100 * left.lost:.1f} % lost, {left.validity}"
            )
        results = run.results()
        for result in results:
            print(f"{result.case}: {result.status}, {result.words or '; '.join(map(str, result.reasons))}")
        return missed_goals(floods, results, len(run.manifest.cases))


def missed_goals(floods: Sequence[Left], results: Sequence[Outcome | Finding], cases: int) -> list[str]:
    """Return the goals that are missed, in words. cases: the number of cases of the run, each with one result."""
    missed = [
        f"{flood.case}: only {100 * flood.share:.2f} % of the frames left, expected {100 * LEAST_LEFT:g} %"
        for flood in floods
        if flood.share < LEAST_LEFT
    ]
    for result in results:
        if isinstance(result, Outcome) and result.status not in WITH_FIGURE:
            missed.append(f"{result.case}: {result.status}, expected a figure")
        elif isinstance(result, Finding) and result.case not in {flood.case for flood in floods}:
            missed.append(f"{result.case}: no frame was sent")
    if not results or len(results) != cases:
        missed.append(f"{len(results)} results of {cases} cases")
    return missed


def at_load(trials: Iterable[Trial]) -> list[Left]:
    """Return the results of the trials at LOAD_FPS."""
    return [
        Left(
            t.case,
            t.tx_frames / (t.intended_fps * t.intended_duration_s),
            t.offered_fps / t.intended_fps,
            t.frame_loss_ratio,
            t.validity + "".join(f"; {reason}" for reason in t.reasons),
        )
        for t in trials
        if t.phase == "measure"
    ]


if __name__ == "__main__":
    main()
