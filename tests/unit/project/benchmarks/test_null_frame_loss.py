# SPDX-License-Identifier: Apache-2.0
"""A small part of benchmarks/judgement/null_frame_loss.py, and which of its rows are red."""

from __future__ import annotations

import null_frame_loss as null
import pytest
from null_frame_loss import Figures, Noise

from espbench.quantities import Key

LOSSLESS = str(Key.LOSSLESS_LOAD)
CASES = 50


def figures_of(noise: Noise) -> Figures:
    """Return the means of so many frame loss tests of a DUT that loses 50 frames at once now and then."""
    return null.means([null.frame_loss("hiccups", noise, seed) for seed in range(CASES)])


def test_the_loss_of_a_stalled_host_is_in_no_figure_and_was_by_other_rules() -> None:
    """A trial with a stall stood if the DUT lost a frame besides, and showed the loss of both."""
    quiet = figures_of(Noise())
    assert null.problems(figures_of(Noise("stalls", 0.3)), quiet) == []
    for rule in ("all", "share"):
        assert "the loss at 48000 is the host's" in null.problems(
            figures_of(Noise("stalls", 0.3, rule)), quiet
        )


QUIET = {LOSSLESS: 40_000.0, "loss at 48000": 0.1, "loss at 80000": 50.0}
LADDER = {"a": 10.0, "b": 10.1, "ratio": 0.1}


@pytest.mark.parametrize(
    ("noisy", "quiet", "reasons"),
    [
        (QUIET, QUIET, []),
        (QUIET | {LOSSLESS: 39_700.0, "loss at 48000": 0.2}, QUIET, []),
        (QUIET | {LOSSLESS: 39_500.0}, QUIET, ["the load without loss moved"]),
        (QUIET | {LOSSLESS: 40_500.0}, QUIET, ["the load without loss moved"]),
        (QUIET | {"loss at 48000": 0.22}, QUIET, ["the loss at 48000 is the host's"]),
        (LADDER | {"a": 10.01, "ratio": 0.09}, LADDER, []),
        (LADDER | {"a": 10.03, "b": 10.13}, LADDER, ["the ladder moved"]),
        (LADDER | {"b": 10.115, "a": 9.99, "ratio": 0.125}, LADDER, ["the ladder moved"]),
        ({"none": 0.04} | QUIET, QUIET, []),
        ({"none": 0.06} | QUIET, QUIET, ["too many cases have no answer"]),
        ({"none": 1.0, "void": 1.0}, QUIET, ["too many cases have no answer"]),
    ],
)
def test_a_row_is_red_where_a_figure_moved(noisy: Figures, quiet: Figures, reasons: list[str]) -> None:
    assert null.problems(noisy, quiet) == reasons
    text = null.row("a DUT", Noise("stalls", 0.3), {"void": 0.0, "none": 0.0, **noisy}, quiet)
    assert all(reason in text for reason in reasons)
