# SPDX-License-Identifier: Apache-2.0
"""The kernel's configuration, or else trying, says whether a thread's CPU time has the softirqs in it."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from espbench.this_machine import irq_time


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where the kernel's configuration would be; trying finds that softirqs are left out."""
    monkeypatch.setattr(irq_time, "CONFIGS", (str(tmp_path / "config"), str(tmp_path / "config.gz")))
    monkeypatch.setattr(irq_time, "share_left_out", lambda: 0.3)
    return tmp_path / "config"


def test_the_configuration_decides_where_it_can_be_read(config: Path) -> None:
    """Both ways to say no, packed or not; nothing is tried then."""
    config.write_text("CONFIG_NET=y\n# CONFIG_IRQ_TIME_ACCOUNTING is not set\n")
    assert irq_time.left_out() == ""
    config.write_text("CONFIG_NET=y\n")
    assert irq_time.left_out() == ""
    config.unlink()
    config.with_suffix(".gz").write_bytes(gzip.compress(b"CONFIG_IRQ_TIME_ACCOUNTING=y\n"))
    assert "CONFIG_IRQ_TIME_ACCOUNTING=y" in irq_time.left_out()


def test_without_a_configuration_it_is_tried(config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time in nobody's account is named; what cannot be tried counts as left out."""
    assert irq_time.left_out().startswith("30 % of the time")
    monkeypatch.setattr(irq_time, "share_left_out", lambda: 0.01)
    assert irq_time.left_out() == ""

    def fails() -> float:
        raise OSError("no loopback")

    monkeypatch.setattr(irq_time, "share_left_out", fails)
    assert irq_time.left_out().endswith("no loopback")
