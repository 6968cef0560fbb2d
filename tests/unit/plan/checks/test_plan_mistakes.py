# SPDX-License-Identifier: Apache-2.0
"""Every mistake a plan can hold, and the exact words its author gets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.plan import cases, load_plan, profile_names, resolve
from espbench.plan.keys.model import Test
from espbench.plan.reading.reader import read_text
from support.plans import external_text, plan_text

GOOD = plan_text(
    dut="auto",
    suites="[3des-sha1]",
    frame_sizes="[512]",
    tests="\n  - throughput: {trial: 2s, final_trial: 10s}",
)

EXTERNAL = external_text(frame_sizes="[128]", tests="\n  - throughput: {}")


def _said(text: str) -> str:
    with pytest.raises(UsageError) as error:
        resolve(read_text(text, "plans/x.yaml", "plan"))
    return str(error.value)


def _accepted(text: str) -> None:
    resolve(read_text(text, "plans/x.yaml", "plan"))


def test_the_plans_these_tests_spoil_are_good() -> None:
    """Otherwise the messages below could come from anywhere."""
    _accepted(GOOD)
    _accepted(EXTERNAL)


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        # Unknown keys, at the key.
        ("dut: auto", "dutt: auto",
         '3:1: dutt: expected a key of the plan, got "dutt"; did you mean dut?'),
        ("dut: auto", "flows: {nets: 1}",
         '3:9: flows.nets: expected a key of flows, got "nets"; did you mean networks?'),
        ("{trial: 2s,", "{trail: 2s,",
         '8:18: tests[0].throughput.trail: expected a key of a throughput test, got "trail"; did you '
         'mean trial?'),
        ("throughput: {trial: 2s, final_trial: 10s}", "jitter: {}",
         '8:5: tests[0].jitter: expected a test espbench has, got "jitter"; '
         f"choose one of {', '.join(Test.model_fields)}"),
        ("- throughput: {trial: 2s, final_trial: 10s}", "- throughput",
         '8:5: tests[0]: expected a test and its settings, got "throughput"; write - throughput: {}'),
        ("[plain, xfrm]", "[plain, {stack: xfrm, modus: tunnel}]",
         '4:31: stacks[1].modus: expected a key of a stack, got "modus"; did you mean mode?'),
        # Keys that are missing.
        ("name: good\n", "",
         "1:1: name: expected a value, got nothing; add the key name"),
        ("topology: gateway-to-gateway\n", "",
         "1:1: topology: expected a value, got nothing; add the key topology"),
        ("tests:\n  - throughput: {trial: 2s, final_trial: 10s}\n", "",
         "1:1: tests: expected a value, got nothing; add the key tests"),
        # Values of the wrong kind.
        ("name: good", "name: a/b",
         '1:7: name: expected a name of up to 64 letters, digits, . _ or -, got "a/b"; '
         "it becomes part of file names (quote numbers and dates)"),
        ("name: good", "name: 2026-01-02",
         '1:7: name: expected a name of up to 64 letters, digits, . _ or -, got "2026-01-02"; '
         "it becomes part of file names (quote numbers and dates)"),
        ("gateway-to-gateway", "gateway-to-getaway",
         "2:11: topology: expected one of gateway-to-gateway, single-gateway, external, no-network, "
         'got "gateway-to-getaway"; '
         "did you mean gateway-to-gateway?"),
        ("dut: auto", "dut: 8548",
         "3:6: dut: expected auto, a profile or a label, got 8548; espbench list duts shows the profiles"),
        ("dut: auto", "dut: netnss",
         f'3:6: dut: expected one of auto, {", ".join(profile_names())}, or a path, got "netnss"; '
         "did you mean netns?"),
        ("dut: auto", "dut: ./none.yaml",
         '3:6: dut: expected a DUT profile that can be read, got "./none.yaml"; it says: none.yaml: '
         "expected a DUT profile file, got: No such file or directory; check the path"),
        ("[plain, xfrm]", "plain",
         '4:9: stacks: expected a list, got "plain"; write it as [a, b]'),
        ("[plain, xfrm]", "[]",
         "4:9: stacks: expected at least one of plain, null, xfrm, lean-esp, strongswan, "
         "libreswan, strongswan-libipsec, got none; add stacks: [plain, xfrm]"),
        ("[plain, xfrm]", "[plain, xfrn]",
         '4:17: stacks[1].stack: expected one of plain, null, xfrm, lean-esp, strongswan, '
         'libreswan, strongswan-libipsec, got "xfrn"; did you mean xfrm?'),
        ("[plain, xfrm]", "[plain, 7]",
         "4:17: stacks[1]: expected a mapping, got 7; write keys and values"),
        ("[plain, xfrm]", "[xfrm, xfrm]",
         '4:16: stacks[1]: expected a label of its own for each stack, got "xfrm" again; '
         "give one of them a label, such as {stack: xfrm, label: xfrm-esn, esn: true}"),
        ("[plain, xfrm]", "[{stack: xfrm, replay_window: 4097}]",
         "4:39: stacks[0].replay_window: expected at most 4096, got 4097; choose a smaller value"),
        ("[plain, xfrm]", "[{stack: xfrm, esn: true, replay_window: 0}]",
         "4:50: stacks[0].replay_window: expected a replay window of at least 1 with esn: true, got 0; "
         "ESN needs the window (RFC 4303 3.4.3)"),
        ("[plain, xfrm]", "[{stack: xfrm, mode: beet}]",
         '4:30: stacks[0].mode: expected one of tunnel, transport, got "beet"; choose one of these'),
        ("[plain, xfrm]", "[{stack: xfrm, policies: none}]",
         "4:24: stacks[0].policies: expected no policies on xfrm, got policies; "
         "plain alone has this option: remove it"),
        ("[plain, xfrm]", "[xfrm, {stack: plain, esn: true}]",
         "4:31: stacks[1].esn: expected no ESP options on plain, got esn; plain carries no ESP: remove it"),
        ("suites: [3des-sha1]\n", "",
         "1:1: suites: expected at least one suite for xfrm, got none; add suites: [aes128gcm16]"),
        ("[plain, xfrm]", "[plain]",
         "5:1: suites: expected no suites: no stack here takes one, got some; add xfrm to stacks or "
         "remove suites"),
        ("[3des-sha1]", "[3des-sha]",
         "5:10: suites[0]: expected one of null-null, null-sha1, 3des-sha1, aes128-sha1, aes256-sha256, "
         'aes128gcm16, aes256gcm16, chacha20poly1305, got "3des-sha"; did you mean 3des-sha1?'),
        ("[3des-sha1]", "[3des-sha1, 3des-sha1]",
         '5:21: suites[1]: expected each entry once, got "3des-sha1" again; '
         "remove it; repeat: 2 measures every case twice"),
        # Frame sizes.
        ("[512]", "[]",
         "6:14: frame_sizes: expected at least 1 entry, got an empty list; add one"),
        ("[512]", "[63]",
         "6:15: frame_sizes[0]: expected a frame size from 64 to 9000 bytes, or the name of a mix, got 63; "
         "sizes count the 4-byte FCS"),
        ("[512]", "[simple-imx]",
         '6:15: frame_sizes[0]: expected a frame size in bytes or a mix (csit-imix, imix-genome, '
         'simple-imix), got "simple-imx"; '
         "did you mean simple-imix?"),
        ("[512]", "[512, 512]",
         "6:20: frame_sizes[1]: expected each entry once, got 512 again; "
         "remove it; repeat: 2 measures every case twice"),
        ("[512]", "[83]\nip_versions: [6]",
         "6:15: frame_sizes[0]: expected frames of at least 84 B for IPv6, got 83; "
         "headers and the test payload need that much"),
        ("[512]", "[simple-imix]\nip_versions: [6]",
         '6:15: frame_sizes[0]: expected frames of at least 84 B for IPv6, got "simple-imix" (it holds '
         '64 B); '
         "headers and the test payload need that much"),
        ("[512]", "[1519]",
         "6:15: frame_sizes[0]: expected frames of at most 1518 B (the MTU is 1500), got 1519; "
         "choose a smaller size, or a DUT profile with a larger mtu"),
        ("[512]", "[1464, 1465]\ndont_fragment: true",
         "6:21: frame_sizes[1]: expected frames of at most 1464 B with dont_fragment: true "
         "(3des-sha1, tunnel mode, IPv4, MTU 1500), got 1465; choose 1464 or less, or dont_fragment: false"),
        ("[512]", "[512]\nip_versions: [5]",
         "7:15: ip_versions[0]: expected one of 4, 6, got 5; choose one of these"),
        ("[512]", "[512]\ndirections: [bothways]",
         '7:14: directions[0]: expected one of one-way, both-ways, encryption, decryption, got "bothways"; '
         "did you mean both-ways?"),
        ("[512]", "[512]\nrepeat: 0",
         "7:9: repeat: expected at least 1, got 0; choose a larger value"),
        ("[512]", '[512]\nrepeat: "2"',
         '7:9: repeat: expected a whole number, got "2"; write digits only'),
        ("[512]", '[512]\ncapture: "yes"',
         '7:10: capture: expected true or false, got "yes"; write true or false'),
        ("[512]", "[512]\nflows: {networks: 257}",
         "7:19: flows.networks: expected at most 256, got 257; choose a smaller value"),
        ("[512]", "[512]\nline_rate: 5%",
         "7:12: line_rate: expected a link's rate such as 100Mbps or 10Gbps, got \"5%\"; "
         "write a number and its unit: Mbps or Gbps"),
        ("[512]", "[512]\ngenerator: trx",
         '7:12: generator: expected one of native, trex, scapy, got "trx"; did you mean trex?'),
        # Test settings.
        ("trial: 2s", "trial: two",
         '8:25: tests[0].throughput.trial: expected a duration such as 2s or 500ms, got "two"; '
         "write a number and its unit: ms, s or m"),
        ("trial: 2s", "trial: 2",
         "8:25: tests[0].throughput.trial: expected a duration such as 2s or 500ms, got 2; write 2s for "
         "seconds"),
        ("trial: 2s", "trial: 0s",
         '8:25: tests[0].throughput.trial: expected a duration of more than zero, got "0s"; '
         "a trial that lasts no time counts no frames"),
        ("final_trial: 10s", "final_trial: 1s",
         '8:42: tests[0].throughput.final_trial: expected at least the trial\'s 2s, got "1s"; '
         "lengthen final_trial or shorten trial"),
        ("trial: 2s", "loss_goals: [1]",
         "8:31: tests[0].throughput.loss_goals[0]: expected a frame loss ratio from 0 to below 1, such as 0, "
         "0.001% or 1e-5, got 1; 0.001% is one frame in 100,000"),
        ("trial: 2s", "loss_goals: [0.001%, 1e-5]",
         "8:39: tests[0].throughput.loss_goals[1]: expected each goal once, got 0.001% again; "
         "one answer is given for each goal: remove it"),
        ("trial: 2s", "resolution: 0",
         "8:30: tests[0].throughput.resolution: expected a relative resolution from 0.01% to 50%, "
         "such as 1%, "
         "got 0; 1% is usual"),
        ("trial: 2s", "minimum: 5",
         "8:27: tests[0].throughput.minimum: expected a rate such as 40000fps, 40kfps, 50Mbps or 5% (of "
         "line rate), "
         "got 5; write a number and its unit: fps, kfps, Mbps, Gbps or %"),
        ("trial: 2s", "maximum: 101%",
         '8:27: tests[0].throughput.maximum: expected at most 100% of line rate, got "101%"; '
         "no link carries more than its line rate"),
        ("trial: 2s", "minimum: 5%, maximum: 4%",
         '8:27: tests[0].throughput.minimum: expected less than maximum (4%), got "5%"; '
         "the search runs from minimum to maximum"),
        ("trial: 2s", "minimum: 100Mbps, maximum: 20kfps",
         '8:27: tests[0].throughput.minimum: expected less than maximum (20000fps), got "100000000bps"; '
         "the search runs from minimum to maximum"),
        ("trial: 2s", "retries: 1.5",
         "8:27: tests[0].throughput.retries: expected a whole number, got 1.5; write digits only"),
        ("trial: 2s", "preset: csit",
         "8:18: tests[0].throughput.preset: expected a preset with search: mlr alone, got one; "
         "add search: mlr, or remove it"),
        ("trial: 2s", "search: mlr, preset: cist",
         '8:39: tests[0].throughput.preset: expected one of rfc2544, tst009, csit, got "cist"; did you mean csit?'),
        ("trial: 2s", "search: mlr, loss_verification: 1",
         "8:31: tests[0].throughput.loss_verification: expected no loss_verification with search: mlr, got one; "
         "preset: tst009 tolerates a bad trial"),
        # Keys of the other topology.
        ("dut: auto", "i_own_this_network: true",
         "3:1: i_own_this_network: expected no i_own_this_network with topology: gateway-to-gateway, got "
         "one; "
         "remove it, or use topology: external"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_plan_is_named_with_its_place_and_remedy(right: str, wrong: str, message: str) -> None:
    """One mistake, one line: file, line, column, key path, expected, got, what to do."""
    assert right in GOOD
    assert _said(GOOD.replace(right, wrong, 1)) == f"plans/x.yaml:{message}"


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("ports:\n  west: {netns: t1, interface: a0, address: 10.0.1.2/24, gateway: 10.0.1.1}\n"
         "  east: {netns: t2, interface: a1, address: 10.0.2.2/24, gateway: 10.0.2.1}\n", "",
         "1:1: ports: expected the tester's two ports, got none; "
         "add ports: {west: {interface: …, address: …, gateway: …}, east: {…}}"),
        ("  east: {netns: t2, interface: a1, address: 10.0.2.2/24, gateway: 10.0.2.1}\n", "",
         "4:3: ports.east: expected a value, got nothing; add the key east"),
        ("netns: t1, ", "",
         '4:21: ports.west.interface: expected an interface in a network namespace (netns: …), got "a0" '
         'of the '
         "initial namespace; if this network carries nothing but the test (RFC 6815), add "
         "i_own_this_network: true"),
        ("address: 10.0.1.2/24", "address: 10.0.1.2",
         '4:45: ports.west.address: expected an address with its prefix length, such as 10.0.1.2/24, got '
         '"10.0.1.2"; '
         "the port's own address on that link"),
        ("gateway: 10.0.1.1", "gateway: gw",
         '4:67: ports.west.gateway: expected an IP address such as 10.0.1.1, got "gw"; '
         "the DUT's address on that link"),
        ("gateway: 10.0.1.1", "gateway: 10.0.3.1",
         '4:67: ports.west.gateway: expected another address of 10.0.1.0/24, got "10.0.3.1"; '
         "the DUT's address on the same link as the port"),
        ("gateway: 10.0.2.1", "gateway: 10.0.2.2",
         '5:67: ports.east.gateway: expected another address of 10.0.2.0/24, got "10.0.2.2"; '
         "the DUT's address on the same link as the port"),
        ("interface: a0", "interface: a-name-that-is-too-long",
         "4:32: ports.west.interface: expected the name of a network interface (up to 15 characters), "
         'got "a-name-that-is-too-long"; ip -brief link lists them'),
        ("netns: t2, interface: a1", "netns: t1, interface: a0",
         '5:32: ports.east.interface: expected another interface than west\'s, got "a0"; '
         "frames go out of one port and come back at the other"),
        ("frame_sizes", "ip_versions: [6]\nframe_sizes",
         "6:15: ip_versions[0]: expected the version of both ports' addresses (IPv4, IPv4), got 6; "
         "write ip_versions: [4] or change the addresses"),
        ("frame_sizes", "capture: true\nframe_sizes",
         "6:10: capture: expected no capture with topology: external, got true; "
         "espbench has neither the middle link nor the keys of boxes it did not build: remove it"),
        ("frame_sizes", "links: {west: {loss: 1%}}\nframe_sizes",
         "6:1: links: expected no links that err with topology: external: gateways of User-Mode Linux and in virtual "
         "time alone have them, got west; elsewhere links are the kernel's or cables, where espbench handles no frame: "
         "remove it, or use dut: uml, virt-x86 or mpc8548e"),
        ("frame_sizes", "seed: 7\nframe_sizes",
         "6:1: seed: expected no seed with topology: external: gateways in virtual time alone take one, got 7; "
         "elsewhere keys and places of memory are drawn by chance: remove it, or use dut: virt-x86 or mpc8548e"),
        ("frame_sizes", "suites: [a, b]\nframe_sizes",
         "6:13: suites[1]: expected one entry: with topology: external it is a label, got another; "
         "write one plan per configuration of the box"),
        ("frame_sizes", "stacks: [{stack: asa, esn: true}]\nframe_sizes",
         "6:23: stacks[0].esn: expected no options with topology: external, got esn; "
         "espbench does not configure the box: remove it"),
        ("frame_sizes", "flows: {networks: 256}\nframe_sizes",
         "5:45: ports.east.address: expected an address whose third octet is at most 0 with networks: 256, got "
         '"10.0.2.2/24"; the number of the network is added to this octet: write addresses such as 10.1.0.2/24 '
         "(west) and 10.2.0.2/24 (east)"),
        ("frame_sizes", "traffic: networks-256\nframe_sizes",
         "5:45: ports.east.address: expected an address whose third octet is at most 0 with networks: 256, got "
         '"10.0.2.2/24"; the number of the network is added to this octet: write addresses such as 10.1.0.2/24 '
         "(west) and 10.2.0.2/24 (east)"),
        ("frame_sizes", "directions: [both-ways]\nflows: {networks: 256}\nframe_sizes",
         "4:45: ports.west.address: expected an address whose third octet is at most 0 with networks: 256, got "
         '"10.0.1.2/24"; the number of the network is added to this octet: write addresses such as 10.1.0.2/24 '
         "(west) and 10.2.0.2/24 (east)"),
        ("frame_sizes", "directions: [both-ways]\nflows: {networks: 2}\nframe_sizes",
         "5:45: ports.east.address: expected 2 networks that the west port has no part in, got "
         '"10.0.2.2/24"; its networks are counted upwards from it: write addresses such as 10.1.0.2/24 '
         "(west) and 10.2.0.2/24 (east)"),
    ],
)  # fmt: skip
def test_a_mistake_about_external_boxes_is_named(right: str, wrong: str, message: str) -> None:
    """Ports, addresses and what espbench cannot do with boxes it did not build."""
    assert right in EXTERNAL
    assert _said(EXTERNAL.replace(right, wrong, 1)) == f"plans/x.yaml:{message}"


@pytest.mark.parametrize(
    ("west", "east", "networks", "accepted"),
    [
        ("10.1.0.2/24", "10.2.0.2/24", 256, True),
        ("10.1.0.2/24", "10.2.4.2/24", 252, True),
        ("10.1.0.2/24", "10.2.4.2/24", 253, False),
        ("10.0.1.2/24", "10.0.0.2/24", 256, False),  # west's own network is one of east's
        ("2001:db8:0:1000::2/64", "2001:db8:0:2000::2/64", 256, True),
        ("2001:db8:0:1000::2/64", "2001:db8:0:2001::2/64", 256, False),
    ],
)
def test_networks_are_accepted_if_the_generator_can_count_them(
    west: str, east: str, networks: int, accepted: bool
) -> None:
    """The octet with the last network's number is at most 255, as in `Flows` of the generator."""
    first = {"west": west, "east": east}
    ports = "".join(
        f"\n  {name}: {{netns: t, interface: {name}, address: {address}, gateway: {address.split('2/')[0]}1}}"
        for name, address in first.items()
    )
    text = external_text(
        ports=ports,
        flows=f"{{networks: {networks}}}",
        frame_sizes="[128]",
        ip_versions="[6]" if ":" in west else None,
    )
    if accepted:
        _accepted(text)
    else:
        assert "ports.east.address: expected" in _said(text)


def test_ports_belong_to_external_plans_alone() -> None:
    """Plans whose gateways espbench builds have no ports, since it makes the ports too."""
    text = EXTERNAL.replace("external", "gateway-to-gateway") + "stacks: [plain]\n"
    assert _said(text) == (
        "plans/x.yaml:3:1: ports: expected no ports with topology: gateway-to-gateway, got one; "
        "remove it, or use topology: external"
    )


def test_an_interface_of_the_initial_namespace_needs_the_owners_word() -> None:
    """i_own_this_network: true is that word (RFC 6815)."""
    _accepted(EXTERNAL.replace("netns: t1, ", "").replace("netns: t2, ", "") + "i_own_this_network: true\n")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("[512]", "[84]\nip_versions: [4, 6]"),
        ("[512]", "[64, 1518, simple-imix]"),
        ("[512]", "[1464]\ndont_fragment: true"),
        ("trial: 2s", "minimum: 5%, maximum: 1kfps"),  # comparable only once the line rate is known
        ("trial: 2s", "trial: 10s"),
        ("[plain, xfrm]", "[xfrm, {stack: xfrm, label: transport, mode: transport, replay_window: 4096}]"),
        ("suites: [3des-sha1]", "suites: &all [3des-sha1]"),
    ],
)
def test_the_edge_of_what_is_allowed_is_allowed(right: str, wrong: str) -> None:
    """The messages above start exactly one step further."""
    assert right in GOOD
    _accepted(GOOD.replace(right, wrong, 1))


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file() -> None:
    """Wrong keys and contradictions together, one line each; nothing concluded from a wrong key."""
    text = """\
name: two words
topology: gateway-to-gateway
dut: netnss
stacks: [xfrn, {stack: xfrm, mode: tunel}]
suites: [3des-sha1, 3des-sha1]
frame_sizes: [63, 9000]
tests:
  - throughput: {trial: two, final_trial: 1s}
  - jitter: {}
"""
    starts = [line.split(": expected")[0] for line in _said(text).splitlines()]
    assert starts == [
        "plans/x.yaml:1:7: name",
        "plans/x.yaml:3:6: dut",
        "plans/x.yaml:4:10: stacks[0].stack",
        "plans/x.yaml:4:36: stacks[1].mode",
        "plans/x.yaml:5:21: suites[1]",
        "plans/x.yaml:6:15: frame_sizes[0]",
        "plans/x.yaml:8:25: tests[0].throughput.trial",
        "plans/x.yaml:9:5: tests[1].jitter",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "1:1: expected a plan, got an empty file; start with name: …"),
        ("# only a comment\n", "1:1: expected a plan, got an empty file; start with name: …"),
        ("- a\n- b\n",
         "1:1: expected a mapping (the keys of the plan), got a list; write keys and values, such as "
         "name: quick"),
        ("just words\n",
         '1:1: expected a mapping (the keys of the plan), got "just words"; '
         "write keys and values, such as name: quick"),
        ("name: a\n\tdut: b\n", "2:1: expected spaces, got a tab; indent YAML with spaces only"),
        ("name: a\nname: b\n",
         '2:1: name: expected each key once, got "name" again (first in line 1); remove one of them'),
        ("tests:\n  - throughput: {trial: 1s, trial: 2s}\n",
         '2:29: tests[0].throughput.trial: expected each key once, got "trial" again (first in line 2); '
         "remove one of them"),
        ("name: [a\n",
         "2:1: expected valid YAML, got: expected ',' or ']', but got '<stream end>' "
         "(while parsing a flow sequence); check quotes, brackets and indentation"),
        ("name: a: b\n",
         "1:8: expected valid YAML, got: mapping values are not allowed here; "
         "check quotes, brackets and indentation"),
        ("name: a\n---\nname: b\n",
         "2:1: expected one YAML document, got a second (---); keep one per file"),
        ("name: !!python/object:os.system a\n",
         "1:7: expected valid YAML, got: could not determine a constructor for the tag "
         "'tag:yaml.org,2002:python/object:os.system'; check quotes, brackets and indentation"),
        ("name: &a [*a]\n",
         "1:7: expected valid YAML, got: an alias without end; check quotes, brackets and indentation"),
        ("name: 2026-13-99\n",
         '1:7: name: expected what YAML takes for timestamp, got "2026-13-99"; month must be in 1..12: '
         "write another value, or put it in quotes without a tag"),
        ("name: a\x07\n",
         "1:8: expected valid YAML, got: special characters are not allowed; "
         "check quotes, brackets and indentation"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_plan_at_all_is_named(text: str, message: str) -> None:
    """Empty files, tabs, duplicate keys and YAML's own errors, with line and column."""
    assert _said(text) == f"plans/x.yaml:{message}"


def test_aliases_cannot_multiply_without_bound() -> None:
    """A few lines that stand for a million values are refused, not expanded."""
    text = "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for one, two in zip("abcdef", "bcdefg", strict=True):
        text += f"{two}: &{two} [{','.join([f'*{one}'] * 10)}]\n"
    assert "an alias without end" in _said(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "expected a plan file, got: No such file or directory; check the path"),
        (lambda path: path.mkdir(), "expected a plan file, got: Is a directory; check the path"),
        (lambda path: path.write_bytes(b"name: \xff"),
         "expected UTF-8 text, got byte 6 of another encoding; save the file as UTF-8"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_named(tmp_path: Path, make: object, message: str) -> None:
    """No file, a folder, another encoding."""
    path = tmp_path / "plan.yaml"
    assert callable(make)
    make(path)
    with pytest.raises(UsageError) as error:
        load_plan(path)
    assert str(error.value) == f"{path}: {message}"
    assert error.value.exit_code == 2


_ODD_VALUES = [
    "", "[]", "{}", "-1", "1e400", ".nan", "yes", "2001-01-01", "[1, [2]]", "[{}]", "[null]", "{a: {b: c}}",
    "!!binary aGk=", "? a", "*x", "&x [*x]", "!!set {a}", "{? [a] : 1}", "0x1F", "'", "\t", "%",
]  # fmt: skip


@given(
    st.sampled_from([GOOD, EXTERNAL]),
    st.lists(st.tuples(st.integers(0, 7), st.sampled_from(_ODD_VALUES)), min_size=1, max_size=3),
)
def test_no_odd_value_gets_past_the_reader_as_anything_but_a_usage_error(
    text: str, spoils: list[tuple[int, str]]
) -> None:
    """A value behind a key makes a good plan, or lines of file:line:column with a remedy."""
    lines = text.splitlines()
    for number, value in spoils:
        lines[number] = re.sub(r":.*", f": {value}", lines[number], count=1)
    try:
        assert cases(resolve(read_text("\n".join(lines), "plans/x.yaml", "plan")))
    except UsageError as error:
        for line in str(error).splitlines():
            assert re.match(r"plans/x\.yaml:\d+:\d+: (\S+: )?expected .*,? got.*; .+", line)


@pytest.mark.parametrize(
    "test",
    ["time_to_first_packet", "rekey_loss", "set_up_rate", "rekey_rate", "capacity", "failover", "reset", "attack",
     "public_key"],
)  # fmt: skip
def test_a_test_for_which_espbench_must_drive_the_boxes_is_refused(test: str) -> None:
    """Espbench cannot log in to them, whatever their label is."""
    for label in ("strongswan", "plain"):
        text = EXTERNAL.replace("tests:\n", f"stacks: [{label}]\ntests:\n  - {test}: {{}}\n", 1)
        assert text != EXTERNAL
        assert f"tests[0].{test}: expected a test that needs no access to the boxes" in _said(text)


def test_a_minimum_in_percent_is_compared_by_the_profiles_line_rate() -> None:
    """Netns has 10 Gbit/s: half of it is more than 1,000 frames/s."""
    text = GOOD.replace("dut: auto", "dut: netns").replace("trial: 2s", "minimum: 50%, maximum: 1kfps")
    assert 'throughput.minimum: expected less than maximum (1000fps), got "50%"' in _said(text)


def test_an_overload_that_lasts_no_time_is_refused() -> None:
    text = GOOD + "  - system_recovery: {overload: 0s}\n"
    assert "system_recovery.overload: expected a duration of more than zero" in _said(text)
