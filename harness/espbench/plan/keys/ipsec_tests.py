# SPDX-License-Identifier: Apache-2.0
"""The settings of the IPsec tests (draft-ietf-bmwg-ipsec-meth-05). The defaults are what the draft asks for.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from espbench.plan.keys.rfc2544_tests import AroundTrials, AtThroughput
from espbench.plan.keys.stack_choice import Lifetime, StackChoice
from espbench.plan.keys.values import Duration, Octets, PlanRate, TrialDuration
from espbench.plan.reading.units import Rate

AttackKind = Literal["ike-flood", "bad-icv", "replay"]
ResetKind = Literal["daemon", "sa-flush", "power"]
GatewayName = Literal["home", "office"]


def _negotiates(stack: StackChoice) -> bool:
    """Return whether IKE daemons negotiate the keys of the kernel's ESP on both gateways."""
    return bool(stack.facts) and all(facts.ike and facts.kernel_esp for facts in stack.facts)


def _kernel_esp(stack: StackChoice) -> bool:
    return bool(stack.facts) and all(facts.kernel_esp for facts in stack.facts)


class _OfIke(AroundTrials):
    """A test of IKE itself: one case for a pair of gateways, for stacks that negotiate."""

    of_rfc2544: ClassVar[bool] = False
    per_pair: ClassVar[bool] = True

    def applies_to(self, stack: StackChoice) -> bool:
        return _negotiates(stack)


class FirstPacket(AtThroughput):
    """Time to first packet (ipsec-meth 10.5): traffic that finds no SA triggers the tunnel."""

    of_rfc2544: ClassVar[bool] = False
    keys_are: ClassVar[str] = "a key of a time_to_first_packet test"

    trial: TrialDuration = 10.0
    """The time for which traffic flows; the first frame must have arrived by then."""
    idle: Lifetime = 0.0
    """Idle timeout of the SAs (strongswan): the tunnel was up, and its SAs were deleted after this time without
    traffic.

    0: the daemons were just started.
    """
    repeats: Annotated[int, Field(ge=1, le=1000)] = 20
    """Number of trials, each with newly started daemons."""

    def applies_to(self, stack: StackChoice) -> bool:
        return _negotiates(stack)


class RekeyLoss(AtThroughput):
    """Frame loss while phase 2 is rekeyed (ipsec-meth 11.5)."""

    of_rfc2544: ClassVar[bool] = False
    keys_are: ClassVar[str] = "a key of a rekey_loss test"

    trial: TrialDuration = 60.0
    """Length of the trial, at least two lifetimes."""
    lifetime: Duration | None = None
    """Lifetime of the ESP SAs, whole seconds. Default: a third of the trial, as the draft asks."""
    lifetime_bytes: Octets = 0
    """Lifetime of the ESP SAs in bytes of IP packets instead; 0: in seconds."""

    def applies_to(self, stack: StackChoice) -> bool:
        return _negotiates(stack)

    @property
    def lifetime_s(self) -> float:
        """The plan's lifetime, or a third of the trial, in whole seconds; 0 if the lifetime is in bytes."""
        if self.lifetime_bytes:
            return 0.0
        return float(max(1, int(self.lifetime if self.lifetime is not None else self.trial / 3)))


class SetUpRate(_OfIke):
    """Set-up rates of tunnels, phase 1 and phase 2 (ipsec-meth 12.1 to 12.3), and their upper bound."""

    keys_are: ClassVar[str] = "a key of a set_up_rate test"

    tunnels: Annotated[int, Field(ge=1, le=1000)] = 100
    """The number of tunnels to set up; the draft asks for 100 or more."""
    together: bool = False
    """Start all at once. The draft starts each one when the one before is up."""
    public_key: bool = True
    """Measure the public-key operations of a set-up on both gateways, to bound the rate."""


class RekeyRate(_OfIke):
    """Rekey rates of phase 1 and phase 2 (ipsec-meth 13.1, 13.2): many SAs expire together, repeatedly."""

    keys_are: ClassVar[str] = "a key of a rekey_rate test"

    tunnels: Annotated[int, Field(ge=1, le=1000)] = 100
    """Number of SAs of each phase."""
    lifetime: TrialDuration = 30.0
    """Lifetime of the SAs under test, whole seconds."""
    lifetimes: Annotated[int, Field(ge=2, le=1000)] = 2
    """The number of lifetimes that the test lasts; the draft asks for two or more."""

    @property
    def longest_s(self) -> float:
        """The duration of both phases, one after the other, s."""
        return 2 * (self.lifetimes + 1) * self.lifetime


class Capacity(_OfIke):
    """Tunnel or SA capacity (ipsec-meth 8.1, 8.2): tunnels are added until one more is refused."""

    keys_are: ClassVar[str] = "a key of a capacity test"

    of: Literal["tunnels", "sas"] = "tunnels"
    """tunnels: each with an IKE SA of its own. sas: CHILD SAs under one IKE SA."""
    limit: Annotated[int, Field(ge=1, le=1000)] = 1000
    """The highest number that is tried."""
    step: Annotated[int, Field(ge=1, le=1000)] = 50
    """The number of tunnels to add at a time; then all must carry traffic."""
    trial: TrialDuration = 30.0
    """The longest time for a step."""


class _Outage(AroundTrials):
    """A test that interrupts traffic by an outage, and waits until traffic flows again."""

    per_pair: ClassVar[bool] = True

    load: PlanRate = Rate(1000.0, "fps")
    """The load, per direction. The interval between its frames is the precision of the measured time."""
    trial: TrialDuration = 30.0
    """Length of a trial; traffic must flow again before its end."""
    at: Duration = 3.0
    """The beginning of the outage, from the beginning of the trial."""
    repeats: Annotated[int, Field(ge=1, le=1000)] = 3
    """Number of trials."""
    dpd: Duration = 2.0
    """The time without traffic until Home checks that its peer is alive (RFC 7296 2.4), whole seconds; 0: never."""


class Failover(_Outage):
    """Tunnel failover time (ipsec-meth 14): Office's IPsec is killed, and a standby replaces it."""

    of_rfc2544: ClassVar[bool] = False
    keys_are: ClassVar[str] = "a key of a failover test"

    dead: Duration = 1.0
    """Time between the failure of Office and the start of the standby, which has no SA."""

    def applies_to(self, stack: StackChoice) -> bool:
        return _negotiates(stack)


class Reset(_Outage):
    """Reset (RFC 2544 26.6, RFC 6201) of the daemon, the SAs, or the gateway."""

    keys_are: ClassVar[str] = "a key of a reset test"

    what: ResetKind = "daemon"
    """daemon: stopped and started. sa-flush: its kernel's SAs deleted. power: the gateway off and on (uml, virt-x86,
    or remote boxes with labgrid)."""
    gateway: GatewayName = "home"
    """The gateway that is reset."""

    def applies_to(self, stack: StackChoice) -> bool:
        return _negotiates(stack)


class Attack(AtThroughput):
    """Under attack (ipsec-meth 15.1 to 15.3): how much legitimate traffic is still forwarded, and the CPU cost."""

    of_rfc2544: ClassVar[bool] = False
    keys_are: ClassVar[str] = "a key of an attack test"

    kind: AttackKind = "bad-icv"
    """ike-flood: IKE_SA_INIT from many addresses. bad-icv: forged ESP. replay: ESP that was sent before."""
    rates: Annotated[list[PlanRate], Field(min_length=1)] = Field(
        default_factory=lambda: [Rate(1000.0, "fps"), Rate(10_000.0, "fps")],
        json_schema_extra={"default": ["1000fps", "10000fps"]},
    )
    """Rates of the attack; one trial for each, after a trial without attack, from the slowest to the fastest."""
    trial: TrialDuration = 60.0
    """Length of a trial."""

    def applies_to(self, stack: StackChoice) -> bool:
        if self.kind == "ike-flood":
            return _negotiates(stack)
        # NULL/NULL has no ICV that could be wrong.
        return _kernel_esp(stack) and not (self.kind == "bad-icv" and stack.kind == "null")


class PublicKey(AroundTrials):
    """Speed of public-key operations on both gateways, the upper bound of every set-up rate."""

    of_rfc2544: ClassVar[bool] = False
    keys_are: ClassVar[str] = "a key of a public_key test"
    per_pair: ClassVar[bool] = True

    trial: TrialDuration = 1.0
    """The time for which each operation is repeated, whole seconds."""

    def applies_to(self, stack: StackChoice) -> bool:
        # The gateways' CPUs are the same with all stacks, and the baseline is always measured.
        return stack.kind == "plain"
