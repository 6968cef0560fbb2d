# SPDX-License-Identifier: Apache-2.0
"""E500 guests are built by key: what it holds, what is refused, what a broken-off build leaves behind."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from typer.testing import CliRunner

from espbench.cli import doctor
from espbench.cli.main import app
from espbench.errors import EspbenchError, MachineLacks
from espbench.paths import data_dir
from espbench.platforms.virtual.parts import (
    cpio,
    guest,
    kernel,
    packages,
    qemu,
    recipe,
    sources,
    strongswan,
    tools,
)
from espbench.platforms.virtual.parts.build import MANIFEST, Trees
from espbench.platforms.virtual.parts.kits import E500_KIT, X86_KIT
from espbench.platforms.virtual.parts.recipe import E500_STRONGSWAN, GUEST, KERNEL, PARTS, Part, SourcePackage
from espbench.stacks.strongswan.strongswan_config import strongswan_conf
from espbench.this_machine import kept
from espbench.this_machine.registry import Registry
from support.command_line import in_process

SHA = "a" * 64


@pytest.fixture(autouse=True)
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, and a copy of harness/emulator that a test may change."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    copy = tmp_path / "emulator"
    shutil.copytree(data_dir("emulator"), copy)
    monkeypatch.setattr(recipe, "data_dir", lambda kind: copy)
    return copy


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """One with a journal of its own."""
    with Registry("unit", tmp_path / "state") as made:
        yield made


class Progress:
    """A Progress that remembers."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.parts: list[str] = []
        self.remarks: dict[str, str] = {}

    def note(self, text: str) -> None:
        self.notes.append(text)

    def started(self, step: str, number: int, of: int) -> None:
        self.parts.append(step)

    def line(self, text: str) -> None: ...

    def finished(self, step: str, seconds: float, remark: str) -> None:
        self.remarks[step] = remark


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """Steps that take no time; what each product is can be changed, and taken away to make its step fail."""
    made = {name: name.encode() for part in PARTS for name in part.products}

    def step(names: tuple[str, ...], work: Path) -> Mapping[str, Path]:
        for name in names:
            if name not in made:
                raise EspbenchError(f"{name}: ended with 1")
            (work / name).write_bytes(made[name])
        return {name: work / name for name in names}

    def made_by(part: Part) -> Callable[[Path, tools.Runner], Mapping[str, Path]]:
        return lambda work, runner: step(part.products, work)

    for part in PARTS:
        monkeypatch.setitem(E500_KIT.steps, part.name, made_by(part))
    monkeypatch.setattr(tools, "missing", lambda without=(): [])
    monkeypatch.setattr(tools, "versions", lambda without: {"compiler": "gcc 1"})
    monkeypatch.setattr(sources, "fetch", lambda names, runner, on_note: None)
    return made


def linux(version: str = "6.1.9-1", **files: str) -> SourcePackage:
    """Return a source package."""
    return SourcePackage("linux", version, "6.1.", files or {"linux.dsc": SHA})


# --- the key ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("file", "part"),
    [
        ("init/ip.c", "guest"),
        ("init/guest.h", "guest"),
        ("kernel.frag", "kernel"),
        ("kernel/accel.c", "kernel"),
        ("qemu/fsl_sec.c", "qemu"),
        ("qemu/99-new.patch", "qemu"),
        ("sec/channels.c", "qemu"),
        ("sec/sec.h", "qemu"),
        ("strongswan/openssl.options", "e500-strongswan"),
        ("init/PROTOCOL.md", ""),
        ("sec/README.md", ""),
        ("qemu/mirror.c", ""),  # a test program: no part of QEMU
    ],
)
def test_a_file_changes_the_key_of_what_is_made_of_it(ours: Path, file: str, part: str) -> None:
    """A changed file changes the key of its own part alone, so the other parts stay in the cache."""
    parts = (*PARTS, E500_STRONGSWAN)
    before = {p.name: recipe.key(p) for p in parts}
    with (ours / file).open("a") as stream:
        stream.write("\n")
    changed = [p.name for p in parts if recipe.key(p) != before[p.name]]
    assert changed == ([part] if part else [])


def test_strongswan_for_boards_has_every_plugin_that_charon_is_told_to_load() -> None:
    """The configuration is the same on every platform; a board's charon has no other plug-in than those."""
    loaded = {
        name
        for line in re.findall(r"load = (.*)", strongswan_conf(user_space=False))
        for name in line.split()
    }
    enabled = {
        option.removeprefix("--enable-")
        for option in strongswan.options("strongswan")
        if "--enable-" in option
    }
    assert enabled - {"static", "monolithic", "charon", "ikev2", "swanctl"} == loaded


def test_an_option_that_busybox_has_not_is_named() -> None:
    """One that is on already, by default, is no mistake."""
    config = "A\n# CONFIG_ASH is not set\n# CONFIG_CAT is not set\nCONFIG_SH=y\n"
    assert strongswan.configured("CONFIG_ASH=y\nCONFIG_SH=y\n", config) == config.replace(
        "# CONFIG_ASH is not set", "CONFIG_ASH=y"
    )
    with pytest.raises(EspbenchError, match="expected options of this busybox, got CONFIG_DOG"):
        strongswan.configured("CONFIG_DOG=y\n", config)


def test_a_version_changes_the_key(ours: Path) -> None:
    """The key changes with the hashes of the version's files."""
    before = {p.name: recipe.key(p) for p in PARTS}
    text = (ours / "versions.yaml").read_text()
    (sha, *_) = recipe.pinned()["linux"].files.values()
    (ours / "versions.yaml").write_text(text.replace(sha, SHA))
    assert [p.name for p in PARTS if recipe.key(p) != before[p.name]] == ["kernel"]


def test_all_versions_are_pinned_with_hashes() -> None:
    """Each file's SHA-256; a .dsc says how the others belong together."""
    pinned = recipe.pinned()
    assert {name for part in (*PARTS, E500_STRONGSWAN) for name in part.sources} == set(pinned)
    for package in pinned.values():
        assert package.dsc
        assert package.version.startswith(package.series)
        assert all(len(sha) == 64 for sha in package.files.values())


@pytest.mark.parametrize("text", ["linux: {version: 6}", "linux: [", "- linux"])
def test_versions_that_cannot_be_read_are_named(ours: Path, text: str) -> None:
    """One message with the file."""
    (ours / "versions.yaml").write_text(text)
    with pytest.raises(EspbenchError, match=r"versions\.yaml: expected version, series and files"):
        recipe.pinned()


# --- sources ---------------------------------------------------------------------------------


def test_the_hosts_archives_are_asked_for_sources() -> None:
    """Both forms of apt's lists, options kept; what is no archive of packages is left out."""
    assert sources.as_sources("Types: deb\nURIs: x\nSigned-By: k\n", ".sources") == (
        "Types: deb-src\nURIs: x\nSigned-By: k\n"
    )
    text = "# a comment\ndeb [signed-by=k] x bookworm main\ndeb-src x bookworm main\n\n"
    assert sources.as_sources(text, ".list") == "deb-src [signed-by=k] x bookworm main\n"


SHOWN = f"""\
Package: linux
Binary: linux-doc, linux-source
Version: 6.1.9-1
Checksums-Sha1:
 {"b" * 40} 10 linux_6.1.9-1.dsc
Checksums-Sha256:
 {"c" * 64} 10 linux_6.1.9-1.dsc
 {"d" * 64} 20 linux_6.1.9.orig.tar.xz
 {"e" * 64} 30 linux_6.1.9.orig.tar.xz.asc
Directory: pool/main/l/linux

Package: linux
Version: 6.1.10-2
Checksums-Sha256:
 {"f" * 64} 10 linux_6.1.10-2.dsc

Package: linux-signed
Version: 6.1.9-1
Checksums-Sha256:
 {"0" * 64} 10 linux-signed.dsc
"""


def test_what_apt_knows_of_a_source() -> None:
    """Version and SHA-256 of each file; other packages and signatures are not in it."""
    assert sources.parse_showsrc(linux(), SHOWN) == [
        linux("6.1.9-1", **{"linux_6.1.9-1.dsc": "c" * 64, "linux_6.1.9.orig.tar.xz": "d" * 64}),
        linux("6.1.10-2", **{"linux_6.1.10-2.dsc": "f" * 64}),
    ]


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An archive: what `showsrc` says, and the files it gives."""
    archive = {"showsrc": SHOWN}

    def run(
        self: tools.Runner, argv: list[str], folder: Path, what: str, *, online: bool = False, **_: object
    ) -> str:
        if "showsrc" in argv:
            return archive["showsrc"]
        if "source" in argv:
            if argv[-1].partition("=")[2] not in archive["showsrc"]:
                raise EspbenchError("apt-get ended with 100\nE: Unable to find a source package")
            for name, text in archive.items():
                (folder / name).write_text(text)
        return ""

    monkeypatch.setattr(tools.Runner, "run", run)
    monkeypatch.setattr(shutil, "which", lambda name: name)
    return archive


def pin(ours: Path, package: SourcePackage) -> None:
    """Make it the pinned one."""
    facts = {"version": package.version, "series": package.series, "files": dict(package.files)}
    (ours / "versions.yaml").write_text(json.dumps({"linux": facts}))


def fetch(registry: Registry, tmp_path: Path, progress: Progress) -> SourcePackage:
    """Linux, with the log in tmp_path."""
    sources.fetch(["linux"], tools.Runner(registry, tmp_path / "log", progress.line), progress.note)
    return recipe.used()["linux"]


def sha(text: str) -> str:
    """Return the SHA-256 of a text, in hex."""
    return hashlib.sha256(text.encode()).hexdigest()


def test_the_pinned_version_is_fetched_once(
    ours: Path, registry: Registry, tmp_path: Path, apt: dict[str, str]
) -> None:
    """Its files are then there, and nothing is asked of anybody."""
    package = linux("6.1.9-1", **{"linux_6.1.9-1.dsc": sha("dsc"), "orig": sha("tar")})
    pin(ours, package)
    apt |= {"linux_6.1.9-1.dsc": "dsc", "orig": "tar"}
    progress = Progress()
    assert fetch(registry, tmp_path, progress) == package
    apt.clear()
    assert fetch(registry, tmp_path, progress) == package
    assert progress.notes == []
    assert sorted(file.name for file in sources.folder().iterdir()) == ["linux_6.1.9-1.dsc", "orig"]


def test_a_file_that_is_not_the_pinned_one_is_refused(
    ours: Path, registry: Registry, tmp_path: Path, apt: dict[str, str]
) -> None:
    """The message names a file that was fetched or put there, and says what it should have been."""
    pin(ours, linux("6.1.9-1", **{"linux_6.1.9-1.dsc": sha("dsc")}))
    apt["linux_6.1.9-1.dsc"] = "another"
    with pytest.raises(EspbenchError, match=f"as apt fetched it: expected SHA-256 {sha('dsc')}, got"):
        fetch(registry, tmp_path, Progress())
    assert not (sources.folder() / "linux_6.1.9-1.dsc").exists()
    (sources.folder() / "linux_6.1.9-1.dsc").write_text("by hand")
    with pytest.raises(EspbenchError, match=f"expected SHA-256 {sha('dsc')}, got {sha('by hand')}.*delete"):
        fetch(registry, tmp_path, Progress())


def test_where_the_pinned_version_is_gone_the_newest_of_its_series_is_taken(
    ours: Path, registry: Registry, tmp_path: Path, apt: dict[str, str]
) -> None:
    """6.1.10 is newer than 6.1.9; the user is told, and the key of the kernel is another from then on."""
    pin(ours, linux("6.1.8-1", **{"linux_6.1.8-1.dsc": sha("gone")}))
    apt["showsrc"] = SHOWN.replace("f" * 64, sha("new"))
    apt["linux_6.1.10-2.dsc"] = "new"
    before, progress = recipe.key(KERNEL), Progress()
    assert fetch(registry, tmp_path, progress).version == "6.1.10-2"
    assert "the archive has linux 6.1.10-2, and 6.1.8-1 no more: using that" in progress.notes[0]
    assert recipe.key(KERNEL) != before
    apt.clear()
    assert fetch(registry, tmp_path, Progress()).version == "6.1.10-2"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "linux"}', '{"name": 1}', "\xff"])
def test_a_note_of_a_substitute_that_is_none_is_ignored(ours: Path, text: str) -> None:
    """A note that a full disk had cut off ended `doctor` in a traceback."""
    pin(ours, package := linux("6.1.9-1", **{"linux_6.1.9-1.dsc": SHA}))
    recipe.store().mkdir(parents=True)
    (note := recipe._substitute_file(package)).write_text(text, encoding="latin-1")
    assert recipe.used()["linux"] == package
    recipe.note_substitute(package, other := linux("6.1.10-2", **{"linux_6.1.10-2.dsc": SHA}))
    assert recipe.used()["linux"] == other
    assert note.stat().st_mode & 0o022 == 0


@pytest.mark.root
def test_what_somebody_else_put_beside_the_parts_is_not_believed(
    ours: Path, registry: Registry, tmp_path: Path, apt: dict[str, str]
) -> None:
    """The note has digests that an archive is compared with, and the archive may change afterwards."""
    package = linux("6.1.9-1", **{"linux_6.1.9-1.dsc": sha("dsc")})
    pin(ours, package)
    sources.folder().mkdir(parents=True)
    recipe.note_substitute(package, linux("6.1.10-2", **{"linux_6.1.9-1.dsc": sha("planted")}))
    archive = sources.folder() / "linux_6.1.9-1.dsc"
    archive.write_text("planted")
    for planted in (recipe._substitute_file(package), archive):
        os.chown(planted, 65534, 65534)
    apt["linux_6.1.9-1.dsc"] = "dsc"
    assert fetch(registry, tmp_path, Progress()) == package
    assert archive.read_text() == "dsc"
    os.chown(sources.folder(), 65534, 65534)
    with pytest.raises(MachineLacks, match="expected a cache of this user's own"):
        fetch(registry, tmp_path, Progress())


def test_another_series_is_no_substitute(
    ours: Path, registry: Registry, tmp_path: Path, apt: dict[str, str]
) -> None:
    """Another Debian: what there is, and what the user can do."""
    pin(ours, SourcePackage("linux", "5.10.1-1", "5.10.", {"linux.dsc": SHA}))
    with pytest.raises(MachineLacks, match=r"5\.10\.1-1 .*got 6\.1\.10-2, 6\.1\.9-1") as refused:
        fetch(registry, tmp_path, Progress())
    assert str(sources.folder()) in refused.value.install


# --- tools -----------------------------------------------------------------------------------


def build_with(programs: Path, home: Path, monkeypatch: pytest.MonkeyPatch) -> CompletedProcess[str]:
    """`espbench build e500` of a user who has these programs and nothing else."""
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", str(programs))
    return in_process("build", "e500")


def test_what_is_missing_is_one_message_with_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit code 4, before anything is fetched or built."""
    done = build_with(tmp_path, tmp_path, monkeypatch)
    assert done.returncode == 4, done.stderr
    assert "apt-get install --no-install-recommends gcc-powerpc-linux-gnu" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list((tmp_path / ".cache/espbench/e500").glob("[!.]*"))


def test_a_missing_cross_compiler_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names its package, and none that is here."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in tools.NEEDS:
        if not name.startswith(("/", tools.CROSS)) and (program := shutil.which(name)):
            (programs / name).symlink_to(program)
    compiler = tools.NEEDS[f"{tools.CROSS}gcc"]
    lacking = [compiler, *(package for package in tools.missing() if package != compiler)]
    done = build_with(programs, tmp_path, monkeypatch)
    assert done.returncode == 4, done.stderr
    assert f"building the e500 guests needs {', '.join(lacking)}\n" in done.stderr
    assert done.stderr.endswith(f"apt-get install --no-install-recommends {' '.join(lacking)}\n")


def test_what_building_needs_is_installed_for_the_tests() -> None:
    """The script scripts/setup.sh installs it; otherwise all tests of real boards would be skipped."""
    lines = (Path(__file__).parents[3] / "scripts/packages.txt").read_text().splitlines()
    installed = {line.split()[0] for line in lines if line and line[0] not in "#["}
    assert {*tools.NEEDS.values(), *tools.LIBRARIES.values()} <= installed


@pytest.mark.parametrize("profile", ["netns", "e501"])
def test_only_emulated_guests_are_built(profile: str) -> None:
    """Exit code 2 through main(); what was expected."""
    done = CliRunner().invoke(app, ["build", profile])
    known = "e500, x86 or e500-strongswan"
    assert f"expected {known} (other profiles need no building), got {profile}" in str(done.exception)


def test_a_program_that_fails_leaves_its_words_and_the_log(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment of the user is not that of a build."""
    monkeypatch.setenv("CFLAGS", "-O0")
    runner = tools.Runner(registry, tmp_path / "log", lambda line: None)
    said = runner.run(["sh", "-c", "pwd; echo ${CFLAGS:-none} $TZ"], tmp_path, "trying")
    assert said == f"{tmp_path}\nnone UTC\n"
    with pytest.raises(EspbenchError, match=r"trying: sh ended with 3.*log\nthe reason") as failed:
        runner.run(["sh", "-c", "echo the reason >&2; exit 3"], tmp_path, "trying")
    assert "the reason" in (tmp_path / "log").read_text()
    assert str(tmp_path / "log") in str(failed.value)
    assert registry.entries == []


# --- the cache -------------------------------------------------------------------------------


def test_parts_are_built_once(registry: Registry, steps: dict[str, bytes]) -> None:
    """A part that was built is found again without building, sources or tools."""
    assert E500_KIT.find() is None
    first = Progress()
    built = E500_KIT.build(registry, first)
    assert first.parts == ["sources", "guest", "kernel", "qemu"]
    assert built.kernel.read_bytes() == b"vmlinux"
    assert built.qemu.stat().st_mode & 0o111
    second = Progress()
    assert E500_KIT.build(registry, second) == built == E500_KIT.find()
    assert second.parts == []
    registry.undo(registry.entries)
    assert list(recipe.store().glob(".work*")) == []


def test_the_manifest_says_of_what_and_by_what(registry: Registry, steps: dict[str, bytes]) -> None:
    """The manifest has inputs, compilers and products."""
    manifests = E500_KIT.build(registry, Progress()).manifests
    assert manifests["kernel"]["products"]["vmlinux"] == sha("vmlinux")
    assert manifests["kernel"]["inputs"] == recipe.inputs(KERNEL)
    assert manifests["qemu"]["built_by"] == {"compiler": "gcc 1"}


def test_one_command_makes_both_programs_of_qemu_in_one_folder(
    registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No other parts share one. It is there until the command ends; two commands have two."""
    folders: dict[str, Path] = {}

    def step(part: Part) -> Callable[[Path, tools.Runner], Mapping[str, Path]]:
        def made(work: Path, runner: tools.Runner) -> Mapping[str, Path]:
            folders[part.name] = work
            for name in part.products:
                (work / name).write_text(name)
            return {name: work / name for name in part.products}

        return made

    monkeypatch.setattr(packages, "fetch", lambda names, runner, on_note: None)
    for kit in (E500_KIT, X86_KIT):
        for part in kit.parts:
            monkeypatch.setitem(kit.steps, part.name, step(part))
    trees: Trees = {}
    for kit in (E500_KIT, X86_KIT):
        kit.build(registry, Progress(), trees=trees)
    assert folders["qemu"] == folders["x86-qemu"]
    assert len(set(folders.values())) == len(folders) - 1
    assert [folder for folder in folders.values() if folder.exists()] == [folders["qemu"]] * 2
    registry.undo(registry.entries)
    assert list(recipe.store().glob(".work*")) == []
    for kit in (E500_KIT, X86_KIT):
        assert kit.find() is not None
        kit.build(registry, Progress(), again=True)
    assert folders["qemu"] != folders["x86-qemu"]


def test_a_build_that_fails_keeps_what_was_done(registry: Registry, steps: dict[str, bytes]) -> None:
    """The next goes on there; the failed part is not in the cache, nor its work folder."""
    kept = steps.pop("config")
    with pytest.raises(EspbenchError, match="config: ended with 1"):
        E500_KIT.build(registry, Progress())
    registry.undo(registry.entries)
    assert sorted(p.name.partition("-")[0] for p in recipe.store().glob("[!.]*-*")) == ["guest"]
    assert list(recipe.store().glob(".work*")) == []
    steps["config"] = kept
    progress = Progress()
    E500_KIT.build(registry, progress)
    assert progress.parts == ["sources", "kernel", "qemu"]


def test_a_second_build_says_whether_it_is_the_same(
    registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit; what differs replaces what was there, and is named with the reason."""
    E500_KIT.build(registry, Progress())
    monkeypatch.setattr(tools, "versions", lambda without: {"compiler": "gcc 2"})
    steps["vmlinux"] = b"other"
    progress = Progress()
    built = E500_KIT.build(registry, progress, again=True)
    versions = [recipe.pinned()[name].version for name in ("linux", "qemu")]
    assert progress.remarks == {
        "sources": f"linux {versions[0]}, qemu {versions[1]}",
        "guest": "bit for bit as before",
        "kernel": "not as before: vmlinux (compiler was gcc 1, is gcc 2)",
        "qemu": "bit for bit as before",
    }
    assert built.kernel.read_bytes() == b"other"
    assert built.manifests["kernel"]["products"]["vmlinux"] == sha("other")
    steps["vmlinux"] = b"a third"
    E500_KIT.build(registry, progress, again=True)
    assert "not as before: vmlinux (by the same tools: a fault of the build" in progress.remarks["kernel"]


def test_a_file_that_changes_meanwhile_spoils_the_build(
    ours: Path, registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A product of the old file must not bear the new one's key."""
    step = E500_KIT.steps[GUEST.name]

    def slow(work: Path, runner: tools.Runner) -> Mapping[str, Path]:
        (ours / "init/ip.c").write_text("changed")
        return step(work, runner)

    monkeypatch.setitem(E500_KIT.steps, GUEST.name, slow)
    with pytest.raises(EspbenchError, match="a file of the guest changed while it was built"):
        E500_KIT.build(registry, Progress())
    assert E500_KIT.find() is None


def test_too_little_room_is_said_before_anything_is_fetched(
    registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message says how much room is needed, where, and how much is free."""
    usage = shutil.disk_usage("/")._replace(free=10**9)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(MachineLacks, match=r"building needs \d+ MB there, 1000 MB are free"):
        E500_KIT.build(registry, Progress())
    assert list(recipe.store().glob("[!.]*")) == []


def test_a_disk_that_fills_up_meanwhile_is_one_message(
    registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Done parts stay."""

    def full(work: Path, runner: tools.Runner) -> Mapping[str, Path]:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setitem(E500_KIT.steps, KERNEL.name, full)
    with pytest.raises(
        EspbenchError, match=f"{recipe.store()}: No space left on device; parts that are done"
    ):
        E500_KIT.build(registry, Progress())
    registry.undo(registry.entries)
    assert [p.name.partition("-")[0] for p in recipe.store().glob("[!.]*-*")] == ["guest"]
    assert list(recipe.store().glob(".work*")) == []


NOT_WRITABLE = (
    r"{}: expected a cache that this user may write, got: {}\n  to fix it: set XDG_CACHE_HOME to a folder"
)


def test_a_cache_that_cannot_be_written_is_one_message(
    registry: Registry, steps: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """User nobody, for example, has no home."""
    (tmp_path / "file").touch()
    for nowhere in (tmp_path / "file", tmp_path / "file" / "home", tmp_path / ("x" * 300)):
        monkeypatch.setenv("XDG_CACHE_HOME", str(nowhere))
        assert E500_KIT.find() is None
        with pytest.raises(MachineLacks, match=NOT_WRITABLE.format(nowhere / "espbench", ".*")):
            E500_KIT.build(registry, Progress())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (lock := recipe.store() / ".lock").mkdir(parents=True)
    with pytest.raises(MachineLacks, match=NOT_WRITABLE.format(lock, "Is a directory")):
        E500_KIT.build(registry, Progress())


def test_a_spoilt_part_that_cannot_be_moved_is_one_message(
    registry: Registry, steps: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = E500_KIT.build(registry, Progress()).kernel.parent
    _spoilt(folder, "changed")

    def refused(path: Path, to: Path) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(MachineLacks, match=NOT_WRITABLE.format(folder, "Permission denied")):
        E500_KIT.build(registry, Progress())


def test_doctor_and_require_name_the_command(steps: dict[str, bytes], registry: Registry) -> None:
    """They name it until it is built."""
    before, *_ = doctor.survey()["build"]
    assert (before.ready, before.install) == (False, "espbench build e500")
    with pytest.raises(MachineLacks, match="not built") as refused:
        E500_KIT.require()
    assert refused.value.install == "espbench build e500"
    E500_KIT.build(registry, Progress())
    assert E500_KIT.readiness().ready
    carried = {stack.name for stack in doctor.survey()["stack"] if "qemu_e500" in stack.note}
    assert carried == {"plain", "null", "xfrm", "lean-esp"}
    assert E500_KIT.require().initramfs.is_file()


# --- what is believed of the cache -----------------------------------------------------------


def _spoilt(folder: Path, how: str) -> None:
    product = folder / "vmlinux"
    if how == "changed":
        product.write_bytes(b"evil")
    elif how == "changed, same size and time":
        before = product.stat()
        product.write_bytes(b"VMLINUX")
        os.utime(product, ns=(before.st_atime_ns, before.st_mtime_ns))
    elif how == "opened":
        folder.chmod(0o777)
    elif how == "given away":
        os.chown(folder, 12345, 12345)
    elif how == "manifest torn":
        (folder / MANIFEST).write_text("{")
    else:
        other = next(recipe.store().glob("guest-*"))
        shutil.copy(other / MANIFEST, folder)


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ("changed", "vmlinux: expected SHA-256"),
        ("changed, same size and time", "vmlinux: expected SHA-256"),
        ("opened", "others can write it"),
        pytest.param("given away", "it belongs to user 12345", marks=pytest.mark.root),
        ("manifest torn", "cannot be read"),
        ("another's manifest", "cannot be read|something else"),
    ],
)
def test_a_part_that_somebody_may_have_changed_is_said_and_built_again(
    registry: Registry, steps: dict[str, bytes], how: str, why: str
) -> None:
    """Root runs it; the others stay."""
    folder = E500_KIT.build(registry, Progress()).kernel.parent
    _spoilt(folder, how)
    assert E500_KIT.find() is None
    assert re.search(why, E500_KIT.readiness().missing)
    with pytest.raises(MachineLacks, match=rf"not built \({folder}: .*({why})"):
        E500_KIT.require()
    progress = Progress()
    built = E500_KIT.build(registry, progress)
    assert progress.parts == ["sources", "kernel"]
    assert re.search(f"{folder}: .*({why}).*; building it again", progress.notes[0])
    assert built.kernel.read_bytes() == b"vmlinux"


def test_what_was_read_once_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every start of a guest asks for the parts."""
    (tmp_path / "product").write_bytes(b"x")
    first = kept.digest(tmp_path / "product")
    monkeypatch.setattr(hashlib, "file_digest", None)
    assert kept.digest(tmp_path / "product") == first == sha("x")


# --- what is laid in -------------------------------------------------------------------------


def test_an_archive_is_the_same_every_time() -> None:
    """The archive holds what was put in: sizes, modes, devices, all padded to 4 bytes, no time stamp."""
    entries = guest.root(b"program")
    data = cpio.archive(entries)
    assert data == cpio.archive(guest.root(b"program"))
    files: dict[str, tuple[int, bytes, tuple[int, int]]] = {}
    at = 0
    while True:
        assert data[at : at + 6] == b"070701"
        fields = [int(data[at + 6 + 8 * i : at + 14 + 8 * i], 16) for i in range(13)]
        name = data[at + 110 : at + 110 + fields[11] - 1].decode()
        start = (at + 110 + fields[11] + 3) & ~3
        if name == "TRAILER!!!":
            break
        assert fields[5] == 0  # mtime
        files[name] = (fields[1], data[start : start + fields[6]], (fields[9], fields[10]))
        at = (start + fields[6] + 3) & ~3
    assert files["init"] == (0o100755, b"program", (0, 0))
    assert files["dev/console"] == (0o020600, b"", (5, 1))
    assert files["proc"][0] == 0o040755
    assert cpio.joined(b"12345", data) == b"12345\0\0\0" + data
    assert cpio.zipped(data) == cpio.zipped(data)
    assert gzip.decompress(cpio.zipped(data)) == data
    assert cpio.zipped(data)[3:8] == bytes(5)  # no name, no time


def test_options_that_the_configuration_lost_are_named() -> None:
    """An option that is off is as good as one that is not there."""
    fragment = "# c\nCONFIG_A=y\nCONFIG_B=n\nCONFIG_C=y\nCONFIG_D=n\nCONFIG_E=m\n"
    config = "CONFIG_A=y\n# CONFIG_B is not set\nCONFIG_D=y\nCONFIG_E=y\n"
    assert kernel.lost_options(fragment, config) == ["CONFIG_C=y", "CONFIG_D=n", "CONFIG_E=m"]


def test_qemu_gets_every_source_of_ours(ours: Path) -> None:
    """Both machines have the links; the boards alone have the engine, the PC its own. Headers are found."""
    boards, pc = qemu.meson_build(ours).split("softmmu_ss.add(")[1:]
    assert boards.startswith("when: ['CONFIG_E500PLAT', dependency('nettle', required: false), ")
    assert pc.startswith("when: ['CONFIG_Q35'], ")
    assert "include_directories('.', 'qemu', 'sec')" in boards
    assert "include_directories('.', 'qemu', 'qemu/x86')" in pc
    for made, target in ((boards, qemu.PPCE500), (pc, qemu.X86)):
        files = re.findall(r"'([\w/]+\.[ch])'", made)
        assert files == [str(file.relative_to(ours)) for file in target.sources(ours) if file.suffix == ".c"]
        assert "qemu/esplink.c" in files
        assert "qemu/mirror.c" not in files  # a test program
    assert "'sec/channels.c'" in boards
    assert "sec/" not in pc


class Recorded(tools.Runner):
    """A Runner that notes the programs, and makes what strip is asked for."""

    def __init__(self) -> None:
        self.programs: list[str] = []
        self.folders: set[Path] = set()

    def run(self, argv: Sequence[str], folder: Path, what: str, **_: object) -> str:
        self.programs.append(" ".join([Path(argv[0]).name, *argv[-1:]] if argv[0] == "ninja" else argv[:1]))
        if argv[0] == "dpkg-source":
            for place in ("hw/misc", *(f"configs/devices/{t.architecture}-softmmu" for t in qemu.TARGETS)):
                Path(argv[-1], place).mkdir(parents=True)
        if argv[0] == "strip":
            Path(argv[3]).touch()
        return ""


def test_a_second_program_is_made_in_the_tree_of_the_first(ours: Path, tmp_path: Path) -> None:
    """The code that both have is there then. The tree is the same, whichever comes first."""
    package = recipe.pinned()["qemu"]
    trees = []
    for place, order in (("one", qemu.TARGETS), ("other", qemu.TARGETS[::-1])):
        (work := tmp_path / place).mkdir()
        first, second = Recorded(), Recorded()
        qemu.build(work, package, first, order[0])
        assert qemu.build(work, package, second, order[1]).keys() == {order[1].program}
        assert f"ninja {order[0].program}" in first.programs
        assert second.programs == [f"ninja {order[1].program}", "strip"]
        trees.append({str(f.relative_to(work)): f.read_bytes() for f in work.rglob("*") if f.is_file()})
    assert trees[0] == trees[1]


def test_a_tree_of_other_files_is_not_used_again(ours: Path, tmp_path: Path) -> None:
    """Its program would bear the key of the new ones."""
    package, (one, other) = recipe.pinned()["qemu"], qemu.TARGETS
    qemu.build(tmp_path, package, Recorded(), one)
    with (ours / "qemu/x86/power_port.c").open("a") as stream:
        stream.write("\n")
    with pytest.raises(EspbenchError, match=r"a file of QEMU changed while it was built: build again"):
        qemu.build(tmp_path, package, Recorded(), other)


# QEMU compiles these for one machine alone: CONFIG_ETSEC, CONFIG_E500; CONFIG_E1000E_PCI_EXPRESS, target/i386.
ALONE = {
    "ppc": ("hw/net/fsl_etsec/", "hw/ppc/", "target/ppc/", "hw/net/meson.build"),
    "x86_64": ("hw/net/e1000e", "hw/net/net_tx_pkt", "target/i386/"),
}


@pytest.mark.parametrize("target", qemu.TARGETS, ids=lambda target: target.architecture)
def test_a_change_of_one_machine_is_in_no_others_program(ours: Path, target: qemu.Target) -> None:
    """All patches are in the one tree, but only its own are in its key. A meson.build may get files of it alone."""
    others = {patch for other in qemu.TARGETS if other is not target for patch in other.patches(ours)}
    for patch in set(target.patches(ours)) - others:
        changed = re.findall(r"^\+\+\+ b/(\S+)", text := patch.read_text(), re.MULTILINE)
        assert changed
        assert all(file.startswith(ALONE[target.architecture]) for file in changed), (patch.name, changed)
        if "hw/net/meson.build" in changed:
            (hunk,) = re.findall(r"^\+\+\+ b/hw/net/meson.build\n((?:[@ +-].*\n)+)", text, re.MULTILINE)
            lines = [line[1:] for line in hunk.splitlines() if line[0] in "+-"]
            assert all("fsl_etsec/" in line for line in lines), lines


def test_patches_are_applied_in_their_order(ours: Path) -> None:
    """Their order is that of their names."""
    for name in ("90-b.patch", "05-a.patch"):
        (ours / "qemu" / name).write_text("")
    names = [patch.name for patch in recipe.qemu_patches(ours)]
    assert names == sorted(names)
    assert names[0] == "05-a.patch"
    assert names[-1] == "90-b.patch"
