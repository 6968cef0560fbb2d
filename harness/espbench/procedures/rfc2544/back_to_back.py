# SPDX-License-Identifier: Apache-2.0
"""The back-to-back frames test (RFC 2544 26.4 as updated by RFC 9004): the longest burst without frame loss.

If the throughput of a frame size is the line rate, no buffer ever fills, and there is nothing to search (RFC 9004
6.1). Each search bisects between a burst that passed and a longer one that lost frames. Searches after the first
begin around the first answer, and verify both ends before they rely on it.

If the tester cannot make bursts at the load, all bursts are sent at the highest rate that it showed, provided that
this is more than the throughput. The result then says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Any

from espbench.measure.inputs.setup import Request, Shape
from espbench.plan.keys.rfc2544_tests import BackToBack
from espbench.plan.resolved.cases import Case
from espbench.procedures.at_throughput import bound_note, throughput_deviations, throughput_of
from espbench.procedures.clauses import common, shorter
from espbench.procedures.procedure import Known, TrialMaker
from espbench.procedures.series import Series
from espbench.procedures.summaries import quantity
from espbench.quantities import Key, figure
from espbench.sentences import Code
from espbench.terms import Deviation, Reason, Remark, Statement, Trial, loaded_directions

_SEARCHES, _LONGEST_S, _DEPLETION_S = 50, 2.0, 2.0
# This is the resolution of burst lengths, relative; it is never less than one frame.
_RESOLUTION = 0.001
# The next search begins at this distance from the last search's answer, relative.
_AROUND = 0.1
# A burst that left slower than this share of its rate does not count as a burst at that rate.
_FAST_ENOUGH = 0.98
# A pause within a burst lets the DUT forward stored frames: at most this share of the burst, or one frame.
_PAUSE = 0.01
_TIME_MORE_S = 0.1
# A throughput of at least this share of the load counts as the load.
_SAME = 0.995


class BackToBackCase(Series):
    """Makes `searches` bisections, one after the other."""

    def __init__(self, case: Case, known: Known, trials: Sequence[Trial] = ()) -> None:
        assert isinstance(case.settings, BackToBack)
        self.settings = case.settings
        self.throughput_fps, self._no_throughput = throughput_of(known, case.settings.loss_goal)
        self._bound = bound_note(known, case.settings.loss_goal, Code.AT_BOUND_BUFFER)
        self.directions = loaded_directions(case.direction)
        # The rate of the bursts, in sum over the directions: the highest load, or the highest rate that the
        # tester makes.
        self.load_fps = known.limits.maximum_fps
        self._searches = [_Search(self._longest)]
        super().__init__(case, known, trials)

    @property
    def _longest(self) -> int:
        """The longest burst, in frames of each direction."""
        return max(2, int(self.settings.longest * self.load_fps / self.directions))

    def unfit(self) -> Reason | None:
        if not self.known.limits.line_rate_fps and self.settings.maximum is None:
            return Reason.of(Code.NO_LINE_RATE_FOR_BURSTS)
        return self._no_throughput

    @property
    def is_fast(self) -> bool:
        """True if the throughput equals the load, so that no burst is too long."""
        return self.throughput_fps is not None and self.throughput_fps >= _SAME * self.load_fps

    def add(self, trial: Trial) -> None:
        before = len(self.answers)
        super().add(trial)
        if len(self.answers) == before:
            return
        if trial.validity == "INVALID":
            self._take_the_testers_rate()
            return
        search = self._searches[-1]
        sent = trial.tx_frames // self.directions
        # If only a frame or two of a burst never left, it counts as the burst that was asked for: lengths are
        # not distinguished more finely.
        asked = search.next() or sent
        length = asked if not trial.lost and asked - sent <= _missing(asked) else sent
        search.add(length, passed=not trial.lost)
        if search.answer is not None and len(self._searches) < self.settings.searches:
            self._searches.append(_Search(self._longest, search.answer))

    def _take_the_testers_rate(self) -> None:
        """Start again at the median rate of the bursts that left, if the tester was too slow in all attempts at a
        burst.
        """
        attempts = self.trials[-1 - self.trials[-1].attempt :]
        made = [min(rates) * self.directions for trial in attempts if (rates := _too_slow(trial))]
        if len(made) < len(attempts) or median(made) * _SAME <= (self.throughput_fps or 0.0):
            return
        self.load_fps = round(median(made), 3)
        self.answers.clear()
        self._searches = [_Search(self._longest)]

    def wanted(self) -> Request | None:
        if self.is_fast:
            return None
        frames = self._searches[-1].next()
        if frames is None:
            return None
        # A burst ends when its frames have left; the generator is given some time more.
        seconds = frames * self.directions / self.load_fps + _TIME_MORE_S
        return Request(self.load_fps, seconds, "measure", shape=Shape(burst_frames=frames))

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        """Send a burst. It is INVALID if it passed but was not sent as asked for, since that shows nothing.

        If it lost frames, a burst as asked for would have lost frames too.
        """
        trial = maker.trial(request, ())
        if trial.lost:
            return trial
        rate = request.load_fps / self.directions
        burst = (request.shape.burst_frames or 0) * self.directions
        if trial.validity == "VALID" and burst - trial.tx_frames > _missing(burst):
            pct = 100 * trial.tx_frames / burst
            reason = Reason.of(Code.SENT_FEWER, sent=trial.tx_frames, intended=burst, pct=pct, why="")
        elif slow := _too_slow(trial):
            reason = Reason.of(Code.BURST_SLOW, fps=min(slow), intended_fps=rate)
        elif self._drained_meanwhile(trial) > max(1.0, _PAUSE * (request.shape.burst_frames or 0)):
            reason = Reason.of(Code.BURST_PAUSED, pause_us=1e6 * _late_s(trial))
        else:
            return trial
        return trial.model_copy(update={"validity": "INVALID", "reasons": [*trial.reasons, reason]})

    def _drained_meanwhile(self, trial: Trial) -> float:
        """Return by how many frames of each direction a pause of the tester lengthens the longest burst without loss.

        In the pause, the DUT forwards stored frames at its throughput, as it does while the burst arrives.
        """
        assert self.throughput_fps is not None
        share = self.throughput_fps / self.load_fps
        return _late_s(trial) * self.throughput_fps / self.directions / (1 - share)

    def expected_trials(self) -> int:
        return (
            0 if self.is_fast else len(self.answers) + 10 * (self.settings.searches - len(self._searches) + 1)
        )

    def answer(self) -> dict[str, Any]:
        line_fps = self.known.limits.line_rate_fps
        if self.is_fast:
            return {
                "status": "OK",
                "words": Statement.of(Code.NOT_SEARCHED, fps=self.load_fps),
                "load_fps": self.load_fps,
            }
        lengths = [search.answer for search in self._searches if search.answer is not None]
        burst = quantity(Key.BURST, lengths)
        assert burst.value is not None
        assert self.throughput_fps is not None
        rate = self.load_fps / self.directions
        implied_us = 1e6 * burst.value / rate
        corrected_us = implied_us * (1 - self.throughput_fps / self.load_fps)
        some_passed_all = max(lengths) >= self._longest
        words = Statement.of(Code.LONGEST_BURST_PASSED, frames=max(lengths))
        if min(lengths) < self._longest:
            words = Statement.of(
                Code.BURSTS_PASSED_AT_LEAST if some_passed_all else Code.BURSTS_PASSED,
                frames=burst.value,
                n=burst.n,
                ms=1e-3 * implied_us,
                fps=rate,
                corrected_ms=1e-3 * corrected_us,
            )
        slower = not self.known.limits.is_line_rate(self.load_fps)
        below = Remark.of(Code.BURSTS_WITHOUT_LINE_RATE, fps=rate)
        if line_fps:
            line_rate_fps = line_fps / self.directions
            below = Remark.of(Code.BURSTS_BELOW_LINE_RATE, fps=rate, line_rate_fps=line_rate_fps)
        return {
            "status": "OK",
            "words": words,
            "load_fps": self.load_fps,
            "quantities": [
                burst,
                figure(Key.IMPLIED_BUFFER_TIME, round(implied_us, 3)),
                figure(Key.CORRECTED_BUFFER_TIME, round(corrected_us, 3)),
                figure(Key.CORRECTED_BUFFER, round(corrected_us * rate / 1e6, 3)),
            ],
            "warnings": [
                *self._bound,
                *([below] if slower else []),
                *([Remark.of(Code.NO_BURST_LOST)] if some_passed_all else []),
            ],
        }

    def deviations(self) -> list[Deviation]:
        s = self.settings
        below = not self.known.limits.is_line_rate(self.load_fps)
        of_throughput = throughput_deviations(self.known, s.loss_goal, "RFC 9004 6.4")
        if self.is_fast:  # the rate of the bursts loses nothing, so no buffer is computed from the throughput
            of_throughput = [d for d in of_throughput if d.code != Code.FROM_BOUND]
        return [
            *shorter(Code.FEW_SEARCHES, "26.4", s.searches, _SEARCHES),
            *shorter(Code.SHORT_BURSTS, "26.4", s.longest, _LONGEST_S),
            *shorter(Code.SHORT_DEPLETION, "RFC 9004 6.2", s.residue + s.settle, _DEPLETION_S),
            *([Deviation.from_clause(Code.BURSTS_AT_MAXIMUM, "26.4")] if below else []),
            *of_throughput,
            *common(s, self.known.frame_sizes, self.trials),
        ]


def _missing(frames: int) -> int:
    """Return how many frames of a burst may be unsent; if more are, it counts as another burst."""
    return max(1, int(_RESOLUTION * frames))


def _late_s(trial: Trial) -> float:
    """Return by how much the latest frame of a burst left after its time, s."""
    latest = [late["max"] for late in trial.host.get("lateness_us", {}).values() if late]
    return max(latest, default=0.0) / 1e6


def _too_slow(trial: Trial) -> list[float]:
    """Return the rates of the directions whose burst left too slowly, frames/s."""
    asked = trial.intended_fps / max(1, len(trial.per_direction))
    return [
        reading.departure_fps
        for reading in trial.per_direction.values()
        if reading.departure_fps is not None
        and reading.tx_frames > 1
        and reading.departure_fps < _FAST_ENOUGH * asked
    ]


class _Search:
    """One bisection over burst lengths, in frames, from the bursts that passed and those that lost frames."""

    def __init__(self, longest: int, around: int | None = None) -> None:
        self.longest = longest
        self._passed = 0  # the longest burst that passed, below all that lost frames
        self._lost: int | None = None
        self._around = around

    def add(self, frames: int, *, passed: bool) -> None:
        if not passed:
            self._lost = frames if self._lost is None else min(self._lost, frames)
            self._passed = min(self._passed, self._lost - 1)
        elif self._lost is None or frames < self._lost:
            self._passed = max(self._passed, frames)

    @property
    def answer(self) -> int | None:
        """The longest burst that passed; None until it is known to the resolution."""
        if self._passed >= self.longest:
            return self._passed
        if self._lost is not None and self._lost - self._passed <= _missing(self._lost):
            return self._passed
        return None

    def next(self) -> int | None:
        if self.answer is not None:
            return None
        if self._around is not None:
            margin = max(2, int(_AROUND * self._around))
            low = self._around - margin
            if low >= 1 and self._passed == 0 and (self._lost is None or self._lost > low):
                return low
            if self._lost is None:
                return min(self.longest, max(self._around, self._passed) + margin)
        if self._lost is None:
            return self.longest
        return (self._passed + self._lost) // 2
