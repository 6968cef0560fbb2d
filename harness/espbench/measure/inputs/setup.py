# SPDX-License-Identifier: Apache-2.0
"""Defines what a trial is measured with and what is asked of it: the test set-up, the request, the waits."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.errors import EspbenchError
from espbench.generators.base import Generator, Noise, Stream
from espbench.measure.inputs.actions import ActionFailed
from espbench.measure.inputs.esp_peer import EspPeer
from espbench.measure.inputs.traffic import Traffic
from espbench.platforms.base import PortName, Testbed, TrialClock
from espbench.sentences import Code
from espbench.stacks.base import Stack
from espbench.terms import Phase


@dataclass(frozen=True)
class Waits:
    """RFC 2544 23, seconds: after learning frames, for the residue, before the next trial."""

    learning_s: float = 2.0
    residue_s: float = 2.0
    settle_s: float = 5.0

    def recorded(self, *, cold: bool = False) -> dict[str, float | None]:
        """Return them as a trial's record has them; a cold trial has no learning frames."""
        return {
            "learning": None if cold else self.learning_s,
            "residue": self.residue_s,
            "settle": self.settle_s,
        }


@dataclass(frozen=True)
class Shape:
    """The ways in which a trial's load is not steady; times from its start, s.

    steps: (time, share of the load): from then on the load is that share. burst_frames: so many frames in each
    direction at the load, and no more. tag_at_s: the first frame after this time has its latency recorded.
    noise: an attack beside the streams. cold: no learning frames are sent, since they would bring up tunnels before
    their time; then SAs may be missing before the trial, as with an action that upsets.
    """

    steps: tuple[tuple[float, float], ...] = ()
    burst_frames: int | None = None
    tag_at_s: float | None = None
    noise: tuple[Noise, ...] = ()
    cold: bool = False


@dataclass(frozen=True)
class Request:
    """A trial that a search or another test asks for.

    as_offered: the test uses the trial for the load that was offered, as searches do. Then a trial that took longer
    than planned is not void. bus: the record has what boards moved over their memory's buses.
    """

    load_fps: float
    duration_s: float
    phase: Phase
    attempt: int = 0
    shape: Shape = Shape()
    as_offered: bool = False
    bus: bool = False

    @property
    def counts_as_offered(self) -> bool:
        """Return whether the trial is evidence for the load that was offered, whatever was asked for."""
        return self.as_offered or self.phase != "measure"


@dataclass
class Setup:
    """A test set-up (RFC 2544 6): a test bed with its stack and the generator that loads it; ready for trials."""

    bed: Testbed
    generator: Generator
    stack: Stack | None
    next_hops: dict[PortName, str]
    peer: EspPeer | None = None  # the tester as the end of the tunnels, once they are up

    @property
    def trial_clock(self) -> TrialClock | None:
        """Return the clock of virtual time; None where time is real."""
        if self.bed.virtual_time and isinstance(self.generator, TrialClock):
            return self.generator
        return None

    def streams(self, traffic: Traffic, load_fps: float | None) -> list[Stream]:
        """Return the case's streams, as ESP where the tester is the end of the tunnels."""
        streams = traffic.streams(self.bed, self.next_hops, load_fps)
        return self.peer.through(streams) if self.peer else streams

    @property
    def encrypts(self) -> bool:
        return self.stack is not None and self.stack.encrypts


class TrialBroken(EspbenchError):
    """A gateway or the generator died in mid-trial: the trial is void, the test bed must be rebuilt."""

    def __init__(self, text: str, code: Code = Code.BROKEN) -> None:
        super().__init__(text)
        self.code = code


def blame(setup: Setup, error: EspbenchError, when: str = "during the trial") -> tuple[str, Code]:
    """Return the error of a gateway that died, with its last words; if no gateway died, return the error itself."""
    if isinstance(error, ActionFailed):
        return str(error), error.code
    for side, gateway in setup.bed.gateways.items():
        if not gateway.alive():
            words = gateway.last_words().strip()
            died = f"gateway {side} died {when}"
            return died + (f"; its last words:\n{words}" if words else ""), Code.GATEWAY_DIED
    return str(error), error.code
