# SPDX-License-Identifier: Apache-2.0
"""Probe frames that a busy host did not let leave: more are sent, all of them count, and not for ever."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from espbench.measure.inputs.setup import Setup
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof.readiness import NotReady, establish


def boxes(*counts: tuple[int, int]) -> Setup:
    """Boxes without a stack of ours; (sent, arrived) of each probe."""
    probes = iter(counts)

    def offer(*asked: Any, **settings: Any) -> Any:
        sent, arrived = next(probes)
        return SimpleNamespace(streams=[SimpleNamespace(tx_frames=sent, rx_frames=arrived)], ports=[])

    streams = cast(Any, lambda traffic, rate: cast(Sequence[Any], []))
    return cast(Setup, SimpleNamespace(stack=None, generator=SimpleNamespace(offer=offer), streams=streams))


ONE_WAY = Traffic(((64, 1),), 4, "one-way")


def test_half_of_them_is_enough() -> None:
    assert establish(boxes((25, 24)), ONE_WAY) == {"path": "24 of 25 probe frames came through the DUT"}


def test_what_did_not_leave_is_sent_again_and_all_of_it_counts() -> None:
    """The gateways' counters saw both."""
    shown = establish(boxes((9, 8), (50, 50)), ONE_WAY)
    assert shown == {"path": "58 of 59 probe frames came through the DUT"}


def test_a_host_that_lets_none_leave_is_named() -> None:
    with pytest.raises(NotReady, match=r"sent 6 of 50 probe frames in 3 attempts; is the host busy\?"):
        establish(boxes((2, 2), (2, 2), (2, 2)), ONE_WAY)
