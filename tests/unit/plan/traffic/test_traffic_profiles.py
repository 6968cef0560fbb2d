# SPDX-License-Identifier: Apache-2.0
"""traffic/profiles/*.yaml and profiles of a user's own: what they come to, and every mistake with its place."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import UsageError
from espbench.measure.inputs.traffic import Traffic
from espbench.plan import ResolvedPlan, cases, conditions, load_plan, notes, plan_schema, resolve
from espbench.plan.reading.reader import read_text
from espbench.plan.traffic.traffic_pattern import load_pattern
from espbench.plan.traffic.traffic_profiles import load, mix, mix_names, profile_names
from support.plans import external_text, plan_text

pytestmark = pytest.mark.usefixtures("scapy_here")

HEAD = "name: mine\ndescription: d\n"
PLAN = plan_text(
    name="p",
    dut="netns",
    frame_sizes=None,
    generator="scapy",
    traffic="{traffic}",
    tests="[throughput: {{}}]",
)


def profile(folder: Path, text: str) -> Path:
    path = folder / "mine.yaml"
    path.write_text(HEAD + text + "\n")
    return path


def plan(text: str) -> ResolvedPlan:
    return resolve(read_text(text, "plan.yaml", "plan"))


def said(text: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(text)
    return str(error.value)


@pytest.mark.parametrize("name", profile_names())
def test_every_profile_that_comes_with_espbench_can_be_used(name: str) -> None:
    """Its name is its file's, it says what it is and where it is from, and a plan with it is right."""
    loaded, pattern = load(name), load_pattern(name)
    assert loaded.name == pattern.name == name
    assert loaded.description
    assert loaded.source or name == "rfc2544"
    outside = external_text(frame_sizes=None, generator="scapy", traffic=name)
    outside = outside.replace("10.0.1.", "10.1.0.").replace(
        "10.0.2.", "10.2.0."
    )  # there is room for 256 networks
    checked = plan(outside if pattern.ip_version != 6 else PLAN.format(traffic=name))
    assert cases(checked)


@pytest.mark.parametrize(
    ("name", "mean"),
    [("simple-imix", 361.833), ("csit-imix", 353.833), ("csit-imix-ipv6", 365.5), ("imix-genome", 598.0)],
)
def test_the_mixes_have_the_means_they_are_known_by(name: str, mean: float) -> None:
    """353.83 B is what CSIT prints for IMIX_v4_1; the genome aaafg is (3·64 + 1280 + 1518) / 5."""
    shares = mix(name).shares
    assert sum(s * w for s, w in shares) / sum(w for _, w in shares) == pytest.approx(mean, abs=0.001)
    assert (name in mix_names()) == (name != "csit-imix-ipv6")


def test_the_calls_have_the_sizes_of_their_codecs() -> None:
    """Ethernet 18, IPv4 20, UDP 8, RTP 12 and 20 ms of 64 or 8 kbit/s; DSCP EF."""
    for name, bit_rate in (("voip-g711", 64_000), ("voip-g729", 8_000)):
        pattern = load_pattern(name)
        assert pattern.sizes == (18 + 20 + 8 + 12 + bit_rate // 8 // 50,)
        (header,) = pattern.headers
        assert header.data[15] >> 2 == 46


@given(st.text("abcdefgh", min_size=1, max_size=255))
def test_a_genome_is_kept_in_its_exact_order(genome: str) -> None:
    """RFC 6985 specifies a sequence: shares of weight 1 in that order are what generators keep."""
    loaded = load_text(f"genome: {genome}")
    sizes = dict(zip("abcdefgh", (64, 128, 256, 512, 1024, 1280, 1518, 2112), strict=True))
    assert loaded == tuple((sizes[letter], 1) for letter in genome)


def load_text(text: str) -> tuple[tuple[int, ...], ...]:
    from espbench.plan.reading.reader import check  # noqa: PLC0415
    from espbench.plan.traffic.traffic_profiles import Profile, profile_problems  # noqa: PLC0415

    return check(Profile, read_text(HEAD + text, "t.yaml", "traffic profile"), profile_problems).shares


def test_capitals_and_z_have_sizes_of_their_own() -> None:
    """RFC 6985: a custom IMIX, and z for the MTU."""
    assert load_text("genome: AzAa\ncustom: {A: 594, z: 1514}") == ((594, 1), (1514, 1), (594, 1), (64, 1))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sizes: [64]\ngenome: a",
         "1:1: expected exactly one of sizes, mix, genome, pcap, got a mapping; sizes and genome"),
        ("networks: 2",
         "1:1: expected exactly one of sizes, mix, genome, pcap, got a mapping; add sizes: [64, 512]"),
        ("sizes: [63]", "3:9: sizes[0]: expected at least 64, got 63; choose a larger value"),
        ("genome: aakz",
         '3:9: genome: expected letters of RFC 6985 (abcdefghij) or of custom, got "k"; choose one of these'),
        ("genome: aaz",
         '3:9: genome: expected letters of RFC 6985 (abcdefghij) or of custom, got "z"; add custom: {z: 576}'),
        ("genome: aaj",
         '3:9: genome: expected frames of at most 9000 B, got "j" (16000 B); choose a smaller one of a to i'),
        ("genome: aB\ncustom: {B: 100, b: 90}",
         '4:18: custom.b: expected a capital letter, or z for the MTU (RFC 6985), got "b"; the small letters '
         "a to j have the sizes of RFC 6985"),
        ("sizes: [64]\ncustom: {A: 100}",
         "4:1: custom: expected no custom without genome, got one; remove it"),
        ("mix: [{size: 64, weight: 1}]", "3:6: mix: expected at least 2 entry, got a list; add one"),
        ("sizes: [64]\ntemplat: IP()",
         '4:1: templat: expected a key of a traffic profile, got "templat"; did you mean template?'),
        ("pcap: ./none.pcap",
         '3:7: pcap: expected a recording that can be replayed, got "./none.pcap", No such file or directory; '
         "see docs/traffic.md, pcap"),
        ("pcap: mine.yaml",
         '3:7: pcap: expected a recording that can be replayed, got "mine.yaml", one neither pcap nor pcapng; '
         "see docs/traffic.md, pcap"),
        ("pcap: a\ntemplate: Ether()/IP()/UDP()",
         "4:1: template: expected no template with pcap, got one; the recording has the headers: remove it"),
        ("sizes: [64]\ntemplate: Ether()/Dot1Q(vlan=7)/IP()/UDP()",
         "3:9: sizes[0]: expected frames of at least 68 B with these headers, got 64; headers and the test "
         "payload need that much"),
        ("sizes: [128]\nip_version: 4\ntemplate: Ether()/IPv6()/UDP()",
         "4:13: ip_version: expected one IP version, got both; write a profile for each"),
        ("mix:\n- {size: 128, weight: 1, template: Ether()/IP()/UDP()}\n- {size: 64, weight: 2}",
         "5:3: mix[1]: expected a template in each part, or one for all, got none; add template: "
         "'Ether()/IP()/UDP()' here or beside mix"),
        ("sizes: [128]\ntemplate: Ether()/IPP()/UDP()",
         "4:11: template: expected one of Ether, Dot1Q, Dot1AD, IP, IPv6, UDP, TCP, got IPP; write Ether(), up "
         "to two Dot1Q() or Dot1AD(), IP() or IPv6(), UDP() or TCP(), joined by /"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_profile_is_named_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    """File, line, column, key, expected, got, remedy."""
    path = profile(tmp_path, text)
    with pytest.raises(UsageError) as error:
        load_pattern(str(path))
    assert str(error.value) == f"{path}:{message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (PLAN.format(traffic="imix"),
         "plan.yaml:7:10: traffic: expected one of csit-imix, csit-imix-ipv6, imix-genome, ipv6, networks-256, "
         "priority-tag, rfc2544, simple-imix, vlan, voip-g711, voip-g729, or a path, got \"imix\"; did you mean "),
        (PLAN.format(traffic="./no.yaml"),
         'plan.yaml:7:10: traffic: expected a traffic profile that can be read, got "./no.yaml"; it says: '
         "no.yaml: expected a traffic profile file, got: No such file or directory; check the path"),
        (PLAN.format(traffic="csit-imix\nframe_sizes: [64]"),
         "plan.yaml:8:1: frame_sizes: expected no frame_sizes with traffic: csit-imix, got some; the profile "
         "brings its own sizes: remove them"),
        (PLAN.format(traffic="voip-g711\nip_versions: [4, 6]"),
         "plan.yaml:8:18: ip_versions[1]: expected 4 alone with traffic: voip-g711, got 6; its frames are IPv4"),
        (PLAN.format(traffic="vlan"),
         "plan.yaml:7:10: traffic: expected frames without a VLAN tag with gateways espbench builds, got "
         '"vlan" (VLAN 2); they have no VLAN interfaces: use topology: external, or VLAN 0, which only carries'),
        (PLAN.format(traffic="priority-tag\nframe_sizes: [1523]"),
         "plan.yaml:8:15: frame_sizes[0]: expected frames of at most 1522 B (the MTU is 1500), got 1523; choose"),
        (PLAN.format(traffic="priority-tag\nframe_sizes: [64]"),
         "plan.yaml:8:15: frame_sizes[0]: expected frames of at least 68 B for IPv4, got 64; headers and the"),
        (PLAN.format(traffic="voip-g729\nflows: {ports: 49153}"),
         "plan.yaml:8:16: flows.ports: expected at most 49152 ports with traffic: voip-g729, got 49153; source "
         "ports are counted upwards from the profile's 16384"),
        (PLAN.format(traffic="imix-genome").replace("generator: scapy", "generator: trex"),
         'plan.yaml:7:10: traffic: expected sizes in proportions with generator: trex, got "imix-genome", an '
         "exact sequence; use generator: native or scapy"),
        (PLAN.format(traffic="simple-imix\nip_versions: [6]"),
         'plan.yaml:7:10: traffic: expected frames of at least 84 B for IPv6, got "simple-imix" (it holds 64 B)'),
        (PLAN.format(traffic="7"), "plan.yaml:7:10: traffic: expected text, got 7; put it in quotes"),
    ],
)  # fmt: skip
def test_a_mistake_about_traffic_in_a_plan_is_named_with_its_place(text: str, message: str) -> None:
    """The place is the key that its author can mend."""
    assert said(text).startswith(message)


def test_a_profile_fills_in_what_the_plan_leaves_out() -> None:
    """Sizes, IP version and networks; what the plan says itself stands."""
    filled = plan(PLAN.format(traffic="ipv6")).plan
    assert (filled.frame_sizes[0], filled.ip_versions) == (84, [6])
    assert plan(PLAN.format(traffic="networks-256")).plan.flows.networks == 256
    own = plan(PLAN.format(traffic="networks-256\nframe_sizes: [512]\nflows: {networks: 4, ports: 2}")).plan
    assert (own.frame_sizes, own.flows.networks, own.flows.ports) == ([512], 4, 2)
    assert plan(PLAN.format(traffic="rfc2544")).plan.frame_sizes == [64, 128, 256, 512, 1024, 1280, 1518]


def test_the_schema_knows_the_key() -> None:
    """Any text: paths are checked by espbench validate."""
    schema = plan_schema()["properties"]["traffic"]
    assert (schema["type"], schema["default"]) == ("string", "rfc2544")
    assert "espbench list traffic" in schema["description"]


def test_a_mix_is_one_case_under_its_name_and_a_template_goes_with_any_size(tmp_path: Path) -> None:
    """The case carries the headers; results call a mix by the profile's name."""
    profile(tmp_path, "mix: [{size: 128, weight: 3}, {size: 512, weight: 1, template: 'Ether()/IP()/TCP()'}]\n"
            "template: Ether()/IP(tos=4)/UDP()")  # fmt: skip
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(traffic="./mine.yaml"))
    first = cases(load_plan(path))[0]
    assert (first.frame_size, first.sizes) == ("mine", ((128, 3, 0), (512, 1, 1)))
    assert [len(header) for header in first.headers] == [42, 54]
    assert first.mean_frame_size == 224.0
    voice = cases(plan(PLAN.format(traffic="voip-g711\nframe_sizes: [218, simple-imix]\nip_versions: [4]")))
    assert [case.frame_size for case in voice][:2] == [218, "simple-imix"]
    assert voice[1].headers == voice[0].headers != ()


def test_the_streams_carry_the_headers() -> None:
    """Headers are base64, and each frame has the index of its own."""
    traffic = Traffic(((128, 3, 0), (512, 1, 1)), 4, "one-way", headers=(b"\x01", b"\x02"))
    assert traffic.mean_frame_size == 224.0


def test_other_frames_are_other_conditions(tmp_path: Path) -> None:
    """Runs are only comparable where they offered the same frames; a name alone does not say so."""
    listed = []
    mixes = [f"mix: [{{size: {size}, weight: 3}}, {{size: 512, weight: 1}}]" for size in (128, 129)]
    templates = [f"sizes: [128]\ntemplate: Ether()/IP(tos={tos})/UDP()" for tos in (0, 4)]
    for text in (*mixes, *templates):
        profile(tmp_path, text)
        path = tmp_path / "plan.yaml"
        path.write_text(PLAN.format(traffic="./mine.yaml"))
        listed.append(conditions(load_plan(path), [])["traffic"])
    assert len(set(listed)) == 4
    assert all(text.startswith("mine (") for text in listed)
    for name in ("rfc2544", "networks-256", "ipv6", "csit-imix"):  # its frames, otherwise described
        assert conditions(plan(PLAN.format(traffic=name)), [])["traffic"] == "rfc2544"


def test_a_replay_says_what_it_changes(tmp_path: Path) -> None:
    """Notes say it, which go to the terminal and into the report."""
    arp = bytes(12) + b"\x08\x06" + bytes(46)
    voice = bytes(12) + b"\x08\x00" + struct.pack("!BBHHHBBH8x", 0x45, 184, 200, 1, 0, 64, 17, 0)
    voice += struct.pack("!HHHH", 16384, 16386, 180, 0) + bytes(172)
    records = b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in (voice, arp, voice))
    (tmp_path / "rec.pcap").write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + records)
    profile(tmp_path, "pcap: ./rec.pcap")
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.format(traffic="./mine.yaml"))
    checked = load_plan(path)
    assert cases(checked)[0].sizes == ((218, 1, 0), (218, 1, 0))
    assert notes(checked)[:3] == [
        "traffic mine: d",
        "2 frames with one header replayed again and again, at the offered rate and not the recording's; "
        "addresses, TTL and payload are the tester's",
        "1 frame of the recording left out: no IP (type 0x0806)",
    ]
