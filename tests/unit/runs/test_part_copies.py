# SPDX-License-Identifier: Apache-2.0
"""Parts of guests are copied into the cache of another machine by their build key; another part is refused."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.build import GuestKit
from espbench.platforms.virtual.parts.copies import PackedPart, packed, take
from espbench.platforms.virtual.parts.kits import E500_KIT, X86_KIT
from support.virtual import parts_cache


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[PackedPart]:
    """Return what a machine with a full cache sends; this process then has an empty one."""
    parts_cache.fill(monkeypatch, tmp_path / "there", E500_KIT)
    parts = packed(E500_KIT)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    return parts


@pytest.mark.parametrize("kit", [E500_KIT, X86_KIT], ids=lambda kit: kit.name)
def test_an_empty_cache_gets_all_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kit: GuestKit
) -> None:
    """The files are the same, QEMU can be run, and nothing else is left; a second time changes nothing."""
    there = parts_cache.fill(monkeypatch, tmp_path / "there", kit)
    parts = packed(kit)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "here"))
    assert kit.find() is None
    assert take(kit, parts) == ""
    built = kit.find()
    assert built is not None
    assert built.qemu.stat().st_mode & 0o777 == 0o755
    assert parts_cache.contents(recipe.store()) == parts_cache.contents(there)
    assert sorted(path.name for path in recipe.store().iterdir()) == sorted(part.folder for part in parts)
    assert take(kit, parts) == ""


def test_a_part_with_another_digest_stays_and_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: list[PackedPart]
) -> None:
    """Both digests are named, of each product."""
    here = parts_cache.fill(monkeypatch, tmp_path / "here", E500_KIT, text="by another compiler")
    before = parts_cache.contents(here)
    problem = take(E500_KIT, sent)
    for part in sent:
        for name, digest in part.products.items():
            got = recipe.digest(here / part.folder / name)
            assert f"{here / part.folder / name}: expected SHA-256 {digest[:16]}…, got {got[:16]}…" in problem
    assert parts_cache.contents(here) == before


def test_a_part_of_another_recipe_is_refused(sent: list[PackedPart]) -> None:
    """Its key would never be looked for here."""
    sent[0] = replace(sent[0], folder="guest-0123456789abcdef")
    problem = take(E500_KIT, sent)
    assert problem == f"expected the build key guest-0123456789abcdef, got guest-{recipe.key(E500_KIT.guest)}"
    assert not (recipe.store() / "guest-0123456789abcdef").exists()


def test_a_part_that_was_spoilt_on_the_way_is_not_taken(sent: list[PackedPart]) -> None:
    """The manifest that came with it has the digests."""
    sent[0] = replace(sent[0], files={"initramfs.cpio.gz": zlib.compress(b"another")})
    problem = take(E500_KIT, sent)
    assert problem.startswith(f"{sent[0].folder}, as it was sent: initramfs.cpio.gz: expected SHA-256")
    assert not (recipe.store() / sent[0].folder).exists()


def test_a_damaged_part_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: list[PackedPart]
) -> None:
    """Whoever damaged it, it is not overwritten."""
    here = parts_cache.fill(monkeypatch, tmp_path / "here", E500_KIT)
    (here / sent[1].folder / "vmlinux").write_text("damaged")
    assert take(E500_KIT, sent).startswith(f"{here / sent[1].folder}: vmlinux: expected SHA-256")
    assert (here / sent[1].folder / "vmlinux").read_text() == "damaged"
