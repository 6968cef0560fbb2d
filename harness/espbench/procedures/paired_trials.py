# SPDX-License-Identifier: Apache-2.0
"""Compares two arms for one case at the same loads: chooses the next trial, and returns the result.

There are two kinds of loads. *Fixed* loads are shares of the slower arm's throughput; each has its pairs of trials in
the order A B B A, so that a host that becomes slower steadily affects both arms alike. A *ladder* has RUNGS loads
around the throughput, each STEP above the one before; each arm tries each rung once a round, and the rungs that it
passes show its throughput.

If the arms take turns, the two trials of a pair count if the gateways' CPUs had about the same speed in both, however
slow a neighbour made them (decision 0066).

Each round starts the gateways anew, so that differences between boots appear as variation between rounds. The next
trial follows from the records alone, void trials included; random choices come from a seed.
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Literal

from espbench.errors import UsageError
from espbench.measure.inputs.setup import Request
from espbench.measure.inputs.usual_speed import speeds_pct
from espbench.plan.keys.fixed_loads import FixedLoads
from espbench.procedures.summaries import quantity
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.terms import (
    LEAST_GATEWAY_SPEED,
    PAIRED,
    Encryption,
    Finding,
    Outcome,
    Quantity,
    Reason,
    Remark,
    Statement,
    Trial,
)

Arm = Literal["a", "b"]
ARMS: tuple[Arm, Arm] = ("a", "b")
RUNGS, STEP = 7, 0.04  # of the ladder; STEP is a difference of natural logarithms of the load
# If the throughputs of two arms differ by less than this, the arms share one ladder, and so the same loads.
ONE_LADDER = math.log(1.15)
# A trial had another load if the mean rate of one direction was lower, or the highest rate higher, than intended by
# more than this share: half a step.
OFFERED_WITHIN = STEP / 2
# The trials of a pair count if the speeds of their CPUs differ by no more than this share.
SPEEDS_WITHIN = 0.07
_WINDOW = 3  # the ladder's middle is the mean of this many last rounds


@dataclass(frozen=True)
class Slot:
    """A pair of trials at one load, one of each arm; the arm `first` goes first. rung: place on the ladder, None if
    not on it.
    """

    block: int
    share: float | None  # of the slower arm's throughput; None for the ladder
    rung: int | None
    loads_fps: Mapping[Arm, float]
    first: Arm

    @property
    def order(self) -> tuple[Arm, Arm]:
        return self.first, other(self.first)


@dataclass(frozen=True)
class Ask:
    """The trial to make next: its arm and its round."""

    arm: Arm
    round: int
    slot: Slot
    request: Request

    @property
    def place(self) -> dict[str, Any]:
        """The position of the trial in the comparison, for its record."""
        return {"arm": self.arm, "round": self.round, "load_share": self.slot.share, "rung": self.slot.rung}


def other(arm: Arm) -> Arm:
    """Return the other arm."""
    return "b" if arm == "a" else "a"


_UNEVEN = Reason.of(Code.HOST_UNEVEN, pct=round(100 * SPEEDS_WITHIN))


class PairedLoads:
    """The comparison of two arms for one case. A new one is made for each run, from the trials that are already on
    disk; UsageError if these are not the ones that it would ask for.

    bounds_fps: each arm's throughput, or a lower bound of it. maximum_fps: the highest load that the tester can
    offer. retries: how often a trial is repeated, so a pair twice as often; all repeats together have at most as many
    trials as there would be without any. together: both arms have their gateways at the same time and take turns trial
    by trial. Otherwise one arm's gateways make all trials of half a round.
    """

    def __init__(
        self,
        settings: FixedLoads,
        bounds_fps: Mapping[Arm, float],
        *,
        maximum_fps: float,
        goal: float,
        retries: int,
        seed: str,
        together: bool = True,
        trials: Mapping[Arm, Sequence[Trial]] | None = None,
    ) -> None:
        self.settings = settings
        self.goal = goal
        self.together = together
        self.trials: dict[Arm, list[Trial]] = {"a": [], "b": []}
        self.rows: list[dict[str, Any]] = []  # the complete pairs, in their order
        self._trials_of_rows: list[tuple[Arm, Trial]] = []  # two for each row
        self.void: Counter[Reason] = Counter()  # reason → trials
        self.violation: Trial | None = (
            None  # a trial in which frames crossed without encryption; it is the last
        )
        self.slower_fps = min(bounds_fps.values())
        self._bounds = bounds_fps
        self._maximum = maximum_fps
        self._retries = retries
        self._seed = seed
        self._round = 0
        self._slots: list[Slot] = []
        self._visits: list[tuple[int, Arm]] = []
        self._position = 0
        self._made: dict[
            tuple[int, Arm], Trial
        ] = {}  # the trials of this round's pairs, as far as they have any
        self._valid: dict[tuple[int, Arm], list[Trial]] = {}  # all that count, of pairs that are not complete
        self._given_up: set[int] = set()
        self._attempts: Counter[int] = Counter()
        self._spare = settings.rounds * self._of_round
        self._centres: dict[Arm, list[float]] = {arm: [math.log(bounds_fps[arm])] for arm in ARMS}
        # The latest move of each ladder, if the throughput was beyond it: in half ladders, upwards if positive. And the
        # middle of the ladder before that move.
        self._moved: dict[Arm, float] = {"a": 0, "b": 0}
        self._left: dict[Arm, float] = {}
        self._begin_round()
        unread = {arm: list(of_arm) for arm, of_arm in (trials or {}).items()}
        while (ask := self.next()) is not None and unread.get(ask.arm):
            trial = unread[ask.arm].pop(0)
            if trial.intended_fps != round(ask.request.load_fps, 3):
                raise _not_asked_for(trial, f"a trial at {ask.request.load_fps:,.3f} frames/s")
            self.add(trial)
        if left := [trial for of_arm in unread.values() for trial in of_arm]:
            raise _not_asked_for(left[0], "no more trials of this arm")

    def next(self) -> Ask | None:
        """Return the trial to make next; None when all rounds are done, or frames crossed without encryption."""
        if self.violation is not None or self._round > self.settings.rounds:
            return None
        slot, arm = self._visits[self._position]
        load = self._slots[slot].loads_fps[arm]
        attempt = self._attempts[slot]
        request = Request(
            load, self.settings.trial, "measure", attempt=attempt, as_offered=True, paired=self.together
        )
        return Ask(arm, self._round, self._slots[slot], request)

    def add(self, trial: Trial) -> None:
        """Add the record of the trial that `next` asked for."""
        slot, arm = self._visits[self._position]
        self.trials[arm].append(trial)
        if trial.violated:
            self.violation = trial
            return
        if why := _void(trial):
            self.void[why] += 1
            self._count_repeat(slot, why)
        else:
            self._take(slot, arm, trial)
        while self._position < len(self._visits) and self._visits[self._position][0] in self._given_up:
            self._position += 1
        if self._position == len(self._visits):
            self._end_round()

    @property
    def set_up_order(self) -> tuple[Arm, Arm]:
        """The order in which the arms' gateways of this round are set up.

        It alternates: gateways that are always set up second could differ from the first ones in each round alike, for
        instance in the memory that they get, and the interval would not include that.
        """
        first: Arm = random.Random(f"{self._seed} set-up").choice(ARMS)
        first = first if self._round % 2 else other(first)
        return first, other(first)

    @property
    def left(self) -> int:
        """The number of trials still to make, if none is void."""
        return (
            max(0, self.settings.rounds - self._round) * self._of_round + len(self._visits) - self._position
            if self._round <= self.settings.rounds
            else 0
        )

    @property
    def _of_round(self) -> int:
        """The number of trials of a round without repeats."""
        return 2 * (2 * self.settings.blocks * len(self.settings.loads) + RUNGS)

    def _count_repeat(self, slot: int, why: Reason) -> None:
        """Count one more trial of a pair. If there have been too many, give the pair up."""
        if self._attempts[slot] >= 2 * self._retries or self._spare <= 0:
            self._given_up.add(slot)
            self._end_pair(slot, used=0, why=why)
        else:
            self._attempts[slot] += 1
            self._spare -= 1

    def _take(self, slot: int, arm: Arm, trial: Trial) -> None:
        """Make a pair of this trial and the other arm's last one on CPUs of its speed; without one, the other arm is
        next.
        """
        self._valid.setdefault((slot, arm), []).append(trial)
        theirs = self._valid.get((slot, other(arm)), [])
        if self.together and theirs:
            alike = [one for one in theirs if _alike(one, trial)]
            if not alike:
                here = self._position
                self._visits[here - 1], self._visits[here] = self._visits[here], self._visits[here - 1]
                self._count_repeat(slot, _UNEVEN)
                return
            self._made[slot, other(arm)] = alike[-1]
        self._made[slot, arm] = trial
        self._position += 1
        if theirs:
            self._end_pair(slot, used=2, why=_UNEVEN)

    def _end_pair(self, slot: int, *, used: int, why: Reason) -> None:
        """Count the valid trials of a pair that found no partner, and why; used: the number of those that did."""
        valid = sum(len(self._valid.pop((slot, arm), [])) for arm in ARMS)
        if self.together and valid > used:
            self.void[why] += valid - used

    def _begin_round(self) -> None:
        self._round += 1
        if self._round > self.settings.rounds:
            return
        chance = random.Random(f"{self._seed} {self._round}")
        beginner: Arm = chance.choice(ARMS)
        slots: list[Slot] = []
        for block in range(self.settings.blocks):
            for share in self.settings.loads:
                beginner = other(beginner)
                load = min(share * self.slower_fps, self._maximum)
                slots += [
                    Slot(block, share, None, {"a": load, "b": load}, first)
                    for first in (beginner, other(beginner))
                ]
        centres = self._ladder()
        # A random offset, the same for both arms, decides where the throughput lies between two rungs.
        dither = chance.uniform(-0.5, 0.5)
        rungs = list(range(RUNGS))
        chance.shuffle(rungs)
        for rung in rungs:
            beginner = other(beginner)
            loads = {arm: math.exp(centres[arm] + STEP * (rung - RUNGS // 2 + dither)) for arm in ARMS}
            slots.append(Slot(0, None, rung, loads, beginner))
        self._slots = slots
        self._visits = self._order(slots)
        self._position = 0
        self._made, self._valid, self._given_up, self._attempts = {}, {}, set(), Counter()

    def _order(self, slots: Sequence[Slot]) -> list[tuple[int, Arm]]:
        if self.together:
            return [(i, arm) for i, slot in enumerate(slots) for arm in slot.order]
        x, y = self.set_up_order
        mine = [i for i, slot in enumerate(slots) if slot.first == x]
        theirs = [i for i, slot in enumerate(slots) if slot.first != x]
        return [
            *((i, x) for i in mine), *((i, y) for i in mine), *((i, y) for i in theirs), *((i, x) for i in theirs)
        ]  # fmt: skip

    def _ladder(self) -> dict[Arm, float]:
        """Return the middle of each arm's ladder, log frames/s; the same for both if they are close."""
        centres = {arm: fmean(self._centres[arm][-_WINDOW:]) for arm in ARMS}
        if abs(centres["a"] - centres["b"]) <= ONE_LADDER:
            middle = fmean(centres.values())
            centres = {"a": middle, "b": middle}
        highest = math.log(self._maximum) - STEP * (RUNGS // 2 + 0.5)
        return {arm: min(centre, highest) for arm, centre in centres.items()}

    def _end_round(self) -> None:
        for index, slot in enumerate(self._slots):
            pair = {arm: self._made.get((index, arm)) for arm in ARMS}
            if pair["a"] is None or pair["b"] is None:
                continue
            self._trials_of_rows += [(arm, trial) for arm, trial in pair.items() if trial]
            self.rows.append(
                {
                    "round": self._round,
                    "block": slot.block,
                    "load": slot.share,
                    "rung": slot.rung,
                    "first": slot.first,
                    **{arm: self._readings(slot, arm, trial) for arm, trial in pair.items() if trial},
                }
            )
        self._move_ladder()
        self._begin_round()

    def _readings(self, slot: Slot, arm: Arm, trial: Trial) -> dict[str, Any]:
        used = [g.cpu_us_per_frame for g in trial.gateways.values()]
        known = [us for us in used if us is not None]
        return {
            "intended_fps": round(slot.loads_fps[arm], 3),
            "offered_fps": trial.offered_fps,
            "cpu_us": round(sum(known), 3) if used and len(known) == len(used) else None,
            "loss": trial.frame_loss_ratio,
            "met": trial.meets(self.goal),
        }

    def _move_ladder(self) -> None:
        """Centre the next round's ladder on the throughput that this round shows."""
        for arm in ARMS:
            passes = [
                (slot.loads_fps[arm], trial.meets(self.goal))
                for index, slot in enumerate(self._slots)
                if slot.rung is not None and (trial := self._made.get((index, arm))) is not None
            ]
            passed = sum(met for _, met in passes)
            if not passes:
                continue
            middle = fmean(math.log(load) for load, _ in passes)
            if 0 < passed < len(passes):
                centre = middle + STEP * RUNGS * (passed / len(passes) - 0.5)
                self._centres[arm].append(centre)
                self._moved[arm] = 0
                continue
            # The throughput is beyond the ladder: forget earlier rounds. Move the ladder, further each time; but if it
            # was beyond the other end the last time, as boots differ, go to the middle between the two.
            sign, before = 1 if passed else -1, self._moved[arm]
            if before * sign < 0 and abs(middle - self._left[arm]) > STEP:
                self._centres[arm] = [(middle + self._left[arm]) / 2]
                self._moved[arm] = sign / 2  # the next move the same way is a small one
            else:
                self._moved[arm] = sign * min(8, max(1, 2 * abs(before)))
                self._centres[arm] = [middle + STEP * RUNGS / 2 * self._moved[arm]]
            self._left[arm] = middle

    def finding(
        self,
        identity: Mapping[str, Any],
        arms: Mapping[Arm, str],
        encryption: Encryption,
        warnings: Sequence[Remark],
    ) -> Finding:
        """Return the finding for results.json, from which the comparison is judged.

        arms: the names of the arms. warnings: the remarks on both cases; those on the trials of the pairs are added.
        """
        if self.violation is not None:
            return self._violated(self.violation, identity, warnings)
        made, void = self._made_so_far, sum(self.void.values())
        a, b = arms["a"], arms["b"]
        of_trials = [remark for _, trial in self._trials_of_rows for remark in trial.warnings]
        words = Statement.of(Code.PAIRS_MADE, pairs=len(self.rows), a=a, b=b, void=void, trials=made)
        return Finding(
            **{**identity, "test": PAIRED},
            status="OK" if self.rows else "INVALID",
            load_fps=round(self.slower_fps, 3),
            quantities=self._quantities(arms) if self.rows else [],
            trials=made,
            rfc2544=False,
            encryption=encryption,
            words=words.text,
            answer=words,
            reasons=[
                Reason.of(Code.VOID_TRIALS, void=n, trials=made, why=why)
                for why, n in self.void.most_common(3)
            ],
            warnings=[*dict.fromkeys([*warnings, *of_trials])],
            paired={
                "a": a,
                "b": b,
                "loss_goal": self.goal,
                "bounds_fps": {arm: round(self._bounds[arm], 3) for arm in ARMS},
                "loads": list(self.settings.loads),
                "step": STEP,
                "rungs": RUNGS,
                "trial_s": self.settings.trial,
                "rounds": self.settings.rounds,
                "together": self.together,
                "maximum_fps": round(self._maximum, 3),
                "void": void,
                "rows": self._rows_with_speeds(),
            },
        )

    def _rows_with_speeds(self) -> list[dict[str, Any]]:
        """Return the pairs with the speeds of the CPUs in both trials, as far as they are known.

        These are shares of the full speed that is known now; it may have risen since the first pairs.
        """
        hosts = [trial.host for of_arm in self.trials.values() for trial in of_arm]
        speeds = iter(speeds_pct([*(trial.host for _, trial in self._trials_of_rows), *hosts]))
        rows = [
            {key: dict(value) if key in ARMS else value for key, value in row.items()} for row in self.rows
        ]
        for (arm, _), row in zip(self._trials_of_rows, (row for row in rows for _ in ARMS), strict=True):
            speed_pct = next(speeds)
            if speed_pct is not None:
                row[arm]["speed_pct"] = speed_pct
        return rows

    @property
    def _made_so_far(self) -> int:
        return sum(map(len, self.trials.values()))

    def _violated(self, trial: Trial, identity: Mapping[str, Any], warnings: Sequence[Remark]) -> Finding:
        """Return the finding, without figures, after a trial in which frames crossed without encryption."""
        words = Statement.of(Code.NOT_COMPARED_VIOLATED, case=trial.case, trial=trial.sequence)
        return Finding(
            **{**identity, "test": PAIRED}, status="VIOLATED", load_fps=round(self.slower_fps, 3), quantities=[],
            trials=self._made_so_far, rfc2544=False, encryption="not proven", warnings=list(warnings),
            words=words.text, answer=words,
            reasons=trial.problems,
        )  # fmt: skip

    def _quantities(self, arms: Mapping[Arm, str]) -> list[Quantity]:
        """Return the quantities at each fixed load: the ratio of the CPU times, and the frame loss of each arm."""
        quantities = []
        for share in self.settings.loads:
            here = [row for row in self.rows if row["load"] == share]
            at: dict[str, Any] = {"share": share, "of_fps": self.slower_fps}
            ratios = [row["b"]["cpu_us"] / row["a"]["cpu_us"] for row in here if _has_cpu(row)]
            quantities.append(
                quantity(Key.CPU_RATIO, ratios, 5, part=f"{share:g}", a=arms["a"], b=arms["b"], **at)
            )
            for arm in ARMS:
                lost = [100 * row[arm]["loss"] for row in here]
                quantities.append(
                    quantity(Key.ARM_LOSS, lost, 5, part=f"{arm}/{share:g}", arm=arms[arm], **at)
                )
        return quantities


def _not_asked_for(trial: Trial, expected: str) -> UsageError:
    return UsageError(
        f"{trial.case}, trial {trial.sequence}: expected {expected}, got one at {trial.intended_fps:,.3f} frames/s; "
        "the run was begun by another version of espbench, or its directory was edited: start a new run"
    )


def _void(trial: Trial) -> Reason | None:
    """Return why the trial does not count; None if it does."""
    if trial.validity == "INVALID":
        return trial.reasons[0] if trial.reasons else Reason.of(Code.NO_REASON)
    less = trial.even_fps < (1 - OFFERED_WITHIN) * trial.intended_fps
    if less or trial.highest_fps > (1 + OFFERED_WITHIN) * trial.intended_fps:
        return Reason.of(Code.OTHER_LOAD)
    return None


def _alike(one: Trial, two: Trial) -> bool:
    """Return whether the gateways' CPUs had about the same speed in both trials, as far as it is known.

    True for trials of earlier versions, which were void if their own speed was too low.
    """
    known = [speed for speed in speeds_pct((one.host, two.host)) if speed is not None]
    judged_alone = any(trial.host.get(LEAST_GATEWAY_SPEED) is not None for trial in (one, two))
    return judged_alone or len(known) < 2 or min(known) >= (1 - SPEEDS_WITHIN) * max(known)


def _has_cpu(row: Mapping[str, Any]) -> bool:
    return bool(row["a"]["cpu_us"] and row["b"]["cpu_us"])


def bounds(known: Mapping[Arm, Sequence[Outcome]]) -> dict[Arm, float] | None:
    """Return each arm's throughput, or its lower bound, in the first repeat in which both have one; None if there is
    none.
    """
    for repeat in sorted({o.repeat for outcomes in known.values() for o in outcomes}):
        fps = {
            arm: o.throughput_fps
            for arm, outcomes in known.items()
            for o in outcomes
            if o.repeat == repeat and o.throughput_fps
        }
        if len(fps) == len(ARMS):
            return fps
    return None
