# SPDX-License-Identifier: Apache-2.0
"""The proof of encryption of tests beside throughput: all VALID trials of a case, summed."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.reporting.final_trials import NOT_PROVEN, way_name
from espbench.reporting.finding_groups import arm_of
from espbench.reporting.finding_words import kind
from espbench.reporting.table import Table
from espbench.reporting.trial_digest import WAYS, Crossing, TrialDigest
from espbench.reporting.wording import NONE, count
from espbench.terms import Finding


def proof(findings: Sequence[Finding], trials: TrialDigest) -> Table:
    """A row for each case that is to encrypt and each direction of it; the counts are unrounded sums."""
    several_duts = len({f.dut for f in findings}) > 1
    rows = []
    for f in findings:
        if f.encryption == "baseline":
            continue
        name = [
            kind(f.test).title,
            f"{f.dut} · {arm_of(f)}" if several_duts else arm_of(f),
            f"{f.frame_size}" + (f", repeat {f.repeat}" if f.repeat > 1 else ""),
            f"IPv{f.ip_version}, {f.direction}",
        ]
        crossings = trials.crossings.get(f.case, {})
        if not crossings:
            rows.append([*name, *[NONE] * 6, f"no VALID trial: {f.status}"])
        for way, sums in crossings.items():
            known = sums.encrypted is not None and way in WAYS
            rows.append(
                [
                    *name, count(sums.trials), way_name(way) if known else way, count(sums.sent),
                    count(sums.encrypted), count(sums.decrypted), count(sums.received), _verdict(f, sums),
                ]
            )  # fmt: skip
    head = [
        "Test", "Stack and suite", "Frame, bytes", "Traffic", "Trials", "Way", "Sent", "Encrypted by the first",
        "Decrypted by the second", "Received", "Verdict",
    ]  # fmt: skip
    return Table(head, rows, numeric=[2, 4, 6, 7, 8, 9])


def _verdict(f: Finding, sums: Crossing) -> str:
    if f.encryption != "proven" or sums.encrypted is None or sums.decrypted is None:
        return NOT_PROVEN
    if sums.proven < sums.trials:
        # Where SAs were replaced or a gateway began anew, its counters begin at zero with it.
        return f"proven in {sums.proven:,} of {sums.trials:,} trials"
    if sums.sent == sums.encrypted == sums.decrypted == sums.received:
        return "proven: all four equal"
    return f"proven: {sums.sent - sums.received:,} missing, none came past the SAs"
