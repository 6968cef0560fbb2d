# SPDX-License-Identifier: Apache-2.0
"""Copies the finished parts of a kit into the cache of another machine, under the same keys.

The other machine keeps the parts that it has built itself. It accepts a part only if it has none with this key, and
reports a difference if its own part is not the same.
"""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.paths import cache_dir
from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.build import MANIFEST, NOT_THERE, Kit, look
from espbench.this_machine import kept
from espbench.this_machine.registry import Registry

_FAST = 1  # zlib's level: a kernel shrinks to less than half in a second


@dataclass(frozen=True)
class PackedPart:
    """A finished part: the name of its folder, which contains the key, its manifest, and its compressed files
    by name.
    """

    folder: str
    manifest: str
    files: Mapping[str, bytes]

    @property
    def products(self) -> dict[str, str]:
        """The SHA-256 of each of its files."""
        products: dict[str, str] = json.loads(self.manifest)["products"]
        return products


def packed(kit: Kit[Any]) -> list[PackedPart]:
    """Return all parts of a kit from the cache, packed. Raise MachineLacks if they are not in the cache."""
    kit.require()
    parts = []
    for part in kit.parts:
        folder, _, _ = look(part)
        files = {name: zlib.compress((folder / name).read_bytes(), _FAST) for name in part.products}
        parts.append(PackedPart(folder.name, (folder / MANIFEST).read_text(), files))
    return parts


def take(kit: Kit[Any], parts: Sequence[PackedPart]) -> str:
    """Put the parts that are missing here into the cache; return the parts of this machine that differ, or nothing."""
    for place in (cache_dir(), recipe.store()):
        kept.folder_of_ours(place)
    program = kit.program
    problems = [_take(part, sent, program) for part, sent in zip(kit.parts, parts, strict=True)]
    return "; ".join(filter(None, problems))


def _take(part: recipe.Part, sent: PackedPart, program: str) -> str:
    folder, manifest, why = look(part)
    if folder.name != sent.folder:
        return f"expected the build key {sent.folder}, got {folder.name}"
    if why == NOT_THERE:
        if spoilt := _put(part, sent, program):
            return f"{sent.folder}, as it was sent: {spoilt}"
        folder, manifest, why = look(part)
    if why:
        return f"{folder}: {why}"
    return "; ".join(
        f"{folder / name}: expected SHA-256 {digest[:16]}…, got {manifest['products'][name][:16]}…"
        for name, digest in sent.products.items()
        if manifest["products"][name] != digest
    )


def _put(part: recipe.Part, sent: PackedPart, program: str) -> str:
    """Write a part into a temporary folder, and rename it if it agrees with its manifest; otherwise return the problem.

    So the cache always has a complete part or none.
    """
    folder = recipe.store() / sent.folder
    with Registry(secrets.token_hex(3)) as registry:
        whole = registry.directory("copy", recipe.store()) / "whole"
        whole.mkdir()
        for name in part.products:
            (whole / name).write_bytes(zlib.decompress(sent.files[name]))
            (whole / name).chmod(0o755 if name == program else 0o644)
        (whole / MANIFEST).write_text(sent.manifest)
        (whole / MANIFEST).chmod(0o644)
        whole.chmod(0o755)
        if problem := kept.problem_with_files(whole, sent.products):
            return problem
        try:
            whole.rename(folder)
        except OSError:  # another worker of this machine was faster
            if not (folder / MANIFEST).is_file():
                raise
    return ""
