# SPDX-License-Identifier: Apache-2.0
"""The archives of programs that are unpacked into a guest's root at boot: their daemons, and the memory they need."""

from __future__ import annotations

import json
from collections.abc import Container, Mapping, Sequence

from espbench.errors import UsageError
from espbench.platforms.base import HeldDaemon
from espbench.platforms.virtual.virtual_guest import Userland

# The memory that a guest needs for the kernel, its tables and the programs, besides that for its root, MiB.
_KERNEL_MB = 96


def archives(
    userland: Userland | None, images: Sequence[str], own: Mapping[str, bytes] | None = None
) -> list[bytes]:
    """Return the archives with these names, in the order of unpacking; own: the archives that the user built,
    by name.
    """
    return [
        (own or {}).get(name) or (_there(userland).folder / f"{name}.cpio").read_bytes() for name in images
    ]


def held(userland: Userland | None, images: Sequence[str], own: Container[str] = ()) -> dict[str, HeldDaemon]:
    """Return the daemons in these images by name, without those that the user built (own)."""
    if not images:
        return {}
    daemons = json.loads((_there(userland).folder / "daemons.json").read_text())
    return {
        name: HeldDaemon(daemons[name]["programs"], daemons[name]["packages"])
        for name in images
        if name in daemons and name not in own
    }


def identified(part: str, userland: Userland | None, images: Sequence[str]) -> dict[str, str]:
    """Return the archives' SHA-256 as {part: text}; empty if there are no archives."""
    files = [f"{name}.cpio" for name in images]
    if not files or userland is None:
        return {}
    return {part: ", ".join(f"{file} sha256 {userland.products[file][:16]}" for file in files)}


def need_room(root: bytes, memory_mb: int, images: Sequence[str]) -> None:
    """Raise UsageError if a guest has too little memory: its root needs twice its size while it is unpacked."""
    needed = _KERNEL_MB + 2 * len(root) // 2**20
    if memory_mb < needed:
        raise UsageError(
            f"memory: expected at least {needed}M, for the kernel and for {' and '.join(images) or 'its root'} "
            f"({len(root) / 2**20:.0f} MiB, twice while it is unpacked), got {memory_mb}M; give the DUT's "
            "profile more"
        )


def _there(userland: Userland | None) -> Userland:
    assert userland is not None
    return userland
