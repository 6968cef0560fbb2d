# SPDX-License-Identifier: Apache-2.0
"""A real pluto on both gateways of a real UML pair: it negotiates, its SAs carry, its failures have reasons."""

from __future__ import annotations

import contextlib
import re
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace

import pytest

from espbench.catalogue.suites import suites
from espbench.platforms.base import Gateway, Side
from espbench.platforms.uml.uml_kernel import UmlProfile
from espbench.platforms.uml.uml_platform import UmlPlatform
from espbench.stacks.daemons import builds, credentials, layers
from espbench.stacks.daemons.daemon import Credentials, End, IkeOptions, NegotiationFailed
from espbench.stacks.libreswan.pluto import FOLDER, Libreswan
from espbench.stacks.policies import dump_sas
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.uml_pairs import PLACEMENT

pytestmark = [pytest.mark.uml, pytest.mark.untimed]

WAN = {4: ("192.0.2.1", "192.0.2.2"), 6: ("2001:2:0:f::1", "2001:2:0:f::2")}
LAN = {4: ("198.18.0.1", "198.19.0.1"), 6: ("2001:2:0:1000::1", "2001:2:0:2000::1")}
WHOLE = {4: ("198.18.0.0/16", "198.19.0.0/16"), 6: ("2001:2:0:1000::/52", "2001:2:0:2000::/52")}
PSK = "not a secret: \"quotes\" and %words 'too'"
RECEIVER = """
import socket
receiver = socket.socket(socket.{family}, socket.SOCK_DGRAM)
receiver.bind(("{address}", 4000))
receiver.settimeout(120)
open("/run/bound", "w").close()
print(receiver.recvfrom(100), flush=True)
"""
SENDER = """
import socket
sender = socket.socket(socket.{family}, socket.SOCK_DGRAM)
sender.bind(("{source}", 0))
sender.sendto(b"from west", ("{address}", 4000))
"""


@dataclass(frozen=True)
class Pair:
    """Two gateways with libreswan's packages laid over their roots."""

    gateways: dict[Side, Gateway]
    build: builds.Build


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """One boot for all checks."""
    build = builds.find("libreswan", None, None)
    with Registry(f"t{uuid.uuid4().hex[:10]}") as registry:
        logs = tmp_path_factory.mktemp("logs")
        built = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY).build(registry, logs, PLACEMENT)
        for gateway in built.gateways.values():
            layers.lay(gateway, build)
        yield Pair(built.gateways, build)
        assert PSK not in "".join(path.read_text() for path in logs.rglob("*") if path.is_file())


def ends(
    options: IkeOptions | None = None,
    suite: str = "aes128gcm16",
    tunnels: tuple[tuple[str, str], ...] = (WHOLE[4],),
    version: int = 4,
) -> dict[Side, End]:
    """Both ends of a pair that fit each other."""
    options = options or IkeOptions()
    made = credentials.make("certificates") if options.auth == "certificates" else None
    home, office = WAN[version]

    def end(side: Side) -> End:
        mine = side == "home"
        return End(
            own=home if mine else office,
            peer=office if mine else home,
            own_id=side,
            peer_id="office" if mine else "home",
            tunnels=tunnels if mine else tuple((b, a) for a, b in tunnels),
            suite=suites()[suite],
            options=options,
            credentials=made[side] if made else Credentials(psk=PSK),
            initiates=mine,
        )

    return {"home": end("home"), "office": end("office")}


STOP = f"""
pid=$(cat {FOLDER}/pluto.pid 2>/dev/null) || exit 0
$1 --rundir {FOLDER} --shutdown >/dev/null 2>&1
tries=0
while kill -0 "$pid" 2>/dev/null; do
    [ $tries -lt 100 ] || kill -9 "$pid"
    tries=$((tries + 1))
    sleep 0.05
done
ip xfrm state flush proto esp
"""


def stop(gateway: Gateway) -> None:
    """Shut pluto down, which takes its SAs along and tells the peer; a new one can be started."""
    gateway.run(["sh", "-c", STOP, "stop", "/usr/libexec/ipsec/whack"])


@contextlib.contextmanager
def started(pair: Pair, wanted: dict[Side, End]) -> Iterator[tuple[Libreswan, Libreswan]]:
    """Home's and Office's pluto, started and stopped."""
    both = [Libreswan(pair.gateways[side], end, pair.build) for side, end in wanted.items()]
    try:
        for daemon in both:
            daemon.start()
            daemon.load()
        yield both[0], both[1]
        for side, end in wanted.items():
            assert_no_secrets(pair.gateways[side], end.credentials)
    finally:
        for gateway in pair.gateways.values():
            stop(gateway)
    for gateway in pair.gateways.values():
        assert dump_sas(gateway) == []
        assert gateway.run(["pgrep", "-x", "pluto"]).out == ""


def assert_no_secrets(gateway: Gateway, secret: Credentials) -> None:
    """Neither log nor output nor process list nor configuration holds PSK or private key."""
    listed = gateway.run(["sh", "-c", f"ps -e -o args; cd {FOLDER}; cat log output *.conf; ls"]).out
    assert "end.p12" not in listed
    dumped = re.sub(r"[\s|]", "", listed)  # as pluto would dump octets: `| 6e 6f 74`
    for text in (secret.psk, secret.psk.encode().hex(), secret.key_pem[100:140]):
        assert not text or (text not in listed and text not in dumped)


def crosses(pair: Pair, version: int = 4) -> None:
    """A datagram from Home's LAN address reaches Office's, and both SAs have counted it."""
    family = "AF_INET" if version == 4 else "AF_INET6"
    source, address = LAN[version]
    home, office = pair.gateways["home"], pair.gateways["office"]
    text = RECEIVER.format(family=family, address=address)
    office.write("/run/receiver.py", text)
    office.run(["sh", "-c", f"rm -f /run/bound; {sys.executable} -IS /run/receiver.py >/run/received 2>&1 &"])
    deadline = time.monotonic() + 120
    while office.read(["/run/bound"])["/run/bound"] is None and time.monotonic() < deadline:
        time.sleep(0.05)
    before = counted(home, out=True), counted(office, out=False)
    sent = home.run(
        [sys.executable, "-IS", "-c", SENDER.format(family=family, source=source, address=address)]
    )
    assert sent.rc == 0, sent.err
    while not (got := office.read(["/run/received"])["/run/received"]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert got is not None
    assert "from west" in got
    assert source in got
    assert (counted(home, out=True), counted(office, out=False)) == (before[0] + 1, before[1] + 1)


def counted(gateway: Gateway, *, out: bool) -> int:
    """Packets of the gateway's SAs in one direction."""
    own = WAN[4][gateway.side == "office"], WAN[6][gateway.side == "office"]
    return sum(sa.packets for sa in dump_sas(gateway) if (sa.source in own) == out)


def algorithms(pair: Pair) -> set[str]:
    """Kernel names of what the SAs of both gateways use."""
    return {
        text.split(", ")[0]
        for gateway in pair.gateways.values()
        for sa in dump_sas(gateway)
        for text in sa.algorithms.values()
    }


@pytest.mark.parametrize(
    ("suite", "kernel"),
    [
        pytest.param("3des-sha1", {"cbc(des3_ede)", "hmac(sha1)"}, marks=pytest.mark.slow),
        pytest.param("aes128-sha1", {"cbc(aes)", "hmac(sha1)"}, marks=pytest.mark.slow),
        ("aes128gcm16", {"rfc4106(gcm(aes))"}),
        pytest.param("aes256gcm16", {"rfc4106(gcm(aes))"}, marks=pytest.mark.slow),
        pytest.param("aes256-sha256", {"cbc(aes)", "hmac(sha256)"}, marks=pytest.mark.slow),
        ("null-sha1", {"ecb(cipher_null)", "hmac(sha1)"}),
        pytest.param("chacha20poly1305", {"rfc7539esp(chacha20,poly1305)"}, marks=pytest.mark.slow),
    ],
)
def test_a_suite_negotiates_and_carries(pair: Pair, suite: str, kernel: set[str]) -> None:
    """Keys come from a PSK; kernels and pluto have what was asked for; a datagram crosses encrypted."""
    with started(pair, ends(suite=suite)) as (home, office):
        home.initiate(60)
        assert algorithms(pair) == kernel
        for daemon in (home, office):
            reading = daemon.reading()
            assert reading.mismatches == []
            assert reading.tunnels_up == 1
            assert reading.version.startswith("Libreswan ")
            assert reading.ike == "AES_CBC_128-HMAC_SHA2_256-DH19"
        assert home.reason() == ""
        crosses(pair)


def test_certificates(pair: Pair) -> None:
    """RSA certificates of a CA made for the run."""
    with started(pair, ends(IkeOptions(auth="certificates"))) as (home, office):
        home.initiate(60)
        assert home.reading().mismatches == office.reading().mismatches == []
        assert home.reading().details["our auth"].startswith("rsasig")
        crosses(pair)


def test_ipv6(pair: Pair) -> None:
    """IPv6 outside and inside."""
    with started(pair, ends(version=6, tunnels=(WHOLE[6],))) as (home, office):
        home.initiate(60)
        assert home.reading().mismatches == office.reading().mismatches == []
        crosses(pair, version=6)


def test_options_reach_the_kernel(pair: Pair) -> None:
    """Replay window, ESN, UDP encapsulation, DF and another IKE proposal."""
    options = IkeOptions(
        ike="aes256gcm16-sha384-ecp384", replay_window=128, esn=True, udp_encapsulation=True, df="clear"
    )
    with started(pair, ends(options, "aes128-sha1")) as (home, office):
        home.initiate(60)
        assert home.reading().mismatches == office.reading().mismatches == []
        for gateway in pair.gateways.values():
            states = gateway.run(["ip", "xfrm", "state", "list", "nokeys"]).out
            assert states.count("encap type espinudp") == 2
            assert states.count("nopmtudisc") >= 1
            assert {(sa.replay_window, sa.esn) for sa in dump_sas(gateway)} == {(128, True)}
        crosses(pair)


@pytest.mark.slow
@pytest.mark.parametrize("window", [0, 64])
def test_replay_windows(pair: Pair, window: int) -> None:
    """Another window than the usual 32, and none at all, work without ESN."""
    with started(pair, ends(IkeOptions(replay_window=window))) as (home, _):
        home.initiate(60)
        assert home.reading().mismatches == []
        windows = {(sa.replay_window, sa.esn) for g in pair.gateways.values() for sa in dump_sas(g)}
        assert windows == {(window, False)}


@pytest.mark.slow
def test_a_hundred_tunnels_under_one_ike_sa(pair: Pair) -> None:
    """Every tunnel is a pair of SAs of its own."""
    tunnels = tuple((f"198.18.{i}.0/24", f"198.19.{i}.0/24") for i in range(100))
    with started(pair, ends(tunnels=tunnels)) as (home, office):
        home.initiate(60)
        for daemon in (home, office):
            assert daemon.reading().tunnels_up == 100
            assert daemon.reading().mismatches == []
        assert len(dump_sas(pair.gateways["home"])) == 200
        crosses(pair)


def test_rekeying(pair: Pair) -> None:
    """Home alone replaces the SAs in time when they have a lifetime."""
    with started(pair, ends(IkeOptions(lifetime_s=2))) as (home, office):
        home.initiate(60)
        first = {sa.spi for sa in dump_sas(pair.gateways["home"])}
        deadline = time.monotonic() + 120
        while first & {sa.spi for sa in dump_sas(pair.gateways["home"])} and time.monotonic() < deadline:
            time.sleep(0.2)
        assert not first & {sa.spi for sa in dump_sas(pair.gateways["home"])}
        # They go on being rekeyed: in the midst of it there are two, or none that is told.
        while (up := [home.reading().tunnels_up, office.reading().tunnels_up]) != [1, 1]:
            assert time.monotonic() < deadline, up


@pytest.mark.slow
def test_silence_between_the_daemons(pair: Pair) -> None:
    """Without lifetimes nothing crosses the middle link once the tunnel is up."""
    with started(pair, ends()) as (home, _):
        home.initiate(60)
        gateway = pair.gateways["home"]
        for _ in range(5):  # an answer that was asked for twice may still be on its way
            before = gateway.link_counters()[gateway.wan]
            time.sleep(3)
            after = gateway.link_counters()[gateway.wan]
            if after == before:
                break
        assert (after.tx_packets, after.rx_packets) == (before.tx_packets, before.rx_packets)


def test_a_wrong_psk(pair: Pair) -> None:
    """Home is told so; Office knows why."""
    wanted = ends()
    wanted["office"] = replace(wanted["office"], credentials=Credentials(psk="another one"))
    with started(pair, wanted) as (home, office):
        with pytest.raises(NegotiationFailed, match="AUTHENTICATION_FAILED") as caught:
            home.initiate(60)
        assert caught.value.final
        assert PSK not in str(caught.value)
        assert "computed hash does not match hash received from peer" in office.reason()


def test_no_common_ike_proposal(pair: Pair) -> None:
    """Pluto would go on asking; the answer it got is quoted at once."""
    wanted = ends()
    wanted["office"] = replace(wanted["office"], options=IkeOptions(ike="aes256-sha512-ecp384"))
    with started(pair, wanted) as (home, office):
        with pytest.raises(NegotiationFailed, match="NO_PROPOSAL_CHOSEN"):
            home.initiate(60)
        assert "no local proposal matches remote proposals 1:IKE:ENCR=AES_CBC_128" in office.reason()


def test_no_common_esp_proposal(pair: Pair) -> None:
    """The IKE SA comes up, its child does not."""
    wanted = ends()
    wanted["office"] = replace(wanted["office"], suite=suites()["aes256-sha256"])
    with started(pair, wanted) as (home, office):
        with pytest.raises(NegotiationFailed, match="rejected Child SA with NO_PROPOSAL_CHOSEN"):
            home.initiate(60)
        assert "no local proposal matches remote proposals 1:ESP" in office.reason()
        assert any(text.startswith("tunnels up: expected 1") for text in home.reading().mismatches)


def test_a_peer_without_daemon(pair: Pair) -> None:
    """Its kernel says that nobody listens."""
    with started(pair, ends()) as (home, _):
        stop(pair.gateways["office"])
        with pytest.raises(NegotiationFailed, match="Connection refused") as caught:
            home.initiate(60)
        assert not caught.value.final


@pytest.mark.slow
def test_a_peer_that_never_answers(pair: Pair) -> None:
    """Its pluto is stopped in the middle of it all: pluto gives up before the caller does."""
    office_gateway = pair.gateways["office"]
    with started(pair, ends()) as (home, _):
        office_gateway.run(["sh", "-c", f"kill -STOP $(cat {FOLDER}/pluto.pid)"])
        try:
            with pytest.raises(NegotiationFailed, match=r"8 second timeout exceeded.*No response"):
                home.initiate(60)
            with pytest.raises(
                NegotiationFailed, match=r"came up within 1 s.*(retransmission|sent IKE_SA_INIT)"
            ):
                home.initiate(1)
        finally:
            office_gateway.run(["sh", "-c", f"kill -CONT $(cat {FOLDER}/pluto.pid)"])


def test_a_pluto_that_died_is_noticed(pair: Pair) -> None:
    """Its SAs would go on carrying: the reading says that it is gone."""
    with started(pair, ends()) as (home, _):
        home.initiate(60)
        pair.gateways["home"].run(["sh", "-c", f"kill -9 $(cat {FOLDER}/pluto.pid)"])
        deadline = time.monotonic() + 120
        while not (problems := home.reading().mismatches) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert "pluto is not running" in problems[0]
        assert home.reading().tunnels_up == 0
        with pytest.raises(NegotiationFailed, match=r"is Pluto running|Pluto is not running"):
            home.initiate(5)


@pytest.mark.parametrize(
    ("own", "words"),
    [
        ("198.18.0.0/99", "bad subnet leftsubnet=198.18.0.0/99"),
        ("2001:2::/48", "conflicts with rightsubnet=198.19.0.0/16"),
    ],
)
def test_a_connection_it_does_not_take_is_quoted(pair: Pair, own: str, words: str) -> None:
    """Libreswan's own words, from its loader or from its log."""
    wanted = ends(tunnels=((own, "198.19.0.0/16"),))["home"]
    daemon = Libreswan(pair.gateways["home"], wanted, pair.build)
    try:
        daemon.start()
        with pytest.raises(NegotiationFailed, match=re.escape(words)):
            daemon.load()
    finally:
        stop(pair.gateways["home"])


def elsewhere(build: builds.Build, prefix: str) -> builds.Build:
    """The same with its programs under a prefix."""
    return replace(build, programs={name: f"{prefix}/libexec/ipsec/{name}" for name in build.programs})


def test_a_build_under_a_prefix(pair: Pair) -> None:
    """The prefix's own programs run; they negotiate with the packages' ones."""
    prefix = f"{pair.build.folder}/usr"
    wanted = ends()
    home = Libreswan(pair.gateways["home"], wanted["home"], elsewhere(pair.build, prefix))
    office = Libreswan(pair.gateways["office"], wanted["office"], pair.build)
    try:
        for daemon in (home, office):
            daemon.start()
            daemon.load()
        home.initiate(60)
        program = pair.gateways["home"].run(["sh", "-c", f"readlink /proc/$(cat {FOLDER}/pluto.pid)/exe"]).out
        assert program.strip() == f"{prefix}/libexec/ipsec/pluto"
        assert home.reading().mismatches == office.reading().mismatches == []
    finally:
        for gateway in pair.gateways.values():
            stop(gateway)


def test_programs_that_are_not_there_are_named(pair: Pair) -> None:
    """The message has the shell's own words."""
    daemon = Libreswan(pair.gateways["home"], ends()["home"], elsewhere(pair.build, "/opt/nothing"))
    with pytest.raises(NegotiationFailed, match="/opt/nothing/libexec/ipsec/pluto"):
        daemon.start()
    stop(pair.gateways["home"])
