# SPDX-License-Identifier: Apache-2.0
"""Checks a run that was disturbed, by pure functions; each returns the faults as sentences, none if there are none."""

from __future__ import annotations

import csv
import io
import json
import math
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from espbench.sentences import Code

Cells = Mapping[str, str]
Trial = Mapping[str, Any]

# Exit codes: 0: all cases have a figure; 3: some have none. 1, 2, 4: ended with a message, can be resumed. 130:
# interrupted.
WHOLE = (0, 3)
# Reasons that a busy host can cause in a run without the campaign; a death of tester, gateway or daemon is never one.
OF_THE_HOST = frozenset({
    Code.HOST_STALL, Code.HOST_STALL_IN_OUTAGE, Code.HOST_STALL_OF_LOSS, Code.HOST_STARVATION, Code.HOST_SLOW,
    Code.SENDER_STARVED, Code.SENT_FEWER, Code.SENT_SLOWLY, Code.LATE, Code.PROBES_LOST,
})  # fmt: skip


# A bound may be below the offered load of its trial by this share: the search counts the trial for its next lower
# load.
LESS = 0.1


@dataclass(frozen=True)
class Truth:
    """The bounds between which a throughput is right, frames/s."""

    least: float
    most: float


def rows_of(text: str) -> list[dict[str, str]]:
    """Return the rows of the text of a results.csv."""
    return list(csv.DictReader(io.StringIO(text)))


def outcomes_of(text: str) -> list[dict[str, Any]]:
    """Return the outcomes in the text of a results.json; they include the codes of reasons."""
    outcomes: list[dict[str, Any]] = json.loads(text)["outcomes"]
    return outcomes


def trials_of(data: bytes) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the trials of a trials.jsonl, and the faults of its lines."""
    trials: list[dict[str, Any]] = []
    faults = []
    lines = data.split(b"\n")
    for number, line in enumerate(lines[:-1], 1):
        try:
            trials.append(json.loads(line))
        except ValueError:
            faults.append(f"trials.jsonl:{number}: not JSON: {line[:60]!r}")
    if lines[-1]:
        faults.append(f"trials.jsonl: its last line is torn: {lines[-1][:60]!r}")
    return trials, faults


def ended(code: int | None, said: str, allowed: Sequence[int] = WHOLE) -> list[str]:
    """Check that a run ended (code is not None) with one of these exit codes, and that it printed no traceback."""
    faults = []
    if code is None:
        faults.append(f"it did not end: {_last(said)}")
    elif code not in allowed:
        faults.append(f"exit code {code}, expected one of {', '.join(map(str, allowed))}: {_last(said)}")
    if "Traceback (most recent call last)" in said:
        faults.append(f"a traceback: {_last(said)}")
    return faults


def one_row_a_case(cases: Sequence[str], rows: Sequence[Cells]) -> list[str]:
    """Check that every case of the manifest has a row, and that there are no rows of other cases."""
    names = [row["case"] for row in rows]
    missing = [case for case in cases if case not in names]
    strange = [case for case in names if case not in cases]
    return [f"case {case} has no row in results.csv" for case in missing] + [
        f"results.csv has a row of case {case}, which the manifest has not" for case in strange
    ]


def kept(before: bytes, after: bytes) -> list[str]:
    """Check that the complete lines that were on disk before are still there, unchanged."""
    whole = before[: before.rfind(b"\n") + 1]
    if after.startswith(whole):
        return []
    return [f"{whole.count(10)} trials were on disk, {after.count(10)} are, and not the same ones"]


def right(
    rows: Sequence[Cells],
    truth: Truth,
    slowed: frozenset[str] = frozenset(),
    trials: Sequence[Trial] = (),
) -> tuple[Counter[str], list[str]]:
    """Check each row: a figure is right, a bound is at most the truth, and a row without either has a reason.

    slowed: cases in which the gateway itself stood still or died, so that a lower figure is right. trials: the run's
    trials; a bound must not be below the load that they have shown. Return the number of rows by outcome, too.
    """
    outcomes: Counter[str] = Counter()
    faults = []
    for row in rows:
        status, name = row["status"], row["case"]
        outcomes["right" if status == "OK" else status] += 1
        figure = float(row["throughput_fps"]) if row["throughput_fps"] else None
        if status in ("OK", "LOWER_BOUND"):
            if figure is None:
                faults.append(f"{name}: {status} without a figure")
            elif figure > truth.most:
                faults.append(f"{name}: {status} {figure:,.0f} fps, above the truth, {truth.most:,.0f}")
            elif status == "OK" and figure < truth.least and name not in slowed:
                faults.append(f"{name}: OK {figure:,.0f} fps, below the truth, {truth.least:,.0f}")
            elif status == "LOWER_BOUND":
                faults += _bound(row, figure, trials)
        elif figure is not None:
            faults.append(f"{name}: {status}, and yet a figure, {figure:,.0f} fps")
        elif status == "BELOW_MINIMUM" and name not in slowed:
            faults.append(f"{name}: BELOW_MINIMUM; it forwards {truth.least:,.0f} fps")
        elif status != "BELOW_MINIMUM" and not row.get("reasons", "").strip():
            faults.append(f"{name}: {status} without a reason")
    return outcomes, faults


def _bound(row: Cells, figure: float, trials: Sequence[Trial]) -> list[str]:
    """Check that a bound has a reason, and is not below the load that final trials have shown."""
    name = row["case"]
    faults = [] if row.get("reasons", "").strip() else [f"{name}: LOWER_BOUND without a reason"]
    shown = _shown_without_loss(name, trials)
    if shown is not None and figure < shown * (1 - LESS):
        faults.append(f"{name}: LOWER_BOUND {figure:,.0f} fps, but a final trial passed at {shown:,.0f}")
    return faults


def _shown_without_loss(case: str, trials: Sequence[Trial]) -> float | None:
    """Return the highest load at which a valid final trial of a case had no loss, below every load with a loss."""
    valid = [t for t in trials if (t["case"], t["validity"]) == (case, "VALID")]
    missed = min((t["offered_fps"] for t in valid if t["lost"] or not t["sustained"]), default=math.inf)
    passed = [t["offered_fps"] for t in valid if t["phase"] == "final" and not t["lost"] and t["sustained"]]
    return max((fps for fps in passed if fps < missed), default=None)


def true_reasons(
    trials: Sequence[Trial], hit: Sequence[tuple[int, int]], of_the_victim: Collection[Code]
) -> list[str]:
    """Check that INVALID trials have a possible reason: one of the victim only where it was hit, else one of the host.

    hit: the first and the last line of the log that each hit may have affected. of_the_victim: the codes of the reasons
    that a hit may cause.
    """
    touched = {line for first, last in hit for line in range(first, last + 1)}
    faults = []
    for line, trial in enumerate(trials):
        if trial["validity"] != "INVALID":
            continue
        if not trial["reason_codes"]:
            faults.append(f"trial {line + 1} is INVALID without a reason")
        for reason, text in zip(trial["reason_codes"], trial["reasons"], strict=True):
            if reason["code"] in OF_THE_HOST:
                continue
            if reason["code"] not in of_the_victim:
                faults.append(
                    f"trial {line + 1}: not a reason that this could have: {reason['code']}: {text}"
                )
            elif line not in touched and not _repeats_reasons(trials, line):
                faults.append(f"trial {line + 1} was not touched, and says {reason['code']}: {text}")
    return faults


def disturbed_cases(trials: Sequence[Trial]) -> frozenset[str]:
    """Return the cases that have a trial with a reason of this machine itself."""
    return frozenset(
        str(trial["case"]) for trial in trials if any(r["code"] in OF_THE_HOST for r in trial["reason_codes"])
    )


def _repeats_reasons(trials: Sequence[Trial], line: int) -> bool:
    """Return whether a trial repeats the reasons of an earlier one.

    It does so if its case or load was given up before.
    """
    trial = trials[line]
    before = [t for t in trials[:line] if t["case"] == trial["case"]]
    alike = [t for t in before if t.get("intended_fps") == trial.get("intended_fps")] + before[-1:]
    return any(all(reason in t["reason_codes"] for reason in trial["reason_codes"]) for t in alike)


def nothing_left(things: set[str], living: Sequence[int]) -> list[str]:
    """Check that no namespace, journal, file, mount or process of the run is left."""
    return [f"left behind: {thing}" for thing in sorted(things)] + [
        f"left behind: process {pid}" for pid in living
    ]


def same_tables(wanted: Mapping[str, bytes], got: Mapping[str, bytes]) -> list[str]:
    """Check that two folders have the same files, byte for byte."""
    faults = [f"{name} is not there" for name in wanted if name not in got]
    for name, text in wanted.items():
        if name in got and got[name] != text:
            faults.append(f"{name} differs: {_first_difference(text, got[name])}")
    return faults


def same_trials(wanted: bytes, got: bytes) -> list[str]:
    """Check that each case has the same trials in the same order, except for `host`, which depends on the host.

    The order of the cases may differ: a case that was measured anew comes after the others.
    """
    wanted_trials, _ = trials_of(wanted)
    found_trials, faults = trials_of(got)
    for trials in (wanted_trials, found_trials):
        trials.sort(key=lambda trial: str(trial.get("case")))
    for number, (a, b) in enumerate(zip(wanted_trials, found_trials, strict=False), 1):
        keys = [key for key in {**a, **b} if key != "host" and a.get(key) != b.get(key)]
        faults += [f"trial {number}: {key} {a.get(key)!r} became {b.get(key)!r}"[:300] for key in keys]
    if len(wanted_trials) != len(found_trials):
        faults.append(f"{len(wanted_trials)} trials became {len(found_trials)}")
    return faults[:5]


def _first_difference(wanted: bytes, got: bytes) -> str:
    for number, (a, b) in enumerate(zip(wanted.splitlines(), got.splitlines(), strict=False), 1):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            cut = slice(max(0, at - 30), at + 30)
            return f"line {number}: {a[cut].decode(errors='replace')!r} became {b[cut].decode(errors='replace')!r}"
    return f"{len(wanted.splitlines())} lines became {len(got.splitlines())}"


def _last(said: str) -> str:
    return " / ".join(said.strip().splitlines()[-3:])[-400:]
