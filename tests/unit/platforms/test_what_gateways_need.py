# SPDX-License-Identifier: Apache-2.0
"""Namespaces need something of the running kernel, and network cards count late: both are known before a trial."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.errors import EspbenchError
from espbench.measure.proof import counters
from espbench.platforms import netns
from espbench.platforms.remote import remote_platform


def lacks() -> dict[str, str]:
    return {need.name: need.missing for need in netns.readiness() if not need.ready}


def test_a_kernel_that_cannot_thread_napi_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release="5.10.0-33-amd64"))
    assert lacks()["threaded NAPI"] == "Linux 5.10.0-33-amd64 cannot thread the NAPI of a veth"


def test_kernel_threads_that_cannot_be_seen_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A container has a PID namespace of its own, in which process 2 is no kernel thread."""
    whole = Path.read_text

    def read(path: Path, *rest: Any, **more: Any) -> str:
        return "bash\n" if path == Path("/proc/2/comm") else whole(path, *rest, **more)

    monkeypatch.setattr(Path, "read_text", read)
    assert lacks()["kernel threads"] == "this PID namespace hides the kernel's threads"


def test_a_kernel_without_ipv6_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(netns, "ipv6_is_here", lambda: False)
    assert "IPv6" in lacks()


def test_a_thread_that_may_not_be_pinned_is_told_as_that(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The kernel can thread the NAPI of a veth: the reason is another one."""
    comm = tmp_path / "4711" / "comm"
    comm.parent.mkdir()
    comm.write_text("napi/lan0-1\n")
    monkeypatch.setattr(netns, "Path", lambda _: tmp_path)

    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setaffinity", refused)
    with pytest.raises(
        EspbenchError, match="cannot pin napi/lan0-1, a kernel thread: Operation not permitted"
    ):
        netns._pin("lan0", [0])


@pytest.mark.parametrize(
    ("drivers", "late_s"),
    [(["virtio_net", "virtio_net"], 0.0), (["uml-vector", ""], 0.0), (["virtio_net", "igb"], 2.0)],
    ids=str,
)
def test_network_cards_that_keep_the_counts_themselves_are_waited_for(
    drivers: list[str], late_s: float
) -> None:
    """A device without a driver has no such link."""
    links = dict(zip(("lan", "wan"), drivers, strict=True))

    def run(argv: list[str]) -> Any:
        driver = links[argv[-1].split("/")[4]]
        return SimpleNamespace(out=f"../../bus/pci/drivers/{driver}\n" if driver else "")

    box = cast(Any, SimpleNamespace(lan="lan", wan="wan", run=run))
    assert remote_platform._counters_late_s({"home": box, "office": box}) == late_s


@pytest.mark.parametrize(("late_s", "slept"), [(0.0, [0.2, 0.2]), (2.0, [2.0, 2.0])])
def test_counters_that_do_not_fit_are_read_again_when_they_can_be_right(
    late_s: float, slept: list[float]
) -> None:
    waits: list[float] = []
    bed = cast(Any, SimpleNamespace(counters_late_s=late_s, gateways={}))
    counters.read_again(bed, None, {}, {}, lambda delta: [cast(Any, "late")], waits.append)
    assert waits == slept
