#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Builds the boards' kernel with another `esp4.c`, and puts it into a cache, where espbench uses it like its own.

As a command for `espbench bisect --build`: `planted_kernel.py ESP4_C KERNEL_TREE CACHE`. Unchanged files are not
compiled again.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

from espbench.paths import cache_dir
from espbench.platforms.virtual.parts import kernel, recipe
from espbench.platforms.virtual.parts.build import MANIFEST
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry

_FILE, _KEPT = "net/ipv4/esp4.c", "esp4.c.original"
_PLACE = "static int esp_output(struct xfrm_state *x, struct sk_buff *skb)\n{\n"
_FIRST_STATEMENT = "\tesp.inplace = true;\n"


def tree(work: Path) -> Path:
    """Return the kernel's source tree, built as espbench builds it; build it if needed."""
    tree_folder = work / "linux"
    if not (tree_folder / "vmlinux").exists():
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        with Registry("planted") as registry:
            kernel.build(work, recipe.used()["linux"], Runner(registry, work / "log", lambda line: None))
    if not (tree_folder / _KEPT).exists():
        shutil.copyfile(tree_folder / _FILE, tree_folder / _KEPT)
    return tree_folder


def original(tree: Path) -> str:
    """Return the original esp4.c."""
    return (tree / _KEPT).read_text()


def planted(text: str, nops: int) -> str:
    """Return esp4.c with `nops` nop instructions in esp_output, which each encrypted frame passes once."""
    before, place, after = text.partition(_PLACE)
    assert _FIRST_STATEMENT in after.partition("\n}\n")[0], "esp_output is not as it was"
    nop = "".join('\tasm volatile("nop");\n' for _ in range(nops))
    return before + place + after.replace(_FIRST_STATEMENT, nop + _FIRST_STATEMENT, 1)


def built(tree: Path, text: str) -> Path:
    """Build the kernel with this esp4.c; return the file of the stripped kernel."""
    if (tree / _FILE).read_text() != text:
        (tree / _FILE).write_text(text)
    with Registry("planted") as registry:
        runner = Runner(registry, tree.parent / "log", lambda line: None)
        kernel.make(tree, runner)
        kernel.strip(tree, tree.parent / "vmlinux", runner)
    return tree.parent / "vmlinux"


def install(vmlinux: Path, cache: Path) -> None:
    """Put the kernel into the cache; if there is no such cache, first make it a copy of the user's."""
    if not cache.exists():
        filling = cache.with_name(f"{cache.name}-filling") / "espbench" / "e500"
        shutil.rmtree(filling.parents[1], ignore_errors=True)
        for part in recipe.GUEST, recipe.KERNEL, recipe.QEMU:
            name = f"{part.name}-{recipe.key(part)}"
            shutil.copytree(cache_dir() / "e500" / name, filling / name)
        for note in (cache_dir() / "e500").glob("instead-of-*"):
            shutil.copyfile(note, filling / note.name)
        filling.parents[1].rename(cache)
    place = cache / "espbench" / "e500" / f"{recipe.KERNEL.name}-{recipe.key(recipe.KERNEL)}"
    shutil.copyfile(vmlinux, place / "vmlinux")
    manifest = json.loads((place / MANIFEST).read_text())
    manifest["products"]["vmlinux"] = recipe.digest(place / "vmlinux")
    (place / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n")


def main() -> None:
    """Build and install the kernel with the command line's esp4.c."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("esp4", type=Path, metavar="ESP4_C", help="the source of ESP to build with")
    parser.add_argument("kernel_tree", type=Path, help="where the kernel is built")
    parser.add_argument("cache", type=Path, help="the cache that gets the kernel")
    asked = parser.parse_args()
    install(built(asked.kernel_tree, asked.esp4.read_text()), asked.cache)


if __name__ == "__main__":
    main()
