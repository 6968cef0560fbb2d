# SPDX-License-Identifier: Apache-2.0
"""`espbench` as it is, but that it disturbs its own gateways or clocks: what no other process can reach.

    python -m campaign.disturbed_run run plan.yaml --out runs

The environment's DISTURB, JSON, says how: {"what": …, "seed": a number}. what is one of

daemon          a gateway's IKE daemon is stopped twice for some time, then killed or stopped, after its stack was made
gateway-clock   the clock of a User-Mode Linux guest steps three times after its stack was made
tester-clock    a trial's record says that this machine's clock stepped meanwhile: that clock itself is never touched

Each disturbance is a line of JSON in the file that the environment's DISTURBANCES names (told.py), told before it
happens; of the tester, the pair is 0.
"""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

from campaign import told
from espbench.cli.main import main
from espbench.generators.base import Offered, Stream
from espbench.generators.native import NativeGenerator
from espbench.plan import Case
from espbench.platforms.base import SIDES, Gateway, Side, Testbed
from espbench.runs.beds import Beds
from espbench.stacks.base import Stack

ASKED: dict[str, Any] = json.loads(os.environ.get("DISTURB", '{"what": "", "seed": 0}'))
RANDOM = random.Random(ASKED["seed"])
PAIRS: list[str] = []  # the case for which each was made
# Moments count from the stack's making on: its daemons start, negotiate, and carry some trials.
LATEST_S = 6.0
OF_A_PAIR = 3
KILLED = 0.8  # of the last moments
STOPS_S = (0.05, 3.0)
STEPS_S = (0.002, 0.5, 60.0, 86_400.0)
TRIALS_STEPPED = 0.3
# Only those of this gateway: of its network namespace, or guest.
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
    """Write a line for who watches."""
    told.write(Path(os.environ[told.VARIABLE]), told.Disturbance(len(PAIRS), after_s, what))


def later(gateway: Gateway, after_s: float, script: str) -> None:
    """A shell in the gateway runs it, so long from now, whatever the controller does."""
    background = f"(sleep {after_s:.3f}\n{script}) </dev/null >/dev/null 2>&1 &"
    gateway.run(["sh", "-c", background])


def moments() -> list[float]:
    """Return the times at which a pair is disturbed, s after its stack was made, in order."""
    return sorted(RANDOM.uniform(0.0, LATEST_S) for _ in range(OF_A_PAIR))


def hit_daemon(bed: Testbed) -> None:
    """Hit the daemon of Home or of Office; kill one, if at all, at the last moment: later hits would not find it."""
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
    """Never of a namespace: its clock is this machine's."""
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
    """Its first trial, and others now and then, tell of a step of the clock, as one that has seen it would."""

    has_stepped = False

    def offer(self, streams: list[Stream], duration_s: float, *rest: Any, **named: Any) -> Offered:
        offered = super().offer(streams, duration_s, *rest, **named)
        # Calibration and learning frames have no noise to be told of, and no line in the log.
        if "noise" in named and (RANDOM.random() < TRIALS_STEPPED or not self.has_stepped):
            self.has_stepped = True
            step_ns = int(1e9 * RANDOM.choice([-1, 1]) * RANDOM.choice(STEPS_S))
            tell(0, f"this machine's clock {step_ns / 1e9:+g} s")
            return offered.model_copy(update={"clock_step_ns": step_ns})
        return offered


def disturb() -> None:
    """Put the disturbance in the way of what espbench does."""
    if ASKED["what"] == "tester-clock":
        from espbench.generators import native  # noqa: PLC0415  (its name is what is replaced)

        native.NativeGenerator = _Stepped  # type: ignore[misc]
        return
    made = Beds.stack
    hit = {"daemon": hit_daemon, "gateway-clock": step_gateway_clock}[ASKED["what"]]

    def stack(lab: Beds, bed: Testbed, case: Case) -> Stack | None:
        stack = made(lab, bed, case)
        PAIRS.append(case.id)
        # The baseline's pair has no daemon.
        if ASKED["what"] != "daemon" or any(facts.ike for facts in case.stack.facts):
            hit(bed)
        return stack

    Beds.stack = stack  # type: ignore[assignment, method-assign]


if __name__ == "__main__":
    disturb()
    main()
