# SPDX-License-Identifier: Apache-2.0
"""Says in words how long the trials of a plan take, before any of them is made."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.cli.progress import rough
from espbench.plan import ResolvedPlan
from espbench.plan.duts.profiles import Profile
from espbench.reporting.parts.wording import plural
from espbench.runs.beds import Choice, cases_of, virtual
from espbench.runs.expected_time import expected_cpu_s, expected_s, keeps_gateways_busy


def expected(resolved: ResolvedPlan, choices: Sequence[Choice], at_once: int) -> list[str]:
    """Return for how long a run measures if no trial is repeated, in words; nothing if that is not known.

    at_once: how many cases are measured at the same time, in virtual time.
    """
    listed = cases_of(resolved, choices)
    if resolved.plan.cipher_kernels or not listed:
        return []
    line_rate_bps = choices[0].platform.line_rate_bps
    if not virtual(choices):
        seconds = expected_s(resolved.plan, listed, line_rate_bps)
        return [
            f"trials and their waits take about {rough(seconds)}; set-ups and repeated trials come on top"
        ]
    cpu_s = 0.0
    for choice in choices:
        instructions_per_s = _instructions_per_s(choice.profile)
        if not instructions_per_s:
            return []
        own = [case for case in listed if case.dut == choice.dut]
        cpu_s += expected_cpu_s(resolved.plan, own, choice.platform.line_rate_bps, instructions_per_s)
    side_by_side = (
        f"with {plural(at_once, 'case')} at the same time" if at_once > 1 else "one case after the other"
    )
    if not cpu_s:
        return ["how long IPsec tests take in virtual time is not known"]
    more = "boots" if all(map(keeps_gateways_busy, listed)) else "boots and the IPsec tests"
    return [
        f"trials take about {rough(cpu_s / at_once)}, {side_by_side}; half or twice as long is possible; "
        f"{more} come on top"
    ]


def _instructions_per_s(profile: Profile | None) -> float:
    """Return how many instructions a gateway executes in a second of virtual time; 0 if the profile does not say it."""
    emulated = profile and (profile.board or profile.machine)
    return 1e9 / float(emulated.ns_per_instruction) if emulated else 0.0
