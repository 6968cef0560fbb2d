# SPDX-License-Identifier: Apache-2.0
"""Profiles of emulated boards, and what a plan may ask of them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from espbench.catalogue.stack_names import STACKS
from espbench.errors import UsageError
from espbench.paths import data_dir
from espbench.plan import ResolvedPlan, cases, conditions, load_profile, resolve
from espbench.plan.duts.boards import COSTS, SEC_VERSIONS
from espbench.plan.reading.reader import read_text
from support.plans import plan_text

ROOT = Path(__file__).parents[4]
FIRST = data_dir("dut-profiles") / "mpc8548e.yaml"
PLAN = plan_text(
    dut="mpc8548e",
    suites="[3des-sha1]",
    frame_sizes="[512]",
    tests="\n  - throughput: {trial: 2s, final_trial: 10s}",
)


def profile_said(folder: Path, before: str, after: str) -> str:
    """Return what is wrong with the first profile once a text in it is replaced."""
    text = FIRST.read_text()
    assert len(re.findall(before, text, re.MULTILINE)) == 1, before
    path = folder / "mine.yaml"
    path.write_text(re.sub(before, after, text, flags=re.MULTILINE))
    with pytest.raises(UsageError) as error:
        load_profile(str(path))
    return str(error.value).removeprefix(f"{path}:")


def plan(before: str = "", after: str = "") -> ResolvedPlan:
    assert before in PLAN
    return resolve(read_text(PLAN.replace(before, after, 1), "plan.yaml", "plan"))


def said(before: str, after: str) -> str:
    with pytest.raises(UsageError) as error:
        plan(before, after)
    return str(error.value).removeprefix("plan.yaml:")


def test_prices_and_versions_are_those_of_the_model() -> None:
    """One that the model does not know would only be refused when a guest starts."""
    sources = data_dir("emulator") / "sec"
    names = re.search(r"names\[NAMES\] = \{(.*?)\}", (sources / "costs.c").read_text(), re.DOTALL)
    assert names is not None
    assert tuple(re.findall(r'"(\w+)"', names[1])) == COSTS
    versions = re.findall(r'\.name = "(\d\.\d)"', (sources / "version.c").read_text())
    assert tuple(versions) == SEC_VERSIONS


def test_the_first_profile_is_read() -> None:
    profile = load_profile("mpc8548e")
    assert profile.board is not None
    assert profile.board.core_clock == 1_333_000_000
    assert profile.board.sec.costs.startswith("descriptor=")
    assert profile.board.sec.costs.count(":") == len(COSTS) - 1
    assert (profile.core_note, profile.platform) == ("", "qemu_e500")


def test_another_core_is_told_wherever_the_board_is(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(FIRST.read_text().replace("core: e500v2", "core: e500 standing in for e300"))
    assert load_profile(str(path)).core_note == "core: e500 standing in for e300"


def test_conditions_name_everything_that_makes_the_board(tmp_path: Path) -> None:
    """Runs are compared by them."""
    profile = load_profile("mpc8548e")
    profile_conditions = conditions(plan(), [profile])["profiles"]["mpc8548e"]
    assert profile_conditions["memory"] == "128M"
    assert profile_conditions["board"]["sec"]["clock"] == "266MHz"
    assert set(profile_conditions["board"]["sec"]["cycles"]) == set(COSTS)


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (r"core: e500v2.*", "core: fast", "board.core: expected a core such as e500v2"),
        (r"ns_per_instruction: .*", "ns_per_instruction: 0", "expected nanoseconds per instruction"),
        (r"ns_per_instruction: .*", "ns_per_instruction: 5/0", "expected nanoseconds per instruction"),
        (r"ns_per_instruction: .*", "ns_per_instruction: 1e99999999", "expected nanoseconds per instruction"),
        (
            r"ns_per_instruction: .*",
            "ns_per_instruction: '1e9999999999'",
            "expected nanoseconds per instruction",
        ),
        (
            r"ns_per_instruction: .*",
            "ns_per_instruction: '1e-9999999999'",
            "expected nanoseconds per instruction",
        ),
        (r"ns_per_instruction: .*", "ns_per_instruction: 0.12345678", "expected a fraction of numbers up to"),
        (r'version: "2.1"', 'version: "2.3"', "expected a version of the SEC: 2.0, 2.1, 2.2, 2.4, 3.0"),
        (r"clock: 266MHz", "clock: 266", "sec.clock: expected a clock such as 266MHz, got 266"),
        (r"^ +rng:.*\n", "", "got a mapping; add rng"),
        (r"^( +)rng:", r"\1rnd:", "did you mean rng?"),
        (r"sha1: [0-9.]+", "sha1: 1.2345", "cycles with at most three decimals as the price of sha1"),
        (
            r"line_rate: 1Gbps",
            "line_rate: 2Gbps",
            "expected 10Mbps, 100Mbps or 1Gbps with platform: qemu_e500",
        ),
        (r"mtu: 1500", "mtu: 9000", "mtu: expected at most 1500"),
        (r"platform: qemu_e500", "platform: netns", "board: expected no such key with platform: netns"),
        (r"^board:", "i_own_this_network: true\nboard:", "i_own_this_network: expected no such key"),
    ],
)
def test_a_mistake_in_a_board_is_told_where_it_is(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    message = profile_said(tmp_path, before, after)
    assert re.match(r"\d+:\d+: ", message)
    assert words in message


def test_a_board_that_is_not_there_is_asked_for(tmp_path: Path) -> None:
    message = profile_said(tmp_path, r"^board:[\s\S]*", "")
    assert "expected board: with platform: qemu_e500, got none" in message


def test_the_document_names_the_stacks_that_a_board_accepts() -> None:
    """None of them is an ESP of the user's own; the document says so, where it is about kernels of one's own."""
    accepted = []
    for name in STACKS:
        stacks = dict.fromkeys(("xfrm", name))  # a plan without a stack that encrypts is refused
        text = PLAN.replace("[plain, xfrm]", f"[{', '.join(stacks)}]", 1)
        try:
            resolve(read_text(text, "plan.yaml", "plan"))
        except UsageError:
            continue
        accepted.append(name)
    document = " ".join((ROOT / "docs/powerquicc.md").read_text(encoding="utf-8").split())
    sentence = re.search(
        r"No stack of a plan lets an ESP of your own.* carry frames: boards accept (.*?)\. ", document
    )
    assert sentence is not None
    assert (
        set(re.findall("`(.*?)`", sentence[1]))
        == set(accepted)
        == {"plain", "null", "xfrm", "lean-esp", "strongswan"}
    )


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        (
            "[plain, xfrm]",
            "[plain, libreswan]",
            "4:17: stacks[1]: expected plain, null, xfrm, lean-esp or strongswan with mpc8548e",
        ),
        (
            "[plain, xfrm]",
            "[plain, strongswan-libipsec]",
            "4:17: stacks[1]: expected a stack whose ESP is the kernel's with mpc8548e",
        ),
        (
            "[plain, xfrm]",
            "[{home: strongswan, office: libreswan}]",
            "4:10: stacks[0]: expected plain, null, xfrm, lean-esp or strongswan with mpc8548e",
        ),
        ("xfrm]", "{stack: xfrm, mode: transport}]", "stacks[1].mode: expected mode: tunnel with mpc8548e"),
        ("xfrm]", "{stack: xfrm, interface: true}]", "stacks[1].interface: expected interface: false"),
        ("xfrm]", "{stack: xfrm, esn: true}]", "stacks[1].esn: expected esn: false with mpc8548e"),
        ("xfrm]", "{stack: xfrm, tunnels: 201}]", "stacks[1].tunnels: expected tunnels: at most 200"),
        (
            "xfrm]",
            "{stack: xfrm, crypto: fast}]",
            "crypto: expected one of async, polling, dual-pass, software",
        ),
        (
            "plain,",
            "{stack: null, crypto: async}, plain,",
            "expected no crypto on null, got crypto; xfrm and lean-esp alone have this option",
        ),
        ("xfrm]", "{stack: lean-esp, mode: transport}]", "expected no mode on lean-esp, got mode; it has no"),
        ("xfrm]", "lean-esp]\nip_versions: [6]", "ip_versions: expected 4 with lean-esp, got"),
        (
            "xfrm]\nsuites: [3des-sha1]\nframe_sizes: [512]",
            "lean-esp]\nsuites: [3des-sha1]\nframe_sizes: [1457]",
            "expected frames of at most 1456 B with lean-esp (it does not fragment",
        ),
        ("frame_sizes", "generator: scapy\nframe_sizes", "generator: expected generator: native, without"),
        (
            "frame_sizes",
            "generator: {native: {tx: xdp}}\nframe_sizes",
            "generator: expected generator: native, without settings, with mpc8548e",
        ),
        ("frame_sizes", "capture: true\nframe_sizes", "capture: expected no capture with mpc8548e"),
        ("tests:", "tests:\n  - public_key: {}", "tests[0].public_key: expected no public_key with mpc8548e"),
        (
            "tests:",
            "tests:\n  - reset: {what: power, load: 100fps}",
            "tests[0].reset.what: expected daemon or sa-flush, got power with mpc8548e",
        ),
        (
            "tests:",
            "tests:\n  - attack: {kind: replay, load: 100fps, rates: [100fps]}",
            "tests[0].attack.kind: expected no replay with mpc8548e",
        ),
        ("frame_sizes", "line_rate: 10Gbps\nframe_sizes", "line_rate: expected 10Mbps, 100Mbps or 1Gbps"),
    ],
)
def test_what_a_board_cannot_do_is_told_before_anything_starts(before: str, after: str, words: str) -> None:
    assert words in said(before, after)


def test_only_boards_drive_an_engine_in_another_way() -> None:
    words = said(
        "dut: mpc8548e\nstacks: [plain, xfrm]", "dut: netns\nstacks: [{stack: xfrm, crypto: polling}]"
    )
    assert "stacks[0].crypto: expected no crypto but with platform: qemu_e500" in words


def test_the_lean_esp_is_on_boards_alone() -> None:
    words = said("dut: mpc8548e\nstacks: [plain, xfrm]", "dut: netns\nstacks: [lean-esp]")
    assert "stacks[0]: expected lean-esp with a DUT of platform: qemu_e500" in words


def test_a_sec_without_a_hash_has_no_dual_pass(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(FIRST.read_text().replace('version: "2.1"', 'version: "2.0"'))
    text = PLAN.replace("dut: mpc8548e", "dut: ./mine.yaml").replace(
        "xfrm]", "{stack: xfrm, crypto: dual-pass}]"
    )
    with pytest.raises(UsageError, match="expected no dual-pass with"):
        resolve(read_text(text, "plan.yaml", "plan"), tmp_path / "plan.yaml")


def test_ways_to_drive_the_engine_are_stacks_of_their_own() -> None:
    asked = plan("xfrm]", "xfrm, {stack: xfrm, crypto: polling, label: klips}]")
    assert [(case.stack.shown, case.stack.options) for case in cases(asked)] == [
        ("plain", {}),
        ("xfrm", {}),
        ("klips", {"crypto": "polling"}),
    ]


def gathering(text: str) -> tuple[str, str]:
    """Replaces the line of the core by itself and the key."""
    return r"^  core: e500v2.*$", f"  core: e500v2\n  coalescing: {text}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{receive: {frames: 0, time: 9us}}", "frames: expected at least 1, got 0"),
        ("{receive: {frames: 256, time: 9us}}", "frames: expected at most 255, got 256"),
        ("{transmit: {frames: 16}}", "time: expected a value, got nothing"),
        ("{transmit: {frames: 16, time: 9}}", "time: expected whole microseconds such as 205us"),
        ("{transmit: {frames: 16, time: 33554us}}", "time: expected 1us to 33553us"),
        ("{rx: {frames: 16, time: 9us}}", "a direction: receive or transmit"),
    ],
)
def test_a_mistake_in_coalescing_is_told(tmp_path: Path, text: str, words: str) -> None:
    assert words in profile_said(tmp_path, *gathering(text))


def test_what_ports_gather_makes_another_board(tmp_path: Path) -> None:
    board = load_profile("mpc8548e-coalesced").board
    assert board is not None
    assert str(board.coalescing.receive) == str(board.coalescing.transmit) == "16 frames or 205 µs"
    profile_conditions = conditions(plan(), [load_profile("mpc8548e"), load_profile("mpc8548e-coalesced")])[
        "profiles"
    ]
    apart = {
        key
        for key in profile_conditions["mpc8548e"]["board"]
        if len({str(of["board"][key]) for of in profile_conditions.values()}) > 1
    }
    assert apart == {"coalescing"}


def with_bus(text: str) -> tuple[str, str]:
    """Replaces the line of the core by itself and the key."""
    return r"^  core: e500v2.*$", f"  core: e500v2\n  bus: {text}"


BUS = "{width: 64, efficiency: 50%, misses_per_us: 10, assumed: [width]}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (BUS.replace("64", "24"), "width: expected one of 8, 16, 32, 64"),
        (BUS.replace("50%", "0.5"), "efficiency: expected a share such as 50%"),
        (BUS.replace("50%", "0%"), "efficiency: expected more than 0%, at most 100%"),
        (BUS.replace("us: 10", "us: 67"), "expected a rate of cache misses that leaves some of the bus"),
        (BUS.replace("[width]", "[clock]"), "assumed[0]: expected one of width, efficiency, misses_per_us"),
        ("{width: 64}", "efficiency: expected a value, got nothing"),
        (BUS.replace("width: 64", "wide: 64, width: 64"), "a key of the memory's bus"),
    ],
)
def test_a_mistake_in_the_bus_is_told(tmp_path: Path, text: str, words: str) -> None:
    assert words in profile_said(tmp_path, *with_bus(text))


def test_a_bus_makes_another_board_and_none_leaves_no_trace() -> None:
    """The bus moves what its width, its clock and its efficiency say, less the CPU's lines of 32 bytes."""
    board, usual = load_profile("mpc8360ea-bus").board, load_profile("mpc8360ea").board
    assert board is not None
    assert usual is not None
    assert board.bus_bytes_per_second == 333_000_000 * 8 // 2 - 10 * 32 * 1_000_000
    assert usual.bus_bytes_per_second is None
    with_it, without = board.model_dump(mode="json"), usual.model_dump(mode="json")
    assert with_it.pop("bus") == {
        "width": 64, "efficiency": "50%", "misses_per_us": 10.0, "assumed": ["width", "efficiency", "misses_per_us"],
    }  # fmt: skip
    assert with_it == without


def test_sets_of_units_make_another_board_and_one_leaves_no_trace() -> None:
    board, usual = load_profile("mpc8379e-two-units").board, load_profile("mpc8379e").board
    assert board is not None
    assert usual is not None
    two, one = board.model_dump(mode="json"), usual.model_dump(mode="json")
    assert two["sec"].pop("at_once") == 2
    assert two == one


LINKS = (
    "links: {seed: 3, middle: {loss: 0.001%, reordering: {share: 1%, by: 1ms}}, east: {delay: 300us}}\ntests:"
)


def test_links_that_err_are_conditions() -> None:
    link_conditions = conditions(plan("tests:", LINKS), [])["links"]
    assert link_conditions == {
        "middle": "loss 1e-05, 0.01 of frames 1ms late",
        "east": "delay 300us",
        "seed": 3,
    }
    assert "links" not in conditions(plan(), [])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{middle: {loss: 1}}", "loss: expected a frame loss ratio from 0 to below 1"),
        ("{middle: {bit_errors: -1}}", "bit_errors: expected"),
        ("{middle: {delay: 2}}", "delay: expected a delay such as 300us or 2ms"),
        ("{middle: {delay: 501ms}}", "delay: expected a delay of at most 500ms"),
        ("{middle: {reordering: {share: 1%}}}", "by: expected a value, got nothing"),
        ("{north: {loss: 1%}}", "expected a link (west, middle, east) or seed"),
        (
            "{middle: {delay: 500ms}, west: {delay: 500ms}, east: {delay: 500ms, reordering: {share: 1%, by: 500ms}}}",
            "links: expected less delay in all than the residue of the test throughput, 2 s, got 2 s",
        ),
    ],
)
def test_a_mistake_in_links_is_told(text: str, words: str) -> None:
    assert words in said("tests:", f"links: {text}\ntests:")


def test_links_err_where_espbench_handles_each_frame() -> None:
    for dut in ("mpc8548e", "virt-x86", "uml"):
        text = PLAN.replace("mpc8548e", dut).replace("tests:", LINKS, 1)
        assert resolve(read_text(text, "plan.yaml", "plan")).plan.links is not None


def test_a_device_whose_name_has_line_ends_is_named_on_one_line() -> None:
    text = PLAN.replace("dut: mpc8548e", 'dut: "x\\n\\ny"').replace("tests:", LINKS, 1)
    with pytest.raises(UsageError) as error:
        resolve(read_text(text, "plan.yaml", "plan"))
    assert "no links that err with x" in str(error.value)
    assert all(line.startswith("plan.yaml:") for line in str(error.value).splitlines())


@pytest.mark.parametrize("duts", ["netns", "auto", "[uml, netns]"])
def test_no_link_of_the_kernel_errs(duts: str) -> None:
    """Gateways of the kernel beside others are no exception."""
    text = PLAN.replace("dut: mpc8548e", f"dut: {duts}").replace("tests:", LINKS, 1)
    with pytest.raises(UsageError) as error:
        resolve(read_text(text, "plan.yaml", "plan"))
    problem = next(line for line in str(error.value).splitlines() if ": links: " in line)
    real = "netns" if "netns" in duts else duts
    assert f"links: expected no links that err with {real}: gateways of User-Mode Linux and in " in problem
    assert "got middle, east" in problem
    assert "use dut: uml, virt-x86 or mpc8548e" in problem


@pytest.mark.parametrize("duts", ["uml", "netns", "[mpc8548e, uml]"])
def test_a_seed_is_of_gateways_in_virtual_time_alone(duts: str) -> None:
    """The gateways that `auto` chooses decide there (test_automatic.py)."""
    text = PLAN.replace("tests:", "seed: 2\ntests:", 1)
    assert resolve(read_text(text, "plan.yaml", "plan")).plan.seed == 2
    with pytest.raises(UsageError) as error:
        resolve(read_text(text.replace("dut: mpc8548e", f"dut: {duts}"), "plan.yaml", "plan"))
    real = "uml" if "uml" in duts else duts
    assert f"seed: expected no seed with {real}: gateways in virtual time alone take one, got 2" in str(
        error.value
    )


def test_another_seed_is_a_condition() -> None:
    """The first one is none, as before there were seeds: bases of then stay good."""
    assert conditions(plan("tests:", "seed: 2\ntests:"), [])["seed"] == 2
    assert "seed" not in conditions(plan("tests:", "seed: 1\ntests:"), [])
    assert "seed: expected" in said("tests:", "seed: -1\ntests:")


def test_a_single_gateway_has_no_link_to_another() -> None:
    text = PLAN.replace("topology: gateway-to-gateway", "topology: single-gateway").replace(
        "tests:", LINKS, 1
    )
    with pytest.raises(
        UsageError, match=r"links\.middle: expected west or east with topology: single-gateway"
    ):
        resolve(read_text(text, "plan.yaml", "plan"))
