# SPDX-License-Identifier: Apache-2.0
"""The bus test: its one trial, and what it makes of the bytes that devices counted."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.generators.base import BusBytes
from espbench.measure.inputs.setup import Request
from espbench.plan import Case
from espbench.plan.keys.board_tests import Bus
from espbench.plan.keys.stack_choice import StackChoice
from espbench.quantities import Key
from espbench.runs.procedure_kinds import procedure_for
from espbench.sentences import Code
from espbench.terms import Finding, GatewayReading, Trial
from support.simulated.procedures import answer, case_of, known, run
from support.simulated.queue import QueueDut

# Each frame of 64 B comes in with FCS and goes out without; two descriptors are each read and written.
PLAIN = BusBytes(port_read=60 + 16, port_written=64 + 16, port_frame_read=60, port_frame_written=64)


class Board(QueueDut):
    """Moves so much for each frame, and is busy for 2 us, in which 20 lines of 32 B are missed."""

    each = PLAIN

    def trial(self, request: Request, case: str, sequence: int) -> Trial:
        trial = super().trial(request, case, sequence)
        moved = {key: count * trial.tx_frames for key, count in self.each.model_dump().items()}
        gateways = {"home": GatewayReading(cpu_us_per_frame=2.0)}
        return trial.model_copy(update={"measured": {"bus": {"home": moved}}, "gateways": gateways})


def measured(case: Case, board: type[Board] = Board) -> tuple[list[Request], Finding]:
    procedure = procedure_for(case, known(40_000.0), [])
    asked = run(procedure, board(50_000))
    return asked, answer(procedure)


def values(finding: Finding) -> dict[str, float | None]:
    return {quantity.key: quantity.value for quantity in finding.quantities}


def test_one_trial_with_the_buses_in_its_record() -> None:
    asked, finding = measured(case_of(Bus(), "bus"))
    assert [(r.load_fps, r.duration_s, r.bus) for r in asked] == [(40_000.0, 1.0, True)]
    assert finding.status == "OK"


def test_plain_frames_are_counted_as_the_article_counts_them() -> None:
    """Descriptors stand by themselves, and so does the CPU; the FCS of the frame that leaves is in no memory."""
    _, finding = measured(case_of(Bus(), "bus"))
    quantities = values(finding)
    assert (quantities[Key.BUS_TOTAL], quantities[Key.BUS_COUNTED], quantities[Key.BUS_FRAMES]) == (
        156 + 640,
        124,
        124,
    )
    assert (quantities[Key.BUS_ENGINE], quantities[Key.BUS_DESCRIPTORS], quantities[Key.BUS_CPU]) == (
        0,
        32,
        640,
    )
    assert quantities[Key.BUS_RATE] == pytest.approx((156 + 640) * 40_000 / 1e6)
    assert (quantities[Key.BUS_BY_ACCOUNT], quantities[Key.BUS_OF_ACCOUNT]) == (128, round(124 / 128, 4))


@given(
    lost=st.integers(0, 400) | st.integers(0, 40_000),
    asked=st.sampled_from([Bus(), Bus.model_validate({"load": "40000fps"}), Bus(loss_goal=0.001)]),
)
def test_a_trial_that_lost_frames_has_no_figure(lost: int, asked: Bus) -> None:
    """A lost frame is not on the bus, or not as a whole. The loss goal, 0 by default, is all that may be lost."""

    class Losing(Board):
        def trial(self, request: Request, case: str, sequence: int) -> Trial:
            trial = super().trial(request, case, sequence)
            ways = {
                name: each.model_copy(update={"lost": lost}) for name, each in trial.per_direction.items()
            }
            return trial.model_copy(update={"lost": lost, "per_direction": ways})

    goal = asked.loss_goal
    facts = known(40_000.0)
    facts = replace(facts, throughput={goal: facts.throughput[0.0]})
    procedure = procedure_for(case_of(asked, "bus"), facts, [])
    run(procedure, Losing(50_000))
    finding = answer(procedure)
    if lost / 40_000 <= goal:
        assert (finding.status, finding.reasons) == ("OK", [])
        return
    assert (finding.status, finding.quantities, finding.load_fps) == ("INVALID", [], 40_000.0)
    assert [reason.code for reason in finding.reasons] == [Code.BUS_OF_LOST]
    assert finding.words.startswith(f"Not measured: {lost:,} of 40,000 frames were lost at 40,000 frames/s")


class Engine(Board):
    """Moves 200 B into the engine and 60 out of it for each frame, and one request of 72 B, which are among them."""

    each = PLAIN.model_copy(update={"sec_read": 200 + 64, "sec_written": 60 + 8, "sec_descriptors": 1})


@pytest.mark.parametrize(("suite", "has_an_account"), [("3des-sha1", True), ("aes128gcm16", False)])
def test_an_engines_requests_are_descriptors(suite: str, has_an_account: bool) -> None:
    case = replace(case_of(Bus(), "bus"), suite=suite, stack=StackChoice(stack="xfrm"))
    quantities = values(measured(case, Engine)[1])
    assert (quantities[Key.BUS_ENGINE], quantities[Key.BUS_DESCRIPTORS], quantities[Key.BUS_COUNTED]) == (
        260,
        32 + 72,
        384,
    )
    assert (Key.BUS_OF_ACCOUNT in quantities) == has_an_account
