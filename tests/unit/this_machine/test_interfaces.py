# SPDX-License-Identifier: Apache-2.0
"""An interface reports its flow control by the kernel's ioctl."""

from __future__ import annotations

import ctypes
import errno
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from espbench.runs.setups import _flow_control
from espbench.this_machine import interfaces


def kernel(monkeypatch: pytest.MonkeyPatch, **pausing: tuple[int, int]) -> None:
    """Let these interfaces have flow control: name → (rx, tx); the kernel refuses any other name."""

    def ioctl(file: Any, number: int, request: bytes) -> bytes:
        name, address = struct.unpack("16sP16x", request)
        command = (ctypes.c_uint32 * 4).from_address(address)
        assert (number, [*command]) == (0x8946, [0x12, 0, 0, 0])
        if name.rstrip(b"\0").decode() not in pausing:
            raise OSError(errno.EOPNOTSUPP, "")
        command[1:] = [1, *pausing[name.rstrip(b"\0").decode()]]
        return request

    monkeypatch.setattr("fcntl.ioctl", ioctl)


@pytest.mark.parametrize(
    ("reported", "ways"), [((0, 0), []), ((1, 0), ["rx"]), ((0, 1), ["tx"]), ((1, 1), ["rx", "tx"])]
)
def test_flow_control_is_read(
    monkeypatch: pytest.MonkeyPatch, reported: tuple[int, int], ways: list[str]
) -> None:
    kernel(monkeypatch, eth7=reported)
    assert interfaces.flow_control(None, "eth7") == ways


def test_an_interface_that_reports_none_or_is_not_there_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert interfaces.flow_control(None, "not-there") == []  # by this machine's own kernel
    kernel(monkeypatch)
    assert interfaces.flow_control(None, "veth0") == []
    assert interfaces.flow_control(str(tmp_path / "gone"), "eth7") == []


def test_a_port_with_flow_control_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel(monkeypatch, eth7=(1, 1), eth8=(0, 0))
    ports: list[Any] = [
        SimpleNamespace(name="west", interface="eth7", netns=None),
        SimpleNamespace(name="east", interface="eth8", netns=None),
    ]
    (note,) = _flow_control(ports)
    assert note.startswith("Tester port west: eth7 uses Ethernet flow control (rx and tx).")
    assert note.endswith("ethtool -A eth7 rx off tx off")
