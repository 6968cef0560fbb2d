# SPDX-License-Identifier: Apache-2.0
"""The settings of RFC 2544's tests other than throughput (26.2 to 26.6). The defaults are what the standard asks
for.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from espbench.catalogue.stack_names import STACKS
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.keys.values import Duration, LossGoal, PlanRate, Share, TrialDuration, Wait
from espbench.plan.reading.reader import Strict


class AroundTrials(Strict):
    """The settings of everything around the trials of a test (RFC 2544 23)."""

    # True if the test has only one case for a pair of gateways, whatever the plan's frame sizes and
    # directions are.
    per_pair: ClassVar[bool] = False
    # True if RFC 2544 has this test. The results of other tests cannot claim to keep its clauses.
    of_rfc2544: ClassVar[bool] = True

    settle: Duration = 5.0
    """Wait before the next trial (RFC 2544 23 e: at least 5 s)."""
    residue: Wait = 2.0
    """Wait for late frames after sending (RFC 2544 23 d: 2 s)."""
    warm_up: Duration = 2.0
    """Length of the traffic before the first trial of a case; its loss does not count."""
    learning: Duration = 2.0
    """Wait after the learning frames that precede each trial (RFC 2544 23 b: 2 s)."""
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    """Times that an INVALID trial is repeated before the load is given up, at most 20."""

    def applies_to(self, stack: StackChoice) -> bool:
        """Return whether the test can measure anything with this stack; if not, the plan has no such case."""
        return True

    def stacks_served(self) -> list[str]:
        """Return the names of the stacks that the test applies to, with their default options."""
        return [name for name in STACKS if self.applies_to(StackChoice(stack=name))]

    @property
    def longest_s(self) -> float:
        """The longest time for which traffic may flow without a pause, s; no SA should expire within it."""
        return float(getattr(self, "trial", 0.0))


class AtThroughput(AroundTrials):
    """A test at the throughput that an earlier test of the run measured, or at a load of the plan."""

    loss_goal: LossGoal = 0.0
    """The loss goal of the throughput that is used as the load."""
    load: PlanRate | None = None
    """The load, per direction. Default: the throughput at the same point, of the last throughput test before this one
    that has the goal."""


class Latency(AtThroughput):
    """Latency (RFC 2544 26.2): of a tagged frame in a stream at the throughput, repeated; and of all frames."""

    keys_are: ClassVar[str] = "a key of a latency test"

    trial: TrialDuration = 120.0
    """Length of the stream; RFC 2544 asks for 120 s."""
    tag_at: Duration | None = None
    """The time at which the tagged frame leaves. Default: half of the trial; RFC 2544 asks for 60 s."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 20
    """Number of trials for the mean; RFC 2544 asks for 20."""


class FrameLoss(AroundTrials):
    """Frame loss rate (RFC 2544 26.3): from the maximum rate down, until two rates in a row lose nothing."""

    keys_are: ClassVar[str] = "a key of a frame_loss test"

    trial: TrialDuration = 60.0
    """Length of a trial."""
    step: Share = 0.1
    """The step from one rate to the next lower one, as a share of the maximum; RFC 2544 allows up to 10 %."""
    maximum: PlanRate | None = None
    """The first rate, per direction. Default: the line rate if the tester reaches it, else 90 % of the ceiling."""


class Flood(AroundTrials):
    """Forwarding rate at the highest load of the line or the tester, compared with the throughput."""

    keys_are: ClassVar[str] = "a key of a flood test"
    of_rfc2544: ClassVar[bool] = False  # the standard has no such test

    trial: TrialDuration = 60.0
    """Length of the trial."""
    loss_goal: LossGoal = 0.0
    """The loss goal of the throughput with which the forwarding rate is compared."""
    maximum: PlanRate | None = None
    """The load, per direction. Default: the line rate if the tester reaches it, else 90 % of the ceiling."""


class BackToBack(AroundTrials):
    """Back-to-back frames (RFC 2544 26.4, RFC 9004): the longest burst at line rate without loss."""

    keys_are: ClassVar[str] = "a key of a back_to_back test"

    searches: Annotated[int, Field(ge=1, le=1000)] = 50
    """Number of searches; RFC 2544 asks for 50."""
    longest: TrialDuration = 2.0
    """The longest burst tried; RFC 2544 asks for 2 s."""
    maximum: PlanRate | None = None
    """Rate of the bursts, per direction. Default: the line rate if the tester reaches it, else 90 % of the ceiling."""
    loss_goal: LossGoal = 0.0
    """The loss goal of the throughput that decides which sizes are searched: those below the rate of the bursts."""


class SystemRecovery(AtThroughput):
    """System recovery (RFC 2544 26.5): after an overload drops to half, the time until the last lost frame."""

    keys_are: ClassVar[str] = "a key of a system_recovery test"

    overload: TrialDuration = 60.0
    """The duration of the overload; RFC 2544 asks for 60 s at 110 % of the throughput."""
    recovery: TrialDuration = 60.0
    """The duration of the reduced load."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 5
    """Number of trials for the mean."""

    @property
    def longest_s(self) -> float:
        """The duration of overload and recovery, s."""
        return self.overload + self.recovery
