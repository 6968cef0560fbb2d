# SPDX-License-Identifier: Apache-2.0
"""Keeps the campaign's state: a line of JSON for each repetition, so that it continues where it was interrupted."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from campaign.row import Verdict


@dataclass(frozen=True)
class Done:
    """One finished repetition."""

    row: str
    repetition: int
    seed: int
    seconds: float
    verdict: Verdict
    commit: str = ""
    when: str = ""


class OtherCampaign(Exception):
    """The state file has another seed."""


class State:
    """The repetitions on disk; `add` writes one more, and returns when it is on disk.

    Each line has the commit of the repetition, because a long campaign may continue after a defect was fixed.
    """

    def __init__(self, path: Path, commit: str, seed: int) -> None:
        """Continue with the file, or create it; OtherCampaign if its repetitions have another seed."""
        self.path = path
        self.commit = commit
        self.seed = seed
        self.done: dict[tuple[str, int], Done] = {}
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # without an incomplete last line: it is made again
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"seed": seed}) + "\n")
            return
        if lines[0]["seed"] != seed:
            raise OtherCampaign(
                f"{path}: expected a campaign of seed {seed}, got one of seed {lines[0]['seed']}; "
                "--seed goes on with that one, another --state begins one"
            )
        if whole != text:
            os.truncate(path, len(whole.encode()))
        for line in lines[1:]:
            self._take(line)

    def add(self, done: Done) -> None:
        """Write a finished repetition to disk."""
        done = replace(done, commit=self.commit, when=datetime.now(UTC).isoformat(timespec="minutes"))
        v = done.verdict
        line = {
            "row": done.row, "repetition": done.repetition, "seed": done.seed, "seconds": round(done.seconds, 3),
            "moments": v.moments, "outcomes": dict(v.outcomes), "faults": v.faults, "lacks": v.lacks,
            "messages": v.messages, "commit": done.commit, "when": done.when,
        }  # fmt: skip
        self._append(line)
        self.done[done.row, done.repetition] = done

    def forget(self, row: str, *, only_faulty: bool = False) -> None:
        """Have a row's repetitions, or only those with faults, made anew; their old lines stay in the file."""
        line = {"forget": row, "repetitions": [
            done.repetition for done in self.of(row) if done.verdict.faults or not only_faulty
        ]}  # fmt: skip
        if line["repetitions"]:
            self._append(line)
            self._forget(line)

    def of(self, row: str) -> list[Done]:
        """Return a row's repetitions."""
        return [done for (name, _), done in self.done.items() if name == row]

    def _append(self, line: dict[str, Any]) -> None:
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _forget(self, line: dict[str, Any]) -> None:
        for repetition in line["repetitions"]:
            self.done.pop((line["forget"], repetition), None)

    def _take(self, line: dict[str, Any]) -> None:
        if "forget" in line:
            self._forget(line)
            return
        verdict = Verdict(
            line["moments"], Counter(line["outcomes"]), line["faults"], line["lacks"], line["messages"]
        )
        done = Done(
            line["row"],
            line["repetition"],
            line["seed"],
            line["seconds"],
            verdict,
            line["commit"],
            line["when"],
        )
        self.done[done.row, done.repetition] = done
