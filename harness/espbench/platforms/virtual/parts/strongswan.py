# SPDX-License-Identifier: Apache-2.0
"""Builds strongSwan for emulated boards from Debian's sources: charon and swanctl as static programs, and a shell.

Debian 12 has no packages for 32-bit PowerPC, but a cross compiler and a C library. The C library uses floating-point
registers, which an e500 does not have; the boards' kernel emulates these instructions and counts them.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import recipe, sources, tools, userland
from espbench.platforms.virtual.parts.cpio import archive
from espbench.platforms.virtual.parts.tools import CROSS, Runner
from espbench.platforms.virtual.parts.userland import Image

DAEMON = "strongswan"
_PROGRAMS = {"charon": "usr/libexec/ipsec/charon", "swanctl": "usr/sbin/swanctl"}
_BUSYBOX = "usr/bin/busybox"
_COMMANDS = [
    "sh", "base64", "cat", "cp", "env", "grep", "kill", "ln", "ls", "mkdir", "mount", "mv", "rm", "sleep", "sort",
    "tail", "touch", "true", "wc",
]  # fmt: skip
# Position-independent code would be slower on a 32-bit PowerPC, and is not needed.
_FLAGS = "-O2 -fno-pie"
# configure cannot test this when it cross-compiles; a 32-bit PowerPC has it (__sync_bool_compare_and_swap() of an int).
_KNOWN = "-DHAVE_GCC_SYNC_OPERATIONS"


def build(work: Path, runner: Runner) -> Mapping[str, Path]:
    """Return base.cpio, strongswan.cpio and daemons.json, made below `work`.

    The archives are unpacked into a guest's root.
    """
    base = Image({"busybox": _BUSYBOX}, empty=["etc/hosts", "etc/resolv.conf"], busybox=_COMMANDS)
    daemon = Image(_PROGRAMS)
    shell = {_BUSYBOX: _busybox(work, runner)}
    programs = _strongswan(work, _openssl(work, runner), runner)
    made = {name: work / name for name in recipe.E500_STRONGSWAN.products}
    made["base.cpio"].write_bytes(archive(userland.entries(base, shell, with_folders=True)))
    made["strongswan.cpio"].write_bytes(archive(userland.entries(daemon, programs, with_folders=False)))
    used = recipe.used()
    said = {
        "programs": {name: f"/{path}" for name, path in _PROGRAMS.items()},
        "packages": {name: used[name].version for name in ("strongswan", "openssl", "busybox")},
    }
    made["daemons.json"].write_text(json.dumps({DAEMON: said}, indent=2) + "\n")
    return made


def options(name: str) -> list[str]:
    """Return the options in harness/emulator/strongswan/NAME.options, one in each line, without the comments."""
    text = (recipe.folder() / f"strongswan/{name}.options").read_text()
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def configured(asked: str, config: str) -> str:
    """Return busybox's configuration with the options of `asked` switched on; raise EspbenchError for unknown
    options.
    """
    for name in re.findall(r"^(CONFIG_\w+)=y$", asked, re.MULTILINE):
        config, switched = re.subn(rf"^# {name} is not set$", f"{name}=y", config, flags=re.MULTILINE)
        if not switched and f"\n{name}=y\n" not in config:
            raise EspbenchError(f"strongswan/busybox.config: expected options of this busybox, got {name}")
    return config


def _busybox(work: Path, runner: Runner) -> bytes:
    tree = work / "busybox"
    sources.unpack(recipe.used()["busybox"], tree, runner)
    runner.run(["make", "allnoconfig"], tree, "configuring busybox")
    asked, config = recipe.folder() / "strongswan/busybox.config", tree / ".config"
    config.write_text(configured(asked.read_text(), config.read_text()))
    runner.run(["sh", "-c", "yes '' | make oldconfig"], tree, "configuring busybox")
    words = [f"CROSS_COMPILE={CROSS}", "CFLAGS=-fno-pie", "LDFLAGS=-no-pie"]
    runner.run(["make", f"-j{tools.processors()}", *words, "busybox"], tree, "building busybox")
    return (tree / "busybox").read_bytes()


def _openssl(work: Path, runner: Runner) -> Path:
    """Build OpenSSL's library, and return the folder of its source tree."""
    tree = work / "openssl"
    sources.unpack(recipe.used()["openssl"], tree, runner)
    runner.run(["./Configure", *options("openssl")], tree, "configuring OpenSSL")
    for target in ("build_generated", "libcrypto.a"):
        runner.run(["make", f"-j{tools.processors()}", target], tree, "building OpenSSL")
    return tree


def _strongswan(work: Path, openssl: Path, runner: Runner) -> dict[str, bytes]:
    """Build strongSwan, and return its programs by their paths in the guest."""
    tree = work / "strongswan"
    sources.unpack(recipe.used()["strongswan"], tree, runner)
    flags = {
        "PYTHON": sys.executable,
        "CFLAGS": _FLAGS,
        "CPPFLAGS": f"{_KNOWN} -I{openssl}/include",
        "LDFLAGS": f"-L{openssl} -no-pie",
        "LIBS": "-latomic",
    }
    words = [f"{name}={value}" for name, value in flags.items()]
    runner.run(["./configure", *options("strongswan"), *words], tree, "configuring strongSwan")
    # Only libtool knows -all-static, and configure's test programs are linked without libtool.
    static = f"LDFLAGS={flags['LDFLAGS']} -all-static"
    runner.run(["make", f"-j{tools.processors()}", static], tree, "building strongSwan")
    programs = {}
    for name, path in _PROGRAMS.items():
        runner.run(
            [f"{CROSS}strip", "-o", str(work / name), f"src/{name}/{name}"], tree, "stripping strongSwan"
        )
        programs[path] = (work / name).read_bytes()
    return programs
