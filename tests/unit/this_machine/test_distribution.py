# SPDX-License-Identifier: Apache-2.0
"""A distribution that is not Debian is named, Debian by its codename; apt's lists can name another release."""

from __future__ import annotations

import platform
import shutil
from typing import NamedTuple

import pytest

from espbench.cli import doctor
from espbench.this_machine.distribution import (
    debian_codename,
    made_from_debian,
    with_release,
    without_debian_packages,
)


class System(NamedTuple):
    """A system: its os-release (None if it has none), and whether it has apt-get."""

    known: dict[str, str] | None
    has_apt: bool

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def os_release() -> dict[str, str]:
            if self.known is None:
                raise FileNotFoundError
            return self.known

        monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}" if self.has_apt else None)
        monkeypatch.setattr(platform, "freedesktop_os_release", os_release)


def named(identity: str, name: str) -> dict[str, str]:
    return {"ID": identity, "PRETTY_NAME": name}


@pytest.mark.parametrize(
    ("system", "without", "kin"),
    [
        (System(named("debian", "Debian GNU/Linux 12 (bookworm)"), True), "", ""),
        (System(named("ubuntu", "Ubuntu 24.04.3 LTS"), True), "", "Ubuntu 24.04.3 LTS"),
        (System(named("raspbian", "Raspbian GNU/Linux 12"), True), "", "Raspbian GNU/Linux 12"),
        (System(None, True), "", "this system"),
        (
            System(named("fedora", "Fedora Linux 43 (Server Edition)"), False),
            "Fedora Linux 43 (Server Edition)",
            "",
        ),
        (System(named("arch", "Arch Linux"), False), "Arch Linux", ""),
        (System(None, False), "this system", ""),
    ],
)
def test_one_that_is_not_debian_is_named(
    monkeypatch: pytest.MonkeyPatch, system: System, without: str, kin: str
) -> None:
    """One of the two names, or none for Debian; `doctor` has a remark for the one that is there."""
    system.install(monkeypatch)
    assert (without_debian_packages(), made_from_debian()) == (without, kin)
    remarks = list(doctor._on_packages())
    assert [remark.startswith(without or kin) for remark in remarks] == [True] * bool(without or kin)
    assert any("Debian 12" in remark for remark in remarks) == bool(kin)


LINES = """\
# Debian's own
deb http://a/debian trixie main
deb [arch=amd64 signed-by=k] http://a/debian trixie-updates main
deb http://a/debian-security trixie-security main contrib
deb http://b/programs stable-of-theirs main
deb http://b/flat ./
"""


def test_a_list_names_the_other_release() -> None:
    """Archives with other suites have no such release."""
    assert with_release(LINES, ".list", "trixie", "bookworm") == (
        "deb http://a/debian bookworm main\n"
        "deb [arch=amd64 signed-by=k] http://a/debian bookworm-updates main\n"
        "deb http://a/debian-security bookworm-security main contrib\n"
    )


def test_stanzas_name_the_other_release() -> None:
    text = (
        "Types: deb\nURIs: http://a/debian\nSuites: trixie trixie-updates trixie-backports\nComponents: main\n"
        "Signed-By: k\n\nTypes: deb\nURIs: http://b\nSuites: nodistro\nComponents: main\n"
    )
    assert with_release(text, ".sources", "trixie", "bookworm") == (
        "Types: deb\nURIs: http://a/debian\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: k"
    )


def test_suites_may_take_several_lines() -> None:
    text = "Types: deb\nSuites: trixie\n trixie-updates\n\ttrixie-security\nURIs: http://a/debian\n"
    assert with_release(text, ".sources", "trixie", "bookworm") == (
        "Types: deb\nSuites: bookworm bookworm-updates bookworm-security\nURIs: http://a/debian\n"
    )


@pytest.mark.parametrize("suite", ["stable", "testing", "sid", "forky"])
def test_a_suite_may_be_named_by_its_role(suite: str) -> None:
    assert (
        with_release(f"deb http://a {suite} main\n", ".list", "forky", "bookworm")
        == "deb http://a bookworm main\n"
    )


@pytest.mark.parametrize("codename", ["bookworm", ""])
def test_with_this_release_or_without_debian_lists_are_kept(codename: str) -> None:
    assert with_release(LINES, ".list", codename, "bookworm") == LINES


@pytest.mark.parametrize(
    ("known", "codename"),
    [
        ({"ID": "debian", "VERSION_CODENAME": "trixie"}, "trixie"),
        ({"ID": "ubuntu", "VERSION_CODENAME": "noble", "ID_LIKE": "debian"}, ""),
        ({"ID": "debian"}, ""),
    ],
)
def test_the_codename_is_of_a_debian(
    monkeypatch: pytest.MonkeyPatch, known: dict[str, str], codename: str
) -> None:
    """Archives of systems that were made from Debian do not have its releases."""
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: known)
    assert debian_codename() == codename
