# SPDX-License-Identifier: Apache-2.0
"""Lists everything that a run was asked for, key by key: the plan, and the files that it names. The manifest records
it.

A resumed run must be asked for the same: figures of two plans do not belong in one table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.plan.duts.profiles import Profile
from espbench.plan.duts.topology import load_topology
from espbench.plan.reading.reader import KeyPath, key_path, shown
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.plan.traffic.traffic_profiles import rfc2544_frame

_LONGEST = 120  # characters of a mapping in a message


@dataclass(frozen=True)
class Change:
    """A key whose value has changed; both values as messages show them."""

    key: str
    was: str
    now: str


def asked(resolved: ResolvedPlan, profiles: Sequence[Profile]) -> dict[str, Any]:
    """Return every key with its value, as a plan writes it, with defaults but without comments and format.

    profiles: the profiles of the plan's DUTs, `auto` replaced; none with topology external.
    """
    plan = resolved.plan
    return {
        "plan": plan.model_dump(mode="json"),
        "topology": load_topology(plan.topology).model_dump(mode="json", exclude={"description"}),
        "profiles": {p.name: p.model_dump(mode="json", exclude={"description"}) for p in profiles},
        "test frame": rfc2544_frame().model_dump(mode="json", exclude={"description"}),
    }


def changes(was: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """Return the keys of `asked` whose values differ, in the order of the plan."""
    return [Change(_named(path), old, new) for path, old, new in _apart((), was, now)]


def recorded_changes(was: dict[str, Any], now: dict[str, Any]) -> list[Change]:
    """Return the changes of `conditions`, which is all that older runs recorded; keys that only one run has are left
    out.
    """
    both = [key for key in was if key in now and key != "traffic"]
    changes = _apart((), {key: was[key] for key in both}, {key: now[key] for key in both})
    return [Change(key_path(path), old, new) for path, old, new in changes if "nothing" not in (old, new)]


def _apart(path: KeyPath, was: Any, now: Any) -> Iterator[tuple[KeyPath, str, str]]:
    if isinstance(was, dict) and isinstance(now, dict):
        for key in [*was, *(key for key in now if key not in was)]:
            yield from _apart((*path, key), was.get(key), now.get(key))
    elif isinstance(was, list) and isinstance(now, list) and any(isinstance(v, dict) for v in [*was, *now]):
        for index in range(max(len(was), len(now))):
            old, new = (v[index] if index < len(v) else None for v in (was, now))
            yield from _apart((*path, index), old, new)
    elif was != now or isinstance(was, bool) != isinstance(now, bool):
        yield path, _written(was), _written(now)


def _written(value: Any) -> str:
    if isinstance(value, list) and value:
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, dict):
        inside = ", ".join(f"{key}: {_written(part)}" for key, part in value.items() if part is not None)
        return "{" + (inside if len(inside) <= _LONGEST else inside[:_LONGEST] + "…") + "}"
    return shown(value)


def _named(path: KeyPath) -> str:
    """Return a key's name: `tests[0].throughput.trial` in the plan; elsewhere with the file that it belongs to."""
    of, *rest = path
    where = "" if of == "plan" else f"{of}: "
    return where + key_path(tuple(rest))
