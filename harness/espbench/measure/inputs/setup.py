# SPDX-License-Identifier: Apache-2.0
"""Defines what a trial needs: the test set-up, the request for the trial, and its waits."""

from __future__ import annotations

from dataclasses import dataclass, field

from espbench.errors import EspbenchError
from espbench.generators.base import Generator, Noise, Stream
from espbench.measure.inputs.actions import ActionFailed
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.inputs.usual_speed import UsualSpeed
from espbench.platforms.base import PortName, Testbed, TrialClock
from espbench.sentences import Code
from espbench.stacks.base import Stack
from espbench.terms import Phase


@dataclass(frozen=True)
class Waits:
    """The waits of RFC 2544 23, in seconds: after learning frames, for the residue, and before the next trial."""

    learning_s: float = 2.0
    residue_s: float = 2.0
    settle_s: float = 5.0

    def recorded(self, *, cold: bool = False) -> dict[str, float | None]:
        """Return the waits as a trial's record has them; a cold trial has no learning frames."""
        return {
            "learning": None if cold else self.learning_s,
            "residue": self.residue_s,
            "settle": self.settle_s,
        }


@dataclass(frozen=True)
class Shape:
    """The shape of a trial's load, if the load is not steady; times in seconds from its start.

    steps: (time, share of the load): from this time on the rate is that share of the load. burst_frames: the number
    of frames in each direction, sent at the load. tag_at_s: the latency of the first frame after this time is
    recorded. noise: an attack together with the streams. cold: no learning frames are sent, because they would bring
    up tunnels too early; then SAs may be missing before the trial, as with an action that upsets.
    """

    steps: tuple[tuple[float, float], ...] = ()
    burst_frames: int | None = None
    tag_at_s: float | None = None
    noise: tuple[Noise, ...] = ()
    cold: bool = False


@dataclass(frozen=True)
class Request:
    """A request for a trial, from a search or another test.

    as_offered: the trial counts for the load that was offered, as in a search. Then a trial that took longer than
    intended is not void. bus: the record shall have the bytes that boards moved over their memory's buses. paired: the
    trial only counts together with one of another arm, so CPUs slower than usual do not void it.
    """

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int = 0
    shape: Shape = Shape()
    as_offered: bool = False
    bus: bool = False
    paired: bool = False

    @property
    def counts_as_offered(self) -> bool:
        """Return whether the trial is evidence for the offered load, whatever the intended load was."""
        return self.as_offered or self.phase != "measure"


@dataclass
class Setup:
    """A test set-up (RFC 2544 6): a test bed with its stack and the generator that loads it; ready for trials."""

    bed: Testbed
    generator: Generator
    stack: Stack | None
    next_hops: dict[PortName, str]
    peer: EspPeer | None = None  # the tester as the end of the tunnels, once they are up
    usual_speed: UsualSpeed = field(default_factory=UsualSpeed)  # of the gateways' CPUs, in this run
    # The first speed of each of the tester's ports in this run: (namespace, interface) → bit/s.
    link_speeds: dict[tuple[str | None, str], float] = field(default_factory=dict)

    @property
    def trial_clock(self) -> TrialClock | None:
        """The clock of virtual time; None in real time."""
        if self.bed.virtual_time and isinstance(self.generator, TrialClock):
            return self.generator
        return None

    def streams(self, traffic: Traffic, load_fps: float | None) -> list[Stream]:
        """Return the streams of the case's traffic, with ESP where the tester is the end of the tunnels."""
        streams = traffic.streams(self.bed, self.next_hops, load_fps)
        return self.peer.through(streams) if self.peer else streams

    @property
    def encrypts(self) -> bool:
        """True if the stack encrypts."""
        return self.stack is not None and self.stack.encrypts


class TrialBroken(EspbenchError):
    """A gateway or the generator died during the trial: the trial is void, and the test bed must be rebuilt."""

    def __init__(self, text: str, code: Code = Code.BROKEN) -> None:
        super().__init__(text)
        self.code = code


def blame(setup: Setup, error: EspbenchError, when: str = "during the trial") -> tuple[str, Code]:
    """Return the cause of an error and its code: a gateway that died, with its last words, or else the error itself."""
    if isinstance(error, ActionFailed):
        return str(error), error.code
    for side, gateway in setup.bed.gateways.items():
        if not gateway.alive():
            words = gateway.last_words().strip()
            died = f"gateway {side} died {when}"
            return died + (f"; its last words:\n{words}" if words else ""), Code.GATEWAY_DIED
    return str(error), error.code
