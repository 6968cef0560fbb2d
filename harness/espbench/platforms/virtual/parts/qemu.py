# SPDX-License-Identifier: Apache-2.0
"""Builds QEMU for one kind of machine alone, with our device models and our changes laid in."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from espbench.platforms.virtual.parts import recipe, sources, tools
from espbench.platforms.virtual.parts.recipe import SourcePackage
from espbench.platforms.virtual.parts.tools import Runner

_PLACE = "hw/misc/espbench"  # our sources stand here in QEMU's tree
_OPTIONS = (
    "--without-default-features",
    "--without-default-devices",
    "--enable-system",
    "--enable-tcg",
    "--disable-docs",
    "--disable-debug-info",
    "--audio-drv-list=",
    "--prefix=/usr",
    "--with-pkgversion=espbench",
)
_MESON = """\
# Made by espbench: the device models of harness/emulator.
softmmu_ss.add(
  declare_dependency(include_directories: include_directories({folders})),
{libraries}  files({files}))
"""
_LIBRARIES = "  dependency('nettle'), cc.find_library('gmp'),\n"


@dataclass(frozen=True)
class Target:
    """Says which QEMU is built: for one kind of machine, with these devices of its own and these of ours.

    boards are lines of its configuration; options go to configure beside those that all have.
    """

    architecture: str
    boards: str
    sources: Callable[[Path], list[Path]]
    patches: Callable[[Path], list[Path]]
    options: Sequence[str] = ()

    @property
    def program(self) -> str:
        """The emulator's name."""
        return f"qemu-system-{self.architecture}"


PPCE500 = Target(
    "ppc", "CONFIG_E500PLAT=y\n", recipe.qemu_sources, recipe.qemu_patches, options=["--enable-fdt=system"]
)


def build(work: Path, source: SourcePackage, runner: Runner, target: Target = PPCE500) -> Mapping[str, Path]:
    """Return the target's program, made below `work`; its tree is `work`/made."""
    tree, made = work / "qemu", work / "made"
    sources.unpack(source, tree, runner)
    _lay_in(tree, target, runner)
    made.mkdir()
    flags = f"-O2 -ffile-prefix-map={tree}=. -ffile-prefix-map={made}=."
    command = [
        str(tree / "configure"), f"--target-list={target.architecture}-softmmu",
        f"--with-devices-{target.architecture}=espbench", *_OPTIONS, *target.options,
        f"--meson={shutil.which('meson')}", f"--extra-cflags={flags}",
    ]  # fmt: skip
    runner.run(command, made, "configuring QEMU")
    runner.run(["ninja", f"-j{tools.processors()}", target.program], made, "building QEMU")
    product = work / target.program
    # Names of functions stay: benchmarks/emulated_duts/virtual_time.py --profile tells them.
    runner.run(
        ["strip", "--strip-debug", "-o", str(product), str(made / product.name)], work, "stripping QEMU"
    )
    return {product.name: product}


def meson_build(base: Path, ours: list[Path]) -> str:
    """Return the build file of our sources, which stand in its folder as they do below `base`."""
    names = [str(file.relative_to(base)) for file in ours]
    folders = sorted({str(Path(name).parent) for name in names})
    return _MESON.format(
        folders=_listed([".", *folders]),
        files=_listed(name for name in names if name.endswith(".c")),
        libraries=_LIBRARIES if any(name.startswith("sec/") for name in names) else "",
    )


def _lay_in(tree: Path, target: Target, runner: Runner) -> None:
    base = recipe.folder()
    ours = target.sources(base)
    for file in ours:
        place = tree / _PLACE / file.relative_to(base)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    if ours:
        (tree / _PLACE / "meson.build").write_text(meson_build(base, ours))
        with (tree / "hw/misc/meson.build").open("a") as parent:
            parent.write("subdir('espbench')\n")
    boards = tree / f"configs/devices/{target.architecture}-softmmu/espbench.mak"
    boards.write_text(target.boards)
    for patch in target.patches(base):
        runner.run(["patch", "-p1", "--forward", "--input", str(patch)], tree, f"applying {patch.name}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
