# SPDX-License-Identifier: Apache-2.0
"""ESP keyed by IKE: a daemon on each gateway negotiates, and the kernel's XFRM or the daemon itself does ESP."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from espbench.catalogue.certificate_keys import CERTIFICATE_KEYS, DEFAULT_KEY
from espbench.catalogue.suites import Suite
from espbench.platforms.base import SIDES, Gateway, Side, Testbed
from espbench.stacks import netlink_xfrm as xfrm
from espbench.stacks import policies, xfrm_devices
from espbench.stacks.base import SaCounters, Tunnel, both, own_sent
from espbench.stacks.daemons.daemon import Daemon, IkeOptions, NegotiationFailed, final_words
from espbench.stacks.read_back import lifetime_mismatches, policy_mismatches, sa_mismatches

INITIATE_S = 60.0
PER_TUNNEL_S = 0.1


class IkeStack:
    """Two daemons that negotiate with each other; ESP by the kernel's XFRM.

    espbench's own policies, which have a lower precedence than the daemons' policies, forbid cleartext. They stay when
    a tunnel goes down, so that no packet passes in clear.
    """

    encrypts = True

    def __init__(
        self,
        name: str,
        bed: Testbed,
        tunnel: Tunnel,
        suite: Suite,
        options: IkeOptions,
        daemons: dict[Side, Daemon],
    ) -> None:
        self.name = name
        self._bed = bed
        self._tunnel = tunnel
        self._suite = suite
        self._options = options
        self.daemons = daemons

    @property
    def options(self) -> IkeOptions:
        """The options that the daemons have now."""
        return self._options

    @property
    def tunnel(self) -> Tunnel:
        """The traffic that the daemons protect now."""
        return self._tunnel

    @property
    def sas(self) -> int:
        return 2 * self._options.tunnels

    def block(self) -> None:
        for gateway, _ in both(self._bed):
            self._block(gateway)

    def establish(self) -> None:
        """Start both daemons, then let Home initiate. Raise NegotiationFailed, which quotes both daemons."""
        self._start()
        self.initiate()

    def initiate(self) -> None:
        """Let Home bring every tunnel up; raise the errors of `establish`."""
        try:
            self.daemons["home"].initiate(INITIATE_S + PER_TUNNEL_S * self._options.tunnels)
        except NegotiationFailed as failure:
            theirs = self.daemons["office"].reason()
            raise NegotiationFailed(
                f"IKE failed; Home's {self.daemons['home'].name}: {failure or 'no reason given'}"
                + (f"; Office's {self.daemons['office'].name}: {theirs}" if theirs else ""),
                final=failure.final or final_words(theirs),
            ) from None

    def reconfigure(self, options: IkeOptions, tunnel: Tunnel) -> None:
        """Restart both daemons with these options and the tunnels of `tunnel`; afterwards no tunnel is up."""
        for side in SIDES:
            self.daemons[side].stop(suddenly=True)
        self._ask_for(options, tunnel)
        self.block()
        self._start()

    def restore(self, options: IkeOptions, tunnel: Tunnel) -> None:
        """Restore these options after a trial with others, and bring the tunnels up.

        In virtual time the next trial begins in the state before that trial, so the gateways are not touched.
        """
        if self._bed.virtual_time:
            self._ask_for(options, tunnel)
        else:
            self.reconfigure(options, tunnel)
            self.initiate()

    def start(self, side: Side) -> None:
        """Start one gateway's daemon, so that it answers its peer, with cleartext blocked.

        Since libreswan 5, pluto deletes all policies of the kernel when it starts and when it ends. So espbench
        installs its own policies again before pluto has a connection.
        """
        self.daemons[side].start()
        gateway = self._bed.gateways[side]
        held = set(policies.dump_policies(gateway))
        gone = [policy for policy in self._floor(side) if xfrm.reading_of(policy) not in held]
        policies.install(gateway, gone)
        self.daemons[side].load()

    def guard(self, side: Side) -> None:
        """Block cleartext on a gateway that was switched off and on, before it routes again."""
        policies.install(self._bed.gateways[side], policies.floor(side, self._tunnel))

    def revive(self, side: Side) -> None:
        """Restore a gateway that was switched off and on, and guarded: lay the daemon's files, and start it.

        Traffic flows meanwhile. So the policies of `guard` stay until the traffic is routed to the XFRM interface, if
        there is one; without policies the interface lets nothing pass.
        """
        self.daemons[side].install()
        gateway = self._bed.gateways[side]
        if self._options.interface:
            xfrm_devices.route_through_interface(gateway, policies.SideView.of(side, self._tunnel))
            policies.flush(gateway)
            policies.install(gateway, self._floor(side))
        self.start(side)

    def flush_sas(self, side: Side) -> None:
        """Delete the ESP SAs of one gateway's kernel, without its daemon's knowledge; policies stay."""
        policies.flush_sas(self._bed.gateways[side])

    def counters(self, side: Side) -> SaCounters:
        gateway = self._bed.gateways[side]
        counts = policies.sa_counters(gateway, self._own(side))
        return replace(counts, own_datagrams=own_sent(gateway))

    def dead(self) -> list[str]:
        """Return a sentence for each daemon that does not run any more, with the last lines of its log."""
        return [
            f"{side}: {daemon.name} has died" + (f": {words}" if (words := daemon.reason()) else "")
            for side, daemon in self.daemons.items()
            if not daemon.alive()
        ]

    def rest(self) -> None:
        """Do nothing: the kernel's ESP keeps no state of a trial."""

    def security_context(self) -> dict[str, Any]:
        context = self._common()
        mismatches: list[str] = []
        for gateway, _ in both(self._bed):
            reading = self.daemons[gateway.side].reading()
            entries, problems = self._esp_of(gateway.side)
            context[gateway.side] = {
                "daemon": reading.version,
                "ike": reading.ike,
                **reading.details,
                **entries,
            }
            mismatches += [f"{gateway.side}: {m}" for m in (*reading.mismatches, *problems)]
            if reading.tunnels_up != self._options.tunnels:
                mismatches.append(
                    f"{gateway.side}: {self._options.tunnels} tunnels asked for, {reading.tunnels_up} are up"
                )
        context["mismatches"] = mismatches
        context["stack_version"] = {side: context[side]["daemon"] for side in ("home", "office")}
        return context

    def secrets(self) -> list[dict[str, Any]]:
        """Return the SAs with the keys that the kernel has, because the daemons do not reveal theirs."""
        return policies.sa_secrets(self._bed.gateways["home"], self._suite.name)

    def _block(self, gateway: Gateway) -> None:
        policies.flush(gateway)
        if self._options.interface:
            view = policies.SideView.of(gateway.side, self._tunnel)
            xfrm_devices.route_through_interface(gateway, view)
        policies.install(gateway, self._floor(gateway.side))

    def _ask_for(self, options: IkeOptions, tunnel: Tunnel) -> None:
        """Set the options and tunnels that the daemons configure at their next start."""
        self._options, self._tunnel = replace(options, tunnels=len(tunnel.pairs)), tunnel
        for side, daemon in self.daemons.items():
            pairs = tuple((a, b) if side == "home" else (b, a) for a, b in tunnel.pairs)
            daemon.end = replace(daemon.end, options=self._options, tunnels=pairs)

    def _start(self) -> None:
        for side in ("office", "home"):
            self.start(side)

    def _common(self) -> dict[str, Any]:
        o = self._options
        return {
            "protocol": "ESP" + (" in UDP" if o.udp_encapsulation else ""),
            "keying": f"IKEv2, {_keying(o)}, {'of a seed' if self._bed.virtual_time else 'new for each pair'}",
            "mode": "tunnel",
            "based on": f"routes to an XFRM interface (if_id {o.interface_id})"
            if o.interface_id
            else "policies",
            "ip_version": self._tunnel.ip_version,
            "tunnels": self._options.tunnels,
            "selectors": f"{self._tunnel.west} ↔ {self._tunnel.east}",
            "ike proposal asked for": o.ike,
            "lifetime": _lifetime(o),
            "cleartext": "blocked by policies of lowest precedence, which stay when a tunnel goes down",
        }

    def _esp_of(self, side: Side) -> tuple[dict[str, Any], list[str]]:
        """Return the kernel's SAs and policies of one gateway, and their differences from the plan."""
        gateway, own = self._bed.gateways[side], self._own(side)
        sas, held = policies.dump_sas(gateway), policies.dump_policies(gateway)
        problems = []
        for sa in sas:
            inbound = sa.destination == own
            problems += sa_mismatches(sa, self._suite, self._options, inbound=inbound, by_daemon=True)
            if side == "home" and self._options.lifetime_bytes:
                problems += lifetime_mismatches(sa, self._options.lifetime_bytes)
        if len(sas) != self.sas:
            problems.append(f"expected {self.sas} SAs, the kernel has {len(sas)}")
        wanted = policies.protecting(side, self._tunnel, interface_id=self._options.interface_id)
        problems += policy_mismatches([*wanted, *self._floor(side)], held, by_daemon=True)
        if self._options.interface:
            view = policies.SideView.of(side, self._tunnel)
            problems += xfrm_devices.routed_wrongly(gateway, view, xfrm_devices.XFRM_DEVICE)
        entries = policies.sa_entries(sas) | {"policies": policies.policy_entries(held)}
        return entries, policies.few(problems)

    def _floor(self, side: Side) -> list[xfrm.Policy]:
        return policies.floor(side, self._tunnel, interface_id=self._options.interface_id)

    def _own(self, side: Side) -> str:
        return self._tunnel.home if side == "home" else self._tunnel.office


def _lifetime(options: IkeOptions) -> str:
    """Return as text the limits that end an ESP SA, whichever comes first (RFC 4301 4.4.2.1)."""
    rekeyed = [f"{options.lifetime_s:g} s"] if options.lifetime_s else []
    if options.lifetime_bytes:
        rekeyed.append(f"{options.lifetime_bytes} bytes of IP packets")
    words = " or ".join(rekeyed) or "no rekeying"
    if options.idle_s:
        words += f"; deleted after {options.idle_s:g} s without traffic, which brings it up again"
    return words


def _keying(options: IkeOptions) -> str:
    if options.auth == "psk":
        return "PSK"
    # Earlier versions had only the default kind. Its text has not changed, so that records can be compared.
    usual = options.certificate == DEFAULT_KEY
    return f"{'RSA' if usual else CERTIFICATE_KEYS[options.certificate].shown} certificates"
