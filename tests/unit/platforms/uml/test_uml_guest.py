# SPDX-License-Identifier: Apache-2.0
"""A User-Mode Linux guest that dies right after its greeting is a gateway that failed."""

from __future__ import annotations

import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import GatewayFailed
from espbench.platforms.uml import uml_guest
from espbench.platforms.uml.beat import Beat
from espbench.platforms.uml.uml_guest import Guest


@pytest.fixture
def guest(tmp_path: Path) -> Guest:
    """A guest that has sent its greeting; its process has ended since."""
    with subprocess.Popen(["true"]) as process:
        process.wait()
    (tmp_path / "console").write_text("Kernel panic - not syncing: no memory\n")
    channel: Any = SimpleNamespace(wait_ready=lambda timeout_s: {"kernel": "6.1"})
    files = {name: tmp_path / name for name in ("notebook", "console")}
    return Guest("home", cast(Any, process), channel, **files, beat=Beat("beat"))


@pytest.mark.parametrize("below", [[], [1]], ids=["all are gone", "the kernel is gone"])
def test_a_guest_that_dies_after_its_greeting_has_last_words(
    guest: Guest, below: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uml_guest, "descendants", lambda root: below)
    with pytest.raises(GatewayFailed, match="gateway home died; the end of its console:\nKernel panic"):
        guest.wait_ready()


def test_a_kernel_that_ends_before_the_first_beat_too(guest: Guest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its PID was read a moment before."""
    monkeypatch.setattr(uml_guest, "descendants", lambda root: [1, guest.process.pid])
    with pytest.raises(GatewayFailed, match="home died"):
        guest.wait_ready()
    guest.console.unlink()
    with pytest.raises(GatewayFailed, match=r"\Agateway home died\Z"):
        guest.wait_ready()
