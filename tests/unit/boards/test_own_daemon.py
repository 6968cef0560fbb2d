# SPDX-License-Identifier: Apache-2.0
"""A daemon that the user built, for a guest's root: which of its files are taken, and where libraries come from."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from espbench.errors import MachineLacks, UsageError
from espbench.plan import load_profile, resolve
from espbench.plan.reading.reader import read_text
from espbench.platforms.base import CommandResult, HeldDaemon
from espbench.platforms.virtual.own import own_files
from espbench.platforms.virtual.parts import recipe
from espbench.platforms.virtual.parts.build import Kit
from espbench.platforms.virtual.parts.cpio import Entry, archive, entries
from espbench.platforms.virtual.virtual_guest import Built, Userland
from espbench.platforms.x86 import own_daemon
from espbench.platforms.x86.own_daemon import OwnBuild, OwnDaemon, needed_by, packed
from espbench.runs.platform_kinds.x86_machines import Machines
from espbench.stacks.daemons import builds, layers
from support.plans import plan_text

DEBIANS = {
    "usr/lib/ipsec/charon": b"Debian's",
    "usr/lib/ipsec/libcharon.so.0": b"Debian's",
    "usr/lib/ipsec/plugins/libstrongswan-gcm.so": b"Debian's",
    "usr/lib/x86_64-linux-gnu/libcrypto.so.3": b"Debian's",
    "usr/sbin/swanctl": b"Debian's",
}
OWN = {
    "libexec/ipsec/charon": "needs libcharon.so.0 needs libc.so.6",
    "sbin/swanctl": "needs libcrypto.so.3",
    "lib/ipsec/libcharon.so.0": "needs libgmp.so.10",
    "lib/ipsec/plugins/libstrongswan-gcm.so": "needs libc.so.6",
    "lib/ipsec/plugins/libstrongswan-other.so": "needs libnowhere.so",
}


@pytest.fixture
def built(tmp_path: Path) -> Built:
    """Return a userland of a few bytes."""
    folder = tmp_path / "userland"
    folder.mkdir()
    base = {"usr/lib/x86_64-linux-gnu/libc.so.6": b"Debian's"}
    for name, files in (("base", base), ("strongswan", DEBIANS)):
        folders = [Entry.folder("usr"), Entry.folder("usr/lib")]
        made = [*folders, *(Entry.file(path, data, mode=0o755) for path, data in files.items())]
        (folder / f"{name}.cpio").write_bytes(archive(made))
    return Built(tmp_path, tmp_path, tmp_path, {}, Userland(folder, {}))


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of a build; this machine has libgmp, which the guests have not."""
    host = tmp_path / "host"
    host.mkdir()
    (host / "libgmp.so.10").write_text("the host's")
    (host / "libcrypto.so.3").write_text("the host's")
    monkeypatch.setattr(own_daemon, "_HOST_FOLDERS", (str(host),))
    folder = tmp_path / "mine"
    for path, text in OWN.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    return folder


def needs(file: Path) -> list[str]:
    return re.findall(r"needs (\S+)", file.read_text())


def of(prefix: Path) -> OwnBuild:
    build = builds.own_in_root("strongswan", prefix)
    root = prefix if build.image else Path("/")
    held = HeldDaemon(build.programs, own_name=build.name, own_details=build.details)
    return OwnBuild("strongswan", root, build.base, held)


def files_of(daemon: OwnDaemon) -> dict[str, bytes]:
    return {entry.path: entry.data for entry in entries(daemon.data) if entry.data}


def test_a_prefix_stands_at_its_own_path_and_nothing_of_debians_daemon_beside_it(
    built: Built, prefix: Path
) -> None:
    """Libraries: the build's, then the pinned ones, and only what nobody else has from this machine."""
    daemon = packed(of(prefix), built, needs)
    inside = str(prefix).lstrip("/")
    taken = [path for path in OWN if "other" not in path]
    assert files_of(daemon) == {
        **{f"{inside}/{path}": OWN[path].encode() for path in taken},
        "usr/lib/x86_64-linux-gnu/libgmp.so.10": b"the host's",
        "usr/lib/x86_64-linux-gnu/libcrypto.so.3": b"Debian's",
    }
    assert re.fullmatch(r"libgmp\.so\.10 sha256 [0-9a-f]{16}", daemon.libraries)


def test_a_folder_comes_before_its_content(built: Built, prefix: Path) -> None:
    seen = set()
    for entry in entries(packed(of(prefix), built, needs).data):
        parent = str(Path(entry.path).parent)
        assert parent in ("usr/sbin", ".", "usr/lib/x86_64-linux-gnu") or parent in seen, entry.path
        seen.add(entry.path)


def test_an_image_is_laid_where_debians_daemon_would_be(built: Built, prefix: Path, tmp_path: Path) -> None:
    shutil.copytree(prefix, tmp_path / "image/usr")
    shutil.rmtree(tmp_path / "image/usr/lib/ipsec/plugins")
    files = files_of(packed(of(tmp_path / "image"), built, needs))
    assert files["usr/libexec/ipsec/charon"] == OWN["libexec/ipsec/charon"].encode()
    assert "usr/lib/ipsec/charon" not in files
    assert "usr/lib/ipsec/plugins/libstrongswan-gcm.so" not in files


def test_a_library_that_is_nowhere_is_one_message(built: Built, prefix: Path) -> None:
    (prefix / "sbin/swanctl").write_text("needs libmissing.so.1")
    words = f"prefix: expected libmissing.so.1, which {prefix}/sbin/swanctl needs, in the build or among"
    with pytest.raises(UsageError, match=words):
        packed(of(prefix), built, needs)


def test_programs_ask_for_libraries_and_scripts_for_none(tmp_path: Path) -> None:
    (tmp_path / "script").write_text("#!/bin/sh\n")
    assert needed_by(tmp_path / "script") == []
    assert "libc.so.6" in needed_by(Path("/bin/sh").resolve())


class Guest:
    """A gateway whose loader says that a version is missing."""

    side = "home"

    def run(self, argv: Sequence[str], stdin: str = "", timeout_s: float = 0) -> CommandResult:
        return CommandResult(1, "", "charon: version `GLIBC_2.38' not found")


def test_a_build_for_other_libraries_than_the_guests_is_one_message(prefix: Path) -> None:
    build = builds.own_in_root("strongswan", prefix)
    with pytest.raises(MachineLacks, match=r"gateway home: charon of own build .* lacks GLIBC_2\.38"):
        layers.lay(Guest(), build)  # type: ignore[arg-type]


def test_entries_are_those_that_were_archived() -> None:
    made = [Entry.folder("a"), Entry.file("a/b", b"12345"), Entry.link("c", "a/b"),
            Entry.character_device("d", 5, 1)]  # fmt: skip
    assert list(entries(archive(made))) == made


def test_another_machine_gets_the_same_daemon(
    built: Built, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guests have the same bytes at the same paths, and records name the same build."""
    daemon = packed(of(prefix), built, needs)
    sent = own_daemon.files_of("mine (strongswan)", daemon)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert [own_files.take(sent), own_files.take(sent)] == ["", ""]
    copy = own_daemon.copy_of("strongswan", recipe.store() / sent.place)
    assert (copy, hash(copy)) == (daemon, hash(daemon))
    build = builds.own_in_root("strongswan", prefix)
    assert builds.held(copy.held) == replace(build, folder=Path("/"), base="/usr")
    (recipe.store() / sent.place / "root.cpio").write_bytes(b"another")
    assert "strongswan/root.cpio: expected SHA-256" in own_files.take(sent)


def machines(prefix: Path, folder: Path) -> Machines:
    text = plan_text(dut="virt-x86", stacks=f"[plain, {{stack: strongswan, prefix: {prefix.name}}}]")
    resolved = resolve(read_text(text, "plan.yaml", "plan"), folder / "plan.yaml")
    return Machines(resolved, load_profile("virt-x86"))


def test_a_worker_needs_no_build_of_its_own(
    built: Built, prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the copy by the name that the plan gives, which is the same on all machines."""
    monkeypatch.setattr(Kit, "require", lambda kit: built)
    monkeypatch.setattr(own_daemon.packed, "__defaults__", (needs,))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    here, there = machines(prefix, tmp_path), machines(prefix, tmp_path)
    (sent,) = here.own_files()
    assert sent.path == "mine (strongswan)"
    assert own_files.take(sent) == ""
    shutil.rmtree(prefix)
    there.use_copies({sent.path: recipe.store() / sent.place})
    assert there.own_files() == [sent]
