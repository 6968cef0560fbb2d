# SPDX-License-Identifier: Apache-2.0
"""A plan's `generator:`: what it may say, and the words for what it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.generators.choose import GENERATORS
from espbench.plan import ResolvedPlan, conditions, plan_schema, resolve
from espbench.plan.checks.generator_checks import generator_problems
from espbench.plan.keys.generator_choice import GeneratorChoice
from espbench.plan.reading.reader import read_text
from espbench.plan.traffic.headers import header_of
from espbench.plan.traffic.traffic_pattern import Pattern
from support.plans import plan_text, plan_validator

PAIR = plan_text(
    name="pair", dut=None, stacks="[plain]", suites=None, frame_sizes="[512]", tests="[{throughput: {}}]"
)
BOXES = """\
name: boxes
topology: external
ports:
  west: {netns: t, interface: a0, address: 10.0.1.2/24, gateway: 10.0.1.1, gateway_mac: "02:00:00:00:00:1A"}
  east: {netns: t, interface: a1, address: 10.0.2.2/24, gateway: 10.0.2.1, gateway_mac: "02:00:00:00:00:1b"}
frame_sizes: [512]
tests: [{throughput: {}}]
"""
NATIVE = {"tx": "auto", "rx": "auto", "senders": 1, "esp_memory_mib": 1024}


def plan(base: str, generator: str) -> ResolvedPlan:
    return resolve(read_text(f"{base}generator: {generator}\n", "x.yaml", "plan"))


@pytest.mark.parametrize(
    ("base", "generator", "name", "settings", "shown"),
    [
        (PAIR, "native", "native", NATIVE, "native"),
        (PAIR, "{native: {tx: xdp}}", "native", NATIVE | {"tx": "xdp"}, "native tx=xdp"),
        (PAIR, "trex", "trex", {"server": None, "ports": (0, 1)}, "trex"),
        (PAIR, "{trex: }", "trex", {"server": None, "ports": (0, 1)}, "trex"),
        (PAIR, "scapy", "scapy", {}, "scapy"),
        (BOXES, "{trex: {server: lab-7}}", "trex", {"server": ("lab-7", 4501), "ports": (0, 1)},
         "trex server=lab-7:4501"),
        (BOXES, "{trex: {server: '[2001:db8::9]:4600', ports: [3, 2]}}", "trex",
         {"server": ("2001:db8::9", 4600), "ports": (3, 2)}, "trex server=[2001:db8::9]:4600 ports=[3, 2]"),
        (BOXES, "trex", "trex", {"server": None, "ports": (0, 1)}, "trex"),
    ],
)  # fmt: skip
def test_what_a_plan_may_say(
    base: str, generator: str, name: str, settings: dict[str, Any], shown: str
) -> None:
    """Name alone or with settings; the conditions of a run tell what is not a default; the schema agrees."""
    checked = plan(base, generator)
    assert (checked.plan.generator.name, checked.plan.generator.settings) == (name, settings)
    assert conditions(checked, [])["generator"] == shown
    plan_validator().validate(yaml.safe_load(f"{base}generator: {generator}\n"))


def test_native_is_the_default() -> None:
    """The schema says so in the word a plan would use."""
    assert resolve(read_text(PAIR, "x.yaml", "plan")).plan.generator.name == "native"
    assert plan_schema()["properties"]["generator"]["default"] == "native"


def test_every_generator_there_is_may_be_named() -> None:
    """`espbench list generators` and the plan agree."""
    assert set(GENERATORS) == set(GeneratorChoice.model_fields)


@pytest.mark.parametrize(
    ("base", "generator", "message"),
    [
        (PAIR, "trx", 'x.yaml:6:12: generator: expected one of native, trex, scapy, got "trx"; did you mean trex?'),
        (PAIR, "{trx: {}}", 'generator.trx: expected a generator espbench has, got "trx"; did you mean trex?'),
        (PAIR, "[native]", "x.yaml:6:12: generator: expected one of native, trex, scapy, or one with its settings, "
         "got a list; such as generator: trex"),
        (PAIR, "{native: {}, trex: {}}", "or one with its settings, got a mapping"),
        (PAIR, "{native: {tx: dpdk}}",
         'x.yaml:6:26: generator.native.tx: expected one of auto, xdp, af_xdp, af_packet, got "dpdk"'),
        (PAIR, "{trex: {serve: x}}", 'generator.trex.serve: expected a key of trex, got "serve"; did you mean server?'),
        (PAIR, "{trex: yes}", "generator.trex: expected a mapping, got true"),
        (BOXES, "{trex: {server: 'a b'}}", "generator.trex.server: expected the address of a TRex server, such as "
         '192.0.2.9:4501, got "a b"; write host or host:port'),
        (BOXES, "{trex: {server: 'a:65536'}}", 'got "a:65536"'),
        (BOXES, "{trex: {server: a, ports: [1, 1]}}", "generator.trex.ports: expected two different port numbers"),
        (BOXES, "{trex: {server: a, ports: [true, 0]}}", "expected two different port numbers"),
        (PAIR, "{trex: {server: a}}", "x.yaml:6:20: generator.trex.server: expected no server with topology: "
         'gateway-to-gateway, got "a:4501"; the ports of that test bed'),
        (BOXES, "{trex: {ports: [1, 0]}}", "generator.trex.ports: expected ports beside server only, got no server"),
        (BOXES.replace("{netns: t, interface: a1", "{netns: u, interface: a1"), "trex",
         "x.yaml:5:17: ports.east.netns: expected both ports in one network namespace with generator: trex, "
         'got "u"; TRex is launched there'),
        (BOXES.replace(', gateway_mac: "02:00:00:00:00:1A"', ""), "trex",
         "x.yaml:4:9: ports.west.gateway_mac: expected the gateway's MAC address with generator: trex, got none"),
        (PAIR + "flows: {networks: 256, ports: 6}\n", "trex", "flows.ports: expected no divisor in common with the 256 "
         "networks or tunnels with generator: trex, got 6; TRex advances both with each frame and would leave "
         "flows out: write 5"),
        (PAIR.replace("[plain]", "[{stack: plain, tunnels: 4}]") + "flows: {ports: 4}\n", "trex",
         "in common with the 4 networks or tunnels"),
        (PAIR.replace("512", "512]\nip_versions: [4, 6") + "flows: {ports: 3}\n", "trex",
         "x.yaml:5:18: ip_versions[1]: expected 4 where flows or tunnels rotate with generator: trex, got 6"),
        (BOXES.replace("02:00:00:00:00:1A", "01:00:00:00:00:1A"), "trex",
         "ports.west.gateway_mac: expected the MAC address of one interface, such as 02:00:00:00:00:01"),
    ],
)  # fmt: skip
def test_what_it_may_not(base: str, generator: str, message: str) -> None:
    """Where, what was expected, what came, what to do."""
    with pytest.raises(UsageError) as said:
        plan(base, generator)
    assert message in str(said.value)
    assert len(str(said.value).splitlines()) == 1


def _with_headers(*protocols: int, flows: str, generator: str = "trex") -> ResolvedPlan:
    """A plan whose frames have these protocols: 6 for TCP, 17 for UDP."""
    ethernet, rest = bytes(12) + b"\x08\x00", bytes(8) + b"\x50" + bytes(7)
    frames = [
        ethernet + b"\x45" + bytes(8) + bytes([protocol]) + bytes(10) + bytes(4) + rest
        for protocol in protocols
    ]
    traffic = Pattern("mine", headers=tuple(map(header_of, frames)))
    return replace(plan(f"{PAIR}flows: {flows}\n", generator), traffic=traffic)


@given(
    st.lists(st.sampled_from((6, 17)), max_size=3),
    st.sampled_from(("{networks: 1}", "{networks: 256}", "{ports: 3}")),
    st.sampled_from(("trex", "native")),
)
def test_trex_sends_no_several_flows_of_tcp(protocols: list[int], flows: str, generator: str) -> None:
    """Otherwise the generator would say so only in the run, after the gateways were built."""
    found = [*generator_problems(_with_headers(*protocols, flows=flows, generator=generator))]
    wrong = 6 in protocols and flows != "{networks: 1}" and generator == "trex"
    assert [problem.path for problem in found] == [("traffic",)] * wrong


def test_a_gateways_mac_is_taken_as_it_is_written() -> None:
    """It is kept in lower case, like every other MAC here; where it is missing, espbench asks for it."""
    ports = plan(BOXES, "native").plan.ports
    assert ports is not None
    assert ports.west.gateway_mac == "02:00:00:00:00:1a"


@pytest.mark.parametrize(
    ("generator", "refused"),
    [
        ("native", set()),
        ("scapy", {"latency", "system_recovery", "attack"}),
        ("trex", {"latency", "system_recovery", "attack", "back_to_back", "time_to_first_packet", "failover", "reset"}),
    ],
)  # fmt: skip
def test_a_test_that_the_generator_cannot_make_is_refused_before_a_run(
    generator: str, refused: set[str]
) -> None:
    """Every test that sends frames is tried (docs/generators.md, "What other tests need")."""
    tests = ("latency", "frame_loss", "flood", "back_to_back", "system_recovery", "time_to_first_packet",
             "rekey_loss", "failover", "reset", "attack")  # fmt: skip
    base = PAIR.replace("[plain]", "[strongswan]").replace(
        "frame_sizes", "suites: [aes128gcm16]\nframe_sizes"
    )
    said = {}
    for test in tests:
        try:
            plan(base.replace("{throughput: {}}", f"{{throughput: {{}}}}, {{{test}: {{}}}}"), generator)
        except UsageError as error:
            said[test] = str(error)
    assert said.keys() == refused
    for test, message in said.items():
        assert f": tests[1].{test}: expected a generator that " in message
        assert f"got generator: {generator}; use generator: native, or remove this test" in message
