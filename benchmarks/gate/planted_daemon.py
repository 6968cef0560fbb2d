#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds Debian's strongSwan with ESP in user space once, then only the files that change in another `src`.

As a command for `espbench bisect --build`: `planted_daemon.py BUILT_TREE`, run in a worktree of the history. The
programs are not stripped, so that `espbench profile` can name their functions.
"""

from __future__ import annotations

import filecmp
import shutil
import sys
from pathlib import Path

from espbench.platforms.virtual.parts import recipe, sources, tools
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry

CHANGED = "src/libipsec/esp_packet.c"
_WHOLE = "whole"  # the name of a file that exists when the tree is built and installed
_PLACE = "\t/* encrypt/authenticate the content inline */\n"
_OPTIONS = (
    "--disable-defaults", "--enable-charon", "--enable-ikev2", "--enable-swanctl", "--enable-vici", "--enable-random",
    "--enable-nonce", "--enable-openssl", "--enable-hmac", "--enable-kdf", "--enable-gcm", "--enable-chapoly",
    "--enable-curve25519", "--enable-pem", "--enable-pkcs1", "--enable-pkcs8", "--enable-x509", "--enable-pubkey",
    "--enable-constraints", "--enable-kernel-netlink", "--enable-kernel-libipsec", "--enable-socket-default",
)  # fmt: skip


def tree(work: Path) -> Path:
    """Return the source tree of strongSwan, built and installed into `installed` beside it; build it if needed."""
    built = work / "strongswan"
    if not (work / _WHOLE).exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        with Registry("planted") as registry:
            runner = Runner(registry, work / "log", lambda line: None)
            sources.fetch(["strongswan"], runner, print)
            sources.unpack(recipe.used()["strongswan"], built, runner)
            shutil.copytree(built / "src", work / "src")
            prefix = work / "installed"
            # Debug information would need more memory in the guests.
            flags = [f"PYTHON={sys.executable}", "CFLAGS=-O2"]
            words = [f"--prefix={prefix}", f"--sysconfdir={prefix / 'etc'}", *_OPTIONS, *flags]
            runner.run(["./configure", *words], built, "configuring strongSwan")
            _make(built, runner)
        (work / _WHOLE).touch()
    return built


def original(work: Path) -> Path:
    """Return the original folder src."""
    return work / "src"


def planted(text: str, nops: int) -> str:
    """Return esp_packet.c with `nops` nop instructions at a place that each encrypted packet passes once."""
    assert text.count(_PLACE) == 1, "esp_packet.c is not as it was"
    return text.replace(_PLACE, f'\tasm volatile(".rept {nops}; nop; .endr");\n{_PLACE}')


def build(worktree: Path, built: Path) -> None:
    """Build and install the tree with the sources of a worktree; unchanged files are not compiled again."""
    for file in (worktree / "src").rglob("*"):
        place = built / file.relative_to(worktree)
        if file.is_file() and not (place.is_file() and filecmp.cmp(file, place, shallow=False)):
            shutil.copyfile(file, place)
    with Registry("planted") as registry:
        _make(built / "src/libipsec", Runner(registry, built.parent / "log", lambda line: None))


def _make(folder: Path, runner: Runner) -> None:
    runner.run(["make", f"-j{tools.processors()}"], folder, "building strongSwan")
    runner.run(["make", "install"], folder, "installing strongSwan")


if __name__ == "__main__":
    build(Path.cwd(), Path(sys.argv[1]))
