# SPDX-License-Identifier: Apache-2.0
"""Plans that are spoilt at random, or on purpose, end in a message: never a traceback, never the machine's memory.

`benchmarks/campaign/plan_mutations.py` does the same with as many as one likes.
"""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from campaign import plan_mutations
from campaign.plan_mutations import DUT_PROFILE, TRAFFIC_PROFILE, mutated, sources, tried
from yaml import MappingNode, Node, ScalarNode, SequenceNode, YAMLError

from espbench.errors import UsageError
from espbench.plan import load_plan, resolve
from espbench.plan.reading import bounded_yaml
from espbench.plan.reading.reader import read_text
from espbench.search.loads import Loads
from support.plans import plan_text

REPOSITORY = Path(__file__).parents[4]
PLAN = plan_text(name="a", dut=None, suites="[3des-sha1]", frame_sizes=None, tests="\n  - throughput: {%s}")
_TAGGED = "tests[0].throughput.trial: expected what YAML takes for"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("maximum: 1e999fps", '6:27: tests[0].throughput.maximum: expected a rate from 0.001fps to '
                              '1000000000000fps, got "1e999fps"'),
        ("minimum: 1e-300fps", "6:27: tests[0].throughput.minimum: expected a rate from 0.001fps"),
        ("resolution: 1e-9", "6:30: tests[0].throughput.resolution: expected a relative resolution from 0.01%"),
        ("loss_goals: [1e-300]", "6:31: tests[0].throughput.loss_goals[0]: expected a frame loss ratio"),
        ("trial: !!timestamp foo", f'6:25: {_TAGGED} timestamp, got "foo"'),
        ("trial: !!int ''", f'6:25: {_TAGGED} int, got ""'),
        ("trial: !!bool x", f'6:25: {_TAGGED} bool, got "x"'),
        ("trial: !!int " + "9" * 5000, f"6:25: {_TAGGED} int, got"),
        ("trial: 0x" + "f" * 5000, "6:25: tests[0].throughput.trial: expected a duration"),
        ("trial: " + "[" * 3000 + "]" * 3000, "6:53: expected valid YAML, got: more than 32 levels of nesting"),
        ("trial: " + "a" * 70_000, "1:1: expected a plan of at most 64 KiB, got more"),
        ("trial: [" + "a, " * 11_000 + "a]", "6:17969: expected valid YAML, got: more than 3000 values"),
        ('"\\ud800\\e[31m": 1', "6:17: tests[0].throughput: expected text that is valid Unicode, got "
                                r'"\ud800\u001b[31m"'),
    ],
)  # fmt: skip
def test_what_is_hostile_is_named_like_any_other_mistake(setting: str, said: str) -> None:
    """File, line, column, key path, expected, got."""
    result = tried(PLAN % setting)
    assert result.is_right, result
    assert result.said.startswith(f"plan.yaml:{said}"), result.said


def test_a_row_of_loads_that_would_fill_the_memory_is_refused() -> None:
    """Whoever asks for it; an endless row too."""
    for bounds in ((1.0, float("inf"), 0.01), (1e-300, 1e300, 1e-4), (0.0, 1.0, 0.01), (1.0, 2.0, 1e-9)):
        with pytest.raises(ValueError, match="loads expected"):
            Loads(*bounds)


@pytest.mark.parametrize(
    "dut", ["/dev/zero", "./pipe.yaml", "/", '"./a\\0.yaml"', '"./\\ud800.yaml"', "./large.yaml"]
)
def test_a_profile_that_is_no_file_or_never_ends_is_not_read(tmp_path: Path, dut: str) -> None:
    """A device, a pipe that nobody writes to, a name that is none."""
    os.mkfifo(tmp_path / "pipe.yaml")
    (tmp_path / "large.yaml").write_bytes(b"#" * 70_000)
    path = tmp_path / "plan.yaml"
    path.write_text(PLAN.replace("stacks", f"dut: {dut}\nstacks") % "")
    with pytest.raises(UsageError, match="expected a DUT profile that can be read"):
        load_plan(path)


def test_more_combinations_than_anybody_waits_for_are_refused() -> None:
    """The refusal comes before they are all made."""
    sizes = f"frame_sizes: [{', '.join(map(str, range(64, 1064)))}]\nrepeat: 1000\nstacks:"
    with pytest.raises(UsageError, match="expected at most 20,000 combinations of"):
        resolve(read_text(PLAN.replace("stacks:", sizes) % "", "plan.yaml", "plan"))


def test_many_mistakes_are_one_message_of_bounded_length() -> None:
    """The first fifty, and how many more."""
    many = "".join(f"k{n}: 1\n" for n in range(500))
    with pytest.raises(UsageError) as caught:
        resolve(read_text(PLAN % "" + many, "plan.yaml", "plan"))
    *shown, last = str(caught.value).splitlines()
    assert (len(shown), last) == (50, "plan.yaml: and 450 more")


def test_what_libyaml_reads_pyyaml_reads_alike() -> None:
    """Values, tags and places; but that of an empty value in braces, which each has where it sees it first."""
    read = 0
    texts = [path.read_text() for path in sorted(REPOSITORY.glob("*/*.yaml"))]
    for number in range(60):
        rng = random.Random(f"alike/{number}")
        text = mutated(rng.choice(texts), rng)
        try:
            quick = bounded_yaml._Quick(text).get_single_node()
        except (YAMLError, UnicodeEncodeError):
            continue
        if not any(character in text for character in bounded_yaml._READ_OTHERWISE):
            read += 1
            assert nodes(quick) == nodes(bounded_yaml._Thorough(text).get_single_node()), (number, text[:500])
    assert read > 20


def test_places_after_a_byte_order_mark_are_where_an_editor_has_them() -> None:
    text = "a: {b: \ufeffc, d: 32}"
    assert nodes(bounded_yaml.composed(text)[1]) == nodes(bounded_yaml._Thorough(text).get_single_node())


def nodes(node: Node | None) -> list[tuple[str, str, int, int]]:
    """Tag, text and place of a node and all in it, an alias once."""
    places: list[tuple[str, str, int, int]] = []
    todo, seen = [node], set()
    while todo:
        one = todo.pop()
        if one is None or id(one) in seen:
            continue
        seen.add(id(one))
        text = one.value if isinstance(one, ScalarNode) else ""
        column = one.start_mark.column if text or not isinstance(one, ScalarNode) else 0
        places.append((one.tag, text, one.start_mark.line, column))
        if isinstance(one, MappingNode):
            todo += [part for pair in one.value for part in pair]
        elif isinstance(one, SequenceNode):
            todo += one.value
    return places


def test_a_sample_of_mutated_plans_is_accepted_or_refused_with_a_message() -> None:
    """The same ones each time; what is slow is the campaign's to find."""
    texts = sources()
    for number in range(25):
        rng = random.Random(f"unit/{number}")
        kind, text = rng.choice(texts)
        text = mutated(text, rng)
        result = tried(text, kind, seconds=60)
        assert result.is_right, (number, result, text[:500])


@pytest.mark.parametrize("kind", [plan_mutations.PLAN, DUT_PROFILE, TRAFFIC_PROFILE])
def test_plans_and_what_they_name_are_read_as_they_are(kind: str) -> None:
    """Each text that is mutated is accepted before; of every kind there are some."""
    texts = [text for of, text in sources() if of == kind]
    assert texts
    assert {tried(text, kind, seconds=60, mib=2000).verdict for text in texts} == {"accepted"}


@pytest.mark.parametrize("kind", [DUT_PROFILE, TRAFFIC_PROFILE])
def test_a_mistake_in_a_profile_is_refused_with_its_place(kind: str) -> None:
    result = tried("name: a\nplatform: 1e99999999\n", kind)
    assert result.verdict == "refused", result


@pytest.mark.parametrize("pcap", ["/dev/zero", "pipe.pcap", "/", '"a\\0b.pcap"', '"\\ud800.pcap"'])
def test_a_recording_that_is_no_file_or_never_ends_is_not_read(tmp_path: Path, pcap: str) -> None:
    os.mkfifo(tmp_path / "pipe.pcap")
    result = tried(f"name: a\ndescription: d\npcap: {pcap}\n", TRAFFIC_PROFILE, folder=tmp_path)
    assert result.verdict == "refused", result
    assert "3:7: pcap: expected a recording that can be replayed, got " in result.said
