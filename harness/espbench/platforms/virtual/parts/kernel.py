# SPDX-License-Identifier: Apache-2.0
"""Builds the boards' kernel: Debian's Linux with espbench's fragment of a configuration, drivers and patches."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import recipe, sources, tools
from espbench.platforms.virtual.parts.recipe import SourcePackage
from espbench.platforms.virtual.parts.tools import Runner

_PLACE = "drivers/misc/espbench"  # the folder of espbench's sources in the kernel's tree


def build(work: Path, source: SourcePackage, runner: Runner) -> Mapping[str, Path]:
    """Return the products `vmlinux` and `config` (the whole configuration), made below `work`."""
    tree = work / "linux"
    sources.unpack(source, tree, runner)
    _lay_in(tree, runner)
    fragment = recipe.folder() / "kernel.frag"
    _make(tree, runner, ["allnoconfig"], KCONFIG_ALLCONFIG=str(fragment))
    if lost := lost_options(fragment.read_text(), (tree / ".config").read_text()):
        raise EspbenchError(
            f"{fragment}: expected each option to be in the configuration of Linux {source.version}, "
            f"these are not: {', '.join(lost)}"
        )
    make(tree, runner)
    image = work / "vmlinux"
    strip(tree, image, runner)
    return {"vmlinux": image, "config": tree / ".config"}


def make(tree: Path, runner: Runner) -> None:
    """Compile the kernel; only files that changed since the last time are compiled again."""
    _make(tree, runner, [f"-j{tools.processors()}", "vmlinux"])


def strip(tree: Path, image: Path, runner: Runner) -> None:
    """Write the kernel without its symbols to `image`: a loader needs none, and /proc/kallsyms has the kernel's own."""
    runner.run([f"{tools.CROSS}strip", "-o", str(image), str(tree / "vmlinux")], tree, "stripping the kernel")


def lost_options(fragment: str, config: str) -> list[str]:
    """Return the fragment's options that the configuration lacks: unknown ones, and those that depend on others."""
    held = dict(re.findall(r"^(CONFIG_\w+)=(.*)$", config, re.MULTILINE))
    asked = re.findall(r"^(CONFIG_\w+)=(.*)$", fragment, re.MULTILINE)
    return [f"{name}={value}" for name, value in asked if held.get(name, "n") != value]


def _lay_in(tree: Path, runner: Runner) -> None:
    ours = recipe.folder() / "kernel"
    for patch in sorted(ours.glob("*.patch")):
        runner.run(["patch", "-p1", "--forward", "--input", str(patch)], tree, f"applying {patch.name}")
    place = tree / _PLACE
    place.mkdir()
    files = sorted(ours.glob("*.[ch]"))
    for file in files:
        shutil.copyfile(file, place / file.name)
    objects = " ".join(f"{file.stem}.o" for file in files if file.suffix == ".c")
    (place / "Makefile").write_text(f"obj-y += {objects}\n")
    with (tree / "drivers/misc/Makefile").open("a") as makefile:
        makefile.write("obj-y += espbench/\n")


def _make(tree: Path, runner: Runner, targets: list[str], **env: str) -> None:
    moment = datetime.fromtimestamp(tools.EPOCH, UTC).strftime("%a %b %e %H:%M:%S UTC %Y")
    settings = {
        "ARCH": "powerpc",
        "CROSS_COMPILE": tools.CROSS,
        "KBUILD_BUILD_TIMESTAMP": moment,
        "KBUILD_BUILD_USER": "espbench",
        "KBUILD_BUILD_HOST": "e500",
        "KBUILD_BUILD_VERSION": "1",
        "KCFLAGS": f"-ffile-prefix-map={tree}=.",
    }
    words = [f"{name}={value}" for name, value in settings.items()]
    runner.run(["make", *words, *targets], tree, "building the kernel", env=env)
