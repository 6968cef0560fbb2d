# SPDX-License-Identifier: Apache-2.0
"""A comparison of runs as a data frame: one row per verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pandas as pd

from espbench.comparison import compare as compare_runs
from espbench.comparison.sorting.comparability import in_words
from espbench.comparison.sorting.model import (
    IP_VERSIONS,
    ArmPoint,
    Comparison,
    Estimate,
    FixedLoadVerdict,
    Name,
    PairVerdicts,
    Panel,
    PointVerdict,
    Word,
)
from espbench.frames.columns import frame, frame_bytes
from espbench.frames.run import RunLike, load_each
from espbench.terms import PAIRED

SEARCHES = "searches"
_CONDITIONS = {
    Name.TEST: "test",
    Name.DUT: "dut",
    Name.STACK: "stack",
    Name.SUITE: "suite",
    Name.IP_VERSION: "ip_version",
    Name.DIRECTION: "direction",
    Name.FRAME_SIZE: "frame_size",
}
_IP_VERSIONS = {name: version for version, name in IP_VERSIONS.items()}
_OF_ARM = ("fps", "is_lower_bound", "cpu_us_per_frame")
_COLUMNS = (
    *_CONDITIONS.values(), "loss_goal", "method", "a", "b", "verdict", "faster",
    "ratio", "ratio_low", "ratio_high", "at_least", "at_most", "bound_by",
    "cpu_verdict", "cpu_ratio", "cpu_ratio_low", "cpu_ratio_high",
    *(f"{arm}_{name}" for arm in "ab" for name in _OF_ARM), "why", "frame_bytes",
)  # fmt: skip


def compare(
    *runs: RunLike | Iterable[RunLike],
    by: str | None = None,
    reference: str | None = None,
    allow_different: bool = False,
) -> pd.DataFrame:
    """Return the verdicts of `espbench compare`, one per row: is b faster than the reference a, for one case?

    ratio is b / a of the throughputs, with its interval; it is missing if one of them is a bound, and then at_least
    or at_most is known. `faster` names the faster one; it is missing if no difference is shown or no verdict was
    possible, and `why` says why. The conditions in which the arms differ are missing, and so is what a verdict by
    trials at fixed loads does not have.

    `attrs`: units; axis; confidence, with which all verdicts hold together; words and warnings, as the command
    prints them; differences: other differences between the runs that were allowed. UsageError if there is nothing to
    compare or the runs differ in more than the axis, UnreadableRun as for `load`.
    """
    comparison = compare_runs([run.directory for run in load_each(runs)], by, reference, allow_different)
    table = frame(_rows(comparison), _COLUMNS)
    table.attrs |= {
        "axis": comparison.axis,
        "confidence": comparison.confidence,
        "words": comparison.words,
        "warnings": comparison.warnings,
        "differences": [in_words(difference) for difference in comparison.differences],
    }
    return table


def _rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for verdict in comparison.fixed_loads:
        yield _at_fixed_loads(verdict)
    for panel in comparison.panels:
        for pair in panel.pairs:
            for point in pair.points:
                yield _by_searches(point, pair, panel, comparison.common)


def _by_searches(
    point: PointVerdict, pair: PairVerdicts, panel: Panel, common: dict[str, str]
) -> dict[str, Any]:
    return {
        **_point({**common, **panel.conditions}, panel.x_name, point.x),
        "loss_goal": panel.loss_goal,
        "method": SEARCHES,
        **_judged(point.word, pair.a, pair.b, point.why),
        **_estimate("ratio", point.ratio),
        "at_least": point.at_least,
        "at_most": point.at_most,
        "bound_by": point.bound_by or None,
        **_estimate("cpu_ratio", point.cpu_ratio),
        **_arm("a", panel.curves[pair.a].get(point.x)),
        **_arm("b", panel.curves[pair.b].get(point.x)),
    }


def _at_fixed_loads(verdict: FixedLoadVerdict) -> dict[str, Any]:
    return {
        **_point(verdict.conditions, Name.FRAME_SIZE, verdict.x),
        "method": PAIRED,
        **_judged(verdict.word, verdict.a, verdict.b, verdict.why),
        **_estimate("ratio", verdict.throughput),
        "cpu_verdict": verdict.cpu_word,
        **_estimate("cpu_ratio", verdict.cpu),
        "at_least": verdict.at_least,
        "at_most": verdict.at_most,
        "bound_by": None if verdict.at_least is None and verdict.at_most is None else "limit",
        "a_is_lower_bound": verdict.at_most is not None,
        "b_is_lower_bound": verdict.at_least is not None,
    }


def _point(conditions: dict[str, str], x_name: Name, x: int | str) -> dict[str, Any]:
    """Return, by column, the case of a verdict."""
    named = {column: conditions.get(name) for name, column in _CONDITIONS.items()}
    at = named | {_CONDITIONS[x_name]: x}
    return at | {
        "ip_version": _IP_VERSIONS.get(conditions.get(Name.IP_VERSION, "")),
        "frame_bytes": frame_bytes(at["frame_size"]),
    }


def _judged(word: Word, a: str, b: str, why: str) -> dict[str, Any]:
    return {"a": a, "b": b, "verdict": word, "faster": {"A faster": a, "B faster": b}.get(word), "why": why}


def _estimate(name: str, estimate: Estimate | None) -> dict[str, float]:
    return (
        {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high} if estimate else {}
    )


def _arm(name: str, point: ArmPoint | None) -> dict[str, Any]:
    fps, cpu = (point.fps, point.cpu_us) if point else (None, None)
    return {
        f"{name}_fps": fps and fps.value,
        f"{name}_is_lower_bound": bool(point and point.at_least),
        f"{name}_cpu_us_per_frame": cpu and cpu.value,
    }
