# SPDX-License-Identifier: Apache-2.0
"""A plan's build of a daemon is found in its own folder or refused, and told from any other."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import CommandResult
from espbench.stacks.daemons import builds, layers, packages
from espbench.this_machine import kept as kept_files


def installed(base: Path, *programs: str, code: str = "code") -> Path:
    """Files with these places below base."""
    for place in programs:
        (base / place).parent.mkdir(parents=True, exist_ok=True)
        (base / place).write_text(code)
    return base


@pytest.mark.parametrize(
    ("base", "image"), [("usr", True), ("usr/local", True), (".", False)], ids=["usr", "usr/local", "prefix"]
)
@pytest.mark.parametrize("libexec", ["lib/ipsec", "libexec/ipsec"])
def test_the_programs_are_those_of_the_folder(tmp_path: Path, base: str, image: bool, libexec: str) -> None:
    """Wherever `make install` put them: upstream's default, Debian's, a prefix."""
    installed(tmp_path / base, f"{libexec}/charon", "sbin/swanctl")
    build = builds.find("strongswan", None, tmp_path)
    inside = f"/{base}" if image else str(tmp_path)
    assert build.programs == {"charon": f"{inside}/{libexec}/charon", "swanctl": f"{inside}/sbin/swanctl"}
    assert build.image is image


@pytest.mark.parametrize("lacks", ["libexec/ipsec/charon", "sbin/swanctl"])
def test_a_program_that_is_not_there_is_not_taken_from_the_host(tmp_path: Path, lacks: str) -> None:
    """Programs of two builds are not put together either."""
    for base in ("usr", "usr/local", "."):
        installed(tmp_path / base, *{"libexec/ipsec/charon", "sbin/swanctl"} - {lacks})
    with pytest.raises(
        UsageError, match=r"prefix: expected a build of strongswan.*charon, swanctl in libexec/ipsec"
    ):
        builds.find("strongswan", None, tmp_path)


def test_two_builds_have_two_names(tmp_path: Path) -> None:
    """A plugin makes one: charon itself is the same few lines in all of them."""
    places = ("lib/ipsec/plugins/libstrongswan-gcm.so", "libexec/ipsec/charon", "sbin/swanctl")
    one, same, other = (
        builds.find("strongswan", None, installed(tmp_path / name, *places)) for name in ("a", "b", "c")
    )
    installed(tmp_path / "c", places[0], code="faster code")
    other = builds.find("strongswan", None, tmp_path / "c")
    assert one.name == same.name != other.name
    assert one.name.startswith("own build ")
    assert one.name.split()[-1] in one.details


@pytest.mark.parametrize("base", [".", "usr"], ids=["prefix", "image"])
@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ("lib/x86_64-linux-gnu/ipsec/libcharon.so.0", True),
        ("lib/x86_64-linux-gnu/ipsec/plugins/libstrongswan-gcm.so", True),
        ("lib64/ipsec/plugins/libstrongswan-gcm.so", True),
        ("libexec/ipsec/charon", True),
        ("sbin/swanctl", True),
        ("lib/x86_64-linux-gnu/libother.so", False),
        ("etc/ipsec/charon.conf", False),
        ("share/doc/readme", False),
    ],
)
def test_every_file_of_the_daemon_tells_builds_apart(
    tmp_path: Path, base: str, changed: str, told: bool
) -> None:
    """Debian's --libdir puts libraries and plugins into a folder of the architecture."""
    installed(tmp_path / base, "libexec/ipsec/charon", "sbin/swanctl", changed)
    before = builds.find("strongswan", None, tmp_path)
    installed(tmp_path / base, changed, code="other code")
    assert (builds.find("strongswan", None, tmp_path).name != before.name) is told


def test_a_build_with_all_files_in_its_daemons_folder_keeps_its_name(tmp_path: Path) -> None:
    """Its results and those of earlier versions of espbench are of one build."""
    installed(tmp_path, *(f"libexec/ipsec/{name}" for name in ("addconn", "pluto", "whack")))
    whole = hashlib.sha256()
    for name in ("addconn", "pluto", "whack"):
        whole.update(f"libexec/ipsec/{name}\0".encode() + hashlib.sha256(b"code").digest())
    assert builds._in("libreswan", tmp_path).name == f"own build {whole.hexdigest()[:12]}"


@pytest.mark.parametrize("place", ["/run/mine", "/dev/shm/mine", "/proc/self/root/opt"])
def test_a_folder_a_gateway_does_not_see_is_refused(place: str) -> None:
    with pytest.raises(UsageError, match=f"{place} is below /[a-z]+, of which each gateway has its own"):
        builds.find("strongswan", None, Path(place))


def test_a_link_to_such_a_folder_too(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("/run/mine")
    with pytest.raises(UsageError, match="below /run"):
        builds.find("strongswan", None, tmp_path / "link")


class Gateway:
    """Answers as a mount that fails does."""

    side = "home"

    def __init__(self, words: str) -> None:
        self.words = words
        self.script = ""

    def deliver(self, folder: Path) -> str:
        return str(folder)

    def run(self, argv: list[str]) -> CommandResult:
        self.script = argv[-1]
        return CommandResult(32 if self.words else 0, "", self.words)


@pytest.mark.parametrize(
    ("words", "kind", "remedy"),
    [
        ("mount: /usr: unknown filesystem type 'overlay'.", MachineLacks, "CONFIG_OVERLAY_FS"),
        (
            "mount: /var: wrong fs type, bad option, bad superblock on espbench",
            MachineLacks,
            "two overlays deep",
        ),
        ("mount: /run/espbench/layers/usr: special device /x/usr does not exist.", EspbenchError, ""),
    ],
)
def test_only_a_kernel_without_overlays_is_blamed_for_it(
    tmp_path: Path, words: str, kind: type[EspbenchError], remedy: str
) -> None:
    build = builds.Build(tmp_path, {}, "a", "a", image=True)
    with pytest.raises(kind) as caught:
        layers.lay(Gateway(words), build)  # type: ignore[arg-type]
    assert type(caught.value) is kind
    assert words in str(caught.value)
    assert remedy in str(caught.value)
    assert remedy == "CONFIG_OVERLAY_FS" or "CONFIG" not in str(caught.value)


def test_what_is_below_var_is_bound_before_var_is_laid_over(tmp_path: Path) -> None:
    """A prefix there would be under the overlay else."""
    gateway = Gateway("")
    layers.lay(gateway, builds.Build(tmp_path, {}, "a", "a", image=False))  # type: ignore[arg-type]
    assert gateway.script.index(f"bind {tmp_path} prefix") < gateway.script.index("lay var /var")
    assert gateway.script.index("lay var /var") < gateway.script.index(f"lay prefix {tmp_path}")
    assert "bind /usr" not in gateway.script


# -- packages ------------------------------------------------------------------------------------


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache, in a process that has asked for nothing yet, where apt has no network."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(packages, "_FOUND", {})
    monkeypatch.setattr(packages, "_apt", lambda *arguments, **options: failed(["apt-get"]))
    return tmp_path / "espbench" / "packages"


def failed(argv: list[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.CompletedProcess(argv, 100, "", "E: Temporary failure resolving 'deb.example'\n")


def kept(cache: Path, version: str) -> Path:
    """A folder as an earlier run left it."""
    folder = installed(cache / f"strongswan-{version[-1] * 12}", "usr/lib/ipsec/charon", "usr/sbin/swanctl")
    (folder / "packages.txt").write_text(
        f"libstrongswan={version}\nstrongswan-charon={version}\ntpm-udev=0.6\n"
    )
    kept_files.seal(folder)
    return folder


def test_without_a_network_the_newest_of_the_cache_is_used_and_said(cache: Path) -> None:
    """Debian's order of versions says which is newest; a version that was asked for is used."""
    newest, _ = kept(cache, "5.9.8-5+deb12u10"), kept(cache, "5.9.8-5+deb12u9")
    notes: list[str] = []
    build = builds.find("strongswan", None, None, notes.append)
    assert (build.folder, build.name) == (newest, "5.9.8-5+deb12u10")
    assert build.details == "libstrongswan 5.9.8-5+deb12u10, strongswan-charon 5.9.8-5+deb12u10, tpm-udev 0.6"
    assert "Temporary failure resolving" in notes[-1]
    assert notes[-1].endswith("using strongswan 5.9.8-5+deb12u10, fetched before")
    assert builds.find("strongswan", "5.9.8-5+deb12u9", None).name == "5.9.8-5+deb12u9"


def test_without_a_network_and_cache_the_reason_is_apts(cache: Path) -> None:
    kept(cache, "5.9.8-5+deb12u9")
    with pytest.raises(MachineLacks, match="apt cannot give strongswan: E: Temporary failure resolving"):
        builds.find("strongswan", "5.9.8-5+deb12u8", None)
    with pytest.raises(MachineLacks, match="apt cannot give libreswan"):
        builds.find("libreswan", None, None)


def test_apt_is_asked_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second pair of gateways of a run must not wait for a network, nor get another version."""
    kept(cache, "5.9.8-5+deb12u9")
    before = packages.unpacked("strongswan")
    monkeypatch.setattr(packages, "_apt", None)
    assert packages.unpacked("strongswan") == before


# -- what is believed of the cache ---------------------------------------------------------------


def _changed(folder: Path) -> None:
    (folder / "usr/lib/ipsec/charon").write_text("evil")


def _added(folder: Path) -> None:
    (folder / "usr/lib/ipsec/plugin.so").write_text("evil")


def _linked(folder: Path) -> None:
    (folder / "usr/sbin/swanctl").unlink()
    (folder / "usr/sbin/swanctl").symlink_to("/tmp/evil")


def _unsealed(folder: Path) -> None:
    (folder / "digests.json").unlink()


def _opened(folder: Path) -> None:
    folder.chmod(0o777)


def _given(folder: Path) -> None:
    os.chown(folder, 12345, 12345)


@pytest.mark.parametrize(
    ("spoil", "why"),
    [
        (_changed, "usr/lib/ipsec/charon: expected SHA-256"),
        (_added, "plugin.so: expected no such file"),
        (_linked, "swanctl: expected SHA-256 .*got a link to /tmp/evil"),
        (_unsealed, "no digests of its files can be read"),
        (_opened, "others can write it"),
        pytest.param(_given, "it belongs to user 12345", marks=pytest.mark.root),
    ],
)
def test_packages_that_somebody_may_have_changed_are_fetched_again(
    cache: Path, monkeypatch: pytest.MonkeyPatch, spoil: Callable[[Path], None], why: str
) -> None:
    """They run as root. Without a network they are not used either."""
    wanted = ("strongswan-charon=5.9.8-5",)
    folder = cache / f"strongswan-{hashlib.sha256(wanted[0].encode()).hexdigest()[:12]}"
    kept(cache, "5.9.8-5").rename(folder)
    assert packages.unpacked("strongswan") == folder
    spoil(folder)
    monkeypatch.setattr(packages, "_FOUND", {})
    notes: list[str] = []
    with pytest.raises(MachineLacks, match="apt cannot give"):
        packages.unpacked("strongswan", None, notes.append)
    assert any(re.search(f"{folder}: .*{why}.*; not used", note) for note in notes), notes
    monkeypatch.setattr(packages, "_versions", lambda *_: wanted)

    def fetch(names: Sequence[str], into: Path, own_lists: bool) -> None:
        assert not into.exists()
        kept(cache, "5.9.8-5").rename(into)

    monkeypatch.setattr(packages, "_fetch", fetch)
    assert packages.unpacked("strongswan") == folder
    assert (folder / "usr/lib/ipsec/charon").read_text() == "code"


def test_a_cache_that_others_can_write_is_closed_to_them(cache: Path) -> None:
    kept(cache, "5.9.8-5")
    cache.chmod(0o775)
    packages.unpacked("strongswan")
    assert cache.stat().st_mode & 0o777 == 0o755


@pytest.mark.root
def test_a_cache_of_somebody_else_is_refused(cache: Path) -> None:
    kept(cache, "5.9.8-5")
    os.chown(cache.parent, 12345, 12345)
    with pytest.raises(
        MachineLacks, match="expected a cache of this user's own, got one of which it belongs"
    ):
        packages.unpacked("strongswan")


def test_dependencies_that_only_boot_a_system_are_not_fetched() -> None:
    """They were 27 of 37 MB on a host without systemd, and a box behind SSH received them too."""
    simulated = """\
Reading package lists...
Inst libsystemd0 (252.39-1 Debian:12/oldstable [amd64])
Inst systemd (252.39-1 Debian:12/oldstable [amd64])
Inst systemd-timesyncd (252.39-1 Debian:12/oldstable [amd64])
Inst libudev1 [252.38-1] (252.39-1 Debian:12/oldstable [amd64])
Inst udev (252.39-1 Debian:12/oldstable [amd64])
Inst strongswan-charon (5.9.8-5 Debian:12/oldstable [amd64])
Conf strongswan-charon (5.9.8-5 Debian:12/oldstable [amd64])
"""
    assert packages.wanted_versions(simulated) == {
        "libsystemd0": "252.39-1", "libudev1": "252.39-1", "strongswan-charon": "5.9.8-5",
    }  # fmt: skip
