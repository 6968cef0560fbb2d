# SPDX-License-Identifier: Apache-2.0
"""Summarises the trials in one pass: where frames were lost, which were INVALID, and which rows to print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from espbench.reporting.parts.crossings import Crossing, crossing
from espbench.reporting.parts.wording import count, flat, goal_name, number
from espbench.sentences import Code, place_text
from espbench.terms import Reason, Trial

# Beyond this many trials only the final and the INVALID ones are printed, to keep the page small.
PRINT_LIMIT = 2_000


@dataclass(frozen=True)
class TrialRow:
    """One trial as the report lists it."""

    sequence: int
    phase: str
    intended: str
    offered: str
    seconds: str
    sent: str
    received: str
    loss: str
    validity: str
    reasons: str
    places: str  # of loss, with other faults of frames and special figures
    final: bool
    home_cpu: str
    p99: str


@dataclass
class TrialDigest:
    """Sums over all trials, and rows of those worth printing."""

    total: int = 0
    valid: int = 0
    final: int = 0
    printed: int = 0
    duplicated: int = 0
    reordered: int = 0
    corrupted: int = 0
    unverified: int = 0  # trials whose generator does not check each frame
    unordered: int = 0  # other trials in which the tester does not know the order of the frames
    loss_of_case: dict[str, Counter[str]] = field(default_factory=dict)  # of VALID trials: place → frames
    invalid: dict[Reason, tuple[int, set[str]]] = field(default_factory=dict)  # reason → trials, cases
    rows: dict[str, list[TrialRow]] = field(default_factory=dict)
    invalid_of_case: Counter[str] = field(default_factory=Counter)
    total_of_case: Counter[str] = field(default_factory=Counter)
    kept: dict[tuple[str, int], Trial] = field(default_factory=dict)  # (case, sequence) → the trial itself
    # case → name of a direction → its sums, over the VALID trials of tests that do not search
    crossings: dict[str, dict[str, Crossing]] = field(default_factory=dict)

    @property
    def abridged(self) -> bool:
        """True if only final and INVALID trials are listed."""
        return self.printed < self.total


def digest(
    trials: Iterable[Trial], total: int, keep: Collection[tuple[str, int | None]] = frozenset()
) -> TrialDigest:
    """Read every trial once. total: the number of trials. keep: (case, sequence) of the trials to keep as a whole."""
    result = TrialDigest()
    for trial in trials:
        result.total += 1
        result.total_of_case[trial.case] += 1
        if (trial.case, trial.sequence) in keep:
            result.kept[trial.case, trial.sequence] = trial
        result.valid += trial.validity == "VALID"
        result.final += trial.phase == "final"
        result.duplicated += trial.duplicated or 0
        result.reordered += trial.reordered or 0
        result.corrupted += trial.corrupted or 0
        unverified = None in (trial.duplicated, trial.corrupted)
        result.unverified += unverified
        result.unordered += trial.reordered is None and not unverified
        if trial.validity == "VALID":
            result.loss_of_case.setdefault(trial.case, Counter()).update(trial.loss_at)
            if trial.phase == "measure":
                _cross(result.crossings.setdefault(trial.case, {}), trial)
        else:
            result.invalid_of_case[trial.case] += 1
            for reason in trial.reasons or [Reason.of(Code.NO_REASON)]:
                n, cases = result.invalid.get(reason, (0, set()))
                result.invalid[reason] = (n + 1, cases | {trial.case})
        if total <= PRINT_LIMIT or trial.phase == "final" or trial.validity == "INVALID":
            result.printed += 1
            result.rows.setdefault(trial.case, []).append(_row(trial))
    return result


def _cross(of_case: dict[str, Crossing], trial: Trial) -> None:
    for way, reading in trial.per_direction.items():
        name, one = crossing(trial, way, reading)
        of_case[name] = of_case.get(name, Crossing()) + one


def _row(trial: Trial) -> TrialRow:
    places = [f"{place_text(place)} {n:,}" for place, n in trial.loss_at.items() if n]
    odd = [
        f"{n:,} {what}"
        for what, n in (
            ("duplicated", trial.duplicated),
            ("reordered", trial.reordered),
            ("corrupted", trial.corrupted),
        )
        if n
    ]
    home = trial.gateways.get("home")
    return TrialRow(
        sequence=trial.sequence,
        phase=trial.phase if trial.attempt == 0 else f"{trial.phase}, attempt {trial.attempt + 1}",
        intended=count(trial.intended_fps),
        offered=count(trial.offered_fps),
        seconds=number(trial.duration_s, 3),
        sent=count(trial.tx_frames),
        received=count(trial.rx_frames),
        loss=_loss(trial.frame_loss_ratio),
        validity=_validity(trial),
        reasons="; ".join(map(str, trial.reasons)),
        places="; ".join([*places, *odd, *_besides(trial)]),
        final=trial.phase == "final",
        home_cpu=number(home.cpu_pct if home else None, 3),
        p99=number(trial.latency_us.p99, 3),
    )


def _validity(trial: Trial) -> str:
    if trial.only_in_stalls:
        return "VALID, no miss: only in stalls of the host"
    return trial.validity if trial.sustained or trial.validity == "INVALID" else "VALID, not sustained"


def _besides(trial: Trial) -> list[str]:
    """Say what a special test measured in the trial."""
    parts = []
    for way, d in trial.per_direction.items():
        which = f" ({way.replace('-', ' → ')})" if len(trial.per_direction) > 1 else ""
        if d.tagged_us is not None:
            parts.append(f"tagged frame {number(d.tagged_us)} µs{which}")
        if d.last_lost_s is not None:
            parts.append(f"last lost frame sent at {number(d.last_lost_s)} s{which}")
    return parts + [f"{what.replace('_', ' ')}: {flat(value)}" for what, value in trial.measured.items()]


def _loss(ratio: float) -> str:
    """Return a loss ratio in per cent, to two or three digits; a single lost frame is never rounded to 0 %."""
    return (
        "0 %"
        if ratio == 0
        else f"{number(100 * ratio, 3)} %"
        if ratio >= 1e-4
        else goal_name(float(f"{ratio:.2g}"))
    )
