# SPDX-License-Identifier: Apache-2.0
"""Chooses where a throughput search begins, from the cost of a frame at sizes measured before in the same run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from espbench.plan.keys.model import Throughput
from espbench.plan.resolved.cases import Case
from espbench.search.evidence import tidy
from espbench.search.frame_cost import LEAST_SIZES, predicted_fps
from espbench.terms import Outcome

# If a search without a hint took no more trials than this, the DUT's forwarding rate led it, which is the
# better guide.
LED_BY_THE_RATE = 6
Measured = Iterable[tuple[Case, Sequence[object]]]  # cases that are complete, with their results


def hints(case: Case, measured: Measured) -> list[float | None]:
    """Return a guess of the throughput for each loss goal, frames/s; empty if no guess can be made.

    A guess uses only results of the same test, gateways, direction and repeat, so repeats stay independent of one
    another. It does not use results at a limit, which are not the DUT's, nor results across the size from which on
    frames are fragmented. There is no guess if the first sizes took few trials without one.
    """
    settings = case.settings
    if (alike := series(case)) is None or not isinstance(settings, Throughput):
        return []
    rates: dict[float, dict[float, float]] = {goal: {} for goal in settings.loss_goals}
    trials: dict[float, int] = {}
    for other, results in measured:
        for outcome in results if series(other) == alike else ():
            if isinstance(outcome, Outcome) and (rate := _rate(outcome)) is not None:
                rates[outcome.loss_goal][other.mean_frame_size] = rate
                trials[other.mean_frame_size] = outcome.trials
    if not worth_a_hint([*trials.values()]):
        return []
    guesses = [predicted_fps(rates[goal], case.mean_frame_size) for goal in settings.loss_goals]
    return [tidy(guess) if guess is not None else None for guess in guesses] if any(guesses) else []


def worth_a_hint(trials: Sequence[int]) -> bool:
    """Return whether hints can save trials: only if the first sizes, without a hint, took many trials each."""
    return min(trials[:LEAST_SIZES], default=0) > LED_BY_THE_RATE


def guides(before: Sequence[Case]) -> Sequence[Case]:
    """Return the cases of the same series whose results give a case its hint; empty if they are too few."""
    return before if len(before) >= LEAST_SIZES else []


def series(case: Case) -> tuple[object, ...] | None:
    """Return a key that is equal for searches that differ only in the frame size; None if other sizes give no hint."""
    settings = case.settings
    if not isinstance(settings, Throughput) or not settings.warm_start or settings.search != "bisection":
        return None
    return case.test, case.pair, case.direction, case.repeat, case.fragments


def _rate(outcome: Outcome) -> float | None:
    """Return the geometric mean of the bounds of the throughput, frames/s; None if they are not known or at a limit."""
    if outcome.status != "OK" or outcome.is_at_limit or not outcome.lower_fps or not outcome.upper_fps:
        return None
    return math.sqrt(outcome.lower_fps * outcome.upper_fps)
