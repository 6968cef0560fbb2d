# SPDX-License-Identifier: Apache-2.0
"""The steps of a bisection on disk: what was asked, and what each commit cost, so that it can be continued."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from espbench.errors import UsageError
from espbench.results.durable import write_atomically

FORMAT = 1


@dataclass(frozen=True)
class Step:
    """The cost of a commit, instructions per frame; None if it could not be built or measured, and why."""

    commit: str
    cost: float | None
    run: str = ""
    why: str = ""


@dataclass
class History:
    """A bisection so far. asked: what the steps belong to; figure: which figure is looked at, once that is known.

    profiles: commit → the run directory of its profile.
    """

    path: Path
    asked: Mapping[str, str]
    figure: dict[str, Any] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    profiles: dict[str, str] = field(default_factory=dict)

    @property
    def known(self) -> dict[str, Step]:
        """Commit → its step."""
        return {step.commit: step for step in self.steps}

    @property
    def is_kept(self) -> bool:
        """True if it is on disk. Without it, nobody knows what the other files of its folder belong to."""
        return self.path.exists()

    def forget(self) -> None:
        """Remove it from the disk, so that another question may be asked in this folder."""
        self.path.unlink(missing_ok=True)

    def add(self, step: Step) -> None:
        """Keep a step, on disk when this returns."""
        self.steps.append(step)
        self.save()

    def save(self) -> None:
        """Write all of it."""
        document = {
            "format": FORMAT,
            "asked": dict(self.asked),
            "figure": self.figure,
            "steps": [asdict(step) for step in self.steps],
            "profiles": self.profiles,
        }
        write_atomically(self.path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def open_history(path: Path, asked: Mapping[str, str]) -> History:
    """Return the history on disk, or a new one; UsageError where it is of something else, or damaged.

    Commits without a run are left out and tried again: the disk may have been full, or a tool of the build missing.
    """
    if not path.exists():
        return History(path, asked)
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        history = History(
            path,
            document["asked"],
            document["figure"],
            [step for each in document["steps"] if (step := Step(**each)).run or step.cost is not None],
            dict(document.get("profiles", {})),  # older bisections have none
        )
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise UsageError(f"{path}: damaged: {error}; remove {path.parent} to begin anew") from None
    # The limits choose the figure. Until it is chosen, others may be given, for example after one that was too large.
    free = () if history.figure else ("limits",)
    changed = [key for key in asked if history.asked.get(key) != asked[key] and key not in free]
    if changed:
        differences = "; ".join(f"{key}: {history.asked.get(key)}, now {asked[key]}" for key in changed)
        raise UsageError(
            f"{path}: a bisection of something else\n  expected: what it was begun with\n  got: {differences}\n"
            f"  what to do: ask for the same to go on, give another --out, or remove {path.parent}"
        )
    return replace(history, asked=asked)
