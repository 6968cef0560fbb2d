# SPDX-License-Identifier: Apache-2.0
"""Fills a cache with fake parts of guests: their keys are right, but their products are only a few bytes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.build import MANIFEST, Kit


def fill(monkeypatch: pytest.MonkeyPatch, home: Path, kit: Kit[Any], *, text: str = "") -> Path:
    """Fill the cache below `home`, and let this process use it; text: is in all products. Return the cache's folder."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(home))
    for part in kit.parts:
        folder = recipe.store() / f"{part.name}-{recipe.key(part)}"
        folder.mkdir(parents=True)
        for name in part.products:
            (folder / name).write_text(f"{name}: {text}")
        products = {name: recipe.digest(folder / name) for name in part.products}
        manifest = {"inputs": recipe.inputs(part), "built_by": {}, "products": products}
        (folder / MANIFEST).write_text(json.dumps(manifest))
    assert kit.find() is not None
    return recipe.store()


def contents(store: Path) -> dict[str, bytes]:
    """Return the contents of all files of a cache, including hidden ones, by path."""
    return {str(file.relative_to(store)): file.read_bytes() for file in store.rglob("*") if file.is_file()}
