# SPDX-License-Identifier: Apache-2.0
"""Checks that an interrupted run may be resumed: everything that its figures depend on must be unchanged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from espbench.errors import UsageError
from espbench.measure import machine
from espbench.own_code import own_code
from espbench.plan import Profile, ResolvedPlan, conditions
from espbench.plan.resolved.asked import Change, asked, changes, recorded_changes
from espbench.results import FORMAT, RunDirectory
from espbench.terms import OF_SAME_MACHINE, CaseEntry, Manifest
from espbench.version import __version__

_MOST_SHOWN = 8
_UNDO = "undo the change, or start a new run, which measures every case anew"


def same_run(
    directory: RunDirectory,
    resolved: ResolvedPlan,
    profiles: Sequence[Profile],
    *,
    platform: str,
    virtual_time: bool,
    reasons: str,
    entries: list[CaseEntry],
) -> None:
    """Raise UsageError if the figures of a resumed run would not belong together with those already measured."""
    begun = directory.manifest
    if begun.format != FORMAT:
        raise _refused(
            directory,
            f"a run of format {FORMAT}, which this espbench ({__version__}) writes",
            f"format {begun.format}, begun by espbench {begun.espbench}",
            "resume it with the espbench that began it, or start a new run; `espbench report` reads it all the same",
        )
    # Traffic profiles and recordings are files beside the plan and not in the run directory, so they may have changed.
    frames = resolved.traffic.fingerprint
    if (before := begun.conditions.get("traffic", frames)) != frames:
        raise _refused(
            directory,
            f"the frames it was begun with, {before}",
            frames,
            "undo the change of the traffic profile or its recording, or start a new run",
        )
    if begun.platform == platform:
        now = asked(resolved, profiles)
        differences = (
            changes(begun.asked, now)
            if begun.asked
            else recorded_changes(begun.conditions, conditions(resolved, profiles))
        )
        if differences:
            raise _changed(directory, differences)
    if (begun.platform, begun.cases) != (platform, entries):
        raise _refused(
            directory,
            f"the {len(begun.cases)} cases on {begun.platform} that it was begun with",
            f"{len(entries)} cases on {platform}" + (f" ({reasons})" if reasons else ""),
            "undo the change of its plan.yaml or of this machine, or start a new run",
        )
    if begun.espbench != __version__:
        raise _changed(directory, [Change("espbench's version", begun.espbench, __version__)])
    # No figure in virtual time depends on the machine; those of a cluster say themselves whether they are the same.
    if not virtual_time and begun.machines is None:
        moved = _machine_changes(begun.host, machine.describe())
        if moved:
            raise _changed(directory, moved)


def same_place(directory: RunDirectory, *, on_benches: bool) -> None:
    """Raise UsageError if a run in real time on machines of a cluster is to go on without one, or the reverse."""
    if (directory.manifest.machines is not None) == on_benches:
        return
    where = ("the machine that it was begun on", "the machines of a cluster")
    raise _refused(
        directory,
        f"a run in real time that goes on where it was begun, on {where[not on_benches]}",
        f"--resume {'with' if on_benches else 'without'} --cluster",
        f"{'leave out' if on_benches else 'add'} --cluster, or start a new run",
    )


def other_code(begun: Manifest) -> list[str]:
    """Return a warning if a run is resumed with other code of the same version; empty if it is the same or unknown."""
    was, now = begun.code, own_code()
    if all(was.get(key, now.get(key)) == now.get(key) for key in ("code", "generator")):
        return []
    after = begun.model_copy(update={"code": now})
    return [f"resumed with other code of espbench: begun by {begun.made_by}; resumed by {after.made_by}"]


def code_of_all(begun: Mapping[str, str]) -> dict[str, str]:
    """Return the code of a resumed run for its manifest, from that of its beginning.

    It has no `measuring` if other code measures the rest: such a run is a base for neither.
    """
    same = begun.get("measuring") == own_code()["measuring"]
    return {key: value for key, value in begun.items() if same or key != "measuring"}


def _machine_changes(was: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    return [
        Change(f"this machine's {key}", str(was[key]), str(now.get(key)))
        for key in OF_SAME_MACHINE
        if key in was and was[key] != now.get(key)
    ]


def _changed(directory: RunDirectory, changes: Sequence[Change]) -> UsageError:
    def listed(values: Sequence[str]) -> str:
        lines = [f"{change.key}: {value}" for change, value in zip(changes, values, strict=True)]
        more = [f"and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
        return "; ".join([*lines[:_MOST_SHOWN], *more])

    was, now = listed([change.was for change in changes]), listed([change.now for change in changes])
    return _refused(directory, f"what it was begun with, {was}", now, _UNDO)


def _refused(directory: RunDirectory, expected: str, got: str, remedy: str) -> UsageError:
    return UsageError(
        f"{directory.path}: this run cannot go on here\n"
        f"  expected: {expected}\n"
        f"  got: {got}\n"
        f"  what to do: {remedy}"
    )
