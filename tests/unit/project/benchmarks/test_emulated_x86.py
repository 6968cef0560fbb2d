# SPDX-License-Identifier: Apache-2.0
"""The benchmark of a machine with late timers: what its exit code says, and which clock its kernel keeps."""

from __future__ import annotations

from collections.abc import Sequence

import emulated_x86
import pytest

from espbench.terms import Finding, Outcome


def _flood(share: float, case: str = "xfrm flood") -> emulated_x86.Left:
    return emulated_x86.Left(case, share, offered=0.95, lost=0.2, validity="INVALID; the host stood still")


def _throughput(status: str) -> Outcome:
    return Outcome.model_construct(case="xfrm throughput", status=status)


FLOOD = Finding.model_construct(case="xfrm flood", status="INVALID")
BOUND = _throughput("LOWER_BOUND")


@pytest.mark.parametrize(
    ("floods", "results", "words"),
    [
        ([_flood(1.0)], [BOUND, FLOOD], ""),
        ([_flood(0.9991)], [_throughput("OK"), FLOOD], ""),
        ([_flood(1.0), _flood(0.998)], [BOUND, FLOOD], "xfrm flood: only 99.80 % of the frames left"),
        ([_flood(1.0)], [_throughput("INVALID"), FLOOD], "xfrm throughput: INVALID, expected a figure"),
        ([], [BOUND, FLOOD], "xfrm flood: no frame was sent"),
        ([_flood(1.0, "plain flood")], [BOUND, FLOOD], "xfrm flood: no frame was sent"),
        ([_flood(1.0)], [BOUND], "1 results of 2 cases"),
    ],
)
def test_all_frames_leave_and_every_throughput_has_a_figure(
    floods: Sequence[emulated_x86.Left], results: Sequence[Outcome | Finding], words: str
) -> None:
    """A flood that is INVALID is expected there: the machine stands still too often to judge it."""
    missed = "; ".join(emulated_x86.missed_goals(floods, results, cases=2))
    assert words in missed
    assert bool(missed) == bool(words)


@pytest.mark.parametrize(
    ("version", "keeps"),
    [
        ("6.1.0-50-amd64", False),
        ("6.19.3+deb14-amd64", False),
        ("7.2.13+deb14-amd64", True),
        ("10.0.1-amd64", True),
        ("bzImage-1f2e3d4c", False),
    ],
)
def test_only_a_kernel_that_patches_itself_keeps_its_clock(version: str, keeps: bool) -> None:
    """The machine of late timers has the slow clock of an emulated CPU, wherever it can."""
    assert bool(emulated_x86.clock_options(version)) == keeps
