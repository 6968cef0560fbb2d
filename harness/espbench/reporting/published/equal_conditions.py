# SPDX-License-Identifier: Apache-2.0
"""Refuses runs whose figures must not be taken together, because they measured one DUT under unlike conditions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from espbench.claims.points import said_of_links
from espbench.comparison.sorting.comparability import flat, of_guests
from espbench.errors import UsageError
from espbench.results import kernels
from espbench.terms import Manifest

_OF_TRAFFIC = ("line_rate", "mtu", "flows", "traffic", "dont_fragment", "generator")
_UNSET = "not set"
_MOST = 8  # differences that a message lists
_OF_DUT = (
    "runs of one profile, one build of the guests and one kind of traffic for each DUT, since figures of one DUT are "
    "taken together"
)
_OF_KERNELS = (
    "runs of one espbench, with one version of each compiler, since figures of kernels on one processor are divided by "
    "those on another"
)
Facts = Mapping[str, str]
"""Condition → its value, as text."""


def refuse_unlike(manifests: Mapping[str, Manifest], with_kernels: Collection[str] = ()) -> None:
    """Raise UsageError if the conditions of a DUT, or of cipher kernels, differ between two runs.

    manifests: by the names of the runs. with_kernels: the names of those that measured cipher kernels; what made these
    must be equal whatever their DUTs.

    The conditions are the DUT's profile, the parts of its guests, and the plan's traffic. Everything else may differ
    between plans that measure claims: stacks, sizes, directions, tests and their settings. A DUT on links that err
    counts as another DUT (`said_of_links`).
    """
    by_dut: dict[str, dict[str, Facts]] = {}
    for name, manifest in manifests.items():
        for dut in manifest.conditions.get("profiles", {}):
            by_dut.setdefault(dut + said_of_links(manifest), {})[name] = dict(_facts(manifest, dut))
    for dut, by_run in by_dut.items():
        _refuse(dut, _OF_DUT, by_run)
    _refuse("cipher kernels", _OF_KERNELS, {name: _makers(manifests[name]) for name in with_kernels})


def _refuse(what: str, expected: str, by_run: Mapping[str, Facts]) -> None:
    """Raise UsageError if the facts of two runs differ."""
    if unlike := [*_unlike(by_run)]:
        more = [f"and {len(unlike) - _MOST} more"] if len(unlike) > _MOST else []
        listed = "".join(f"    {line}\n" for line in [*unlike[:_MOST], *more])
        raise UsageError(
            f"{what}: measured under unlike conditions\n"
            f"  expected: {expected}\n"
            f"  got:\n{listed}"
            "  what to do: name only the runs that are alike, or measure the others again"
        )


def _makers(manifest: Manifest) -> Facts:
    """Return what made the figures of a run's cipher kernels."""
    return {"espbench": manifest.espbench, **kernels.made_by(manifest.tools)}


def _facts(manifest: Manifest, dut: str) -> Iterator[tuple[str, str]]:
    """Yield the conditions of a DUT in a run."""
    conditions = manifest.conditions
    yield from flat({"profile": conditions["profiles"][dut]})
    yield from flat({"traffic": {key: conditions[key] for key in _OF_TRAFFIC if key in conditions}})
    processor = manifest.asked.get("profiles", {}).get(dut, {}).get("processor")
    yield from flat({"processor": processor or {}})
    for condition, value in of_guests(manifest):
        if condition.is_within("guests", dut):
            yield f"guests.{condition.key.removeprefix(f'{dut}.')}", value


def _unlike(by_run: Mapping[str, Facts]) -> Iterator[str]:
    """Yield a line for each condition with two values or more: `profile.memory: 128M (one, two); 256M (three)`.

    A part of a profile that a run does not have differs from one that another run has. Any other condition that a run
    does not record differs from nothing.
    """
    for condition in dict.fromkeys(key for facts in by_run.values() for key in facts):
        unset = _UNSET if condition.startswith("profile.") else ""
        runs_with: dict[str, list[str]] = {}
        for name, facts in by_run.items():
            if value := facts.get(condition, unset):
                runs_with.setdefault(value, []).append(name)
        if len(runs_with) > 1:
            yield f"{condition}: " + "; ".join(
                f"{value} ({', '.join(names)})" for value, names in runs_with.items()
            )
