# SPDX-License-Identifier: Apache-2.0
"""Finds tests that do not fit the plan: no test measures their load, a tag comes too late, the generator cannot."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from espbench.plan.keys.model import Plan, Throughput
from espbench.plan.keys.rfc2544_tests import AroundTrials, AtThroughput, BackToBack, Flood, Latency
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.reading.reader import Problem, shown
from espbench.plan.reading.units import format_duration, format_fraction
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_NEEDING_THROUGHPUT = AtThroughput | BackToBack | Flood


def dependent_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find mistakes in tests that depend on another test's figure, and in the time of a tag."""
    plan = resolved.plan
    goals: list[float] = []
    for index, test in enumerate(plan.tests):
        settings, at = test.settings, ("tests", index, test.name)
        if isinstance(settings, Throughput):
            goals += settings.loss_goals
        elif isinstance(settings, _NEEDING_THROUGHPUT):
            given = isinstance(settings, AtThroughput) and settings.load is not None
            if settings.loss_goal not in goals and not given:
                goal = format_fraction(settings.loss_goal)
                yield Problem(
                    at,
                    f"a throughput test with the loss goal {goal} before it",
                    "none" if not goals else f"goals {', '.join(map(format_fraction, goals))}",
                    f"put - throughput: {{loss_goals: [{goal}]}} in front"
                    + (", or name a load" if isinstance(settings, AtThroughput) else ""),
                    on_key=True,
                )
        if (
            isinstance(settings, Latency)
            and settings.tag_at is not None
            and settings.tag_at >= settings.trial
        ):
            yield Problem(
                (*at, "tag_at"),
                f"a time within the trial of {format_duration(settings.trial)}",
                shown(format_duration(settings.tag_at)),
                "the tagged frame leaves in mid-stream: shorten tag_at or lengthen trial",
                involves=((*at, "trial"),),
            )
        if plan.compare is not None and not isinstance(settings, Throughput):
            yield Problem(
                at,
                "throughput tests alone with compare",
                test.name,
                "measure it in a plan of its own: only throughputs are compared",
                on_key=True,
                involves=(("compare",),),
            )


def unserved_tests(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find tests that none of the plan's stacks can serve: they would have no case, and nobody would notice."""
    stacks = [StackChoice(stack="plain"), *resolved.plan.stacks]
    if any(not choice.facts for choice in stacks):
        return  # an unknown stack has a message of its own
    for index, test in enumerate(resolved.plan.tests):
        settings = test.settings
        if isinstance(settings, AroundTrials) and not any(map(settings.applies_to, stacks)):
            yield Problem(
                ("tests", index, test.name),
                f"a stack that {test.name} can measure: {' or '.join(settings.stacks_served())}",
                ", ".join(choice.shown for choice in resolved.plan.stacks) or "none",
                "add one to stacks, or remove the test",
                on_key=True,
                involves=(("stacks",),),
            )


def unfit_tests(
    plan: Plan, expected: Mapping[str, str], remedy: str, key: str = "topology", got: str = ""
) -> Iterator[Problem]:
    """Find the plan's tests that its value of `key` excludes.

    `expected` says, by the name of each excluded test, what would be allowed. `got` is the test's name if not given.
    """
    for index, test in enumerate(plan.tests):
        if test.name in expected:
            yield Problem(
                ("tests", index, test.name),
                expected[test.name],
                got or test.name,
                remedy,
                on_key=True,
                involves=((key,),),
            )
