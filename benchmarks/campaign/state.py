# SPDX-License-Identifier: Apache-2.0
"""The campaign's state: a line of JSON for each repetition, so that it goes on where it was interrupted."""

from __future__ import annotations

import json
import os
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from campaign.row import Verdict


@dataclass(frozen=True)
class Done:
    """One repetition that is over."""

    row: str
    repetition: int
    seed: int
    seconds: float
    verdict: Verdict


class OtherCampaign(Exception):
    """The file is of another commit or seed."""


class State:
    """The repetitions on disk; `add` writes one more and waits until it is there."""

    def __init__(self, path: Path, commit: str, seed: int, began: str) -> None:
        """Go on with the file, or begin it. OtherCampaign: what it holds was not measured of this commit."""
        self.path = path
        self.done: dict[tuple[str, int], Done] = {}
        self.head: dict[str, Any] = {"commit": commit, "seed": seed, "began": began}
        text = path.read_text() if path.exists() else ""
        whole = text[: text.rfind("\n") + 1]  # a torn last line is made again
        lines = [json.loads(line) for line in whole.splitlines()]
        if not lines:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(self.head) + "\n")
            return
        if (lines[0]["commit"], lines[0]["seed"]) != (commit, seed):
            raise OtherCampaign(
                f"{path}: expected a campaign of commit {commit} and seed {seed}, got one of commit "
                f"{lines[0]['commit']} and seed {lines[0]['seed']}; --fresh begins anew"
            )
        self.head = lines[0]
        if whole != text:
            os.truncate(path, len(whole.encode()))
        for line in lines[1:]:
            self._take(line)

    def add(self, done: Done) -> None:
        """One repetition is over."""
        v = done.verdict
        line = {
            "row": done.row, "repetition": done.repetition, "seed": done.seed, "seconds": round(done.seconds, 3),
            "moments": v.moments, "outcomes": dict(v.outcomes), "faults": v.faults, "lacks": v.lacks,
            "told": v.told,
        }  # fmt: skip
        with self.path.open("a") as file:
            file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self.done[done.row, done.repetition] = done

    def of(self, row: str) -> list[Done]:
        """A row's repetitions."""
        return [done for (name, _), done in self.done.items() if name == row]

    def _take(self, line: dict[str, Any]) -> None:
        verdict = Verdict(
            line["moments"], Counter(line["outcomes"]), line["faults"], line["lacks"], line["told"]
        )
        done = Done(line["row"], line["repetition"], line["seed"], line["seconds"], verdict)
        self.done[done.row, done.repetition] = done
