# SPDX-License-Identifier: Apache-2.0
"""Finds the User-Mode Linux kernels of a profile and their modules, and checks the requirements on this machine."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.base import SIDES, Readiness, Side
from espbench.this_machine import kept

XSTATE_SHIM = Path(__file__).with_name("uml_ptrace.c")
# The PATH of the guest, whose root is the host's.
GUEST_PATH = "/usr/sbin:/usr/bin:/sbin:/bin"
MODULES_ROOT = Path("/usr/lib/uml/modules")
# UML asks the host for the size of the vector state from 6.13 on; earlier kernels assume a fixed size.
ASKS_FOR_XSTATE_SIZE = (6, 13)
XFRM_MODULES = (
    *("ipv6", "xfrm_user", "esp4", "esp6", "authenc", "seqiv", "echainiv"),
    *("cbc", "hmac", "des_generic", "crypto_null", "ctr", "gcm", "ghash_generic"),
    *("chacha20poly1305", "chacha_generic", "poly1305_generic"),
)


@dataclass(frozen=True)
class UmlKernel:
    """One gateway's kernel: an executable, by path or in PATH, and the folder of its modules if given."""

    executable: str = "linux.uml"
    modules: Path | None = None


@dataclass(frozen=True)
class UmlProfile:
    """The settings of a DUT profile for its UML gateways.

    kernel and modules are given by gateway, so that two kernels can negotiate with each other. A folder of modules has
    modules.dep; without modules it is the Debian package's folder for that kernel's version. preload: modules that are
    loaded before the first trial.
    """

    name: str = "uml"
    kernel: Mapping[Side, str] = field(default_factory=lambda: dict.fromkeys(SIDES, "linux.uml"))
    modules: Mapping[Side, Path] | None = None
    memory_mb: int = 256
    preload: tuple[str, ...] = XFRM_MODULES

    def kernel_of(self, side: Side) -> UmlKernel:
        """Return one gateway's kernel."""
        return UmlKernel(self.kernel[side], self.modules[side] if self.modules else None)


def find_kernel(kernel: UmlKernel) -> str:
    """Return the kernel's absolute path. Raise MachineLacks if there is none."""
    path = shutil.which(kernel.executable)
    if path is None:
        raise MachineLacks(f"no UML kernel {kernel.executable!r}", "apt-get install user-mode-linux")
    return str(Path(path).resolve())


def _version(kernel: UmlKernel) -> str:
    """Return the kernel's release, such as 6.1.176."""
    done = subprocess.run([find_kernel(kernel), "--version"], capture_output=True, text=True, check=False)
    if done.returncode or not done.stdout.strip():
        raise MachineLacks(f"{kernel.executable} --version says nothing: not a UML kernel that runs here")
    return done.stdout.split()[0]


def find_modules(kernel: UmlKernel) -> Path:
    """Return the folder of a kernel's modules, whether it exists or not."""
    return kernel.modules.resolve() if kernel.modules else MODULES_ROOT / _version(kernel)


def build_of(kernel: UmlKernel) -> str:
    """Return the SHA-256 of a kernel and of the user's own modules: two builds may have the same release."""
    build = f"sha256 {kept.digest(Path(find_kernel(kernel)).resolve())}"
    if kernel.modules is None:
        return build
    return f"{build}, modules sha256 {_digest_of_folder(kernel.modules.resolve())}"


def _digest_of_folder(folder: Path) -> str:
    files = sorted(file for file in folder.rglob("*.ko*") if file.is_file())
    listed = "".join(f"{file.relative_to(folder)} {kept.digest(file)}\n" for file in files)
    return hashlib.sha256(listed.encode()).hexdigest()


def needs_xstate_shim(kernel: UmlKernel) -> bool:
    """Return whether this processor's vector state is larger than this kernel supports (see uml_ptrace.c)."""
    numbers = re.match(r"(\d+)\.(\d+)", _version(kernel))
    old = numbers is not None and (int(numbers[1]), int(numbers[2])) < ASKS_FOR_XSTATE_SIZE
    return old and " amx_tile" in Path("/proc/cpuinfo").read_text()


def build_xstate_shim(private: Path) -> Path:
    """Build uml_ptrace.c into a folder, and return the library, which the kernel must preload."""
    library = private / "uml_ptrace.so"
    done = subprocess.run(
        ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(XSTATE_SHIM)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise EspbenchError(f"cannot build {XSTATE_SHIM.name}: {done.stderr.strip()}")
    return library


def readiness(profile: UmlProfile | None = None) -> list[Readiness]:
    """Return for each requirement of UML gateways whether this machine meets it."""
    profile = profile or UmlProfile()
    modprobe = shutil.which("modprobe", path=GUEST_PATH)
    root = "namespaces and taps need CAP_NET_ADMIN and CAP_SYS_ADMIN"
    answers = [
        _need("ip", shutil.which("ip"), "no ip(8)", "iproute2"),
        _need("modprobe", modprobe, "no modprobe for the guest", "kmod"),
        _need("mount", shutil.which("mount", path=GUEST_PATH), "no mount(8) for the guest", "mount"),
        Readiness("tun", Path("/dev/net/tun").exists(), "no /dev/net/tun", "modprobe tun"),
        Readiness("root", _may_administer(), root, "run espbench as root"),
    ]
    for kernel in dict.fromkeys(profile.kernel_of(side) for side in SIDES):
        answers += _kernel_readiness(kernel)
    return [answer if not answer.ready else Readiness(answer.name, True) for answer in answers]


def _kernel_readiness(kernel: UmlKernel) -> list[Readiness]:
    path = shutil.which(kernel.executable)
    answers = [_need("kernel", path, f"no UML kernel {kernel.executable!r}", "user-mode-linux")]
    if path:
        modules = find_modules(kernel)
        has_modules = (modules / "modules.dep").exists()
        answers.append(_need("modules", has_modules, f"no modules in {modules}", "user-mode-linux"))
        if needs_xstate_shim(kernel):
            why = "this processor has AMX: UML before 6.13 needs uml_ptrace.c built, and there is no cc"
            answers.append(_need("C compiler", shutil.which("cc"), why, "gcc libc6-dev"))
    return answers


def _need(name: str, present: object, missing: str, package: str) -> Readiness:
    return Readiness(name, bool(present), missing, f"apt-get install {package}")


def _may_administer() -> bool:
    """Return whether this process has CAP_NET_ADMIN (12) and CAP_SYS_ADMIN (21) (linux/capability.h)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff:"):
            held = int(line.split()[1], 16)
            return bool(held >> 12 & 1 and held >> 21 & 1)
    return False
