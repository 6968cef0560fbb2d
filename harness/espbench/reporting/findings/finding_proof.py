# SPDX-License-Identifier: Apache-2.0
"""Makes the table that proves encryption in tests other than throughput, and in comparisons at fixed loads: sums over
the VALID trials of all sizes.
"""

from __future__ import annotations

from collections.abc import Sequence

from espbench.reporting.findings.finding_groups import groups_of
from espbench.reporting.findings.finding_words import Names
from espbench.reporting.parts.crossings import Crossing
from espbench.reporting.parts.final_trials import NOT_PROVEN
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import NONE, count
from espbench.terms import Finding


def proof(findings: Sequence[Finding], trials: TrialDigest, names: Names) -> Table:
    """Return a table with a row for each test, encrypting stack and suite, and direction; counts are unrounded sums.

    The case of a finding says which trials are its own.
    """
    several_duts = len({f.dut for f in findings}) > 1
    rows = []
    for group in groups_of([f for f in findings if f.encryption != "baseline"]):
        for arm, of_arm in group.arms().items():
            name = [
                names.title(group.test),
                f"{group.dut} · {arm}" if several_duts else arm,
                f"IPv{group.ip_version}, {group.direction}",
            ]
            crossings: dict[str, Crossing] = {}
            for f in of_arm:
                for way, sums in trials.crossings.get(f.case, {}).items():
                    crossings[way] = crossings.get(way, Crossing()) + sums
            if not crossings:
                rows.append([*name, *[NONE] * 6, "no VALID trial with traffic"])
            for way, sums in crossings.items():
                rows.append(
                    [
                        *name, count(sums.trials), way, count(sums.sent),
                        count(sums.encrypted), count(sums.decrypted), count(sums.received),
                        _verdict(of_arm, sums),
                    ]
                )  # fmt: skip
    head = [
        "Test", "Stack and suite", "Traffic", "Trials", "Way", "Sent", "Encrypted by the first",
        "Decrypted by the second", "Received", "Verdict",
    ]  # fmt: skip
    return Table(head, rows, numeric=[3, 5, 6, 7, 8])


def _verdict(findings: Sequence[Finding], sums: Crossing) -> str:
    proven = all(f.encryption == "proven" for f in findings)
    if not proven or sums.encrypted is None or sums.decrypted is None:
        return NOT_PROVEN
    if sums.proven < sums.trials:
        # If SAs were replaced or a gateway restarted in between, the counters of the trials cannot be added up.
        return f"proven in {sums.proven:,} of {sums.trials:,} trials"
    if sums.sent == sums.encrypted == sums.decrypted == sums.received:
        return "proven: all four equal"
    return f"proven: {sums.sent - sums.received:,} missing"
