# SPDX-License-Identifier: Apache-2.0
"""Builds QEMU for the emulated machines, with espbench's device models and patches.

There is one source tree for all machines, configured in one way. Each machine's program is compiled on demand: most
object files are common, so the second program in a tree takes less time than the first. No program depends on which
others were made before.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from espbench.errors import EspbenchError
from espbench.platforms.virtual.parts import recipe, sources, tools
from espbench.platforms.virtual.parts.recipe import SourcePackage
from espbench.platforms.virtual.parts.tools import Runner

_PLACE = "hw/misc/espbench"  # the folder of espbench's sources in QEMU's tree
_OPTIONS = (
    "--without-default-features",
    "--without-default-devices",
    "--enable-system",
    "--enable-tcg",
    "--disable-docs",
    "--disable-debug-info",
    "--audio-drv-list=",
    "--enable-fdt=system",
    "--prefix=/usr",
    "--with-pkgversion=espbench",
)
_MESON = """\
softmmu_ss.add(when: [{conditions}], if_true: [
  declare_dependency(include_directories: include_directories({folders})),
  files({files})])
"""
# A machine on which no boards are built may lack these libraries.
_LIBRARIES = ("dependency('nettle', required: false)", "cc.find_library('gmp', required: false)")


@dataclass(frozen=True)
class Target:
    """A program of QEMU for one kind of machine, with QEMU's and espbench's devices.

    machine is the option that only this machine's configuration has; boards are the lines of its configuration.
    Sources and patches that only this target has must not change the programs of other targets, because they are not
    in their keys.
    """

    architecture: str
    machine: str
    boards: str
    sources: Callable[[Path], list[Path]]
    patches: Callable[[Path], list[Path]]

    @property
    def program(self) -> str:
        """The name of the program."""
        return f"qemu-system-{self.architecture}"


PPCE500 = Target("ppc", "CONFIG_E500PLAT", "CONFIG_E500PLAT=y\n", recipe.qemu_sources, recipe.qemu_patches)
X86 = Target(
    "x86_64",
    "CONFIG_Q35",
    "CONFIG_Q35=y\nCONFIG_SERIAL_ISA=y\nCONFIG_E1000E_PCI_EXPRESS=y\n",
    recipe.x86_qemu_sources,
    recipe.x86_qemu_patches,
)
TARGETS = (PPCE500, X86)


def build(work: Path, source: SourcePackage, runner: Runner, target: Target) -> Mapping[str, Path]:
    """Return the target's program, made below `work`; a tree in which another target was made is used again.

    Raise EspbenchError if that tree was made of other files than the present ones.
    """
    tree, made, stamp = work / "qemu", work / "made", work / "made-of"
    made_of = _digests(source)
    if not made.is_dir():
        sources.unpack(source, tree, runner)
        _lay_in(tree, runner)
        made.mkdir()
        _configure(tree, made, runner)
        stamp.write_text(made_of)
    elif stamp.read_text() != made_of:
        raise EspbenchError(f"{recipe.folder()}: a file of QEMU changed while it was built: build again")
    runner.run(["ninja", f"-j{tools.processors()}", target.program], made, "building QEMU")
    product = work / target.program
    # The symbols of functions stay: benchmarks/emulated_duts/virtual_time.py --profile shows them.
    runner.run(
        ["strip", "--strip-debug", "-o", str(product), str(made / product.name)], work, "stripping QEMU"
    )
    return {product.name: product}


def meson_build(base: Path) -> str:
    """Return the build file for espbench's sources, which have the same paths in its folder as below `base`."""
    text = "# Made by espbench: the device models of harness/emulator.\n"
    for target in TARGETS:
        names = [str(file.relative_to(base)) for file in target.sources(base)]
        libraries = _LIBRARIES if any(name.startswith("sec/") for name in names) else ()
        text += _MESON.format(
            conditions=", ".join([f"'{target.machine}'", *libraries]),
            folders=_listed([".", *sorted({str(Path(name).parent) for name in names})]),
            files=_listed(name for name in names if name.endswith(".c")),
        )
    return text


def _configure(tree: Path, made: Path, runner: Runner) -> None:
    flags = f"-O2 -ffile-prefix-map={tree}=. -ffile-prefix-map={made}=."
    command = [
        str(tree / "configure"), f"--target-list={','.join(f'{t.architecture}-softmmu' for t in TARGETS)}",
        *(f"--with-devices-{target.architecture}=espbench" for target in TARGETS), *_OPTIONS,
        f"--meson={shutil.which('meson')}", f"--extra-cflags={flags}",
    ]  # fmt: skip
    runner.run(command, made, "configuring QEMU")


def _lay_in(tree: Path, runner: Runner) -> None:
    base = recipe.folder()
    for file in _each_once(target.sources(base) for target in TARGETS):
        place = tree / _PLACE / file.relative_to(base)
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, place)
    (tree / _PLACE / "meson.build").write_text(meson_build(base))
    with (tree / "hw/misc/meson.build").open("a") as parent:
        parent.write("subdir('espbench')\n")
    for target in TARGETS:
        boards = tree / f"configs/devices/{target.architecture}-softmmu/espbench.mak"
        boards.write_text(target.boards)
    for patch in _each_once(target.patches(base) for target in TARGETS):
        runner.run(["patch", "-p1", "--forward", "--input", str(patch)], tree, f"applying {patch.name}")


def _digests(source: SourcePackage) -> str:
    """Return the digests of all files of a tree as text: trees of different files have different texts."""
    base = recipe.folder()
    ours = chain.from_iterable([*target.sources(base), *target.patches(base)] for target in TARGETS)
    return "\n".join([*source.files.values(), *map(recipe.digest, ours)])


def _each_once(lists: Iterable[list[Path]]) -> list[Path]:
    return list(dict.fromkeys(chain.from_iterable(lists)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
