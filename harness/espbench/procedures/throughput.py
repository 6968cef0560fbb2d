# SPDX-License-Identifier: Apache-2.0
"""The throughput test (RFC 2544 26.1): one case's search, trial by trial, and its outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from espbench.errors import UsageError
from espbench.measure.bench import Request
from espbench.measure.faults import LATE, UNSENT
from espbench.plan.cases import Case
from espbench.plan.model import Throughput
from espbench.plan.search_choice import PRESETS
from espbench.procedures.clauses import common, shorter
from espbench.procedures.limits import Limits
from espbench.procedures.procedure import OVERHEAD_S, Field, Told, identity
from espbench.procedures.quantities import in_time_fps
from espbench.search import GoalResult, MlrSearch, Observation, ThroughputSearch, goal_name
from espbench.terms import (
    AT_MAXIMUM,
    LIMITED_BY_TESTER,
    Encryption,
    Finding,
    Outcome,
    Trial,
    layer2_mbps,
    ways,
)

TESTER_LIMITED = 0.9
# Of what the generator managed when it fell short: a trial sends at least that share of its load.
REACHABLE = 0.995
# Of the frames sent: who loses more than this misses every goal.
MOST = 0.5
RFC2544_FINAL_S = 60.0


class ThroughputCase:
    """Drives the search of one case; fed with the trials of an interrupted run it goes on from there.

    Each trial's record alone decides what comes next, so that a replay ends where the run did.
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
    def warm_up_fps(self) -> float:
        return self.bounds.minimum_fps

    def next(self) -> Request | None:
        """What to measure next; None when every goal is answered."""
        wanted = self.search.next()
        if wanted is None:
            return None
        return Request(wanted.load_fps, wanted.duration_s, wanted.phase, wanted.attempt)

    def measure(self, request: Request, field: Field) -> Trial:
        """A steady load."""
        return field.trial(request, ())

    def add(self, trial: Trial) -> None:
        """Take a trial's record."""
        self.trials.append(trial)
        self.search.add(observation(trial))
        if self._tester_gave_up(trial):
            self.search.limit(REACHABLE * trial.offered_fps)

    def brackets(self) -> list[tuple[float, float | None, float | None]]:
        """For the terminal: loss goal, load known to meet it, load known to miss it."""
        return [(goal, *self.search.bounds(goal)) for goal in self.settings.loss_goals]

    def remaining_s(self) -> float:
        """A rough guess of the time the rest takes, waits included."""
        s = self.settings
        usual_s = s.final_trial if s.search == "mlr" else s.trial
        return (
            self.search.remaining_s() * (usual_s + s.learning + s.residue + s.settle + OVERHEAD_S) / usual_s
        )

    def results(self, told: Told) -> list[Outcome | Finding]:
        """One outcome per loss goal."""
        return [*self.outcomes(told.dut, told.encryption, told.warnings)]

    def outcomes(self, dut: str, encryption: Encryption, warnings: Sequence[str] = ()) -> list[Outcome]:
        """One row per loss goal; only when `next` is None."""
        return [self._outcome(result, dut, encryption, list(warnings)) for result in self.search.results()]

    def _new_search(self, hints_fps: Sequence[float | None]) -> ThroughputSearch | MlrSearch:
        s = self.settings
        directions = ways(self.case.direction)
        if s.search == "mlr":
            assert s.preset is not None
            return MlrSearch(
                list(s.loss_goals),
                minimum_fps=self.bounds.minimum_fps,
                maximum_fps=self.bounds.maximum_fps,
                resolution=s.resolution,
                trial_s=s.trial,
                final_trial_s=s.final_trial,
                duration_sum_s=PRESETS[s.preset].trials * s.final_trial,
                exceed_ratio=PRESETS[s.preset].exceed_ratio,
                retries=s.retries,
                directions=directions,
            )
        return ThroughputSearch(
            list(s.loss_goals),
            minimum_fps=self.bounds.minimum_fps,
            maximum_fps=self.bounds.maximum_fps,
            resolution=s.resolution,
            trial_s=s.trial,
            final_trial_s=s.final_trial,
            retries=s.retries,
            hints_fps=hints_fps,
            loss_verification=s.loss_verification,
            directions=directions,
        )

    def _tester_gave_up(self, trial: Trial) -> bool:
        """The generator fell short of this load twice: beyond it nothing can be said of this DUT.

        Not where others kept it from its CPU: that is the host's fault and has a reason of its own.
        """
        fell_short = [t for t in self.trials if _too_fast(t) and t.intended_fps == trial.intended_fps]
        return _too_fast(trial) and len(fell_short) > 1 and trial.offered_fps > self.bounds.minimum_fps

    def _outcome(self, result: GoalResult, dut: str, encryption: Encryption, warnings: list[str]) -> Outcome:
        case, s = self.case, self.settings
        final = self.trials[result.final_trial_index] if result.final_trial_index is not None else None
        size = case.mean_frame_size
        fps = result.throughput_fps if result.status == "OK" else None
        if fps is not None and final is not None:
            fps = min(fps, final.offered_fps)  # what was offered, not what was meant to be
        deviations = rfc2544_deviations(s, self._frame_sizes)
        warnings = warnings + result.warnings + self._flags(fps, result) + (final.warnings if final else [])
        home, office = (final.gateways.get(side) if final else None for side in ("home", "office"))
        return Outcome(
            **identity(case, dut),
            loss_goal=result.goal,
            status=result.status,
            throughput_fps=fps,
            throughput_mbps=layer2_mbps(fps, size) if fps is not None else None,
            line_rate_pct=100 * fps / self.bounds.line_rate_fps if fps is not None else None,
            trials=len(self.trials),
            final_trial_s=final.duration_s if final else 0.0,
            rfc2544=result.status == "OK" and not deviations,
            cpu_home_pct=home.cpu_pct if home else None,
            cpu_office_pct=office.cpu_pct if office else None,
            cpu_home_us_per_frame=home.cpu_us_per_frame if home else None,
            cpu_office_us_per_frame=office.cpu_us_per_frame if office else None,
            encryption=encryption,
            lower_fps=result.lower_fps,
            upper_fps=result.upper_fps,
            offered_fps=final.offered_fps if final else None,
            latency_us=final.latency_us.model_copy(update={"hdr": None}) if final else {},  # type: ignore[arg-type]
            final_trial=final.sequence if final else None,
            words=result.words,
            reasons=result.reasons,
            warnings=warnings,
            rfc2544_deviations=deviations,
        )

    def _flags(self, fps: float | None, result: GoalResult) -> list[str]:
        flags = []
        if fps is not None and self.bounds.ceiling_fps and fps >= TESTER_LIMITED * self.bounds.ceiling_fps:
            flags.append(
                f"{LIMITED_BY_TESTER}: within 10 % of what the generator itself can offer "
                f"({self.bounds.ceiling_fps:,.0f} frames/s); the DUT may be faster"
            )
        elif result.at_maximum:
            flags.append(f"{AT_MAXIMUM} ({self.search.maximum_fps:,.0f} frames/s): the DUT may be faster")
        if self.search.maximum_fps < self.bounds.maximum_fps:
            flags.append(
                f"maximum lowered from {self.bounds.maximum_fps:,.0f} to {self.search.maximum_fps:,.0f} "
                "frames/s: the generator could not offer more with this DUT"
            )
        return flags


def _too_fast(trial: Trial) -> bool:
    """Whether nothing spoilt the trial but the generator, which sent less than it should have, or too late."""
    return len(trial.reasons) == 1 and trial.reasons[0].startswith((UNSENT, LATE))


def observation(trial: Trial) -> Observation:
    """What the search needs of a trial's record."""
    per_direction = [d.tx_frames for d in trial.per_direction.values()]
    return Observation(
        load_fps=trial.intended_fps,
        frames=trial.tx_frames,
        lost_frames=trial.tx_frames - trial.rx_frames,
        frames_per_direction=min(per_direction, default=0),
        duration_s=trial.duration_s,
        final=trial.phase == "final",
        valid=trial.validity == "VALID" or _misses_all_the_same(trial),
        sustained=trial.sustained,
        forwarding_fps=in_time_fps(trial),
        reasons=tuple(trial.reasons),
    )


def _misses_all_the_same(trial: Trial) -> bool:
    """Whether the DUT lost far more than the tester's shortfall and lateness can have cost.

    Such a trial stays INVALID and is no figure, but it bounds the search from above: a DUT that drops most
    of a load would not have carried all of it had the last per cent been sent in time.
    """
    if not all(reason.startswith((UNSENT, LATE)) for reason in trial.reasons):
        return False
    intended = trial.intended_fps * trial.intended_duration_s
    late_us = max((late["p99"] for late in trial.host.get("lateness_us", {}).values() if late), default=0.0)
    spoilt = 1 - trial.tx_frames / intended + late_us / 1e6 / trial.intended_duration_s
    return trial.frame_loss_ratio > max(MOST, 2 * spoilt)


def rfc2544_deviations(settings: Throughput, frame_sizes: Sequence[int | str]) -> list[str]:
    """Which clauses of RFC 2544 a result did not keep; empty = all."""
    return [
        *shorter("24", "final trials of", settings.final_trial, RFC2544_FINAL_S),
        *_tolerated(settings),
        *common(settings, frame_sizes),
    ]


def _tolerated(settings: Throughput) -> list[str]:
    """Trials that lost frames at a load that passes all the same."""
    exceed = PRESETS[settings.preset].exceed_ratio if settings.preset else 0.0
    if exceed:
        return [f"26.1: a load passes although up to {exceed * 100:g} % of the time its trials miss the goal"]
    if settings.loss_verification:
        return [
            f"26.1: a load that missed the goal was tried again, up to {settings.loss_verification} "
            f"{'times' if settings.loss_verification > 1 else 'time'} (loss_verification)"
        ]
    return []


def describe(result: GoalResult) -> str:
    """One goal's answer for the terminal."""
    return f"{goal_name(result.goal)}: {result.words or result.status}"


OnTrial = Callable[[Trial], None]
