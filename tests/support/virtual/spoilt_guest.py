# SPDX-License-Identifier: Apache-2.0
"""Makes a cache whose guest has no program, so that its kernel panics."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from espbench.platforms.virtual.parts import cpio, guest, recipe
from espbench.platforms.virtual.parts.build import GuestKit


def without_a_program(kit: GuestKit, folder: Path) -> None:
    """Make a cache (XDG_CACHE_HOME) of the user's parts in this folder; the /init of the kit's guest is no program."""
    cache = folder / "espbench" / recipe.store().name
    cache.mkdir(parents=True)
    for part in recipe.store().iterdir():
        (cache / part.name).symlink_to(part)
    whole = kit.require().initramfs
    spoilt = cache / whole.parent.name
    spoilt.unlink()
    shutil.copytree(whole.parent, spoilt)
    root = cpio.archive(guest.root(b"no program"))
    (spoilt / whole.name).write_bytes(cpio.zipped(root) if whole.suffix == ".gz" else root)
    manifest = json.loads((spoilt / "manifest.json").read_text())
    manifest["products"][whole.name] = recipe.digest(spoilt / whole.name)  # as if built so
    (spoilt / "manifest.json").write_text(json.dumps(manifest))
