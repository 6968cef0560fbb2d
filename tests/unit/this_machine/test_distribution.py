# SPDX-License-Identifier: Apache-2.0
"""A distribution without apt-get is named, Debian by its codename; apt's lists can name another release."""

from __future__ import annotations

import platform
import shutil

import pytest

from espbench.this_machine.distribution import debian_codename, with_release, without_debian_packages


def test_debian_and_its_kin_need_no_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    assert without_debian_packages() == ""


@pytest.mark.parametrize("name", ["Fedora Linux 43 (Server Edition)", "Arch Linux"])
def test_another_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: {"PRETTY_NAME": name})
    assert without_debian_packages() == name


def test_one_that_does_not_say_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent() -> dict[str, str]:
        raise FileNotFoundError

    monkeypatch.setattr(shutil, "which", lambda _: None)
    monkeypatch.setattr(platform, "freedesktop_os_release", absent)
    assert without_debian_packages() == "this system"


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
