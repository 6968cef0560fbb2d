# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan's throughput tests: rates, times and keys of the search that contradict each other."""

from __future__ import annotations

from collections.abc import Iterator

from espbench.plan.keys.model import Throughput
from espbench.plan.reading.reader import KeyPath, Problem, shown
from espbench.plan.reading.units import Rate, format_duration, format_fraction
from espbench.plan.resolved.frame_sizes import mean_frame_size
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_OF_BISECTION = ("loss_verification", "warm_start")


def throughput_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find rates, times and loss goals of throughput tests that contradict each other."""
    plan = resolved.plan
    for index, test in enumerate(plan.tests):
        if test.throughput is None:
            continue
        settings, at = test.throughput, ("tests", index, test.name)
        yield from _search(settings, at)
        if settings.final_trial < settings.trial:
            yield Problem(
                (*at, "final_trial"),
                f"at least the trial's {format_duration(settings.trial)}",
                shown(format_duration(settings.final_trial)),
                "lengthen final_trial or shorten trial",
                involves=((*at, "trial"),),
            )
        for position, goal in enumerate(settings.loss_goals):
            if goal in settings.loss_goals[:position]:
                remedy = "one answer is given for each goal: remove it"
                yield Problem(
                    (*at, "loss_goals", position), "each goal once", f"{format_fraction(goal)} again", remedy
                )
        if not _minimum_is_lower(resolved, settings):
            yield Problem(
                (*at, "minimum"),
                f"less than maximum ({settings.maximum})",
                shown(str(settings.minimum)),
                "the search runs from minimum to maximum",
                involves=((*at, "maximum"), ("line_rate",)),
            )


def _search(settings: Throughput, at: KeyPath) -> Iterator[Problem]:
    """Find keys that belong to the other kind of search."""
    given, search = settings.model_fields_set, (*at, "search")
    if settings.search == "bisection" and settings.preset is not None:
        yield Problem(
            (*at, "preset"),
            "a preset with search: mlr alone",
            "one",
            "add search: mlr, or remove it",
            on_key=True,
            involves=(search,),
        )
    for key in _OF_BISECTION if settings.search == "mlr" else ():
        if key in given:
            instead = "preset: tst009 tolerates a bad trial" if key == "loss_verification" else "remove it"
            yield Problem(
                (*at, key),
                f"no {key} with search: mlr",
                "one",
                instead,
                on_key=True,
                involves=(search,),
            )


def _minimum_is_lower(resolved: ResolvedPlan, settings: Throughput) -> bool:
    """Return whether minimum is below maximum; True if this cannot be decided before the line rate is known."""
    plan = resolved.plan
    low, high = settings.minimum, settings.maximum
    if low is None or high is None:
        return True
    if low.unit == high.unit:
        return low.value < high.value
    line_rate = resolved.line_rate
    if line_rate is None and "%" in (low.unit, high.unit):
        return True

    def fps(rate: Rate, size: int | str) -> float:
        return rate.to_fps(mean_frame_size(resolved.traffic, size), line_rate or 0.0)

    return all(fps(low, size) < fps(high, size) for size in plan.frame_sizes)
