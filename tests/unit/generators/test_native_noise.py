# SPDX-License-Identifier: Apache-2.0
"""A noise as the native generator is asked for it."""

from __future__ import annotations

from espbench.generators.base import Noise
from espbench.generators.native import _noise

MAC = "02:00:00:00:00:01"


def test_a_counter_is_asked_for_only_where_a_packet_has_one() -> None:
    """A generator of an earlier version refuses a key that it does not know."""
    noise = Noise(id=100, from_="west", rate_fps=10.0, src_mac=MAC, dst_mac=MAC, packets=["AAAA"])
    assert "counter_at" not in _noise(noise)
    assert _noise(noise)["from"] == "west"
    assert _noise(noise.model_copy(update={"counter_at": 28}))["counter_at"] == 28
