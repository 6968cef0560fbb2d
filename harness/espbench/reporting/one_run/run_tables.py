# SPDX-License-Identifier: Apache-2.0
"""Makes the tables besides the results: where frames were lost, why trials were INVALID, the machine, the generator."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any

from espbench.reporting.one_run.trial_cases import TrialCase
from espbench.reporting.parts.security_context import term
from espbench.reporting.parts.statements import kind, merged
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import NONE, count, flat
from espbench.sentences import Place, place_text
from espbench.terms import Manifest, Reason, line_rate_fps


def losses(cases: Sequence[TrialCase], trials: TrialDigest) -> Table:
    """Return the table of places where VALID trials lost frames, by test (if there are several), DUT and traffic."""
    several = len({case.test for case in cases}) > 1
    groups: dict[tuple[str, ...], Counter[str]] = {}
    for case in cases:
        ip = f"IPv{case.ip_version}" if case.ip_version else NONE
        key = (case.dut, case.stack, case.direction, ip)
        places = groups.setdefault((case.test, *key) if several else key, Counter())
        places.update(trials.loss_of_case.get(case.case, {}))
    rows = []
    for which, places in groups.items():
        total = places.total() - places[Place.NOT_SENT]
        for place, n in places.most_common():
            if n:
                share = "not a loss" if place == Place.NOT_SENT else _share(n / total)
                rows.append([*which, place_text(place), count(n), share])
    head = ["DUT", "Stack", "Direction", "IP", "Place", "Frames", "% of the loss"]
    return Table(["Test", *head] if several else head, rows, numeric=[6, 7] if several else [5, 6])


def _share(part: float) -> str:
    return f"{100 * part:.1f}" if part >= 0.001 else "< 0.1"


def invalid(trials: TrialDigest) -> Table:
    """Return the table of INVALID trials by reason; reasons that differ only in their numbers count as one."""
    kinds: dict[Hashable, list[tuple[Reason, int, set[str]]]] = {}
    for reason, (n, cases) in trials.invalid.items():
        kinds.setdefault(kind(reason), []).append((reason, n, cases))
    rows = []
    for alike in sorted(kinds.values(), key=lambda alike: -sum(n for _, n, _ in alike)):
        cases = set().union(*(c for _, _, c in alike))
        text = merged([reason for reason, _, _ in alike])
        rows.append([text, count(sum(n for _, n, _ in alike)), count(len(cases))])
    return Table(["Reason", "Trials", "Cases"], rows, numeric=[1, 2])


def facts(values: dict[str, Any]) -> Table:
    """Return a part of the manifest as a table: a row for each value, and for each entry of a table within it."""
    rows: list[list[str]] = []
    for key, value in values.items():
        if isinstance(value, dict):
            rows += [[f"{term(key)}: {inner}", flat(item)] for inner, item in value.items()]
        else:
            rows.append([term(key), flat(value)])
    return Table(["What", "Value"], rows)


def calibration(manifest: Manifest) -> Table:
    """Return the table of the generator's own ceiling by frame size; columns without a value are left out."""
    head = [
        "Frame size, B",
        "IP",
        "Direction",
        "Offered, frames/s",
        "Received, frames/s",
        "Line rate, frames/s",
        "Path",
        "Machine",
        "Note",
    ]
    rows = []
    for c in manifest.calibration:
        ways = 2 if c.direction == "both-ways" else 1
        size = c.frame_size
        line = None
        if isinstance(size, int) and manifest.line_rate_bps:
            line = ways * line_rate_fps(size, manifest.line_rate_bps)
        rows.append(
            [
                str(c.frame_size),
                f"IPv{c.ip_version}",
                c.direction,
                count(c.offered_fps),
                count(c.received_fps),
                count(line),
                c.path or NONE,
                c.machine or NONE,
                c.note or NONE,
            ]
        )
    said = [n for n in range(len(head)) if any(row[n] != NONE for row in rows)]
    return Table(
        [head[n] for n in said],
        [[row[n] for n in said] for row in rows],
        numeric=[said.index(n) for n in (0, 3, 4, 5) if n in said],
    )
