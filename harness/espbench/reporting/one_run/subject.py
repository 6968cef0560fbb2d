# SPDX-License-Identifier: Apache-2.0
"""Says in a sentence what was tested, and writes a case as one line of text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from espbench.reporting.findings.finding_words import Names, kinds_listed
from espbench.reporting.parts.chart_parts import size_name
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import plural
from espbench.terms import CaseEntry, Manifest


def subject(manifest: Manifest) -> str:
    """Return a sentence with the tests, DUTs, stacks, suites, frame sizes, directions and IP versions of a run."""
    cases = manifest.cases
    sizes = sorted({c.frame_size for c in cases}, key=lambda s: (isinstance(s, str), s))
    suites = dict.fromkeys(c.suite for c in cases if c.suite != "none")
    parts = [
        f"{kinds_listed([c.test for c in cases])} of {_listed(c.dut for c in cases)}",
        f"with {plural(len({c.stack for c in cases}), 'stack')} ({_listed(c.stack for c in cases)})",
        f"and {plural(len(suites), 'suite')} ({_listed(suites)})" if suites else "",
        f"at {plural(len(sizes), 'frame size')} ({_sizes(sizes)})",
        f"{_listed(c.direction for c in cases)}, {_listed(f'IPv{c.ip_version}' for c in cases)}",
    ]
    sentence = ", ".join([" ".join(filter(None, parts[:3])), *parts[3:]])
    return sentence[:1].upper() + sentence[1:] + "."


def _sizes(sizes: Sequence[int | str]) -> str:
    """Return `64, 512 bytes`; with a mix of sizes, which is not a number of bytes, `64 B, 512 B, imix`."""
    if all(isinstance(size, int) for size in sizes):
        return f"{', '.join(map(str, sizes))} bytes"
    return ", ".join(map(size_name, sizes))


def _listed(values: Any) -> str:
    return ", ".join(dict.fromkeys(map(str, values)))


def case_summary(case: str, trials: TrialDigest) -> str:
    """Say how many trials a case took, and how many of them were INVALID."""
    invalid = trials.invalid_of_case[case]
    return plural(trials.total_of_case[case], "trial") + (f", {invalid:,} INVALID" if invalid else "")


def case_title(case: CaseEntry, names: Names | None = None, *, with_dut: bool = False) -> str:
    """Return a case as one line of text.

    names: given if the run has several tests; then the line has the case's test. with_dut: it has the DUT, because the
    run has several.
    """
    parts = [
        names.title(case.test) if names else "",
        case.dut if with_dut else "",
        case.stack,
        case.suite,
        size_name(case.frame_size),
        case.direction,
        f"IPv{case.ip_version}",
        f"repeat {case.repeat}" if case.repeat > 1 else "",
    ]
    return " · ".join(filter(None, parts))
