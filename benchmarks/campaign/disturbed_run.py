# SPDX-License-Identifier: Apache-2.0
"""Runs `espbench` unchanged, except that it disturbs its own gateways or clocks, which no other process can reach.

    python -m campaign.disturbed_run run plan.yaml --out runs

The environment variable DISTURB defines the disturbance in JSON: {"what": …, "seed": a number}. what is one of

daemon          after its stack was made, a gateway's IKE daemon is stopped twice for some time, then killed or stopped
gateway-clock   the clock of a User-Mode Linux guest steps three times after its stack was made
tester-clock    a trial's record reports a step of this machine's clock; the clock itself is never touched

Each disturbance is announced before it happens, by a line of JSON in the file that the environment variable
DISTURBANCES names (announcements.py). The pair's number is 0 for the tester.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from campaign import announcements
from espbench.cli.main import main
from espbench.generators.base import Offered, Stream
from espbench.generators.native import NativeGenerator
from espbench.plan import Case
from espbench.platforms.base import SIDES, Gateway, Side, Testbed
from espbench.runs.beds import Beds
from espbench.stacks.base import Stack

ASKED: dict[str, Any] = json.loads(os.environ.get("DISTURB", '{"what": "", "seed": 0}'))
RANDOM = random.Random(ASKED["seed"])
PAIRS: list[str] = []  # for each pair of gateways, the case for which it was made
# The latest time of a disturbance, s after the stack was made: daemons start, negotiate, and carry some trials.
LATEST_S = 6.0
OF_A_PAIR = 3
KILLED = 0.8  # the share of pairs whose last disturbance kills the daemon
STOPS_S = (0.05, 3.0)
STEPS_S = (0.002, 0.5, 60.0, 86_400.0)
TRIALS_STEPPED = 0.3
# The script signals only the daemons of this gateway: those in its network namespace or guest.
_SIGNAL = """\
own=$(readlink /proc/self/ns/net)
for p in /proc/[0-9]*; do
  name=$(cat $p/comm 2>/dev/null)
  case "$name" in
    charon|pluto) [ "$(readlink $p/ns/net)" = "$own" ] && kill -{signal} ${{p#/proc/}};;
  esac
done
"""


def tell(after_s: float, what: str) -> None:
    """Announce a disturbance to the campaign, which reads the file."""
    announcements.write(
        Path(os.environ[announcements.VARIABLE]), announcements.Disturbance(len(PAIRS), after_s, what)
    )


def later(gateway: Gateway, after_s: float, script: str) -> None:
    """Have a shell in the gateway run a script after_s from now, whatever the controller does meanwhile."""
    background = f"(sleep {after_s:.3f}\n{script}) </dev/null >/dev/null 2>&1 &"
    gateway.run(["sh", "-c", background])


def moments() -> list[float]:
    """Return the random times at which a pair is disturbed, s after its stack was made, in order."""
    return sorted(RANDOM.uniform(0.0, LATEST_S) for _ in range(OF_A_PAIR))


def hit_daemon(bed: Testbed) -> None:
    """Stop the daemon of Home or of Office at random times; at the last one it may be killed instead.

    After a kill, later hits would not find the daemon.
    """
    times = moments()
    for after_s in times:
        side = RANDOM.choice(SIDES)
        if after_s == times[-1] and RANDOM.random() < KILLED:
            script, what = _SIGNAL.format(signal="KILL"), "killed"
        else:
            seconds = RANDOM.uniform(*STOPS_S)
            script = _SIGNAL.format(signal="STOP") + f"sleep {seconds:.3f}\n" + _SIGNAL.format(signal="CONT")
            what = f"stopped for {seconds:.2f} s"
        later(bed.gateways[side], after_s, script)
        tell(after_s, f"{side}'s daemon {what}")


def step_gateway_clock(bed: Testbed) -> None:
    """Step the clock of Home or Office at random times; gateways must be guests, which have clocks of their own."""
    for after_s in moments():
        _step(bed, RANDOM.choice(SIDES), after_s)


def _step(bed: Testbed, side: Side, after_s: float) -> None:
    gateway = bed.gateways[side]
    release = gateway.run(["uname", "-r"]).out.strip()
    if bed.platform != "uml" or release == os.uname().release:
        raise SystemExit(f"expected a guest with a kernel of its own, got {bed.platform}, Linux {release}")
    step_s = RANDOM.choice([-1, 1]) * max(1, int(RANDOM.choice(STEPS_S)))
    later(gateway, after_s, f"date -s @$(($(date +%s) + {step_s}))")
    tell(after_s, f"{side}'s clock {step_s:+d} s")


class _Stepped(NativeGenerator):
    """A generator that reports a step of the clock in its first trial, and in others at random."""

    has_stepped = False

    def offer(self, streams: list[Stream], duration_s: float, *rest: Any, **named: Any) -> Offered:
        offered = super().offer(streams, duration_s, *rest, **named)
        # Only trials have the argument noise; calibrations and learning frames do not, and have no line in the log.
        if "noise" in named and (RANDOM.random() < TRIALS_STEPPED or not self.has_stepped):
            self.has_stepped = True
            step_ns = int(1e9 * RANDOM.choice([-1, 1]) * RANDOM.choice(STEPS_S))
            tell(0, f"this machine's clock {step_ns / 1e9:+g} s")
            return offered.model_copy(update={"clock_step_ns": step_ns})
        return offered


def disturb() -> None:
    """Replace the function or class of espbench at which the disturbance begins."""
    if ASKED["what"] == "tester-clock":
        from espbench.generators import native  # noqa: PLC0415  (its attribute is replaced)

        native.NativeGenerator = _Stepped  # type: ignore[misc]
        return
    made = Beds.stack
    hit = {"daemon": hit_daemon, "gateway-clock": step_gateway_clock}[ASKED["what"]]

    def stack(lab: Beds, bed: Testbed, case: Case) -> Stack | None:
        stack = made(lab, bed, case)
        PAIRS.append(case.id)
        # The gateways of the baseline have no daemon.
        if ASKED["what"] != "daemon" or any(facts.ike for facts in case.stack.facts):
            hit(bed)
        return stack

    Beds.stack = stack  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    disturb()
    main()
