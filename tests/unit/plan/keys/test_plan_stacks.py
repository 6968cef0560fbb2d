# SPDX-License-Identifier: Apache-2.0
"""Entries of `stacks:`: what they stand for, and the words for options that do not belong together."""

from __future__ import annotations

from pathlib import Path

import pytest

from espbench.catalogue.stack_names import STACKS
from espbench.errors import UsageError
from espbench.plan import ResolvedPlan, StackChoice, cases, load_plan, resolve
from espbench.plan.reading.reader import read_text
from support.plans import plan_text

GOOD = plan_text(
    dut=None, stacks="[xfrm]", frame_sizes="[512]", tests="\n  - throughput: {trial: 2s, final_trial: 10s}"
)


def _text(stacks: str, more: str = "") -> str:
    return GOOD.replace("[xfrm]", stacks) + more


def _plan(stacks: str, more: str = "") -> ResolvedPlan:
    return resolve(read_text(_text(stacks, more), "plan.yaml", "plan"))


def _said(stacks: str, more: str = "") -> str:
    with pytest.raises(UsageError) as error:
        _plan(stacks, more)
    return str(error.value).removeprefix("plan.yaml:")


@pytest.mark.parametrize("spelling", ["null", "~", '"null"', "{stack: null}", '{stack: "null"}'])
def test_null_is_a_stack_however_yaml_reads_it(spelling: str) -> None:
    """A bare null is YAML's word for nothing, and the name of the best case."""
    plan = _plan(f"[plain, {spelling}, xfrm]")
    assert [choice.shown for choice in plan.plan.stacks] == ["plain", "null", "xfrm"]


def test_null_is_measured_with_its_own_suite_alone() -> None:
    """It takes none of the plan's, and a plan of baselines needs none."""
    text = _text("[plain, null, xfrm]").replace("[aes128gcm16]", "[3des-sha1, aes128gcm16]")
    plan = resolve(read_text(text, "plan.yaml", "plan"))
    pairs = [(case.stack.shown, case.suite) for case in cases(plan)]
    assert pairs == [
        ("plain", "none"),
        ("null", "null-null"),
        ("xfrm", "3des-sha1"),
        ("xfrm", "aes128gcm16"),
    ]
    alone = resolve(read_text(_text("[null]").replace("suites: [aes128gcm16]\n", ""), "p", "plan"))
    assert [case.suite for case in cases(alone)] == ["none", "null-null"]


def test_every_stack_has_a_line_for_its_list() -> None:
    """The seeds' words are there: NetKey is XFRM, OpenSwan became libreswan."""
    assert all(facts.description for facts in STACKS.values())
    assert "NetKey" in STACKS["xfrm"].description
    assert "OpenSwan" in STACKS["libreswan"].description
    assert {name for name, facts in STACKS.items() if facts.ike} == {
        "strongswan",
        "libreswan",
        "strongswan-libipsec",
    }
    assert {name for name, facts in STACKS.items() if facts.encrypts and not facts.kernel_esp} == {
        "strongswan-libipsec",
        "lean-esp",
    }


def test_a_stack_names_its_daemon_and_who_carries_its_traffic() -> None:
    """StrongSwan with ESP in user space needs the same daemon, but no ESP of the kernel."""
    stacks = [StackChoice(stack=name) for name in STACKS]
    assert {s.shown: s.daemons for s in stacks if s.daemons} == {
        "strongswan": ["strongswan"],
        "libreswan": ["libreswan"],
        "strongswan-libipsec": ["strongswan"],
    }
    assert [s.shown for s in stacks if s.kernel_esp] == ["null", "xfrm", "strongswan", "libreswan"]


def test_two_daemons_make_one_stack() -> None:
    """Interoperation is a case of its own in either direction."""
    plan = _plan(
        "[{home: strongswan, office: libreswan}, {home: libreswan, office: strongswan, label: back}]"
    )
    assert [(c.kind, c.shown) for c in plan.plan.stacks] == [
        ("strongswan+libreswan", "strongswan-to-libreswan"),
        ("libreswan+strongswan", "back"),
    ]
    assert [c.daemons for c in plan.plan.stacks] == [["strongswan", "libreswan"], ["libreswan", "strongswan"]]
    case = cases(plan)[1]
    assert case.id == "0002-strongswan-to-libreswan-aes128gcm16-512-one-way"
    assert case.entry().stack_kind == "strongswan+libreswan"


@pytest.mark.parametrize(
    ("stack", "message"),
    [
        ("{stack: strongswan, certificate: ecdsa256}", "expected auth: certificates with certificate"),
        ("{stack: libreswan, auth: certificates, certificate: ed25519}", "expected one of rsa2048, rsa3072"),
        ("{home: strongswan, office: libreswan, auth: certificates, certificate: rsa1024}", "with libreswan"),
        ("{stack: strongswan, auth: certificates, certificate: dsa}", "certificate"),
        ("{stack: xfrm, certificate: ecdsa256}", "expected no certificate on xfrm"),
    ],
)
def test_a_kind_of_certificate_that_cannot_be(stack: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        _plan(f"[{stack}]")
    assert message in str(error.value)


def test_options_are_the_keys_that_are_not_defaults() -> None:
    """The manifest gets them as the plan writes them; label and name are not options."""
    choice = _plan(
        "[{stack: strongswan, label: a, esn: true, df: copy, lifetime: 10m, tunnels: 10, auth: certificates}]"
    ).plan.stacks[0]
    assert choice.options == {"esn": True, "lifetime": "600s", "tunnels": 10, "auth": "certificates"}
    assert StackChoice(stack="xfrm").options == {}


def test_a_prefix_starts_beside_the_plan(tmp_path: Path) -> None:
    """It does so like the paths of DUT profiles; a folder that is not there is a mistake of the plan."""
    (tmp_path / "built" / "strongswan").mkdir(parents=True)
    file = tmp_path / "plan.yaml"
    file.write_text(_text("[{stack: strongswan, prefix: built/strongswan}]"))
    plan = load_plan(file)
    assert plan.plan.stacks[0].prefix_beside(plan.path) == tmp_path / "built" / "strongswan"
    file.write_text(_text("[{stack: strongswan, prefix: built/libreswan}]"))
    with pytest.raises(
        UsageError, match=r'3:38: stacks\[0\].prefix: expected a folder that is there, got "bui'
    ):
        load_plan(file)
    file.write_text(_text(f"[{{stack: strongswan, prefix: {'x' * 300}}}]"))
    with pytest.raises(UsageError, match="expected a folder that is there, got"):
        load_plan(file)


@pytest.mark.parametrize(
    "stacks",
    [
        "[{stack: plain, tunnels: 10, label: p10}]",
        "[{stack: null, mode: transport, replay_window: 64, udp_encapsulation: true, df: set}]",
        "[{stack: xfrm, interface: true, tunnels: 1000}]",
        "[{stack: strongswan, version: 5.9.8-5+deb12u1, mode: tunnel}]",
        "[{stack: strongswan, lifetime: 24s, ike_lifetime: 60m, df: clear}]",
        "[{stack: strongswan, lifetime_bytes: 10MB, idle_timeout: 30s}]",
        "[{stack: libreswan, lifetime_bytes: 10MB}]",
        "[{home: strongswan, office: libreswan, lifetime_bytes: 10MB, idle_timeout: 30s}]",
        "[{stack: strongswan-libipsec, udp_encapsulation: true}]",
        "[{home: strongswan, office: libreswan, esn: true, tunnels: 10, auth: certificates, interface: true}]",
        "[{stack: strongswan, auth: certificates, certificate: ed25519}]",
        "[{stack: libreswan, auth: certificates, certificate: rsa4096}]",
    ],
)
def test_the_edge_of_what_is_allowed_is_allowed(stacks: str) -> None:
    """The mistakes below start exactly one step further."""
    _plan(stacks.replace("[", "[{stack: xfrm, label: other}, ", 1))


@pytest.mark.parametrize(
    ("stacks", "message"),
    [
        ("[{label: a}]",
         "3:10: stacks[0]: expected stack, or home and office, got neither; "
         "write {stack: …}, or {home: strongswan, office: libreswan}"),
        ("[{home: strongswan}]",
         "3:10: stacks[0]: expected stack, or home and office, got home; "
         "write {stack: …}, or {home: strongswan, office: libreswan}"),
        ("[{stack: strongswan, home: strongswan, office: libreswan}]",
         "3:18: stacks[0].stack: expected stack, or home and office, got both; "
         "remove stack, or home and office"),
        ("[{home: strongswan, office: strongswan}]",
         "3:37: stacks[0].office: expected two different ones of strongswan, libreswan as home and office, "
         "got strongswan twice; write {stack: strongswan}"),
        ("[{home: strongswan, office: xfrm}]",
         '3:37: stacks[0].office: expected one of strongswan, libreswan, got "xfrm"; '
         "only daemons that use the kernel's ESP are paired"),
        ("[{home: strongswan, office: libreswan, version: 5.9.8-5}]",
         "3:48: stacks[0].version: expected no version with home and office, got version; "
         "each gateway runs its own daemon's default package: remove it"),
        ("[{stack: xfrm, ike: aes128-sha256-ecp256}]",
         "3:24: stacks[0].ike: expected no ike on xfrm, got ike; "
         "its SAs are static, nothing negotiates: remove it"),
        ("[xfrm, {stack: plain, df: copy}]",
         "3:31: stacks[1].df: expected no ESP options on plain, got df; plain carries no ESP: remove it"),
        ("[{stack: strongswan-libipsec, esn: true}]",
         "3:39: stacks[0].esn: expected no esn on strongswan-libipsec, got esn; "
         "its ESP is not the kernel's: remove it"),
        ("[{stack: strongswan-libipsec, udp_encapsulation: false}]",
         "3:58: stacks[0].udp_encapsulation: expected udp_encapsulation: true on strongswan-libipsec, got false; "
         "its ESP always travels inside UDP: remove it"),
        ("[{stack: strongswan-libipsec, tunnels: 2}]",
         "3:48: stacks[0].tunnels: expected tunnels: 1 on strongswan-libipsec, got 2; "
         "kernel-libipsec routes only what holds an address of the gateway: remove it"),
        ("[strongswan-libipsec]\ncapture: true",
         "4:1: capture: expected no capture with strongswan-libipsec, got true; "
         "the keys of ESP in user space cannot be read back: remove one of the two"),
        ("[{stack: strongswan, mode: transport}]",
         "3:36: stacks[0].mode: expected mode: tunnel on strongswan, got transport; "
         "transport mode is there for xfrm and null"),
        ("[{stack: xfrm, mode: transport, tunnels: 2}]",
         "3:50: stacks[0].tunnels: expected tunnels: 1 with mode: transport, got 2; "
         "transport mode protects one IP-in-IP tunnel: use mode: tunnel"),
        ("[{stack: xfrm, mode: transport, interface: true}]",
         "3:52: stacks[0].interface: expected interface: false with mode: transport, got true; "
         "transport mode protects one IP-in-IP tunnel: use mode: tunnel"),
        ("[{stack: libreswan, df: set}]",
         "3:33: stacks[0].df: expected copy or clear with mode: tunnel, got set; "
         "the kernel has no way to set the bit there"),
        ("[{stack: xfrm, mode: transport, df: clear}]",
         "3:45: stacks[0].df: expected copy or set with mode: transport, got clear; "
         "the kernel has no way to clear the bit there"),
        ("[{stack: libreswan, ike_lifetime: 3600500ms}]",
         "3:43: stacks[0].ike_lifetime: expected whole seconds or minutes, such as 3600s or 60m, "
         'got "3600500ms"; IKE daemons count in seconds'),
        ("[{stack: libreswan, version: 4.10-2, prefix: .}]",
         "3:46: stacks[0].prefix: expected version or prefix, got both; "
         "prefix is your own build, version a package: remove one"),
        ("[{stack: strongswan, version: 5.9}]",
         "3:39: stacks[0].version: expected a package version such as 5.9.8-5+deb12u1, got 5.9; "
         "quote it; `apt list -a` shows those there are"),
        ("[{stack: strongswan, ike: aes128-sha256}]",
         "3:35: stacks[0].ike: expected an IKE proposal written encryption-integrity-group, such as "
         'aes128-sha256-ecp256, got "aes128-sha256"; '
         "encryption: 3des, aes128, aes256, aes128gcm16, aes256gcm16; "
         "integrity: sha1, sha256, sha384, sha512; group: modp2048, modp3072, ecp256, ecp384, x25519"),
        ("[{stack: strongswan, ike: aes128-sha256-epc256}]",
         "3:35: stacks[0].ike: expected an IKE proposal whose group is one of modp2048, modp3072, ecp256, "
         'ecp384, x25519, got "aes128-sha256-epc256"; did you mean ecp256?'),
        ("[{stack: strongswan, lifetime: 23s}]",
         "3:40: stacks[0].lifetime: expected 0 (never) or at least 24s, twice a search trial and a final trial, "
         'got "23s"; a rekey inside a trial makes it INVALID: lengthen lifetime or shorten the trials'),
        ("[{stack: xfrm, lifetime_bytes: 10MB}]",
         "3:24: stacks[0].lifetime_bytes: expected no lifetime_bytes on xfrm, got lifetime_bytes; "
         "its SAs are static, nothing negotiates: remove it"),
        ("[{stack: strongswan-libipsec, idle_timeout: 30s}]",
         "3:39: stacks[0].idle_timeout: expected no idle_timeout on strongswan-libipsec, got idle_timeout; "
         "its ESP is not the kernel's: remove it"),
        ("[{stack: libreswan, idle_timeout: 30s}]",
         "3:29: stacks[0].idle_timeout: expected strongswan on Home, whose charon deletes SAs without traffic, got "
         "libreswan, which has no such timeout; use stack: strongswan, or remove it"),
        ("[{stack: strongswan, idle_timeout: 10s}]",
         "3:44: stacks[0].idle_timeout: expected 0 (never) or at least 14s, twice the waits between two trials, got "
         '"10s"; the SAs would be gone before the next trial: lengthen it, or shorten settle and residue'),
        ("[{stack: strongswan, lifetime_bytes: 10MiB}]",
         "3:46: stacks[0].lifetime_bytes: expected a number of bytes such as 10MB, "
         'got "10MiB"; write a whole number and its unit: kB, MB or GB'),
        ("[{stack: xfrm, tunnels: 0}]",
         "3:33: stacks[0].tunnels: expected at least 1, got 0; choose a larger value"),
    ],
)  # fmt: skip
def test_options_that_do_not_belong_together_are_named(stacks: str, message: str) -> None:
    """One line each: where, what was expected, what came, what to do."""
    assert _said(stacks) == message


def test_ike_cannot_negotiate_null_with_null() -> None:
    """The plan is sent to the stack that has it statically."""
    text = _text("[xfrm, strongswan]").replace("[aes128gcm16]", "[null-null]")
    with pytest.raises(UsageError) as error:
        resolve(read_text(text, "plan.yaml", "plan"))
    assert str(error.value) == (
        "plan.yaml:4:10: suites[0]: expected a suite IKE may negotiate for strongswan, got null-null; ESP "
        "without encryption and integrity is forbidden (RFC 4303 3.2): remove it and add null to stacks, "
        "which has static SAs"
    )
    resolve(read_text(text.replace(", strongswan", ""), "plan.yaml", "plan"))


def test_tunnels_and_networks_both_spread_the_traffic() -> None:
    """A plan may have only one of the two."""
    assert _said("[{stack: xfrm, tunnels: 10}]", "flows: {networks: 2}\n") == (
        "3:33: stacks[0].tunnels: expected tunnels: 1 with flows.networks: 2, got 10; "
        "tunnels spread the traffic over networks of their own: remove one of the two keys"
    )


def test_whole_frames_are_smaller_inside_udp() -> None:
    """dont_fragment counts the UDP header, and null's own suite."""

    def checked(stacks: str, size: int) -> None:
        text = _text(stacks, "dont_fragment: true\n").replace("[512]", f"[{size}]")
        resolve(read_text(text, "plan.yaml", "plan"))

    checked("[{stack: xfrm, udp_encapsulation: true}]", 1456)
    with pytest.raises(UsageError, match=r"at most 1456 B .*\(aes128gcm16, tunnel mode in UDP, IPv4"):
        checked("[{stack: xfrm, udp_encapsulation: true}]", 1457)
    checked("[null, xfrm]", 1464)
    with pytest.raises(UsageError, match=r"at most 1488 B .*\(null-null, tunnel mode, IPv4"):
        checked("[null, xfrm]", 1489)


@pytest.mark.parametrize("dont_fragment", ["false", "true"])
def test_frames_that_charons_tun_device_does_not_take(dont_fragment: str) -> None:
    """The plan is refused whether they may be fragmented or not, and whoever else is in it."""
    text = _text("[xfrm, strongswan-libipsec]", f"dont_fragment: {dont_fragment}\n")
    resolve(read_text(text.replace("[512]", "[1418]"), "plan.yaml", "plan"))
    with pytest.raises(UsageError) as error:
        resolve(read_text(text.replace("[512]", "[64, 1419]"), "plan.yaml", "plan"))
    assert str(error.value) == (
        "plan.yaml:5:19: frame_sizes[1]: expected frames of at most 1418 B with strongswan-libipsec (charon reads "
        "at most 1400 B from its TUN device), got 1419; choose 1418 or less, or measure that stack in a plan of its own"
    )


@pytest.mark.parametrize("stack", ["stack: libreswan", "home: strongswan, office: libreswan"])
@pytest.mark.parametrize("key", ["lifetime", "ike_lifetime"])
def test_libreswan_keeps_no_sa_longer_than_a_day(stack: str, key: str) -> None:
    """A tenth of it is for rekeying; strongSwan keeps them as long as one likes."""
    _plan(f"[{{{stack}, {key}: 78545s}}]")
    _plan(f"[{{stack: strongswan, {key}: 1400m}}]")
    assert f'stacks[0].{key}: expected 0 (never) or at most 78545s with libreswan, got "84000s"' in _said(
        f"[{{{stack}, {key}: 1400m}}]"
    )
