# SPDX-License-Identifier: Apache-2.0
"""The data files that come with espbench: schema, DUT profiles, topologies, traffic."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, get_args

import jsonschema  # type: ignore[import-untyped]
import pytest
import yaml

from espbench.errors import EspbenchError, UsageError
from espbench.paths import IN_CLONE, DataKind, data_dir
from espbench.plan import (
    load_profile,
    load_topology,
    plan_schema,
    profile_names,
    resolve,
    topology_names,
)
from espbench.plan.duts.topology import Topology, _addresses_agree
from espbench.plan.reading.reader import check, read_text
from espbench.plan.traffic.traffic_profiles import mix, mix_names, rfc2544_frame
from support.plans import plan_validator

REPOSITORY = Path(__file__).parents[3]
PLANS = sorted((REPOSITORY / "plans").glob("*.yaml"))
SMALL = {"name": "a", "topology": "gateway-to-gateway", "stacks": ["plain"], "tests": [{"throughput": {}}]}


def _schema_refuses(plan: dict[str, Any]) -> bool:
    return not plan_validator().is_valid(plan)


def _validate_refuses(plan: dict[str, Any]) -> bool:
    try:
        resolve(read_text(yaml.safe_dump(plan), "plan.yaml", "plan"))
    except UsageError:
        return True
    return False


def test_the_schema_is_a_json_schema_of_draft_2020_12() -> None:
    """Editors pick the draft by $schema."""
    schema = plan_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    jsonschema.Draft202012Validator.check_schema(schema)


def test_every_key_of_the_schema_is_described() -> None:
    """An editor shows the description beside the key."""
    schema = plan_schema()
    objects = [schema, *schema["$defs"].values()]
    objects += [part for one in objects for part in one.get("anyOf", []) if "properties" in part]
    undescribed = [
        key
        for one in objects
        for key, value in one.get("properties", {}).items()
        if "description" not in value
    ]
    assert undescribed == []
    assert {"name", "topology", "tests"} <= schema["properties"].keys()


@pytest.mark.parametrize("path", PLANS, ids=[path.name for path in PLANS])
def test_the_schema_accepts_every_example_plan(path: Path) -> None:
    """The schema must not forbid what the model allows."""
    errors = plan_validator().iter_errors(yaml.safe_load(path.read_text()))
    assert [f"{error.json_path}: {error.message}" for error in errors] == []


@pytest.mark.parametrize(
    "change",
    [
        {"topologi": "external"},
        {"topology": "external"},
        {"stacks": ["ipsec"]},
        {"stacks": [{"stack": "xfrm", "mode": "beet"}]},
        {"stacks": []},
        {"suites": ["rot13"]},
        {"frame_sizes": [63]},
        {"frame_sizes": ["simple-imx"]},
        {"ports": {}},
        {"stacks": [{}]},
        {"stacks": [{"stack": "xfrm", "ike": "aes128-sha256-ecp256"}]},
        {"stacks": [{"stack": "plain", "mode": "tunnel"}]},
        {"stacks": [{"stack": None, "lifetime": 0}]},
        {"stacks": [{"stack": "strongswan-libipsec", "esn": True}]},
        {"stacks": [{"stack": "strongswan", "ike": "aes128-md5-ecp256"}]},
        {"stacks": [{"stack": "strongswan", "version": "latest"}]},
        {"stacks": [{"stack": "strongswan", "tunnels": 1001}]},
        {"stacks": [{"stack": "strongswan", "df": "drop"}]},
        {"stacks": [{"stack": "strongswan", "ike_lifetime": "1.5m"}]},
        {"stacks": [{"home": "strongswan"}]},
        {"stacks": [{"home": "strongswan", "office": "xfrm"}]},
        {"stacks": [{"home": "strongswan", "office": "libreswan", "version": "5"}]},
        {"stacks": [{"stack": "xfrm", "home": "strongswan", "office": "libreswan"}]},
        {"dut": []},
        {"compare": "stacks"},
        {"compare": {}},
        {"compare": {"by": "stack", "seed": -1}},
        {"compare": {"by": "stack", "reference": True}},
        {"tests": [{}]},
        {"tests": [{"jitter": {}}]},
        {"tests": [{"throughput": {"trial": "two"}}]},
        {"tests": [{"throughput": {"minimum": "5"}}]},
        {"tests": [{"throughput": {"loss_goals": [1]}}]},
    ],
)
def test_the_schema_refuses_what_validate_refuses(change: dict[str, Any]) -> None:
    """An editor can mark the mistake while it is made."""
    assert not _schema_refuses(SMALL)
    assert _schema_refuses(SMALL | change)
    assert _validate_refuses(SMALL | change)


@pytest.mark.parametrize(
    "change",
    [
        {"stacks": ["plain", None]},
        {"stacks": ["plain", "null"]},
        {"stacks": [{"stack": None, "label": "best", "esn": True}]},
        {"stacks": [{"stack": "plain", "tunnels": 1000}]},
        {"stacks": [{"stack": "strongswan", "ike": "aes256gcm16-sha384-x25519", "auth": "certificates"}],
         "suites": ["aes128gcm16"]},
        {"stacks": [{"stack": "libreswan", "lifetime": "10m", "ike_lifetime": 0, "interface": True}],
         "suites": ["null-sha1"]},
        {"stacks": [{"stack": "strongswan-libipsec", "udp_encapsulation": True, "mode": "tunnel"}],
         "frame_sizes": [64, 1418],
         "suites": ["aes128-sha1"]},
        {"stacks": [{"home": "libreswan", "office": "strongswan", "esn": True}], "suites": ["aes128-sha1"]},
        {"stacks": ["plain", None], "compare": "stack"},
        {"stacks": ["plain", None], "compare": {"by": "stack", "reference": None, "seed": 0}},
        {"compare": {"by": "frame_size", "reference": 512}},
    ],
)  # fmt: skip
def test_the_schema_accepts_what_validate_accepts(change: dict[str, Any]) -> None:
    """A good plan must not be marked."""
    assert not _validate_refuses(SMALL | change)
    assert not _schema_refuses(SMALL | change)


def test_the_schema_knows_that_a_test_may_leave_all_settings_out() -> None:
    """`- throughput:` with nothing under it is a test with defaults."""
    assert not _schema_refuses(SMALL | {"tests": [{"throughput": None}]})


def test_the_profiles_that_come_with_espbench_can_be_read() -> None:
    """Their names are their file names; queues are named for the report."""
    assert {"mpc8548e", "netns", "remote-example", "uml"} <= set(profile_names())
    for name in ("netns", "uml"):
        profile = load_profile(name)
        assert (profile.name, profile.platform, profile.mtu) == (name, name, 1500)
        assert profile.line_rate == {"netns": 10e9, "uml": 1e9}[name]
        assert profile.queues


def test_a_profile_beside_the_plan_may_give_each_gateway_its_kernel(tmp_path: Path) -> None:
    """Paths start at the profile's folder; a bare name is left to PATH."""
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "two.yaml").write_text(
        "{name: two, description: d, platform: uml, memory: 512M, modules: ./modules, "
        "kernel: {home: ./old/linux, office: linux.uml}}"
    )
    profile = load_profile("./mine/two.yaml", tmp_path / "plan.yaml")
    assert profile.kernel.home == str(tmp_path / "mine" / "old" / "linux")
    assert profile.kernel.office == "linux.uml"
    assert profile.modules is not None
    assert profile.modules.home == profile.modules.office == str(tmp_path / "mine" / "modules")
    assert profile.memory == 512


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("platform: kvm",
         "3:11: platform: expected one of netns, uml, remote, qemu_e500, qemu_x86, ixp, "
         'got "kvm"; choose one of these'),
        ("platform: uml\nmemory: 1G",
         '4:9: memory: expected memory from 128M to 512M, got "1G"; 256M is enough for one tunnel'),
        ("platform: uml\nkernel: {home: a}",
         "4:9: kernel.office: expected a value, got nothing; add the key office"),
        ("platform: uml\nkernal: a",
         '4:1: kernal: expected a key of a DUT profile, got "kernal"; did you mean kernel?'),
        ("platform: netns\nkernel: a",
         "4:1: kernel: expected no such key with platform: netns, got one; "
         "namespaces are of this machine and run its kernel; remove it"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_profile_is_named_with_its_place(tmp_path: Path, line: str, message: str) -> None:
    """Profiles are read like plans: file, line, column, key, expected, got, remedy."""
    path = tmp_path / "p.yaml"
    path.write_text(f"name: p\ndescription: d\n{line}\n")
    with pytest.raises(UsageError) as error:
        load_profile(str(path))
    assert str(error.value) == f"{path}:{message}"


def test_an_unknown_profile_is_answered_with_the_known_ones() -> None:
    """The answer also has the nearest of them."""
    with pytest.raises(UsageError) as error:
        load_profile("umll")
    assert (
        str(error.value)
        == f'dut: expected a profile ({", ".join(profile_names())}) or a path, got "umll"; did you mean uml?'
    )


def test_the_gateway_to_gateway_topology_uses_the_benchmarking_blocks() -> None:
    """198.18.0.0/15 (RFC 2544 C.2.2) and 2001:2::/48 (RFC 5180 8), 256 networks on each side."""
    assert topology_names() == ["external", "gateway-to-gateway", "no-network", "single-gateway"]
    topology = load_topology("gateway-to-gateway")
    ipv4, ipv6 = topology.addresses(4), topology.addresses(6)
    assert ipv4.networks("east", 2) == ["198.19.0.0/24", "198.19.1.0/24"]
    assert ipv4.networks("west", 256)[-1] == "198.18.255.0/24"
    assert ipv6.networks("east", 2) == ["2001:2:0:2000::/64", "2001:2:0:2001::/64"]
    assert len(set(ipv6.networks("west", 256))) == 256
    assert topology.macs is not None
    assert len(set(topology.macs.model_dump().values())) == 6


def test_an_external_topology_has_no_addresses_of_its_own() -> None:
    """They come from the plan's ports; asking for them says so."""
    with pytest.raises(UsageError, match="external takes them from the plan's ports"):
        load_topology("external").addresses(4)
    with pytest.raises(UsageError, match="did you mean external"):
        load_topology("externl")


@pytest.mark.parametrize(
    ("right", "wrong", "message"),
    [
        ("home_wan: 192.0.2.1/30", "home_wan: 192.0.2.9/30", "home_wan and office_wan are the two ends"),
        ("office_wan: 192.0.2.2/30", "office_wan: 192.0.2.1/30", "home_wan and office_wan are the two ends"),
        ("west: 198.18.0.0/16", "west: 198.20.0.0/16", "an address of west"),
        ("network_prefix: 24", "network_prefix: 20", "room for 256 networks in west"),
    ],
)
def test_a_topology_whose_addresses_disagree_is_refused(right: str, wrong: str, message: str) -> None:
    """Both ends of a link are in one network, each LAN behind its selector, 256 networks fit."""
    text = (data_dir("topologies") / "gateway-to-gateway.yaml").read_text()
    assert right in text
    with pytest.raises(UsageError, match=message):
        check(Topology, read_text(text.replace(right, wrong), "t.yaml", "topology"), _addresses_agree)


def test_the_test_frame_fills_a_64_byte_frame_exactly() -> None:
    """14 + 20 + 8 + 18 + 4 for IPv4, 20 more for IPv6."""
    assert rfc2544_frame().smallest_frame(4) == 64
    assert rfc2544_frame().smallest_frame(6) == 84


def test_every_mix_is_named_after_its_file() -> None:
    """frame_sizes names the file; the report shows the name inside."""
    assert "simple-imix" in mix_names()
    assert "rfc2544" not in mix_names()
    for name in mix_names():
        assert mix(name).name == name


def test_a_wheel_holds_the_same_data_as_the_clone() -> None:
    """Each kind is put where paths.py looks for it."""
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert included == {place: f"espbench/_data/{kind}" for kind, place in IN_CLONE.items()}
    assert set(get_args(DataKind)) == set(IN_CLONE)


def test_missing_data_is_said_to_be_a_broken_installation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No traceback about a file the user never heard of."""
    monkeypatch.setattr("espbench.paths._CLONE", tmp_path)
    monkeypatch.setattr("espbench.paths._PACKAGE", tmp_path)
    with pytest.raises(EspbenchError, match="install espbench again"):
        data_dir("topologies")


@pytest.mark.parametrize(
    ("text", "remedy"),
    [
        ("frame_sizes: [0512, 64]", "write 512, or put it in quotes: YAML takes it for an octal number"),
        ("gateway_mac: 52:54:00:12:34:56", "put it in quotes: YAML takes it for a number to the base 60"),
        ("trial: 1:30", "put it in quotes: YAML takes it for a number to the base 60"),
        ("load: 1:30.5", "put it in quotes: YAML takes it for a number to the base 60"),
    ],
)
def test_numbers_that_yaml_reads_otherwise_are_refused(text: str, remedy: str) -> None:
    """0512 would be 330, and QEMU's usual MAC address a number of eleven digits."""
    with pytest.raises(UsageError) as error:
        read_text(text, "plan.yaml", "plan")
    assert "expected a number in decimal digits, got " in str(error.value)
    assert remedy in str(error.value)


@pytest.mark.parametrize(
    "text", ["a: 512", "a: 0", "a: -0", "a: 0x10", "a: 0.5", "a: '0512'", "a: '52:54:00:12:34:56'", "a: 08"]
)
def test_other_numbers_and_texts_are_read(text: str) -> None:
    assert "a" in read_text(text, "plan.yaml", "plan").data
