# SPDX-License-Identifier: Apache-2.0
"""Builds QEMU for ppce500 alone, with our device models and our changes laid in."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

from espbench.platforms.e500.parts import recipe, sources, tools
from espbench.platforms.e500.parts.recipe import SourcePackage
from espbench.platforms.e500.parts.tools import Runner

_PLACE = "hw/misc/espbench"  # where our sources stand in QEMU's tree
_BOARDS = "configs/devices/ppc-softmmu/espbench.mak"
_OPTIONS = (
    "--target-list=ppc-softmmu",
    "--without-default-features",
    "--without-default-devices",
    "--with-devices-ppc=espbench",
    "--enable-system",
    "--enable-tcg",
    "--enable-fdt=system",
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


def build(work: Path, source: SourcePackage, runner: Runner) -> Mapping[str, Path]:
    """The product `qemu-system-ppc`, made below `work`."""
    tree, made = work / "qemu", work / "made"
    sources.unpack(source, tree, runner)
    _lay_in(tree, runner)
    made.mkdir()
    flags = f"-O2 -ffile-prefix-map={tree}=. -ffile-prefix-map={made}=."
    command = [
        str(tree / "configure"), *_OPTIONS, f"--meson={shutil.which('meson')}",
        f"--extra-cflags={flags}",
    ]  # fmt: skip
    runner.run(command, made, "configuring QEMU")
    runner.run(["ninja", f"-j{tools.processors()}", "qemu-system-ppc"], made, "building QEMU")
    product = work / "qemu-system-ppc"
    # Names of functions stay: benchmarks/virtual_time.py --profile tells them.
    runner.run(
        ["strip", "--strip-debug", "-o", str(product), str(made / product.name)], work, "stripping QEMU"
    )
    return {product.name: product}


def meson_build(base: Path, ours: list[Path]) -> str:
    """The build file of our sources, which stand in its folder as they do below `base`."""
    names = [str(file.relative_to(base)) for file in ours]
    folders = sorted({str(Path(name).parent) for name in names})
    return _MESON.format(
        folders=_listed([".", *folders]),
        files=_listed(name for name in names if name.endswith(".c")),
        libraries=_LIBRARIES if any(name.startswith("sec/") for name in names) else "",
    )


def _lay_in(tree: Path, runner: Runner) -> None:
    base = recipe.folder()
    ours = recipe.qemu_sources(base)
    for file in ours:
        target = tree / _PLACE / file.relative_to(base)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    if ours:
        (tree / _PLACE / "meson.build").write_text(meson_build(base, ours))
        with (tree / "hw/misc/meson.build").open("a") as parent:
            parent.write("subdir('espbench')\n")
    (tree / _BOARDS).write_text("CONFIG_E500PLAT=y\n")
    for patch in recipe.qemu_patches(base):
        runner.run(["patch", "-p1", "--forward", "--input", str(patch)], tree, f"applying {patch.name}")


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"'{name}'" for name in names)
