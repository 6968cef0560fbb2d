# SPDX-License-Identifier: Apache-2.0
"""Tests that rest on a throughput say what that throughput is worth: a limit, one with loss, one of short trials."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, Latency, SystemRecovery
from espbench.procedures.procedure import Known
from espbench.quantities import Key
from espbench.runs.procedure_kinds import procedure_for
from espbench.sentences import Code
from espbench.terms import Deviation, Finding, Outcome, Remark
from support.simulated.procedures import LINE, answer, case_of, known, outcome, run
from support.simulated.queue import QueueDut

AT_MAXIMUM = Remark.of(Code.AT_MAXIMUM, fps=20_000.0)
SLOW_MISS = Remark.of(Code.SLOW_MISS, pct=70.0, fps=20_200.0)
OF_ALL: list[Any] = [Latency(), Flood(), SystemRecovery(), BackToBack(searches=2)]
OF_RFC2544: list[tuple[Any, str]] = [
    (Latency(), "26.2"),
    (SystemRecovery(), "26.5"),
    (BackToBack(), "RFC 9004 6.4"),
]
SHORT = Deviation.from_clause(Code.SHORT_TRIALS, "24", 60.0, 2.0)
OTHER = "from a throughput that does not keep RFC 2544; its own deviations say why"


def at(fps: float, goal: float = 0.0, **changes: Any) -> Known:
    """The knowledge after a throughput test with this result, frames/s."""
    here = known(fps)
    here.throughput.clear()
    here.throughput[goal] = outcome(fps).model_copy(update={"loss_goal": goal, **changes})
    return here


def measured(asked: Any, here: Known, dut: QueueDut) -> Finding:
    procedure = procedure_for(case_of(asked, "x"), here, [])
    run(procedure, dut)
    return answer(procedure)


def texts(finding: Finding) -> list[str]:
    return [deviation.text for deviation in finding.rfc2544_deviations]


@pytest.mark.parametrize("remark", [AT_MAXIMUM, SLOW_MISS], ids=["at the maximum", "missed on slow CPUs"])
@pytest.mark.parametrize("asked", OF_ALL, ids=lambda asked: type(asked).__name__)
def test_a_throughput_at_a_limit_is_only_a_lower_bound(asked: Any, remark: Remark) -> None:
    """The DUT forwards 80,000 frames/s; the search went up to 20,000."""
    finding = measured(asked, at(20_000.0, warnings=[remark]), QueueDut(80_000.0, 500))
    assert finding.status == "OK"
    assert {Code.AT_BOUND, Code.AT_BOUND_BUFFER} & {r.code for r in finding.warnings}
    if not isinstance(asked, Flood):
        assert any("from a throughput that is only a lower bound" in text for text in texts(finding))
    assert not finding.rfc2544


def test_a_flood_is_at_most_so_many_times_a_throughput_that_is_a_bound() -> None:
    finding = measured(Flood(), at(20_000.0, warnings=[AT_MAXIMUM]), QueueDut(80_000.0))
    assert "at most 4 times its throughput" in finding.words
    assert [q.value for q in finding.quantities if q.key == Key.OF_THROUGHPUT] == [None]


def test_an_overload_of_a_bound_is_not_called_one_of_the_throughput() -> None:
    finding = measured(SystemRecovery(), at(20_000.0, warnings=[AT_MAXIMUM]), QueueDut(80_000.0))
    assert "110 % of the lower bound of its throughput" in finding.words


@pytest.mark.parametrize("asked", OF_ALL, ids=lambda asked: type(asked).__name__)
def test_the_line_rate_is_no_limit_of_the_search(asked: Any) -> None:
    """No DUT forwards more, so a throughput at the line rate is the throughput."""
    remark = Remark.of(Code.AT_MAXIMUM, fps=LINE)
    finding = measured(asked, at(0.999 * LINE, warnings=[remark]), QueueDut(LINE))
    assert not {Code.AT_BOUND, Code.AT_BOUND_BUFFER} & {r.code for r in finding.warnings}
    assert not any("lower bound" in text for text in texts(finding))


def test_what_a_link_carries_as_esp_is_no_limit_of_the_search() -> None:
    """One link of the tester carries ESP beside a single gateway, and these frames are longer."""
    here = at(0.6 * LINE, warnings=[Remark.of(Code.AT_MAXIMUM, fps=0.6 * LINE)])
    here = replace(here, limits=replace(here.limits, carried_fps=0.6 * LINE))
    finding = measured(Flood(), here, QueueDut(0.6 * LINE))
    assert not {Code.AT_BOUND} & {r.code for r in finding.warnings}
    assert "at most" not in finding.words


def test_a_bound_at_the_line_rate_is_the_throughput() -> None:
    """It has no deviation of its own to which a reader could be sent."""
    finding = measured(Latency(), at(0.999 * LINE, status="LOWER_BOUND", rfc2544=False), QueueDut(LINE))
    assert texts(finding) == []


@pytest.mark.parametrize(
    ("goal", "changes", "said"),
    [
        (0.0, {}, []),
        (0.0, {"rfc2544": False, "rfc2544_deviations": [SHORT]}, [OTHER]),
        (1e-5, {}, ["from a throughput with a loss goal of 0.001 %, not without loss"]),
    ],
    ids=["RFC 2544's", "short", "with loss"],
)
@pytest.mark.parametrize(("asked", "clause"), OF_RFC2544, ids=["latency", "system recovery", "back to back"])
def test_what_rests_on_another_throughput_is_not_rfc_2544(
    asked: Any, clause: str, goal: float, changes: dict[str, Any], said: list[str]
) -> None:
    asked = asked.model_copy(update={"loss_goal": goal})
    finding = measured(asked, at(50_000.0, goal, **changes), QueueDut(50_000.0, 500))
    assert (texts(finding), finding.rfc2544) == ([f"{clause}: {text}" for text in said], not said)


def test_tags_that_were_lost_in_one_direction_are_no_repeats() -> None:
    """20 were sent each way; of those from east to west 3 arrived."""
    procedure = procedure_for(case_of(Latency(), "latency"), known(40_000.0), [])
    while (request := procedure.next()) is not None:
        trial = QueueDut(50_000).trial(request, "0001-x", len(procedure.trials))
        one = trial.per_direction["west-east"]
        other = one if len(procedure.trials) < 3 else one.model_copy(update={"tagged_us": None})
        both = {"per_direction": {"west-east": one, "east-west": other}}
        procedure.add(trial.model_copy(update=both))
    finding = answer(procedure)
    assert (finding.status, finding.rfc2544) == ("OK", False)
    assert texts(finding) == ["26.2: repeated 3 times instead of 20 times"]


def test_a_load_of_the_plan_is_not_called_the_throughput() -> None:
    asked = SystemRecovery.model_validate({"load": "40000fps"})
    dut = QueueDut(40_000.0, recovers_after_s=1.0)
    nothing: dict[float, Outcome] = {}
    finding = measured(asked, Known(known(None).limits, nothing, known(None).frame_sizes), dut)
    assert "110 % of the load that the plan sets" in finding.words
    assert Key.THROUGHPUT not in {q.key for q in finding.quantities}
    assert texts(finding) == ["26.5: from a load that the plan sets, not from the throughput"]


def test_a_load_of_the_plan_that_is_the_maximum_is_not_called_the_throughput_either() -> None:
    asked = SystemRecovery.model_validate({"load": "100000fps"})
    finding = measured(asked, known(40_000.0), QueueDut(40_000.0))
    assert finding.words.startswith(
        "Not overloaded: the load that the plan sets is the highest possible load"
    )
