# SPDX-License-Identifier: Apache-2.0
"""Functions get the costs that QEMU counted: nothing is lost from addresses to names to differences."""

from __future__ import annotations

import json
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError, UsageError
from espbench.profile import csv_file, flame, from_run, symbols
from espbench.profile.attribution import ASKING, WHERES, Profile, attribute
from espbench.profile.difference import difference
from espbench.profile.sections import How, Node, Run, Section, sections
from espbench.profile.symbols import UNNAMED, Function

BASE = 0xFFFF_FFFF_8100_0000
TABLE = f"""\
0000000000000000 T hidden
{BASE:x} T cpu_startup_entry
{BASE + 0x100:x} t do_idle
{BASE + 0x200:x} T asm_common_interrupt
{BASE + 0x300:x} T __softirqentry_text_start
{BASE + 0x300:x} T __do_softirq
{BASE + 0x400:x} d some_data
{BASE + 0x500:x} W weak_alias
{BASE + 0x500:x} T esp_input
ffffffffc0001000 t esp_output\t[esp4]
ffffffffc0001080 t esp_xmit\t[esp4]
"""
NAMES = symbols.read(TABLE)
ESP = Function("esp_output", "esp4")


@pytest.mark.parametrize(
    ("address", "name"),
    [
        (BASE - 1, None),
        (BASE, "cpu_startup_entry"),
        (BASE + 0xFF, "cpu_startup_entry"),
        (BASE + 0x300, "__do_softirq"),
        (BASE + 0x400, "__do_softirq"),
        (BASE + 0x500, "esp_input"),
        (BASE + 0x500 + 0xFFFF, "esp_input"),
        (BASE + 0x500 + 0x10000, None),
        (0xFFFF_FFFF_C000_107F, "esp_output [esp4]"),
        (0xFFFF_FFFF_C000_1080, "esp_xmit [esp4]"),
    ],
)
def test_an_address_is_in_the_last_function_before_it(address: int, name: str | None) -> None:
    """Data are no functions, of two names of an address the plainer one counts, and no function is endless."""
    function = NAMES.at(address)
    assert (str(function) if function else None) == name


def test_addresses_that_are_hidden_are_none() -> None:
    """A kernel that tells zeros (kptr_restrict) names nothing, in place of everything by its last line."""
    assert len(symbols.read("0000000000000000 T one\n0000000000000000 T two\n")) == 0


def test_sections_are_read_as_qemu_writes_them() -> None:
    """Addresses are steps from each other; a block that was cut short three times of five executed less."""
    text = (
        "section 64 6f\nnode 0 0 0 0\nnode 1 0 1 ffffffff81000200\n"
        "block a ffffffff81000200 3 5\nran 1 a 5 1-3 2-1\nend\n"
    )
    (section,) = sections(text)
    assert section.blocks[10] == [BASE + 0x200, BASE + 0x203, BASE + 0x208]
    assert section.nodes[1] == Node(0, How.INTERRUPT, BASE + 0x200)
    assert list(section.executed()) == [
        (1, BASE + 0x200, 5), (1, BASE + 0x203, 2), (1, BASE + 0x208, 1)
    ]  # fmt: skip
    assert section.counted == 8
    assert section.clock == 11


@pytest.mark.parametrize(
    "text", ["section 1 2\nran 0 0 1\n", "section x y\nend\n", "section 1 2\nwhat 1\nend\n"]
)
def test_a_section_that_is_not_whole_is_an_error(text: str) -> None:
    """A guest that was killed while it wrote leaves half of one."""
    with pytest.raises(EspbenchError, match="section"):
        sections(text)


def section(runs: list[Run], nodes: dict[int, Node], blocks: dict[int, list[int]]) -> Section:
    """A section whose clock counted what its runs did."""
    counted = Section(0, 0, nodes, blocks, runs).counted
    return Section(1000, 1000 + counted, nodes, blocks, runs)


NODES = {
    0: Node(0, How.CALL, 0),
    1: Node(0, How.INTERRUPT, BASE + 0x200),
    2: Node(1, How.CALL, BASE + 0x300),
    3: Node(2, How.CALL, 0xFFFF_FFFF_C000_1000),
    4: Node(0, How.USER, 1),
    5: Node(4, How.CALL, BASE + 0x500),
    6: Node(0, How.CALL, BASE),
    7: Node(6, How.CALL, BASE + 0x100),
}
IN_USER = 0x401000


def test_where_a_function_ran_is_told_by_its_callers() -> None:
    """An interrupt's softirq is not the interrupt, a system call is not user space, and idling is neither."""
    blocks = {n: [address] for n, address in enumerate(
        (BASE + 0x200, BASE + 0x300, 0xFFFF_FFFF_C000_1004, IN_USER, BASE + 0x510, BASE + 0x101), 1
    )}  # fmt: skip
    runs = [
        Run(1, 1, 1, {}),
        Run(2, 2, 2, {}),
        Run(3, 3, 4, {}),
        Run(4, 4, 8, {}),
        Run(5, 5, 16, {}),
        Run(7, 6, 32, {}),
    ]
    profile = attribute("c", "home", 10, section(runs, NODES, blocks), NAMES)
    assert profile.by_where() == {
        "hard interrupt": 1, "softirq": 6, "process": 16, "idle": 32, "user space": 8
    }  # fmt: skip
    assert profile.by_function()[ESP] == 4
    assert (
        profile.stacks["[hard interrupt]", "asm_common_interrupt", "__do_softirq", "esp_output [esp4]"] == 4
    )
    assert profile.stacks["cpu_startup_entry", "do_idle"] == 32
    assert profile.named_share == pytest.approx(1 - 8 / 63)  # but for the program in user space


runs_of_anything = st.lists(
    st.builds(
        Run,
        node=st.sampled_from(sorted(NODES)),
        block=st.integers(0, 3),
        times=st.integers(6, 1000),
        cuts=st.dictionaries(st.integers(0, 2), st.integers(1, 2), max_size=3),
    ),
    min_size=1,
)
some_addresses = st.lists(
    st.one_of(
        st.integers(BASE - 64, BASE + 0x20000), st.integers(0xFFFF_FFFF_C000_0FF0, 0xFFFF_FFFF_C000_2000)
    ),
    min_size=3,
    max_size=3,
)


@given(runs_of_anything, st.lists(some_addresses, min_size=4, max_size=4), st.integers(0, 5))
def test_the_sum_over_functions_is_what_the_clock_counted(
    runs: list[Run], blocks: list[list[int]], asking: int
) -> None:
    """Nothing is lost and nothing counted twice, whatever was executed wherever, named or not."""
    counted = section(runs, NODES, dict(enumerate(blocks)))
    profile = attribute("c", "home", 7, counted, NAMES, asking)
    assert sum(profile.by_function().values()) == counted.clock - asking
    assert sum(profile.by_where().values()) == counted.clock - asking
    assert sum(profile.stacks.values()) == counted.clock
    assert profile.by_function().get(ASKING, 0) == -asking
    tree = flame.tree(profile)
    assert tree["v"] == counted.clock
    (again,) = csv_file.read(csv_file.text_of([profile]), "profile.csv")
    assert again.costs == dict(profile.costs)


def test_a_count_that_is_not_the_clocks_is_refused() -> None:
    """One instruction less than the clock counted: nobody is told a figure."""
    good = section([Run(1, 0, 5, {})], NODES, {0: [BASE, BASE + 1]})
    bad = Section(good.begin, good.end + 1, good.nodes, good.blocks, good.runs)
    with pytest.raises(EspbenchError, match="10 instructions, the clock counted 11"):
        attribute("c", "home", 1, bad, NAMES)


@pytest.mark.parametrize(
    ("cpu_ns", "ns", "is_same"),
    [(100, "1", True), (101, "1", False), (99, "1", False), (166, "5/3", True), (160, "5/3", False)],
)
def test_the_record_decides(cpu_ns: int, ns: str, *, is_same: bool) -> None:
    """110 instructions, of which reading the clock took 10; where one takes a fraction of a ns, to a few ns."""
    trial = Section(0, 110, {}, {}, [])
    if is_same:
        from_run.demand_the_records("c", "home", trial, 10, cpu_ns, Fraction(ns))
        return
    with pytest.raises(EspbenchError, match="the profile has 100 instructions"):
        from_run.demand_the_records("c", "home", trial, 10, cpu_ns, Fraction(ns))


functions = st.builds(Function, st.sampled_from("abcdef"), st.sampled_from(["kernel", "esp4"]))
profiles = st.builds(
    Profile,
    case=st.just("c"),
    side=st.just("home"),
    frames=st.integers(1, 1000),
    costs=st.dictionaries(st.tuples(functions, st.sampled_from(WHERES)), st.integers(-10, 10**9)),
    stacks=st.just({}),
)


@given(profiles, profiles)
def test_differences_add_up(was: Profile, now: Profile) -> None:
    """The changes of all functions are that of the whole; the largest comes first, and each function once."""
    rows = difference(was, now)
    whole = now.instructions / now.frames - was.instructions / was.frames
    assert sum(row.change for row in rows) == pytest.approx(whole, abs=1e-3, rel=1e-9)
    assert [abs(row.change) for row in rows] == sorted((abs(row.change) for row in rows), reverse=True)
    assert len({row.function for row in rows}) == len(rows)


@given(profiles)
def test_a_profile_does_not_differ_from_itself(profile: Profile) -> None:
    """No row has any change."""
    assert not any(row.change for row in difference(profile, profile))


def test_one_instruction_planted_is_of_its_function() -> None:
    """A nop in esp_output, for each of ten frames."""
    was = Profile("c", "home", 10, {(ESP, "softirq"): 1000, (UNNAMED, "process"): 3}, {})
    now = Profile("c", "home", 10, {(ESP, "softirq"): 1010, (UNNAMED, "process"): 3}, {})
    first, *others = difference(was, now)
    assert (first.function, first.change) == (ESP, 1.0)
    assert not any(row.change for row in others)


def test_a_negative_number_stays_a_number() -> None:
    """Only text is made harmless: an apostrophe would make text of it for every program that reads the file."""
    profile = Profile("c", "home", 10, {(ESP, "softirq"): -7, (UNNAMED, "process"): 5}, {})
    assert [line.split(",")[-3:-1] for line in csv_file.text_of([profile]).splitlines()[1:]] == [
        ["5", "0.500000"],
        ["-7", "-0.700000"],
    ]


def test_no_function_or_case_of_a_profile_is_a_formula() -> None:
    """A label or a module of the user's own may begin as a formula does; reading gives the original."""
    profile = Profile("=case", "home", 10, {(Function("@f", "+m"), "idle"): 7}, {})
    text = csv_file.text_of([profile])
    assert text.splitlines()[1] == "'=case,home,10,'@f,'+m,idle,7,0.700000,name"
    assert csv_file.read(text, "profile.csv") == [profile]


def test_names_and_offsets_are_told_apart() -> None:
    """The file says it of each function, and the terminal in words; a file without it can be read too."""
    costs = {
        (ESP, "softirq"): 870, (Function("0x3a40", "libipsec.so.0"), "user space"): 125, (UNNAMED, "user space"): 5
    }  # fmt: skip
    profile = Profile("c", "home", 10, costs, {})  # type: ignore[arg-type]
    assert (profile.named_share, profile.offset_share) == (0.87, 0.125)
    assert profile.naming == "87.00% of them have a name, 12.50% only an offset, 0.50% neither"
    text = csv_file.text_of([profile])
    assert [line.rpartition(",")[2] for line in text.splitlines()] == [
        "known_by",
        "name",
        "offset",
        "nothing",
    ]
    first = "".join(line.rpartition(",")[0] + "\n" for line in text.splitlines())
    assert csv_file.read(first, "profile.csv") == csv_file.read(text, "profile.csv") == [profile]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", ",".join(csv_file.COLUMNS) + "\nc,home,x,f,m,idle,1,1\n"])
def test_a_csv_file_of_something_else_is_refused(text: str) -> None:
    """The message has its name."""
    with pytest.raises(UsageError, match=r"there\.csv: no profile"):
        csv_file.read(text, "there.csv")


def test_the_flame_graph_fetches_nothing_and_ends_where_it_should() -> None:
    """A function's name cannot end the script that draws it."""
    profile = Profile("c", "home", 1, {(ESP, "softirq"): 5}, {("</script>", "b"): 5})
    page = flame.page("a <b>", [profile])
    assert not re.search(r"https?://(?!www\.w3\.org/2000/svg)", page)
    (data,) = re.findall(r'id="data">(.*?)</script>', page)
    assert json.loads(data)[0]["root"]["c"][0]["n"] == "</script>"
    assert "<title>a &lt;b&gt;</title>" in page
