# SPDX-License-Identifier: Apache-2.0
"""Finds the clauses of RFC 2544 that a test's trials do not keep."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from espbench.plan.keys.rfc2544_tests import AroundTrials
from espbench.sentences import Code
from espbench.terms import Deviation, Trial

_SIZES = frozenset({64, 128, 256, 512, 1024, 1280, 1518})
_RESIDUE_S, _SETTLE_S, _LEARNING_S = 2.0, 5.0, 2.0


def shorter(code: Code, clause: str, got: float, wanted: float) -> list[Deviation]:
    """Return one deviation if less than the wanted value was given, else nothing."""
    return [] if got >= wanted else [Deviation.from_clause(code, clause, wanted, got)]


def shortest(trials: Iterable[Trial], otherwise: float) -> float:
    """Return the duration of the shortest VALID trial, s: as measured, but not more than the intended duration.

    It is rounded to 10 ms, since a trial of 60 s may have taken 59.99998 s. Without VALID trials, return `otherwise`.
    """
    lengths = [min(trial.duration_s, trial.intended_duration_s) for trial in _valid(trials)]
    return round(min(lengths, default=otherwise), 2)


def finals_at(final: Trial | None, trials: Iterable[Trial]) -> list[Trial]:
    """Return all final trials at the load of `final`, which is the trial that a figure is taken from."""
    if final is None:
        return []
    return [t for t in trials if t.phase == "final" and t.intended_fps == final.intended_fps]


def kept_waits(settings: AroundTrials, trials: Iterable[Trial]) -> dict[str, float]:
    """Return the shortest of each wait (learning, residue, settle) around the VALID trials, s, by their records.

    A record has None for a wait that the trial did not need. If records have no waits, the settings are returned.
    """
    asked = {"learning": settings.learning, "residue": settings.residue, "settle": settings.settle}
    waits: dict[str, list[float]] = {}
    for trial in _valid(trials):
        for name, wait in (trial.waits_s or asked).items():
            if wait is not None:
                waits.setdefault(name, []).append(wait)
    return {name: min(waits.get(name, [wait])) for name, wait in asked.items()}


def common(
    settings: AroundTrials, frame_sizes: Sequence[int | str], trials: Iterable[Trial] = ()
) -> list[Deviation]:
    """Return the deviations of any test: too few frame sizes (9.1), and too short waits around its trials (23)."""
    deviations = []
    if len(_SIZES & set(frame_sizes)) < 5:
        deviations.append(Deviation.from_clause(Code.FEW_SIZES, "9.1"))
    kept = kept_waits(settings, trials)
    return [
        *deviations,
        *shorter(Code.SHORT_LEARNING, "23 b", kept["learning"], _LEARNING_S),
        *shorter(Code.SHORT_RESIDUE, "23 d", kept["residue"], _RESIDUE_S),
        *shorter(Code.SHORT_SETTLE, "23 e", kept["settle"], _SETTLE_S),
    ]


def _valid(trials: Iterable[Trial]) -> list[Trial]:
    return [trial for trial in trials if trial.validity == "VALID"]
