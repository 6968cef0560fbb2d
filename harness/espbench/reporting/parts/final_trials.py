# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of the final trials' counts: the proof of encryption, and each direction by itself."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.reporting.parts.crossings import crossed
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import NONE, count, goal_name, number
from espbench.terms import DirectionReading, Finding, Latency, Outcome, Trial

NOT_PROVEN = "encryption not proven"
VIOLATED = "encryption violated"


def encryption_of(results: Sequence[Outcome | Finding]) -> str:
    """Return in words the worst of these results' states of encryption."""
    if any(r.status == "VIOLATED" for r in results):
        return VIOLATED
    return NOT_PROVEN if any(r.encryption == "not proven" for r in results) else results[0].encryption


def proof(outcomes: Sequence[Outcome], trials: TrialDigest) -> Table:
    """Return a table with a row for each final trial and direction of every case that must encrypt.

    The counts are the trial's own, unrounded: the frames offered in the clear, the SA counters of both gateways, and
    the frames received intact.
    """
    goals: dict[tuple[str, int | None], list[Outcome]] = {}
    for o in outcomes:
        if o.encryption != "baseline":
            goals.setdefault((o.case, o.final_trial), []).append(o)
    several_duts = len({o.dut for o in outcomes}) > 1
    rows = []
    for (case, sequence), goals_here in goals.items():
        o = goals_here[0]
        name = [
            f"{o.dut} · {o.stack} · {o.suite}" if several_duts else f"{o.stack} · {o.suite}",
            f"{o.frame_size}" + (f", repeat {o.repeat}" if o.repeat > 1 else ""),
            f"IPv{o.ip_version}, {o.direction}",
            " and ".join(goal_name(goal) for goal in dict.fromkeys(one.loss_goal for one in goals_here)),
        ]
        trial = trials.kept.get((case, sequence)) if sequence is not None else None
        if trial is None:
            why = " / ".join(dict.fromkeys(one.status for one in goals_here))
            verdict = f"no final trial: {why}"
            if o.status == "VIOLATED":
                verdict = f"{VIOLATED}: {'; '.join(map(str, o.reasons))}"
            elif o.encryption == "not proven":
                verdict = f"{NOT_PROVEN}, {verdict}"
            rows.append([*name, NONE, NONE, NONE, NONE, NONE, NONE, verdict])
            continue
        for way, reading in trial.per_direction.items():
            rows.append([*name, str(trial.sequence), *_crossing(o, trial, way, reading)])
    head = [
        "Stack and suite", "Frame, bytes", "Traffic", "Loss goal", "Trial", "Way", "Sent",
        "Encrypted by the first", "Decrypted by the second", "Received", "Verdict",
    ]  # fmt: skip
    return Table(head, rows, numeric=[1, 3, 4, 6, 7, 8, 9])


def _crossing(o: Outcome, trial: Trial, way: str, reading: DirectionReading) -> list[str]:
    name, encrypted, decrypted = crossed(trial, way, reading)
    return [
        name,
        count(reading.tx_frames),
        count(encrypted),
        count(decrypted),
        count(reading.rx_frames),
        _verdict(o, trial, reading, encrypted, decrypted),
    ]


def _verdict(
    o: Outcome, trial: Trial, reading: DirectionReading, encrypted: int | None, decrypted: int | None
) -> str:
    if o.status == "VIOLATED":
        return "; ".join([VIOLATED, *map(str, trial.problems)])
    shown = o.encryption == "proven" and trial.proof.get("proven")
    if encrypted is None or decrypted is None or not shown:
        return "; ".join([NOT_PROVEN, *map(str, trial.problems)])
    if reading.tx_frames == encrypted == decrypted == reading.rx_frames:
        return "proven: all four equal"
    return f"proven: {reading.lost:,} lost, none came past the SAs"


def directions(outcomes: Sequence[Outcome], trials: TrialDigest) -> Table:
    """Return the table of each direction of the final trials, for cases that ran both ways; no rows if none did."""
    rows = []
    for o in outcomes:
        trial = trials.kept.get((o.case, o.final_trial)) if o.final_trial is not None else None
        if o.direction != "both-ways" or trial is None:
            continue
        for way, d in trial.per_direction.items():
            # A void trial can bound the rate, but the disturbance is in its latency.
            latency = d.latency_us if trial.validity == "VALID" else Latency()
            rows.append(
                [
                    o.suite + (f", repeat {o.repeat}" if o.repeat > 1 else ""),
                    str(o.frame_size),
                    goal_name(o.loss_goal),
                    way.replace("-", " → "),
                    count(d.offered_fps),
                    count(d.tx_frames),
                    count(d.rx_frames),
                    count(d.lost),
                    number(latency.p50, 3),
                    number(latency.p99, 3),
                ]
            )
    head = [
        "Suite", "Frame, bytes", "Loss goal", "Direction", "Offered, frames/s", "Sent", "Received",
        "Lost", "Latency p50, µs", "Latency p99, µs",
    ]  # fmt: skip
    return Table(head, rows, numeric=[1, 2, 4, 5, 6, 7, 8, 9])
