# SPDX-License-Identifier: Apache-2.0
"""Builds QEMU for the emulated machines, with our device models and our changes laid in.

There is one tree for all of them, configured in one way. Each machine's program is compiled when it is asked for: most
objects are the same for all, so the second one in a tree costs a part of the first, and no program depends on which
others were made.
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

_PLACE = "hw/misc/espbench"  # our sources stand here in QEMU's tree
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
# Whoever builds no boards may lack them.
_LIBRARIES = ("dependency('nettle', required: false)", "cc.find_library('gmp', required: false)")


@dataclass(frozen=True)
class Target:
    """Says what QEMU emulates in one program: a kind of machine, with these devices of its own and these of ours.

    machine is the option that its configuration has and no other; boards are the lines of its configuration. What
    it has of sources and patches that others lack must not enter the others' programs: it is no part of their keys.
    """

    architecture: str
    machine: str
    boards: str
    sources: Callable[[Path], list[Path]]
    patches: Callable[[Path], list[Path]]

    @property
    def program(self) -> str:
        """The emulator's name."""
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
    """Return the target's program, made below `work`: in the tree there, where another one was made in it before.

    EspbenchError if that tree is of other files than those of now.
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
    # Names of functions stay: benchmarks/emulated_duts/virtual_time.py --profile tells them.
    runner.run(
        ["strip", "--strip-debug", "-o", str(product), str(made / product.name)], work, "stripping QEMU"
    )
    return {product.name: product}


def meson_build(base: Path) -> str:
    """Return the build file of our sources, which stand in its folder as they do below `base`."""
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
    """Return what a tree is made of, as text that differs for another one."""
    base = recipe.folder()
    ours = chain.from_iterable([*target.sources(base), *target.patches(base)] for target in TARGETS)
    return "\n".join([*source.files.values(), *map(recipe.digest, ours)])


def _each_once(lists: Iterable[list[Path]]) -> list[Path]:
    return list(dict.fromkeys(chain.from_iterable(lists)))


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
