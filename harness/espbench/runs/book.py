# SPDX-License-Identifier: Apache-2.0
"""Keeps the results of a run so far: on disk in the plan's order, and for later cases that start from them.

A case gets only results of cases that come before it in the plan, even if others are finished too. So its trials do
not depend on the order in which a run is measured, or on the number of processes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Sequence
from typing import Any, Protocol

from espbench.plan.keys.model import Throughput
from espbench.plan.resolved.arms import execution_order
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.procedures.limits import Limits, limits
from espbench.procedures.procedure import Known
from espbench.procedures.rfc2544.warm_start import guides, hints, series
from espbench.terms import Calibration, Finding, Manifest, Outcome, Trial

Results = list[Outcome | Finding]


class Records(Protocol):
    """The records of a run, or of a part of it: the run directory itself, or its stand-in on another machine."""

    @property
    def manifest(self) -> Manifest: ...
    def update_manifest(self, **changes: Any) -> None: ...
    def trials_of(self, case: str) -> list[Trial]: ...
    def save_results(self, results: Sequence[Outcome | Finding]) -> None: ...
    def arrange(self, cases: Sequence[str]) -> None: ...


class Book:
    """The results of one run's cases, and the results of earlier cases that each case starts from."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        directory: Records,
        only: Collection[str] | None = None,
    ) -> None:
        """cases: in the plan's order. only: the ids of the cases of this book, in the order of the whole run."""
        measured = directory.manifest.base_loads or {case.id for case in cases}
        in_order = execution_order([case for case in cases if case.id in measured], resolved)
        self.cases = [case for case in in_order if only is None or case.id in only]
        self._listed = [case for case in cases if only is None or case.id in only]
        self._sizes = resolved.plan.frame_sizes
        self._fastest_fps = resolved.plan.generator.fastest_fps
        self._directory = directory
        self._results: dict[str, Results] = {}
        self._number = {case.id: number for number, case in enumerate(self.cases, 1)}
        self._needs = _needs(self.cases)

    def number(self, case: Case) -> int:
        """Return a case's position in the order of measuring, from 1."""
        return self._number[case.id]

    def needs(self, case: Case) -> list[Case]:
        """Return the cases whose results this case starts from; all of them are measured before it."""
        return self._needs[case.id]

    def has(self, case: Case) -> bool:
        """Return whether the results of a case are known."""
        return case.id in self._results

    def known(self, case: Case) -> Known:
        """Return what the run knows of a case before it begins; the cases that it needs must be finished."""
        here = [
            outcome
            for other in self.needs(case)
            if _point(other) == _point(case)
            for outcome in self._results.get(other.id, [])
            if isinstance(outcome, Outcome)
        ]
        throughput = {outcome.loss_goal: outcome for outcome in here}
        base_loads = self._directory.manifest.base_loads.get(case.id, ())
        return Known(self.limits(case), throughput, self._sizes, self._hints(case), base_loads)

    def limits(self, case: Case) -> Limits:
        """Return the bounds of the case's loads."""
        line_rate_bps = self._directory.manifest.line_rate_bps
        return limits(case, line_rate_bps, self._calibration_of(case), self._fastest_fps)

    def finish(self, case: Case, results: Results) -> None:
        """Keep a case's results, and write them to disk at once."""
        self._results[case.id] = results
        self.save()

    def outcomes(self) -> list[Outcome]:
        """Return the outcomes of all throughput tests so far."""
        return [r for results in self._results.values() for r in results if isinstance(r, Outcome)]

    def save(self, compared: Sequence[Finding] = ()) -> Results:
        """Write the results in the plan's order and return them; compared: results that are of no case of the plan."""
        results = [r for case in self._listed for r in self._results.get(case.id, [])]
        results += compared
        self._directory.save_results(results)
        return results

    def arrange(self) -> None:
        """Sort the trials, and the manifest's Security Contexts and search hints, into the order of measuring."""
        order = [case.id for case in self.cases]
        self._directory.arrange(order)
        manifest = self._directory.manifest
        context_of = {id_: manifest.context_of_case[id_] for id_ in order if id_ in manifest.context_of_case}
        names = dict.fromkeys([*context_of.values(), *manifest.contexts])
        self._directory.update_manifest(
            contexts={name: manifest.contexts[name] for name in names if name in manifest.contexts},
            context_of_case=context_of,
            search_hints={id_: manifest.search_hints[id_] for id_ in order if id_ in manifest.search_hints},
        )

    def _hints(self, case: Case) -> list[float | None]:
        """Return the loads at which the case's searches begin, frames/s, one for each loss goal; empty: no guess.

        They are on disk before the first trial, so that a resumed case begins at the same loads.
        """
        recorded = self._directory.manifest.search_hints
        if case.id not in recorded and not self._directory.trials_of(case.id):
            before = [(other, self._results.get(other.id, [])) for other in self.needs(case)]
            if guesses := hints(case, before):
                self._directory.update_manifest(search_hints={**recorded, case.id: guesses})
                return guesses
        return recorded.get(case.id, [])

    def _calibration_of(self, case: Case) -> Calibration | None:
        wanted = (case.frame_size, case.ip_version, case.direction)
        machine = self._directory.manifest.machine_of_case.get(case.id)
        for ceiling in self._directory.manifest.calibration:
            if (ceiling.frame_size, ceiling.ip_version, ceiling.direction) == wanted and (
                machine is None or ceiling.machine == machine
            ):
                return ceiling
        return None


def _needs(cases: Sequence[Case]) -> dict[str, list[Case]]:
    """Return, for each case, the earlier cases whose throughput it uses.

    These are the throughput tests at the same point, and those of other frame sizes that give a search its first load.
    """
    needed: dict[str, list[Case]] = {}
    searched: defaultdict[Hashable, list[Case]] = defaultdict(list)
    for case in cases:
        at_point = searched[_point(case)]
        alike = series(case)
        sizes = searched[alike] if alike is not None else []
        needed[case.id] = [*{other.id: other for other in (*at_point, *guides(sizes))}.values()]
        if isinstance(case.settings, Throughput):
            at_point.append(case)
            sizes.append(case)
    return needed


def _point(case: Case) -> tuple[object, ...]:
    """Return a key that is equal for all tests of one configuration, frame size, direction and repeat."""
    return case.pair, case.frame_size, case.direction, case.repeat
