# SPDX-License-Identifier: Apache-2.0
"""Makes the test set-ups of a run: builds gateways, attaches the generator, and brings up and verifies the stack."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from espbench.errors import CannotWrite, EspbenchError, Interrupted, MachineLacks, UsageError
from espbench.generators.base import Generator, OpenedPort, WirePath, paths_in_words
from espbench.measure.inputs.setup import Setup, blame
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.inputs.usual_speed import UsualSpeed
from espbench.measure.proof import decryption, readiness
from espbench.measure.validity import network_events
from espbench.plan.resolved.cases import Case
from espbench.plan.resolved.resolved_plan import ResolvedPlan
from espbench.plan.traffic.traffic_profiles import rfc2544_frame
from espbench.platforms.base import BUILD, EMULATION, EMULATOR, Port, PortName, Testbed
from espbench.runs.beds import Beds
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.terms import SHOWN_BEFORE, Manifest
from espbench.this_machine import interfaces


class Notebook(Protocol):
    """The parts of a run directory that set-ups use: the logs, and the manifest with its updates."""

    @property
    def logs(self) -> Path: ...
    @property
    def manifest(self) -> Manifest: ...
    def update_manifest(self, **changes: Any) -> None: ...


class Setups:
    """Makes the test set-ups of a run, one after the other, and holds the generator that they are attached to."""

    def __init__(
        self,
        resolved: ResolvedPlan,
        cases: Sequence[Case],
        directory: Notebook,
        beds: Beds,
        new_generator: Callable[[], Generator],
        usual_speed: UsualSpeed,
    ) -> None:
        """usual_speed: that of the gateways' CPUs, shared by all set-ups of the run."""
        self._plan = resolved.plan
        self._tags = resolved.traffic.tags
        self._cases = cases
        self._directory = directory
        self._beds = beds
        self._new_generator = new_generator
        self.generator = new_generator()
        self._usual_speed = usual_speed
        self._opened: list[OpenedPort] = []
        self._link_speeds: dict[tuple[str | None, str], float] = {}
        self._pausing: list[str] = []  # notes on ports with flow control
        self.path: WirePath | None = None  # the generator's path to the wire, if it has several

    def set_up(self, case: Case) -> Setup:
        """Build the case's pair, bring its stack up, and record its Security Context in the manifest.

        NegotiationFailed or NotReady, with the reason, if that is not possible; then the pair is removed.
        """
        bed = self._beds.build(case)
        setup: Setup | None = None
        try:
            setup = self.attach(bed)
            self._record_notes()  # not in attach: a calibration tries paths that are not used later
            setup.stack = self._beds.stack(bed, case)
            shown = readiness.establish(setup, self.traffic(case))
            if self._plan.capture and setup.encrypts:
                file = (
                    self._directory.logs / f"middle-{case.stack.shown}-{case.suite}-ip{case.ip_version}.pcap"
                )
                capturing = partial(self._beds.capturing, bed)
                shown |= decryption.sample(setup, self.traffic(case), file, capturing)
            context: dict[str, Any] = {"protocol": "unknown: boxes that espbench did not build"}
            if setup.stack is not None:
                context = setup.stack.security_context()
            context["kernel"] = _kernels(bed)
            inspected, wrong = self._beds.inspect(bed, case)
            context |= bed.facts | inspected
            context.setdefault("stack_version", dict.fromkeys(bed.gateways, "kernel"))
            context[SHOWN_BEFORE] = shown
            if mismatches := [*context.pop("mismatches", []), *wrong]:
                text = "; ".join(mismatches)
                raise readiness.NotReady(f"the gateways do not run what the plan asks: {text}")
            name = self._name_of(case)
            same_as_before(self._directory.manifest.contexts, name, context)
        except (UsageError, MachineLacks, CannotWrite, Interrupted, readiness.NotReady, NegotiationFailed):
            bed.close()
            raise
        except EspbenchError as error:
            text, code = (
                (str(error), error.code) if setup is None else blame(setup, error, "while it was set up")
            )
            bed.close()
            raise readiness.NotReady(text, code) from error
        except BaseException:
            bed.close()
            raise
        contexts = {**self._directory.manifest.contexts, name: context}
        members = {c.id: name for c in self._cases if c.pair == case.pair}
        self._directory.update_manifest(
            contexts=contexts,
            context_of_case={**self._directory.manifest.context_of_case, **members},
            placement=_placement(bed),
            queues=bed.queues,
        )
        return setup

    def attach(self, bed: Testbed, *, resolve: bool = True) -> Setup:
        """Open the ports and return the set-up, still without a stack.

        resolve: if the platform does not know a next hop, ask for its MAC address on the wire.
        """
        ports = list(bed.ports.values())
        watched = sorted({c for cpus in bed.placement.cpus.values() for c in cpus})
        self._opened = [OpenedPort.model_validate(port) for port in self.generator.open(ports, watched)]
        self._pausing = [] if bed.virtual_time else _flow_control(ports)
        opened = {port.name: port for port in self._opened}
        bed.attached(self.generator)
        self._record_tool("generator", f"{self.generator.name}: {paths_in_words(self._opened)}")
        next_hops: dict[PortName, str] = {}
        for port in ports:
            if not port.mac:
                bed.ports[port.name] = replace(port, mac=opened[port.name].mac)
            if port.next_hop_mac:
                next_hops[port.name] = port.next_hop_mac
                continue
            for version, gateway in port.gateway.items() if resolve else ():
                next_hops[port.name] = self.generator.resolve(
                    port.name, port.address[version], gateway, 3.0, self._tags
                )
        setup = Setup(
            bed,
            self.generator,
            None,
            next_hops,
            usual_speed=self._usual_speed,
            link_speeds=self._link_speeds,
        )
        network_events.other_speeds(setup)  # remembers them
        return setup

    def discard(self, setup: Setup | None) -> None:
        """Remove a pair that failed, and start a new generator if the old one died."""
        if setup is not None:
            setup.bed.close()
        try:
            self.generator.ping()
        except EspbenchError:
            self.generator.close()
            self.generator = self._new_generator()
            if self.path:
                self.generator.take(self.path)

    def traffic(self, case: Case) -> Traffic:
        """Return the traffic that the case offers; its load is not part of it."""
        frame = rfc2544_frame()
        return Traffic(
            frames=case.sizes,
            ip_version=case.ip_version,
            direction=case.direction,
            networks=self._plan.flows.networks,
            tunnels=case.stack.tunnels,
            tunnel_bits=self._beds.tunnel_bits(case),
            ports=self._plan.flows.ports,
            dont_fragment=self._plan.dont_fragment,
            ttl=frame.ttl,
            src_port=frame.udp_source,
            dst_port=frame.udp_destination,
            headers=case.headers,
        )

    def _record_tool(self, name: str, version: str) -> None:
        tools = self._directory.manifest.tools
        if tools.get(name) != version:
            self._directory.update_manifest(tools={**tools, name: version})

    def _record_notes(self) -> None:
        """Add the notes on the tester's ports to the warnings of the run: the generator's, and on flow control."""
        notes = [f"Tester port {port.name}: {note}" for port in self._opened for note in port.notes]
        notes += self._pausing
        before = self._directory.manifest.warnings
        if new := [note for note in dict.fromkeys(notes) if note not in before]:
            self._directory.update_manifest(warnings=[*before, *new])

    def _name_of(self, case: Case) -> str:
        """Return the name of the case's Security Context in the manifest."""
        parts = [case.stack.shown, case.suite, f"ipv{case.ip_version}"]
        return "-".join(parts if len(self._plan.duts) == 1 else [case.dut, *parts])


def _flow_control(ports: Sequence[Port]) -> list[str]:
    """Return a note on each port that uses Ethernet flow control: it makes limits of the tester look like the DUT's."""
    notes = []
    for port in ports:
        if ways_on := interfaces.flow_control(port.netns, port.interface):
            inside = f"ip netns exec {Path(port.netns).name} " if port.netns else ""
            notes.append(
                f"Tester port {port.name}: {port.interface} uses Ethernet flow control ({' and '.join(ways_on)}). A "
                "card that cannot receive fast enough then stops the DUT, whose loss it becomes, and a DUT can slow "
                f"the tester. To switch it off: {inside}ethtool -A {port.interface} rx off tx off"
            )
    return notes


def same_as_before(contexts: dict[str, Any], name: str, context: dict[str, Any]) -> None:
    """Raise UsageError if a Security Context differs from the one of that name that the run has recorded.

    All cases of a run, also of a resumed one, have one configuration; another package or kernel needs a new run.
    """
    before = contexts.get(name, context)
    recorded = [
        key for key in (BUILD, EMULATOR) if key in before
    ]  # runs that did not record them can be resumed
    for what in ("kernel", "stack_version", EMULATION, *recorded):
        was, now = before.get(what), context.get(what)
        if was != now:
            if what == EMULATION:  # a large table; only its differences are shown
                was, now = _apart(was or {}, now or {})
            raise UsageError(
                f"{name}: {what.replace('_', ' ')} was {_as_text(was)} for the cases measured so far, "
                f"now it is {_as_text(now)}; start a new run, or bring the old one back"
            )


def _kernels(bed: Testbed) -> dict[str, str]:
    """Return the kernel release of each gateway, read inside the gateway."""
    path = "/proc/sys/kernel/osrelease"
    return {side: (g.read([path])[path] or "").strip() for side, g in bed.gateways.items()}


def _apart(was: dict[str, Any], now: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the entries of two tables that differ."""
    keys = [key for key in was | now if was.get(key) != now.get(key)]
    return {key: was.get(key) for key in keys}, {key: now.get(key) for key in keys}


def _as_text(value: Any) -> str:
    """Return a fact of the Security Context as text: each different value of the gateways once."""
    kinds = list(dict.fromkeys(value.values())) if isinstance(value, dict) else [value]
    return " and ".join(map(str, kinds))


def _placement(bed: Testbed) -> dict[str, Any]:
    p = bed.placement
    return {
        "cpus": {role: cpus for role, cpus in p.cpus.items() if cpus},
        "policy": p.policy,
        "shared": p.shared,
    }
