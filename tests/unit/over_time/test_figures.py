# SPDX-License-Identifier: Apache-2.0
"""The figure of a run is the median of its repeats, unless the slowest of them are those without a number."""

from __future__ import annotations

from statistics import median
from typing import get_args

from hypothesis import given
from hypothesis import strategies as st

from espbench.over_time.figures import figures, unfit
from espbench.terms import NO_MEDIAN, Finding, Outcome, Status
from support.simulated import comparisons as simulated

FPS = (5e4, 4e4, 3e4, 2e4, 1e4)


def outcome(number: int, status: Status) -> Outcome:
    """A repeat of one case; as in a run, only an OK one has figures."""
    good = status == "OK"
    fps, cost = (FPS[number], 1e6 / FPS[number]) if good else (None, None)
    return simulated.made("xfrm", 64, number + 1, fps, status=status, cpu_home_us_per_frame=cost)


def finding(number: int, status: Status) -> Finding:
    """The same of another test, whose results without figures do not even name them."""
    quantities = [{"name": "loss", "unit": "%", "value": FPS[number]}] if status == "OK" else []
    identity = simulated.made("xfrm", 64, number + 1, None, test="latency")
    return Finding.model_validate(
        identity.model_dump(include={*Finding.model_fields} - {"answer", "reasons", "warnings", "status"})
        | {"status": status, "quantities": quantities, "load_fps": None}
    )


@given(st.lists(st.sampled_from(get_args(Status)), min_size=1, max_size=5))
def test_a_median_of_survivors_is_no_figure(statuses: list[Status]) -> None:
    """If two of five repeats are below the minimum and one is VIOLATED, the median of the other two is the best case.

    Costs per frame have no median there either.
    """
    for made in (outcome, finding):
        results = [made(number, status) for number, status in enumerate(statuses)]
        good = [number for number, status in enumerate(statuses) if status == "OK"]
        fit = good and not {*statuses} & {*NO_MEDIAN}
        for key, of_key in figures(results, exact=False).items():
            values = [1e6 / FPS[n] if key.figure.startswith("CPU") else FPS[n] for n in good]
            assert of_key.median == (median(round(v, 3) for v in values) if fit else None)
            assert {*NO_MEDIAN} & {*statuses} <= {*of_key.status.split(", ")}
            assert bool(of_key.by_repeat) == bool(fit)
        assert bool(unfit(results)) == ({*statuses} != {"OK"})
