# SPDX-License-Identifier: Apache-2.0
"""strongSwan's configuration says what the plan asked for, no more."""

from dataclasses import replace

import pytest

from espbench.catalogue.suites import suites
from espbench.stacks.daemons.daemon import Credentials, End, IkeOptions
from espbench.stacks.strongswan.strongswan_config import strongswan_conf, swanctl_conf

END = End(
    own="192.0.2.1",
    peer="192.0.2.2",
    own_id="home",
    peer_id="office",
    tunnels=(("198.18.0.0/16", "198.19.0.0/16"),),
    suite=suites()["aes128gcm16"],
    options=IkeOptions(),
    credentials=Credentials(psk="5ec2e7"),
    initiates=True,
)


def lines(end: End, *, start: bool = False) -> list[str]:
    return [line.strip() for line in swanctl_conf(end, start=start).splitlines()]


def test_the_defaults_send_nothing_on_their_own() -> None:
    """Nothing but ESP may cross the middle link in a trial."""
    written = lines(END)
    for line in ("dpd_delay = 0s", "rekey_time = 0s", "reauth_time = 0", "mobike = no", "encap = no"):
        assert line in written
    assert "keep_alive = 0" in strongswan_conf(user_space=False)


def test_many_tunnels_from_one_address_are_no_flood() -> None:
    """Neither refused nor asked for cookies, each of which would cost an exchange; a single peer has the defaults."""
    many, one = strongswan_conf(user_space=False, peers=100), strongswan_conf(user_space=False)
    for name in ("block_threshold", "cookie_threshold", "cookie_threshold_ip"):
        assert f"    {name} = 0\n" in many
        assert name not in one


@pytest.mark.parametrize(
    ("options", "line"),
    [
        (IkeOptions(esn=True), "esp_proposals = aes128gcm16-esn"),
        (IkeOptions(), "esp_proposals = aes128gcm16-noesn"),
        (IkeOptions(replay_window=0), "replay_window = 0"),
        (IkeOptions(udp_encapsulation=True), "encap = yes"),
        (IkeOptions(df="clear"), "copy_df = no"),
        (IkeOptions(ike="aes256-sha384-modp2048"), "proposals = aes256-sha384-modp2048"),
        (IkeOptions(lifetime_s=60), "life_time = 66s"),
        (IkeOptions(lifetime_bytes=10_000_000), "rekey_bytes = 10000000"),
        (IkeOptions(lifetime_bytes=10_000_000), "life_bytes = 11000000"),
        (IkeOptions(lifetime_bytes=10_000_000), "rand_bytes = 0"),
        (IkeOptions(idle_s=30), "inactivity = 30s"),
        (IkeOptions(idle_s=30), "start_action = trap"),
        (IkeOptions(auth="certificates"), "auth = pubkey"),
    ],
)
def test_each_option_is_written(options: IkeOptions, line: str) -> None:
    assert line in lines(replace(END, options=options))


def test_every_child_belongs_to_the_interface_both_ways() -> None:
    """The SAs of all tunnels, in and out; without an interface none is named."""
    many = replace(END, tunnels=tuple((f"198.18.{n}.0/24", f"198.19.{n}.0/24") for n in range(3)))
    written = lines(replace(many, options=IkeOptions(interface=True)))
    assert written.count("if_id_in = 2544") == written.count("if_id_out = 2544") == 3
    assert "if_id" not in swanctl_conf(many)


def test_only_the_initiator_rekeys() -> None:
    """Both at once would collide."""
    options = IkeOptions(lifetime_s=60, ike_lifetime_s=600)
    assert {"rekey_time = 60s", "rekey_time = 600s"} <= set(lines(replace(END, options=options)))
    answering = lines(replace(END, options=options, initiates=False))
    assert answering.count("rekey_time = 0s") == 2
    assert "life_time = 66s" in answering


def test_bytes_are_rekeyed_by_the_initiator_and_idle_sas_deleted_by_it_alone() -> None:
    """Office's SAs still end in time; without such a lifetime no line says anything of it."""
    asked = IkeOptions(lifetime_bytes=10_000_000, idle_s=30)
    office = lines(replace(END, options=asked, initiates=False))
    assert {"rekey_bytes = 0", "life_bytes = 11000000", "start_action = none"} <= set(office)
    assert not any(line.startswith("inactivity") for line in office)
    assert not any("bytes" in line or "inactivity" in line for line in lines(END))


def test_the_psk_stands_in_it_once_and_not_beside_certificates() -> None:
    assert swanctl_conf(END).count("5ec2e7") == 1
    certificates = replace(END, options=IkeOptions(auth="certificates"))
    assert "5ec2e7" not in swanctl_conf(certificates)
    assert "5ec2e7" not in repr(END)


def test_a_child_for_each_tunnel_and_the_first_is_not_started_twice() -> None:
    many = replace(END, tunnels=tuple((f"198.18.{n}.0/24", f"198.19.{n}.0/24") for n in range(3)))
    assert sum(line.startswith("tunnel") for line in lines(many)) == 3
    assert lines(many, start=True).count("start_action = start") == 2


@pytest.mark.parametrize(("lifetime", "kept"), [(2, 5), (4, 7), (30, 33), (3600, 3960)])
def test_an_sa_outlives_its_rekeying(lifetime: int, kept: int) -> None:
    """A tenth of 4 s is less than the second that daemons and kernel count in: then both would end at once."""
    asked = replace(END, options=IkeOptions(lifetime_s=lifetime, ike_lifetime_s=lifetime))
    written = lines(asked)
    for line in (f"rekey_time = {lifetime}s", f"life_time = {kept}s", f"over_time = {kept - lifetime}s"):
        assert line in written


def test_an_ike_sa_for_each_tunnel_is_home_s_to_ask_for() -> None:
    """Home has a connection for each; Office serves them all from one, and takes them for different peers."""
    two = (("198.18.0.0/17", "198.19.0.0/17"), ("198.18.128.0/17", "198.19.128.0/17"))
    home = replace(END, options=IkeOptions(ike_sa_each=True), tunnels=two)
    assert [line for line in lines(home) if line.startswith("gateways")] == ["gateways0 {", "gateways1 {"]
    office = replace(home, initiates=False)
    assert [line for line in lines(office) if line.startswith("gateways")] == ["gateways {"]
    assert "unique = never" in lines(home)
    assert "reuse_ikesa = no" in strongswan_conf(user_space=False, peers=2)
    assert "reuse_ikesa" not in strongswan_conf(user_space=False)


def test_only_home_waits_for_traffic_and_asks_for_life() -> None:
    """Or both ends would begin at once."""
    asked = IkeOptions(on_demand=True, dpd_s=2.0)
    home, office = (lines(replace(END, options=asked, initiates=initiates)) for initiates in (True, False))
    for line in ("start_action = trap", "dpd_delay = 2s", "dpd_action = restart"):
        assert line in home
        assert line not in office
