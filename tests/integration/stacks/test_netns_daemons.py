# SPDX-License-Identifier: Apache-2.0
"""A daemon in a namespace of the running kernel: it does its work, and can write no file of the host."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from espbench.measure.inputs.traffic import Traffic
from espbench.measure.proof import counters, readiness
from espbench.stacks.daemons.daemon import NegotiationFailed
from espbench.stacks.daemons.sa_events import Phase
from support.gateways.workshop import Workshop

pytestmark = [pytest.mark.root, pytest.mark.needs("tun"), pytest.mark.untimed]


def test_esp_in_user_space_needs_nothing_of_the_running_kernel_but_tun(shop: Workshop) -> None:
    """The largest frame its TUN device takes; the Security Context says what it is, not what kernel ESP would be."""
    with shop.pair("strongswan-libipsec", "aes128gcm16", dut="netns", frame_sizes=[1418]) as (setup, _):
        assert setup.stack is not None
        shown = readiness.establish(setup, Traffic(((1418, 1),), 4, "both-ways"))
        context = setup.stack.security_context()
    assert shown["cleartext blocked, tunnel down"].startswith("0 of ")
    assert context["mismatches"] == []
    assert context["protocol"] == "ESP in UDP"
    assert context["based on"] == "routes to a TUN device"
    assert "blackhole route" in context["cleartext"]
    for side in ("home", "office"):
        build = context[side]["build"]
        assert "strongswan-charon" in build
        assert context["stack_version"][side].endswith(
            f"({build.partition('strongswan-charon ')[2].partition(',')[0]})"
        )


def test_gateways_write_no_file_of_the_host(shop: Workshop, tmp_path: Path) -> None:
    """Their daemons are root; /run, /etc and /var are memory of their own."""
    with shop.pair("strongswan-libipsec", "aes128gcm16", dut="netns", frame_sizes=[256]) as (setup, _):
        gateway = setup.bed.gateways["home"]
        for place in (tmp_path, Path.home(), "/tmp", "/opt", "/dev/shm"):
            done = gateway.run(["sh", "-c", f"echo x > {place}/espbench-was-here"])
            assert "Read-only file system" in done.err, place
        assert gateway.run(["sh", "-c", "echo 0 > /proc/sys/net/ipv4/conf/all/rp_filter"]).rc == 0
        assert gateway.run(["sh", "-c", "touch /run/x /etc/x /var/x"]).rc == 0
    assert not Path("/etc/x").exists()
    assert not Path("/run/x").exists()


def test_a_configuration_charon_refuses_is_told_in_its_words_and_final(shop: Workshop) -> None:
    """Trying again would not help."""
    with shop.pair("strongswan-libipsec", "aes128gcm16", dut="netns", frame_sizes=[256]) as (setup, _):
        charon = setup.stack.daemons["home"]  # type: ignore[union-attr]
        charon.end = replace(charon.end, options=replace(charon.end.options, ike="aes128-sha256-none"))
        charon.start()
        with pytest.raises(
            NegotiationFailed, match=r"refuses its configuration: .*'gateways' failed.*proposals"
        ) as caught:
            charon.load()
    assert caught.value.final


def test_a_charon_that_died_is_a_mismatch(shop: Workshop) -> None:
    """The Security Context says it, and it is no reason to give the pair up."""
    with shop.pair("strongswan-libipsec", "aes128gcm16", dut="netns", frame_sizes=[256]) as (setup, _):
        assert setup.stack is not None
        readiness.establish(setup, Traffic(((256, 1),), 4, "both-ways"))
        setup.bed.gateways["home"].run(["sh", "-c", "kill -9 $(cat /run/espbench/strongswan/pid)"])
        first, *_ = setup.stack.security_context()["mismatches"]
        with pytest.raises(NegotiationFailed) as caught:
            setup.stack.rest()
    assert first.startswith("home: charon does not answer: ")
    assert not caught.value.final


@pytest.mark.parametrize("phase", [1, 2])
def test_a_rekey_is_seen_by_the_spis(shop: Workshop, phase: Phase) -> None:
    """The counts of the old SA are lost, and IKE's own datagrams are no frames in clear."""
    with shop.pair("strongswan-libipsec", "aes128gcm16", dut="netns", frame_sizes=[256]) as (setup, _):
        readiness.establish(setup, Traffic(((256, 1),), 4, "both-ways"))
        before = counters.read(setup.bed, setup.stack)
        again = counters.read(setup.bed, setup.stack)
        setup.stack.daemons["home"].rekey(phase)  # type: ignore[union-attr]
        after = counters.read(setup.bed, setup.stack)
    assert counters.rekeyed(counters.moved(before, again)) == []
    assert counters.rekeyed(counters.moved(before, after)) == ["home", "office"]
