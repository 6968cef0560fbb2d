# SPDX-License-Identifier: Apache-2.0
"""Copies a file or a folder of the user, such as a kernel, into the cache of another machine, under a digest.

The copy keeps its name, so that records about it are the same on all machines.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from espbench.paths import cache_dir
from espbench.platforms.virtual.parts import recipe
from espbench.this_machine import kept
from espbench.this_machine.registry import Registry

_FAST = 1  # zlib's level, as for a kit's parts
_DIGITS = 16


@dataclass(frozen=True)
class OwnFiles:
    """A file or folder of the user with its content. path: the path in the profile; name: the last part of the path.

    digests: the SHA-256 of each file by its name, which begins with that last part. content: each file, compressed, by
    the same names.
    """

    path: str
    name: str
    digests: Mapping[str, str]
    content: Mapping[str, bytes]

    @cached_property
    def folder(self) -> str:
        """The name of the cache's folder with the copy."""
        together = "".join(f"{digest} {name}\n" for name, digest in sorted(self.digests.items()))
        return f"own-{hashlib.sha256(together.encode()).hexdigest()[:_DIGITS]}"

    @property
    def place(self) -> str:
        """The path of the copy, relative to the folder of built parts."""
        return f"{self.folder}/{self.name}"


def packed(path: str, name: str, files: Mapping[str, bytes]) -> OwnFiles:
    """Return the packed files of a path. files: their contents by names relative to the path; a single file's
    is empty.
    """
    named = {f"{name}/{below}" if below else name: data for below, data in files.items()}
    return OwnFiles(
        path,
        name,
        {each: hashlib.sha256(data).hexdigest() for each, data in named.items()},
        {each: zlib.compress(data, _FAST) for each, data in named.items()},
    )


def take(sent: OwnFiles) -> str:
    """Put the files into the cache unless they are there. Return what is wrong with the cached files, or nothing."""
    for place in (cache_dir(), recipe.store()):
        kept.folder_of_ours(place)
    folder = recipe.store() / sent.folder
    if not folder.is_dir():
        with Registry(secrets.token_hex(3)) as registry:
            whole = registry.directory("own", recipe.store()) / "whole"
            for name, data in sent.content.items():
                (whole / name).parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                (whole / name).write_bytes(zlib.decompress(data))
                (whole / name).chmod(0o644)
            whole.chmod(0o755)
            try:
                whole.rename(folder)
            except OSError:  # another worker of this machine was faster
                if not folder.is_dir():
                    raise
    if problem := kept.problem_with_files(folder, sent.digests):
        return f"{folder}: {problem}"
    there = {str(file.relative_to(folder)) for file in folder.rglob("*") if not file.is_dir()}
    more = sorted(there - set(sent.digests))
    return f"{folder}: expected nothing but what was sent, got {', '.join(more)}" if more else ""
