# SPDX-License-Identifier: Apache-2.0
"""A distribution without apt-get is named, since the packages that doctor names are Debian's."""

from __future__ import annotations

import platform
import shutil

import pytest

from espbench.this_machine.distribution import without_debian_packages


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
