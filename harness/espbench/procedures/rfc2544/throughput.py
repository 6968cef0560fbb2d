# SPDX-License-Identifier: Apache-2.0
"""The throughput test (RFC 2544 26.1): one case's search, trial by trial, and its outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from espbench.errors import UsageError
from espbench.measure.inputs.setup import Request
from espbench.measure.inputs.usual_speed import speeds_pct
from espbench.plan.keys.model import Throughput
from espbench.plan.keys.search_choice import PRESETS
from espbench.plan.resolved.cases import Case
from espbench.procedures.clauses import common, finals_at, shorter, shortest
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import OVERHEAD_S, CaseFacts, TrialMaker, identity
from espbench.procedures.summaries import in_time_fps
from espbench.search import GoalResult, MlrSearch, Observation, SearchSpec, ThroughputSearch
from espbench.search.goals import DirectionCount
from espbench.sentences import Code
from espbench.terms import (
    LOST_WHILE_SLOW,
    SAME_EACH_TIME,
    SLOW_PCT,
    SLOW_TIME,
    WITH_FIGURE,
    Deviation,
    Encryption,
    Finding,
    Outcome,
    Reason,
    Remark,
    Statement,
    Trial,
    layer2_mbps,
    loaded_directions,
)

TESTER_LIMITED = 0.9
# A trial at this share of the load that the generator reached when it fell short can be sent.
REACHABLE = 0.995
# Others may take up to this share of a sender's CPU without a correction, %.
NOT_WORTH_PCT = 2.0
RFC2544_FINAL_S = 60.0
_PASSES = (Code.PASSES, Code.PASSES_AT_LEAST, Code.PASSES_MLR)  # the answers that name the throughput
# Speeds on undisturbed CPUs differ by 2 or 3 %. A miss on CPUs slower than this share of their speed in the final
# trial is called slow beside the figure too.
SAME_SPEED = 0.97
# If at least this share of a trial's lost frames, %, were lost while the gateways' CPUs were slow, that can explain a
# miss.
LOST_WHILE_SLOW_PCT = 50.0
# While a neighbour uses the same core, the CPUs have about three quarters of their speed. So this share of the frames
# of that time may be stored.
STORED_WHILE_SLOW = 0.25


class ThroughputCase:
    """Drives the search of one case. With the trials of an interrupted run, it continues from there.

    Each trial's record alone decides what comes next, so that a replay ends in the same state.
    """

    def __init__(
        self,
        case: Case,
        bounds: Limits,
        frame_sizes: Sequence[int | str],
        trials: Sequence[Trial] = (),
        hints_fps: Sequence[float | None] = (),
    ) -> None:
        assert isinstance(case.settings, Throughput)
        self.case = case
        self.settings = case.settings
        self.bounds = bounds
        self._frame_sizes = frame_sizes
        self.trials: list[Trial] = []
        self.search = self._new_search(hints_fps)
        try:
            for trial in trials:
                self.add(trial)
        except ValueError as error:
            raise UsageError(
                f"{case.id}: expected the trials that this espbench asks for, got others: {error}; the run was "
                "begun by another version, or its directory was edited: start a new run"
            ) from error

    @property
    def violation(self) -> Trial | None:
        """The trial in which frames crossed without encryption: it ends the case."""
        return next((trial for trial in self.trials if trial.violated), None)

    @property
    def warm_up_fps(self) -> float:
        return self.bounds.minimum_fps

    def next(self) -> Request | None:
        """Return the next trial to make; None if the search is finished, or frames crossed without encryption."""
        wanted = None if self.violation is not None else self.search.next()
        if wanted is None:
            return None
        return Request(wanted.load_fps, wanted.duration_s, wanted.phase, wanted.attempt)

    def measure(self, request: Request, maker: TrialMaker) -> Trial:
        """Make a trial at a steady load."""
        return maker.trial(request, ())

    def add(self, trial: Trial) -> None:
        """Add the record of a trial. Raise ValueError if the search did not ask for this trial."""
        if self.violation is not None:
            raise ValueError(f"a trial after trial {self.violation.sequence}, in which cleartext crossed")
        self.trials.append(trial)
        self.search.add(observation(trial))
        if self._tester_gave_up(trial):
            self.search.limit(REACHABLE * _unhindered_fps(trial))

    def brackets(self) -> list[tuple[float, float | None, float | None]]:
        """Return, for the terminal, (loss goal, load known to meet it, load known to miss it) for each loss goal;
        frames/s.
        """
        return [(goal, *self.search.bounds(goal)) for goal in self.settings.loss_goals]

    def remaining_s(self, *, waits: bool = True) -> float:
        """Return an estimate of the remaining time, s; waits: with the waits around the trials."""
        s = self.settings
        return self.search.remaining_s(s.learning + s.residue + s.settle + OVERHEAD_S if waits else 0.0)

    def results(self, facts: CaseFacts) -> list[Outcome | Finding]:
        """Return one outcome per loss goal."""
        return [*self.outcomes(facts.dut, facts.encryption, facts.warnings)]

    def outcomes(self, dut: str, encryption: Encryption, warnings: Sequence[Remark] = ()) -> list[Outcome]:
        """Return one outcome per loss goal. Call it only when `next` returns None."""
        if (violation := self.violation) is not None:
            results = [self._violated(goal, violation) for goal in self.settings.loss_goals]
        else:
            results = self.search.results()
        return [self._outcome(result, dut, encryption, list(warnings)) for result in results]

    def _violated(self, goal: float, trial: Trial) -> GoalResult:
        lower, upper = self.search.bounds(goal)
        return GoalResult(
            goal=goal,
            status="VIOLATED",
            throughput_fps=None,
            lower_fps=lower,
            upper_fps=upper,
            trials=len(self.trials),
            final_trial_index=None,
            at_maximum=False,
            reasons=trial.problems,
            answer=Statement.of(
                Code.NO_RESULT, goal=goal, why=Reason.of(Code.CROSSED_IN_CLEAR, trial=trial.sequence)
            ),
        )

    def _new_search(self, hints_fps: Sequence[float | None]) -> ThroughputSearch | MlrSearch:
        s = self.settings
        spec = SearchSpec(
            goals=tuple(s.loss_goals),
            minimum_fps=self.bounds.minimum_fps,
            maximum_fps=self.bounds.maximum_fps,
            resolution=s.resolution,
            trial_s=s.trial,
            final_trial_s=s.final_trial,
            retries=s.retries,
            directions=loaded_directions(self.case.direction),
        )
        if s.search == "mlr":
            assert s.preset is not None
            preset = PRESETS[s.preset]
            return MlrSearch(
                spec, duration_sum_s=preset.trials * s.final_trial, exceed_ratio=preset.exceed_ratio
            )
        return ThroughputSearch(spec, hints_fps=hints_fps, loss_verification=s.loss_verification)

    def _tester_gave_up(self, trial: Trial) -> bool:
        """Return whether the generator fell short of this load twice; then no higher load can be tried on this DUT."""
        fell_short = [t for t in self.trials if self._too_fast(t) and t.intended_fps == trial.intended_fps]
        return self._too_fast(trial) and len(fell_short) > 1 and trial.even_fps > self.bounds.minimum_fps

    def _too_fast(self, trial: Trial) -> bool:
        """Return whether the generator itself (in virtual time: the link) was the only reason why it fell short of
        the load.
        """
        short = _unhindered_fps(trial) < (1 - self.settings.resolution) * trial.intended_fps
        beyond_link = [reason.code for reason in trial.reasons] in ([Code.LATE], [Code.LATE_IN_VIRTUAL_TIME])
        return (trial.validity == "VALID" and short) or beyond_link

    def _outcome(
        self, result: GoalResult, dut: str, encryption: Encryption, warnings: list[Remark]
    ) -> Outcome:
        case, s = self.case, self.settings
        final = self.trials[result.final_trial_index] if result.final_trial_index is not None else None
        size = case.mean_frame_size
        fps = result.throughput_fps if result.status in WITH_FIGURE else None
        if fps is not None and final is not None:
            fps = min(fps, final.even_fps)  # the rate that was offered, not the intended one
        answer = _with_rate(result.answer, fps)
        deviations = rfc2544_deviations(s, self._frame_sizes, self.trials, final, goal=result.goal)
        warnings = warnings + result.warnings + self._flags(fps, result) + (final.warnings if final else [])
        # A void trial may bound the rate, but its CPU times and latency include the disturbance.
        read = final if final is not None and final.validity == "VALID" else None
        home, office = (read.gateways.get(side) if read else None for side in ("home", "office"))
        return Outcome(
            **identity(case, dut),
            loss_goal=result.goal,
            status=result.status,
            throughput_fps=fps,
            throughput_mbps=layer2_mbps(fps, size) if fps is not None else None,
            line_rate_pct=_share_of(self.bounds.line_rate_fps, fps),
            trials=len(self.trials),
            final_trial_s=final.duration_s if final else 0.0,
            rfc2544=result.status == "OK" and not deviations,
            cpu_home_pct=home.cpu_pct if home else None,
            cpu_office_pct=office.cpu_pct if office else None,
            cpu_home_us_per_frame=home.cpu_us_per_frame if home else None,
            cpu_office_us_per_frame=office.cpu_us_per_frame if office else None,
            instructions_home_per_frame=home.instructions_per_frame if home else None,
            instructions_office_per_frame=office.instructions_per_frame if office else None,
            encryption=encryption,
            lower_fps=_as_offered(result.lower_fps, final),
            upper_fps=result.upper_fps,
            offered_fps=final.offered_fps if final else None,
            latency_us=read.latency_us.model_copy(update={"hdr": None}) if read else {},  # type: ignore[arg-type]
            final_trial=final.sequence if final else None,
            void_finals=result.void_finals,
            loss_bound=result.loss_bound,
            cpu_speed_pct=self._speeds_pct[result.final_trial_index]
            if result.final_trial_index is not None
            else None,
            words=str(answer or ""),
            answer=answer,
            reasons=result.reasons,
            warnings=warnings,
            rfc2544_deviations=deviations,
        )

    @property
    def _speeds_pct(self) -> list[float | None]:
        """The speed of the gateways' CPUs in each trial, in % of the highest full speed known in the case."""
        return speeds_pct(trial.host for trial in self.trials)

    def _flags(self, fps: float | None, result: GoalResult) -> list[Remark]:
        flags = self._slowness(result) if fps is not None else []
        if fps is not None and self.settings.search == "mlr" and result.goal > 0:
            flags.append(Remark.of(Code.TRIAL_BY_TRIAL, goal=result.goal))
        ceiling_fps = self.bounds.ceiling_fps
        if fps is not None and ceiling_fps and self._is_tester_limited(fps, ceiling_fps):
            flags.append(Remark.of(Code.TESTER_LIMITED, ceiling_fps=ceiling_fps))
        elif result.at_maximum and not self.bounds.is_line_rate(self.search.maximum_fps):
            flags.append(Remark.of(Code.AT_MAXIMUM, fps=self.search.maximum_fps))
        if self.search.maximum_fps < self.bounds.maximum_fps:
            planned_fps, fps = self.bounds.maximum_fps, self.search.maximum_fps
            flags.append(Remark.of(Code.MAXIMUM_LOWERED, planned_fps=planned_fps, fps=fps))
        return flags

    def _is_tester_limited(self, fps: float, ceiling_fps: float) -> bool:
        """Return whether the DUT may be faster than the tester; no DUT is faster than the line rate."""
        return fps >= TESTER_LIMITED * ceiling_fps and not self.bounds.is_line_rate(fps)

    def _slowness(self, result: GoalResult) -> list[Remark]:
        """Return the remarks if the gateways' CPUs were slow in the final trial, or in each trial that missed the goal
        at the lowest load that missed it; there, slow also means clearly slower than in the final trial, or slow when
        the frames were lost.

        Such a trial is void only if the CPUs were slower than usual in the run (measure/validity/slow_cpu.py).
        """
        remarks = []
        of_trials = self._speeds_pct
        pct = of_trials[result.final_trial_index] if result.final_trial_index is not None else None
        if pct is not None and pct < SLOW_PCT:
            remarks.append(Remark.of(Code.SLOW_CPU, pct=pct))
        missed = [(self.trials[n], speed) for n in result.missing if (speed := of_trials[n]) is not None]
        full_pct = SLOW_PCT if pct is None else max(SLOW_PCT, SAME_SPEED * pct)
        fastest_pct = max((speed for _, speed in missed), default=0.0)
        if missed and fastest_pct < full_pct:
            remarks.append(Remark.of(Code.SLOW_MISS, pct=fastest_pct, fps=result.upper_fps))
        elif missed and all(speed < full_pct or _slow_when_it_missed(t, result.goal) for t, speed in missed):
            longest_pct = max(t.host.get(SLOW_TIME) or 0.0 for t, _ in missed)
            remarks.append(Remark.of(Code.SLOW_LOSSES, pct=longest_pct, fps=result.upper_fps))
        return remarks


def _with_rate(answer: Statement | None, fps: float | None) -> Statement | None:
    """Return the search's answer with the rate that was offered, frames/s, in place of the intended one."""
    if answer is None or fps is None or answer.code not in _PASSES:
        return answer
    return answer.model_copy(update={"values": answer.values | {"fps": fps}})


def _as_offered(lower_fps: float | None, final: Trial | None) -> float | None:
    """Return the highest load that met the goal as the final trial offered it, frames/s, if it is the load of this
    trial.
    """
    if lower_fps is None or final is None or not final.even_fps < lower_fps <= final.intended_fps + 1e-3:
        return lower_fps
    return final.even_fps


def _share_of(line_rate_fps: float, fps: float | None) -> float | None:
    """Return a rate in % of the line rate; None without a figure, or if the line rate is not known."""
    return 100 * fps / line_rate_fps if fps is not None and line_rate_fps > 0 else None


def _slow_when_it_missed(trial: Trial, goal: float) -> bool:
    """Return whether slow times of the gateways' CPUs can explain why a trial missed a goal: most of its losses, or, if
    it lost few enough, the growth of its queue. A trial that met the goal by itself is explained if most of its losses
    are.
    """
    if trial.sustained or not trial.loses_within(goal):
        return not trial.lost or (trial.host.get(LOST_WHILE_SLOW) or 0.0) >= LOST_WHILE_SLOW_PCT
    excess = max((e for e in trial.host.get("backlog_excess") or [] if e is not None), default=1.0)
    return excess <= STORED_WHILE_SLOW * (trial.host.get(SLOW_TIME) or 0.0) / 100


def _unhindered_fps(trial: Trial) -> float:
    """Return the load that the generator offered evenly while it had its CPUs, frames/s; time that others took is left
    out.
    """
    taken_pct = trial.host.get("sender_foreign_pct") or 0.0
    if taken_pct <= NOT_WORTH_PCT:
        return trial.even_fps
    left_s = trial.duration_s - taken_pct / 100 * trial.intended_duration_s
    return trial.even_frames / left_s if left_s > 0 else math.inf


def observation(trial: Trial) -> Observation:
    """Return the parts of a trial's record that the search needs."""
    readings = list(trial.per_direction.values())
    in_stalls = trial.host.get("lost_in_stalls_by_direction") or [0] * len(readings)
    counts = tuple(
        DirectionCount(d.tx_frames, max(0, d.lost), min(excused, max(0, d.lost)))
        for d, excused in zip(readings, in_stalls, strict=True)
    )
    return Observation(
        load_fps=trial.intended_fps,
        offered_fps=trial.even_fps,
        highest_fps=trial.highest_fps,
        frames=trial.tx_frames,
        lost_frames=trial.lost,
        frames_per_direction=min((count.frames for count in counts), default=0),
        directions=counts,
        duration_s=trial.duration_s,
        final=trial.phase == "final",
        valid=trial.validity == "VALID",
        counted=trial.disturbed,
        sustained=trial.sustained,
        backlog_excused=bool(trial.host.get("backlog_in_stalls")),
        forwarding_fps=in_time_fps(trial),
        reasons=tuple(trial.reasons),
        same_each_time=bool(trial.host.get(SAME_EACH_TIME)),
    )


def rfc2544_deviations(
    settings: Throughput,
    frame_sizes: Sequence[int | str],
    trials: Sequence[Trial] = (),
    final: Trial | None = None,
    *,
    goal: float = 0.0,
) -> list[Deviation]:
    """Return the clauses of RFC 2544 that a result did not keep, by the records of its trials; empty if it kept all.

    goal: the loss ratio that the result allows.
    """
    return [
        *shorter(
            Code.SHORT_FINAL_TRIALS,
            "24",
            shortest(finals_at(final, trials), settings.final_trial),
            RFC2544_FINAL_S,
        ),
        *([Deviation.from_clause(Code.LOSS_ALLOWED, "26.1", pct=goal * 100)] if goal else []),
        *_tolerated(settings),
        *common(settings, frame_sizes, trials),
    ]


def _tolerated(settings: Throughput) -> list[Deviation]:
    """Return a deviation if the search tolerates trials that lost frames at a load that passed."""
    exceed = PRESETS[settings.preset].exceed_ratio if settings.preset else 0.0
    if exceed:
        return [Deviation.from_clause(Code.MISSES_TOLERATED, "26.1", pct=exceed * 100)]
    if times := settings.loss_verification:
        return [Deviation.from_clause(Code.LOSS_VERIFICATION, "26.1", times=times)]
    return []
