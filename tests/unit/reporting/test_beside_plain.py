# SPDX-License-Identifier: Apache-2.0
"""A stack with ESP that is faster than plain forwarding of the same frames is marked, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from espbench.reporting.parts.beside_plain import marked
from espbench.sentences import Code
from espbench.terms import Outcome, Remark
from support.synthetic import run as synthetic_run

POINT = ("3des-sha1", 512, 0.0)


@pytest.fixture
def outcomes(tmp_path: Path) -> list[Outcome]:
    return [o.model_copy(update={"warnings": []}) for o in synthetic_run.build(tmp_path).outcomes()]


def with_ratio(outcomes: list[Outcome], ratio: float, plain_status: str = "OK") -> list[Outcome]:
    """Let the figure at POINT be this many times that of plain."""
    (plain,) = (o for o in outcomes if (o.stack, *point(o)[1:]) == ("plain", *POINT[1:]))
    assert plain.throughput_fps
    changes: dict[int, dict[str, Any]] = {
        id(plain): {"status": plain_status},
        **{id(o): {"throughput_fps": ratio * plain.throughput_fps} for o in outcomes if point(o) == POINT},
    }
    return [o.model_copy(update=changes.get(id(o), {})) for o in outcomes]


def point(outcome: Outcome) -> tuple[str, int | str, float]:
    return outcome.suite, outcome.frame_size, outcome.loss_goal


def told(outcomes: list[Outcome]) -> dict[tuple[str, int | str, float], list[Remark]]:
    return {point(o): o.warnings for o in marked(outcomes) if o.warnings}


def test_figures_that_fit_each_other_have_no_remark(outcomes: list[Outcome]) -> None:
    assert told(outcomes) == {}
    assert told(with_ratio(outcomes, 1.01)) == {}


def test_esp_above_plain_is_marked(outcomes: list[Outcome]) -> None:
    ((where, (remark,)),) = told(with_ratio(outcomes, 1.053)).items()
    assert where == POINT
    assert remark.code == Code.FASTER_THAN_PLAIN
    assert "faster than plain: 5.3 % above the throughput without IPsec" in remark.text


def test_a_lower_bound_of_plain_contradicts_nothing(outcomes: list[Outcome]) -> None:
    assert told(with_ratio(outcomes, 1.5, "LOWER_BOUND")) == {}
