# SPDX-License-Identifier: Apache-2.0
"""Claims held against made-up runs whose truth is known, and that none of what documents print is without a claim."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.catalogue.suites import suites
from espbench.claims import Claim, Judged, Points, claims, judge_all
from espbench.claims.model import CpuFalls, LimitAt
from espbench.claims.other_tests import bus_counts, floods, in_clear, lifetimes
from espbench.claims.points import Limit, behaviour_of, link_fps, points
from espbench.plan import StackChoice, load_profile
from espbench.quantities import Key, figure
from espbench.reporting.published.published_view import BY_ARITHMETIC
from espbench.results.accelerator import AcceleratorResult, Variant
from espbench.results.published import documents
from espbench.sentences import Code
from espbench.terms import (
    CaseEntry,
    CaseIdentity,
    Deviation,
    Finding,
    Manifest,
    Outcome,
    Reason,
    Remark,
    layer2_mbps,
)
from support.synthetic import powerquicc as made
from support.synthetic import run as synthetic_run
from support.synthetic.powerquicc import DEVICES, SIZES, Shape

ROOT = Path(__file__).parents[3]


def points_of(shape: Shape) -> Points:
    return points([made.outcomes(shape)])


def claim(**changes: object) -> Claim:
    base = {
        "id": "made-up",
        "document": "waters-crypto-performance-part-2",
        "where": "nowhere",
        "device": "MPC8548E",
        "says": "something",
    }
    return Claim.model_validate(base | changes)


def judged(shape: Shape, **changes: object) -> Judged:
    (one,) = judge_all([claim(**changes)], points_of(shape))
    return one


ASYNC = {"behaviour": "async"}
POLLING = {"behaviour": "polling"}
LEAN = {"behaviour": "lean"}
PLAIN = {"behaviour": "plain"}


# -- the data ---------------------------------------------------------------------------------------


def test_every_value_a_document_prints_is_a_claim() -> None:
    """Figures (throughput and CPU), ratios and the public-key times at 83 MHz, document by document."""
    claimed = {(c.document, c.value, c.unit) for c in claims()}
    for name, document in documents().items():
        for printed in document.figures:
            if printed.throughput is not None:
                assert (name, printed.throughput.value, "Mbps") in claimed, printed
            if printed.cpu_pct is not None:
                assert (name, printed.cpu_pct, "%") in claimed, printed
        for ratio in document.ratios:
            value = ratio.value if ratio.unit == "x" or ratio.device is None else 1 + ratio.value / 100
            assert (name, value, "x" if ratio.device or ratio.unit == "x" else "%") in claimed, ratio
        for time in document.times:
            assert (name, time.ms[83], "ms") in claimed, time


def test_no_two_claims_have_one_name() -> None:
    ids = [c.id for c in claims()]
    assert len(ids) == len(set(ids))


def test_only_one_device_is_calibrated_on() -> None:
    """Everything else is predicted (but for the public keys, whose cycles are those of every device)."""
    assert {c.device for c in claims() if c.calibration} == {"MPC8548E", None}
    general = [c for c in claims() if c.calibration and c.device is None]
    assert {c.document for c in general} == {"short-waters-public-key-performance"}


def test_the_document_has_the_number_of_claims_that_the_calibration_uses() -> None:
    text = " ".join((ROOT / "docs/published.md").read_text(encoding="utf-8").split())
    (number,) = re.findall(r"Today it uses (\d+) claims", text)
    assert int(number) == sum(c.calibration for c in claims())


def test_an_order_takes_more_than_a_search_cannot_tell() -> None:
    """A claim that A is faster than B would be a matter of luck if 1.001 agreed with it and 0.999 did not."""
    orders = [c for c in claims() if c.unit == "x" and c.qualifier in ("above", "below")]
    assert orders
    assert [c.id for c in orders if c.value == 1 and c.tolerance == 0] == []


def test_a_bound_in_percent_has_no_tolerance() -> None:
    """`At most 12 %` is not `at most 13.2 %`."""
    bounds = [c for c in claims() if c.unit == "%" and c.qualifier in ("above", "below")]
    assert len(bounds) > 10
    assert [c.id for c in bounds if c.tolerance] == []


CAN_HARDLY_FAIL = [
    "accelerator-aes",
    "accelerator-timer",
    "accelerator-worst",
    "accelerators-keys-alone",
    "bus-bottleneck",
    "mpc8548e-aes",
    "np-hashes-ceiling",
    *(f"rsa-{sizes}" for sizes in ("512", "512-3", "1024", "1024-3", "2048", "2048-3")),
    "rsa-held-out",
    "rsa-held-out-measured",
]


@pytest.mark.parametrize("row", CAN_HARDLY_FAIL)
def test_a_row_that_can_hardly_fail_says_so(row: str) -> None:
    (one,) = [c for c in claims() if c.id == row]
    assert re.search("by itself|cannot fail|can hardly fail", one.note)


def test_the_document_counts_the_rows_that_can_hardly_fail() -> None:
    text = (ROOT / "docs/published.md").read_text(encoding="utf-8")
    assert {15: "* *Rows that cannot fail.* Fifteen rows agree"}[len(CAN_HARDLY_FAIL)] in text


def test_the_row_on_a_narrow_bus_says_all_that_its_profile_has_otherwise() -> None:
    """The profile of 16 bits differs from that of 64 in the CPU's cache misses, too."""
    bus = {}
    for name in ("mpc8360ea-bus", "mpc8360ea-bus16"):
        board = load_profile(name).board
        assert board is not None
        assert board.bus is not None
        bus[name] = (board.bus.width, board.bus.misses_per_us)
    assert [*bus.values()] == [(64, 10), (16, 5)]
    (one,) = [c for c in claims() if c.id == "bus-bottleneck"]
    said = [one.note, (ROOT / "docs/board-hardware.md").read_text(encoding="utf-8")]
    pattern = r"16 bits instead of 64, and\s+5 cache misses per µs instead of 10"
    assert [text for text in said if not re.search(pattern, text)] == []


@pytest.mark.parametrize(
    ("row", "untested"), [("sa-lifetime-time", "first use"), ("sa-lifetime-idle", "whichever comes first")]
)
def test_a_row_says_no_more_than_its_test_sees(row: str, untested: str) -> None:
    (one,) = [c for c in claims() if c.id == row]
    assert untested not in one.says
    assert "not tested" in one.note


@pytest.mark.parametrize(
    ("row", "first"),
    [
        ("loss-goal-gain-lossy-link", "over 100 percent"),
        ("mpc8360ea-errors-cpu", "by itself no"),
        ("mpc8379e-gap-closes", "holds; 1.9, 1.0, 1.0"),
    ],
)
def test_a_prediction_that_was_changed_stays_and_the_change_is_marked(row: str, first: str) -> None:
    (one,) = [c for c in claims() if c.id == row]
    assert one.predicted.startswith(first)
    assert ". Revised " in one.predicted


# Rows that differ by the results in docs/published.md and docs/npcryptbench.md, although no prediction says so.
DIFFERING = [
    "mpc8548e-nanosec-1456-cpu", "mpc8548e-nanosec-saturation", "mpc8548e-plain-idle",
    "mpc8313e-nanosec-strongswan-small", "mpc8313e-nanosec-strongswan-large", "mpc8313e-strongswan-small",
    "mpc8323e-strongswan-small", "mpc8323e-netkey-software", "mpc8360ea-plain-one-way", "mpc8360ea-plain-both-ways",
    "mpc8360ea-directions", "mpc8379e-unlimited", "loss-goal-gain", "flood-higher", "accelerator-small",
    "accelerator-1k", "lean-fastest-open", "np-idle-mean", "np-by-hand", "np-memory-immediate-1200",
    "np-immediate-2800", "np-immediate-time", "limit-medium", "mpc8323e-lean", "mpc8548e-cpu-falls",
    "np-compilers-alike", "mpc8548e-null-small", "accelerator-checks",
]  # fmt: skip
# Expected to differ: these agree (docs/npcryptbench.md), or are not judged.
EXPECTED_IN_VAIN = {
    "np-hashes-longer",
    "np-four-threads-busy",
    "rsa-overhead",
}


def test_rows_whose_rule_is_newer_than_the_tally_are_named_above_it() -> None:
    """A reader of the table sees which of its verdicts are of an older rule."""
    text = (ROOT / "docs/published.md").read_text(encoding="utf-8")
    above = text.partition("**The table below is older than some rows.**")[2].partition("| document |")[0]
    newer = [c.id for c in claims() if "ntil 30 November 2026" in c.note + c.lacks]
    assert len(newer) > 12
    assert [row for row in newer if f"`{row}`" not in above] == []


def test_every_row_that_is_known_to_differ_says_why() -> None:
    expected = {
        c.id for c in claims() if re.match(r"(narrowly )?(differs|does not hold)\b", c.predicted)
    } - EXPECTED_IN_VAIN
    assert len(expected) > 40
    assert {"mpc8313e-lean", "mpc8349ea-lean", "limit-large", "mpc8548e-would-exceed"} <= expected
    reasons = {c.id: c.because for c in claims()}
    assert [row for row in [*DIFFERING, *sorted(expected)] if not reasons[row]] == []


def _runs_judge(one: Claim) -> bool:
    """Return whether a run decides the claim, by neither arithmetic nor a figure of the calibration."""
    return one.ours is not None and one.ours.quantity not in BY_ARITHMETIC and not one.calibration


def test_a_row_that_runs_judge_has_a_prediction_or_says_why_it_has_none() -> None:
    assert [c.id for c in claims() if _runs_judge(c) and not (c.predicted or c.unpredicted)] == []
    assert [c.id for c in claims() if c.unpredicted and not _runs_judge(c)] == []
    with pytest.raises(ValueError, match="does not say why"):
        claim(lacks="a bus", predicted="agrees", unpredicted="figure known")


def test_the_document_has_the_numbers_of_rows_with_and_without_predictions() -> None:
    text = " ".join((ROOT / "docs/published.md").read_text(encoding="utf-8").split())
    (numbers,) = re.findall(
        r"Of (\d+) rows that runs judge, (\d+) have a prediction\. Of (\d+) the figure was known when the row was "
        r"written, (\d+) follow from a profile, and of (\d+) no prediction was written down", text
    )  # fmt: skip
    judged_by_runs = [c for c in claims() if _runs_judge(c)]
    kinds = [c.unpredicted for c in judged_by_runs]
    of_kinds = [
        kinds.count(kind) for kind in ("", "figure known", "follows from the profile", "none written down")
    ]
    assert [int(number) for number in numbers] == [len(judged_by_runs), *of_kinds]


@pytest.mark.parametrize(
    "row",
    ["np-localised", "np-storage-1200", "np-storage-2800", "np-second-memory-1200", "np-second-memory-2800"],
)
def test_rows_on_table_iv_follow_from_where_level_0_puts_its_tables(row: str) -> None:
    (one,) = [c for c in claims() if c.id == row]
    assert (one.predicted, one.unpredicted) == ("", "follows from the profile")
    assert "table" in one.note


def test_the_document_counts_the_rows_that_lack_something() -> None:
    text = " ".join((ROOT / "docs/published.md").read_text(encoding="utf-8").split())
    (number,) = re.findall(r"For (\d+) claims the row says instead what espbench lacks", text)
    assert int(number) == sum(bool(c.lacks) for c in claims())
    (rows,) = re.findall(r"(\d+) claims in all", text)
    assert int(rows) == len(claims())


def test_a_claim_without_our_side_says_why() -> None:
    with pytest.raises(ValueError, match="cannot"):
        claim()
    ours = {"quantity": "cpu", "of": ASYNC, "frame_sizes": [64]}
    for both in (
        {"cannot": "never", "ours": ours},
        {"lacks": "a bus", "ours": ours},
        {"cannot": "a", "lacks": "b"},
    ):
        with pytest.raises(ValueError, match="cannot"):
            claim(**both)
    with pytest.raises(ValueError, match="plans"):
        claim(lacks="a bus", plans=["powerquicc"])


def test_what_espbench_lacks_is_not_measured_and_says_so() -> None:
    one = judged(Shape(), value=2, unit="x", lacks="a second kernel")
    assert (one.word, one.why) == ("not measured", "a second kernel")


# -- our values -------------------------------------------------------------------------------------


def test_throughput_is_that_of_the_run() -> None:
    fps, cpu = made.truth(DEVICES["mpc8548e"], "async", 1456)
    ours = {"quantity": "throughput", "of": ASYNC, "frame_size": 1456}
    one = judged(Shape(), value=1057, unit="Mbps", tolerance=0.01, ours=ours)
    assert one.ours.low == one.ours.high == pytest.approx(layer2_mbps(fps, 1456))
    assert one.word == "agrees"
    assert f"at {cpu:.0f} % CPU, limit: accelerator" in one.ours.text


@pytest.mark.parametrize(("value", "word"), [(69, "agrees"), (38, "differs")])
def test_cpu_is_the_busier_gateways(value: float, word: str) -> None:
    _, cpu = made.truth(DEVICES["mpc8548e"], "async", 1456)
    ours = {"quantity": "cpu", "of": ASYNC, "frame_sizes": [1456]}
    one = judged(Shape(), value=value, unit="%", ours=ours, because="the reason")
    assert one.ours.low == pytest.approx(cpu)
    assert (one.word, one.why) == (word, "" if word == "agrees" else "the reason")


def test_a_device_on_links_that_err_is_another() -> None:
    """Its figures are no answer to a claim about the device, and answer one that names the errors."""
    manifest, outcomes = made.outcomes(Shape())
    links = {"links": {"middle": "loss 1e-05", "east": "delay 300us", "seed": 3}}
    erring = manifest.model_copy(update={"conditions": manifest.conditions | links})
    of_claim = {"value": 0.5, "unit": "x", "qualifier": "above", "tolerance": 0}
    both = points([(manifest, outcomes), (erring, outcomes)])
    name = "mpc8548e with middle: loss 1e-05; east: delay 300us"
    ours = {"quantity": "ratio", "of": ASYNC | {"dut": name}, "to": ASYNC, "frame_sizes": [512]}
    (one,) = judge_all([claim(ours=ours, **of_claim)], both)
    assert (one.ours.low, one.ours.high, one.word) == (1, 1, "agrees")
    (alone,) = judge_all([claim(ours=ours, **of_claim)], points([(erring, outcomes)]))
    assert alone.word == "not measured"


# The CPU's time for a frame is the SEC's at 919 B, by the costs the made-up runs are of.
CROSSING = (made.CYCLES["async"] / 1333 * 266 - made.FIXED_CYCLES) / made.BYTE_CYCLES


@pytest.mark.parametrize(
    ("published", "tolerance", "sizes", "word"),
    [
        (900, 0.2, (64, 800, 1024, 1456), "agrees"),  # all of (800, 1024] is within 720 to 1080
        (900, 0.2, (64, 512, 1024, 1456), "not measured"),  # 512 to 720 would be outside
        (900, 0.2, (64, 800, 1456), "not measured"),
        (1024, 0.05, (64, 512, 1024, 1456), "not measured"),
        (1024, 0.05, (64, 800, 970, 1456), "differs"),  # it begins by 970 B, 973 B would be the earliest
        (390, 0.2, (64, 512, 1024, 1456), "differs"),  # at 512 B it has not begun, 468 B would be the latest
        (512, 0.0, (64, 512, 1024, 1456), "differs"),
        (390, 0.2, (64, 1456), "not measured"),
        (1456, 0.1, (64, 512), "not measured"),  # the CPU limits up to the largest size there is
        (390, 0.2, (64, 512), "differs"),
    ],
)
def test_saturation_is_judged_by_sizes_that_can_tell(
    published: float, tolerance: float, sizes: tuple[int, ...], word: str
) -> None:
    assert round(CROSSING) == 919
    one = judged(
        Shape(sizes=sizes), value=published, unit="B", tolerance=tolerance,
        ours={"quantity": "saturation", "of": ASYNC},
    )  # fmt: skip
    assert one.word == word
    below = [size for size in sizes if size < CROSSING]
    assert one.ours.low == max(below)
    if word == "not measured":
        low, high = published * (1 - tolerance), published * (1 + tolerance)
        assert f"from {low:g} to {high:g} B; measure sizes close to those two" in one.why


def test_a_stack_that_never_leaves_the_cpu_idle_has_no_saturation() -> None:
    one = judged(Shape(), value=1024, unit="B", ours={"quantity": "saturation", "of": POLLING})
    assert (one.word, one.ours.low) == ("differs", 1456)
    assert "the CPU limits up to 1456 B" in one.ours.text


def test_a_ratio_agrees_only_if_it_does_at_every_size() -> None:
    device = DEVICES["mpc8313e"]
    ratios = [made.truth(device, "async", s)[0] / made.truth(device, "polling", s)[0] for s in SIZES]
    ours = {"quantity": "ratio", "of": ASYNC, "to": POLLING, "frame_sizes": list(SIZES)}
    shape = Shape(duts=("mpc8313e",))
    one = judged(shape, device="MPC8313E", value=2.2, unit="x", ours=ours)
    assert (one.ours.low, one.ours.high) == pytest.approx((min(ratios), max(ratios)))
    assert one.word == "differs"
    single = ours | {"frame_sizes": [1456]}
    truth = round(ratios[-1], 3)
    assert (
        judged(shape, device="MPC8313E", value=truth, unit="x", tolerance=0.001, ours=single).word == "agrees"
    )


@pytest.mark.parametrize(("qualifier", "word"), [("above", "agrees"), ("below", "differs")])
def test_an_order_has_a_side(qualifier: str, word: str) -> None:
    """Plain forwarding is faster than ESP at each size, in the made-up device as anywhere."""
    ours = {"quantity": "ratio", "of": PLAIN, "to": ASYNC, "frame_sizes": [64, 512]}
    one = judged(Shape(), value=1, unit="x", qualifier=qualifier, tolerance=0, ours=ours)
    assert one.word == word


def test_the_cost_of_a_frame_does_not_depend_on_what_limits() -> None:
    """NULL/NULL costs 3.2 times plain forwarding at 64 B, where the CPU limits both, and where links do."""
    ours = {"quantity": "cost ratio", "of": {"behaviour": "null"}, "to": PLAIN, "frame_sizes": [64, 1456]}
    one = judged(Shape(), value=3.2, unit="x", tolerance=0.001, ours=ours)
    assert one.word == "agrees"
    assert one.ours.low == pytest.approx(3.2)


FALLS = {"quantity": "cpu falls", "of": ASYNC, "start": 1024}
FALLING = (1024, 1280, 1456)  # the made-up CPU is busy up to 919 B


def test_the_load_falls_where_the_accelerator_limits_and_not_where_the_cpu_waits() -> None:
    assert judged(Shape(sizes=FALLING), ours=FALLS).word == "agrees"
    assert judged(Shape(sizes=FALLING), ours=FALLS | {"of": POLLING}).word == "differs"
    assert judged(Shape(sizes=(1024, 1456, 1280)), ours=FALLS).word == "agrees"  # in order of size


@pytest.mark.parametrize(("last", "word"), [(70.0, "agrees"), (79.0, "differs"), (85.0, "differs")])
def test_one_reading_that_does_not_go_on_falling_differs(last: float, word: str) -> None:
    """A reading that is 2 % below the one before is no fall; that it is far below the first does not help."""
    manifest, outcomes = made.outcomes(Shape(behaviours=("async",), sizes=FALLING))
    loads = {1024: 97.0, 1280: 80.0, 1456: last}
    read = [
        o.model_copy(update={"cpu_home_pct": loads[o.frame_size], "cpu_office_pct": 1.0})
        for o in outcomes
        if isinstance(o.frame_size, int)
    ]
    (one,) = judge_all([claim(ours=FALLS)], points([(manifest, read)]))
    assert one.word == word


def test_each_row_on_a_falling_load_begins_where_its_sentence_does() -> None:
    """One that may begin anywhere agrees with any busy CPU and any accelerator; no two are one measurement."""
    rows = {c.id: (c.ours.of, c.ours.start, c.device) for c in claims() if isinstance(c.ours, CpuFalls)}
    assert {row: start for row, (_, start, _) in rows.items()} == {
        "mpc8548e-cpu-falls": 390,  # "begins to saturate the SEC at 390 bytes"
        "mpc8548e-openswan-profile": 1024,  # "does not saturate the SEC until 1024 bytes"
        "lean-cpu-falls": 390,
        "mpc8360ea-cpu-falls": 1024,  # the reading at 1456 B and those before it
        "mpc8555e-nanosec-cpu-falls": 64,  # "steadily declines as packet size increases"
        "mpc8555e-lean-cpu-falls": 64,
    }
    assert len({repr(each) for each in rows.values()}) == len(rows)


@pytest.mark.parametrize("sizes", [(64, 512, 1024), (128, 512, 1456), (64, 1456)])
def test_a_falling_load_needs_both_ends_and_a_size_between(sizes: tuple[int, ...]) -> None:
    one = judged(Shape(sizes=sizes), ours={"quantity": "cpu falls", "of": ASYNC})
    assert (one.word, one.why) == (
        "not measured",
        "mpc8548e, async 3des-sha1, both ways: three frame sizes, of which 64, 1456 B",
    )
    within = {"quantity": "cpu falls", "of": ASYNC, "start": min(sizes), "end": max(sizes)}
    assert judged(Shape(sizes=sizes), ours=within).word == ("not measured" if len(sizes) == 2 else "differs")


def test_a_load_that_falls_never_stays() -> None:
    """The made-up CPU is busy up to 919 B: the load falls from there on alone."""
    falls = {"quantity": "cpu falls", "of": ASYNC}
    assert judged(Shape(sizes=(64, 512, 1024, 1456)), ours=falls).word == "differs"
    above = falls | {"start": 512}
    assert judged(Shape(sizes=(64, 512, 1024, 1456)), ours=above).word == "agrees"


def test_a_slower_sec_saturates_first() -> None:
    ours = {
        "quantity": "saturates first", "of": ASYNC, "others": ["mpc8548e", "mpc8555e"],
        "frame_sizes": [512, 1024, 1456],
    }  # fmt: skip
    shape = Shape(duts=("mpc8544e", "mpc8548e", "mpc8555e"))
    assert judged(shape, device="MPC8544E", ours=ours).word == "agrees"
    turned = ours | {"others": ["mpc8544e"]}
    assert judged(shape, device="MPC8548E", ours=turned).word == "differs"
    assert judged(Shape(duts=("mpc8544e",)), device="MPC8544E", ours=ours).word == "not measured"


def test_a_gain_of_the_loss_goal() -> None:
    ours = {"quantity": "goal gain", "of": ASYNC, "goal": 1e-5, "to": 0.0}
    one = judged(Shape(goals={0.0: 1.0, 1e-5: 1.25}), value=25, unit="%", tolerance=0.001, ours=ours)
    assert one.word == "agrees"
    assert one.ours.high == pytest.approx(25)
    assert judged(Shape(), value=25, unit="%", ours=ours).word == "not measured"


def test_of_several_goals_the_articles_own_counts() -> None:
    """The loosest up to 0.001 %; 0.1 % is none of theirs."""
    shape = Shape(goals={0.0: 0.8, 1e-5: 1.0, 1e-3: 1.3})
    ours = {"quantity": "throughput", "of": ASYNC, "frame_size": 1456}
    one = judged(shape, value=1057, unit="Mbps", tolerance=0.01, ours=ours)
    assert (one.word, one.ours.goal) == ("agrees", 1e-5)


def outcomes_of_suite(suite: str, goal: float, factor: float) -> tuple[Manifest, list[Outcome]]:
    """An asynchronous stack at 512 B."""
    manifest, outcomes = made.outcomes(Shape(behaviours=("async",), sizes=(512,), goals={goal: factor}))
    return manifest, [o.model_copy(update={"suite": suite}) for o in outcomes]


AES_TO_3DES = {
    "quantity": "ratio", "of": ASYNC | {"suite": "aes128-sha1"}, "to": ASYNC, "frame_sizes": [512],
}  # fmt: skip


def test_a_ratio_is_one_of_figures_at_the_same_loss_goal() -> None:
    """The suites are equal at zero loss; one has a figure at 0.001 % too, which is 1.25 times as high."""
    runs = [
        outcomes_of_suite("aes128-sha1", 0.0, 0.8),
        outcomes_of_suite("3des-sha1", 0.0, 0.8),
        outcomes_of_suite("3des-sha1", 1e-5, 1.0),
    ]
    (one,) = judge_all([claim(value=1, unit="x", tolerance=0.01, ours=AES_TO_3DES)], points(runs))
    assert one.ours.low == pytest.approx(1.0)
    assert (one.ours.goal, one.word) == (0.0, "agrees")


def test_figures_without_a_common_loss_goal_have_no_ratio() -> None:
    runs = [outcomes_of_suite("aes128-sha1", 0.0, 0.8), outcomes_of_suite("3des-sha1", 1e-5, 1.0)]
    (one,) = judge_all([claim(value=1, unit="x", ours=AES_TO_3DES)], points(runs))
    assert (one.word, one.why) == (
        "not measured",
        "mpc8548e, async aes128-sha1, both ways and mpc8548e, async 3des-sha1, both ways: "
        "no common loss goal at 512 B",
    )


@pytest.mark.parametrize(
    "ours",
    [
        {"quantity": "ratio", "of": ASYNC, "to": POLLING, "frame_sizes": [64, 512]},
        {"quantity": "trend", "of": ASYNC, "to": POLLING, "frame_sizes": [64, 512], "goes": "falls"},
        {"quantity": "cost ratio", "of": ASYNC, "to": POLLING, "frame_sizes": [64, 512]},
        {"quantity": "cpu", "of": ASYNC, "frame_sizes": [64, 512]},
        {"quantity": "cpu falls", "of": ASYNC},
        {"quantity": "saturation", "of": ASYNC},
        {"quantity": "saturates first", "of": ASYNC, "others": ["mpc8544e"], "frame_sizes": [64, 512]},
        {"quantity": "limit", "of": ASYNC, "duts": ["mpc8548e", "mpc8544e"], "frame_size": 512, "by": "CPU"},
        {"quantity": "throughput", "of": ASYNC, "frame_size": 512},
    ],
    ids=lambda ours: ours["quantity"],
)  # fmt: skip
def test_a_value_is_of_one_loss_goal_and_says_which(ours: dict[str, object]) -> None:
    """The case at 0.001 % and 512 B failed: zero loss, for which all figures are there, takes its place openly."""
    shape = Shape(duts=("mpc8548e", "mpc8544e"), goals={0.0: 0.9, 1e-5: 1.0})
    manifest, outcomes = made.outcomes(shape)
    failing = {"status": "INVALID", "throughput_fps": None}
    partly = [
        o.model_copy(update=failing)
        if (o.dut, o.stack, o.frame_size, o.loss_goal) == ("mpc8548e", "xfrm-async", 512, 1e-5)
        else o
        for o in outcomes
    ]
    (whole,) = judge_all([claim(ours=ours)], points([(manifest, outcomes)]))
    (one,) = judge_all([claim(ours=ours)], points([(manifest, partly)]))
    assert (whole.ours.goal, one.ours.goal) == (1e-5, 0.0)


@pytest.mark.parametrize("status", ["INVALID", "BELOW_MINIMUM", "UNRESOLVABLE"])
def test_a_case_without_a_figure_is_not_measured_and_says_so(status: str) -> None:
    shape = Shape(failing={("async", 1456): status})
    ours = {"quantity": "throughput", "of": ASYNC, "frame_size": 1456}
    one = judged(shape, value=1057, unit="Mbps", ours=ours)
    assert one.word == "not measured"
    assert one.why == f"mpc8548e, async 3des-sha1, both ways: 1456 B ({status})"


def test_frames_not_shown_to_be_encrypted_are_no_figures() -> None:
    manifest, outcomes = made.outcomes(Shape(behaviours=("async",)))
    unproven = [o.model_copy(update={"encryption": "not proven"}) for o in outcomes]
    assert points([(manifest, unproven)]).points == ()


def test_several_runs_give_one_set_of_points_and_repeats_their_median() -> None:
    manifest, outcomes = made.outcomes(Shape(behaviours=("async",), sizes=(64,)))
    times = [1.0, 1.1, 5.0]
    runs = [
        (manifest, [o.model_copy(update={"throughput_fps": (o.throughput_fps or 0) * factor})])
        for factor in times
        for o in outcomes
    ]
    (one,) = points(runs).points
    assert one.fps == pytest.approx(1.1 * made.truth(DEVICES["mpc8548e"], "async", 64)[0])


@pytest.mark.parametrize(
    ("dut", "behaviour", "size", "limit"),
    [
        ("mpc8548e", "async", 64, "CPU"),
        ("mpc8548e", "async", 1456, "accelerator"),
        ("mpc8548e", "polling", 1456, "CPU"),
        ("mpc8548e", "plain", 1456, "link"),
        ("mpc8548e", "lean", 1456, "accelerator"),
    ],
)
def test_what_limits(dut: str, behaviour: str, size: int, limit: Limit) -> None:
    limits = [
        p.limit for p in points_of(Shape(duts=(dut,), behaviours=(behaviour,))).points if p.frame_size == size
    ]
    assert limits == [limit]


def test_a_figure_at_the_plans_maximum_is_none_of_the_device() -> None:
    """It may be faster: only where the link is full is that its limit."""
    manifest, outcomes = made.outcomes(Shape(duts=("mpc8548e",)))
    met = [o.model_copy(update={"warnings": [Remark.of(Code.AT_MAXIMUM, fps=1e6)]}) for o in outcomes]
    held = points([(manifest, met)])
    assert {p.limit for p in held.points} == {"link"}
    assert all("maximum" in status for status in held.failed.values())
    assert len(held.points) + len(held.failed) == len(outcomes)


def test_plain_forwarding_that_pays_for_policies_is_not_the_articles() -> None:
    manifest, outcomes = made.outcomes(Shape(duts=("mpc8548e",)))
    cases = [c.model_copy(update={"options": {}}) if c.stack_kind == "plain" else c for c in manifest.cases]
    held = points([(manifest.model_copy(update={"cases": cases}), outcomes)])
    assert held.points
    assert "plain" not in {p.behaviour for p in held.points}


def test_the_lean_stack_is_one_behaviour_with_the_engine_and_another_without() -> None:
    """No claim is about it with an engine that the CPU waits for."""
    ways = ("async", "software", "polling")
    assert [behaviour_of("lean-esp", {"crypto": way}) for way in ways] == ["lean", "lean-software", None]


@pytest.mark.parametrize("kind", ["plain", "null", "xfrm", "lean-esp"])
@given(st.sampled_from(sorted(set(StackChoice.model_fields) - {"crypto", "policies"})))
def test_no_claim_is_about_a_stack_with_another_option(kind: str, option: str) -> None:
    usual = {"policies": "none"} if kind == "plain" else {}
    assert behaviour_of(kind, usual) is not None
    assert behaviour_of(kind, usual | {option: "something"}) is None


@pytest.mark.parametrize("listed_first", [True, False])
def test_a_case_with_another_option_changes_no_figure(listed_first: bool) -> None:
    """200 tunnels beside one: neither a median of both, nor the count or the flood of the one that is listed last."""
    options: tuple[dict[str, Any], ...] = ({}, {"tunnels": 200})
    factors = (1.0, 0.5)
    in_turn = [*zip(options, factors, strict=True)][:: 1 if listed_first else -1]
    runs, found = [], []
    for option, factor in in_turn:
        manifest, outcomes = made.outcomes(Shape(behaviours=("async",), sizes=(64,)))
        cases = [case.model_copy(update={"options": option}) for case in manifest.cases]
        slower = [o.model_copy(update={"throughput_fps": factor * (o.throughput_fps or 0)}) for o in outcomes]
        runs.append((manifest.model_copy(update={"cases": cases}), slower))
        values = moved(factor, 1, 1, 1) | {Key.FLOOD_FORWARDING: 1.0, Key.OF_THROUGHPUT: factor}
        measured = findings("bus", {64: values})
        found.append((manifest_of(measured, **option), measured))
    held = points(runs, bus=bus_counts(found), flood=floods(found))
    (one,) = held.points
    assert one.fps == pytest.approx(made.truth(DEVICES["mpc8548e"], "async", 64)[0])
    assert [each.counted for each in held.bus.values()] == [1.0]
    assert [*held.flood.values()] == [1.0]


def test_a_tunnel_fills_a_link_before_cleartext_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 Mbps: 191 Mbps of 1456 B frames both ways, 197 in clear; the made-up SEC could do 600."""
    monkeypatch.setitem(DEVICES, "mpc8323e", made.Device(333, 133, 100e6))
    shape = Shape(duts=("mpc8323e",), behaviours=("async", "plain"))
    (large,) = [p for p in points_of(shape).points if (p.behaviour, p.frame_size) == ("async", 1456)]
    assert large.limit == "link"
    assert large.mbps == pytest.approx(190.83, abs=0.01)
    assert link_fps(1456, "3des-sha1", 100e6) < link_fps(1456, "none", 100e6)


@pytest.mark.parametrize(("goes", "turned"), [("falls", "rises"), ("rises", "falls")])
def test_a_trend_is_that_of_a_ratio_from_end_to_end(goes: str, turned: str) -> None:
    """Lean code is ahead where the CPU limits, and level with the rest where the SEC does."""
    of, to = (LEAN, ASYNC) if goes == "falls" else (ASYNC, LEAN)
    ours = {"quantity": "trend", "of": of, "to": to, "frame_sizes": [64, 512, 1456], "goes": goes}
    shape = Shape(behaviours=("async", "lean"))
    assert judged(shape, ours=ours).word == "agrees"
    assert judged(shape, ours=ours | {"goes": turned}).word == "differs"
    level = ours | {"frame_sizes": [1024, 1456]}
    assert judged(shape, ours=level).word == "differs"  # both are the SEC's
    assert judged(Shape(sizes=(64, 512), behaviours=("async", "lean")), ours=ours).word == "not measured"


def test_a_trend_that_turns_is_none() -> None:
    manifest, outcomes = made.outcomes(Shape(behaviours=("async", "lean"), sizes=(64, 512, 1456)))
    turning = [
        o.model_copy(update={"throughput_fps": 9 * (o.throughput_fps or 0)})
        if o.stack == "lean" and o.frame_size == 512
        else o
        for o in outcomes
    ]
    ours = {"quantity": "trend", "of": LEAN, "to": ASYNC, "frame_sizes": [64, 512, 1456], "goes": "falls"}
    (one,) = judge_all([claim(ours=ours)], points([(manifest, turning)]))
    assert one.word == "differs"


@pytest.mark.parametrize(
    ("slow", "word"), [("decryption", "agrees"), ("encryption", "agrees"), ("one-way", "differs")]
)
def test_two_gateways_are_as_fast_as_the_slower_operation(slow: str, word: str) -> None:
    """Whichever that is; a pair that is slower than both is limited by something else."""
    shape = Shape(behaviours=("async",), sizes=(64,), directions=("one-way", "encryption", "decryption"))
    manifest, outcomes = made.outcomes(shape)
    halved = [
        o.model_copy(update={"throughput_fps": (o.throughput_fps or 0) / 2})
        if o.direction == slow or (slow != "one-way" and o.direction == "one-way")
        else o
        for o in outcomes
    ]
    ours = {"quantity": "slower operation", "of": ASYNC, "frame_sizes": [64]}
    asked = claim(value=1, unit="x", tolerance=0.01, ours=ours)
    (one,) = judge_all([asked], points([(manifest, halved)]))
    assert one.word == word
    partly = [o for o in halved if o.direction != "decryption"]
    (lacking,) = judge_all([asked], points([(manifest, partly)]))
    assert lacking.word == "not measured"


def test_a_limit_is_that_of_every_device() -> None:
    """The SEC limits the two at 1456 B, and the CPU where that waits for it."""
    ours = {
        "quantity": "limit",
        "of": ASYNC,
        "duts": ["mpc8548e", "mpc8544e"],
        "frame_size": 1456,
        "by": "accelerator",
    }
    shape = Shape(duts=("mpc8548e", "mpc8544e"))
    assert judged(shape, ours=ours).word == "agrees"
    assert judged(shape, ours=ours | {"frame_size": 64}).word == "differs"
    assert judged(shape, ours=ours | {"frame_size": 64, "by": "CPU"}).word == "agrees"
    assert judged(shape, ours=ours | {"of": POLLING}).word == "differs"
    assert judged(Shape(), ours=ours).word == "not measured"


def test_a_full_link_is_no_accelerator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither the CPU nor the SEC is the limit of a device whose links are full."""
    monkeypatch.setitem(DEVICES, "mpc8323e", made.Device(333, 133, 100e6))
    ours = {"quantity": "limit", "of": ASYNC, "duts": ["mpc8323e"], "frame_size": 1456}
    for by in ("accelerator", "CPU"):
        one = judged(Shape(duts=("mpc8323e",), behaviours=("async", "plain")), ours=ours | {"by": by})
        assert (one.word, one.ours.text) == ("differs", "mpc8323e: link")


@pytest.mark.parametrize(
    ("row", "size", "by"),
    [("limit-small", 64, "CPU"), ("limit-medium", 512, "CPU"), ("limit-large", 1456, "accelerator")],
)
def test_what_limits_has_a_row_for_small_medium_and_large(row: str, size: int, by: str) -> None:
    """The conclusion says `small/medium`, and `crypto-hardware/memory bus`."""
    (one,) = [c for c in claims() if c.id == row]
    assert isinstance(one.ours, LimitAt)
    assert (one.ours.frame_size, one.ours.by, len(one.ours.duts)) == (size, by, 8)


@pytest.mark.parametrize(
    "row",
    [
        "mpc8360ea-errors-throughput",  # a goal of no loss on links that lose frames at any load
        "mpc8360ea-errors-cpu",
        "low-level-start",
        "low-level",  # any time of an access to a register
        "low-level-no-crossover",
        "decryption-faster",  # the SEC's model takes as long for both operations
        "accelerator-decrypts",
    ],
)
def test_what_would_agree_whatever_is_measured_has_no_verdict(row: str) -> None:
    (one,) = [c for c in claims() if c.id == row]
    assert one.lacks
    assert one.ours is None


# -- tests beside throughput ------------------------------------------------------------------------


def findings(test: str, values: dict[int, dict[Key, float]], **changes: object) -> list[Finding]:
    """One a frame size, of the asynchronous cases of `manifest`."""
    return [
        Finding.model_validate(
            {
                "case": f"{test}-{size}", "test": test, "dut": "mpc8548e", "stack": "async", "suite": "3des-sha1",
                "ip_version": 4, "frame_size": size, "direction": "one-way", "repeat": 1, "status": "OK",
                "load_fps": 1.0, "quantities": [figure(key, value) for key, value in of.items()], "trials": 1,
                "rfc2544": False, "encryption": "proven",
            }
            | changes
        )
        for size, of in values.items()
    ]  # fmt: skip


def manifest_of(measured: list[Finding], kind: str = "xfrm", **options: object) -> Manifest:
    entries = [
        CaseEntry(
            **{key: getattr(f, key) for key in CaseIdentity.model_fields},
            stack_kind=kind,
            options=dict(options),
        )
        for f in measured
    ]
    return synthetic_run.manifest(entries, "tests")


ONE_WAY = {"behaviour": "async", "direction": "one-way"}


def test_a_flood_is_held_against_the_throughput() -> None:
    ratio = {64: {Key.FLOOD_FORWARDING: 1.1e5, Key.OF_THROUGHPUT: 1.1}}
    asked = claim(
        value=1, unit="x", qualifier="above", tolerance=0,
        ours={"quantity": "flood", "of": ONE_WAY, "frame_sizes": [64]},
    )  # fmt: skip

    def word(measured: list[Finding]) -> str:
        (one,) = judge_all([asked], Points((), flood=floods([(manifest_of(measured), measured)])))
        return one.word

    assert word(findings("flood", ratio)) == "agrees"
    lower = {64: {Key.FLOOD_FORWARDING: 0.9e5, Key.OF_THROUGHPUT: 0.9}}
    assert word(findings("flood", lower)) == "differs"
    assert word(findings("flood", {512: ratio[64]})) == "not measured"
    assert word(findings("flood", ratio, encryption="not proven")) == "not measured"
    assert word(findings("flood", ratio, status="VIOLATED")) == "not measured"
    assert word(findings("latency", {64: {Key.OF_THROUGHPUT: 1.1}})) == "not measured"


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"warnings": [Remark.of(Code.AT_BOUND, fps=1e5, goal=0.0)]}, "the throughput is only a lower bound"),
        (
            {"rfc2544_deviations": [Deviation.from_clause(Code.MAXIMUM_NOT_LINE_RATE, "")]},
            "the flood was below the line rate",
        ),
    ],
)
def test_a_flood_that_is_none_or_has_a_bound_beside_it_is_not_measured(
    changes: dict[str, object], why: str
) -> None:
    """A run that has a sound figure answers all the same, whatever the order of the two."""
    ratio = {64: {Key.FLOOD_FORWARDING: 1.1e5, Key.OF_THROUGHPUT: 1.1}}
    asked = claim(ours={"quantity": "flood", "of": ONE_WAY, "frame_sizes": [64]}, **FASTER)
    unsound, sound = (
        (manifest_of(measured), measured)
        for measured in (findings("flood", ratio, **changes), findings("flood", ratio))
    )

    def judgement(*runs: tuple[Manifest, list[Finding]]) -> Judged:
        return judge_all([asked], Points((), flood=floods(runs)))[0]

    alone = judgement(unsound)
    assert (alone.word, alone.why) == (
        "not measured",
        f"mpc8548e, async 3des-sha1, one way: flood and throughput at 64 B ({why})",
    )
    assert judgement(unsound, sound).word == judgement(sound, unsound).word == "agrees"


FEW = {"least": 2, "trial_s": 12.0}


@pytest.mark.parametrize(
    ("ends", "reason", "settings"),
    [
        ("time", Reason.of(Code.FEW_REKEYS, seen=0, **FEW), {"lifetime": "4s"}),
        ("bytes", Reason.of(Code.FEW_REKEYS, seen=0, **FEW), {"lifetime_bytes": "200kB"}),
        ("idle", Reason.of(Code.SAS_KEPT, idle_s=3.0), {}),
    ],
)
def test_a_stack_that_keeps_its_sas_contradicts_the_claim(
    ends: str, reason: Reason, settings: dict[str, str]
) -> None:
    """Its case is INVALID. So is one that the host disturbed, or that had too few rekeys: those tell nothing."""
    asked = claim(ours={"quantity": "sa lifetime", "ends": ends})
    other = {
        "time": {Key.SA_LIFETIME: 4.0, Key.REKEYS: 3.0},
        "bytes": {Key.SA_LIFETIME_BYTES: 1e6, Key.REKEYS: 3.0},
        "idle": {Key.IDLE_TIMEOUT: 3.0, Key.FIRST_PACKET_TIME: 12.0},
    }[ends]

    def word(*measured: Finding, recorded: dict[str, str] = settings) -> str:
        listed = [*measured]
        manifest = manifest_of(listed).model_copy(
            update={"conditions": {"tests": [{"rekey_loss": recorded}]}}
        )
        (one,) = judge_all([asked], Points((), lifetimes=lifetimes([(manifest, listed)])))
        return one.word

    def void(*reasons: Reason) -> Finding:
        return findings("rekey_loss", {512: {}}, status="INVALID", reasons=reasons)[0]

    (sound,) = findings("rekey_loss", {512: other})
    assert word(void(reason)) == "differs"
    assert word(sound, void(reason)) == word(void(reason), sound) == "differs"
    assert word(void(reason, Reason.of(Code.HOST_STALL, ms=9.0))) == "not measured"
    assert word(void(Reason.of(Code.FEW_REKEYS, seen=1, **FEW))) == "not measured"
    assert word(void(Reason.of(Code.FEW_REKEYS, seen=0, **FEW)), recorded={}) == "not measured"


@pytest.mark.parametrize(
    ("ends", "values"),
    [
        ("time", {Key.SA_LIFETIME: 4.0, Key.REKEYS: 3.0}),
        ("bytes", {Key.SA_LIFETIME_BYTES: 1e6, Key.REKEYS: 3.0}),
        ("idle", {Key.IDLE_TIMEOUT: 3.0, Key.FIRST_PACKET_TIME: 12.0}),
    ],
)
def test_what_ends_sas_is_held_against_what_replaced_them(ends: str, values: dict[Key, float]) -> None:
    asked = claim(ours={"quantity": "sa lifetime", "ends": ends})

    def word(values: dict[Key, float], status: str = "OK") -> str:
        measured = findings("rekey_loss", {512: values}, status=status)
        (one,) = judge_all([asked], Points((), lifetimes=lifetimes([(manifest_of(measured), measured)])))
        return one.word

    assert word(values) == "agrees"
    assert word(values, "INVALID") == "not measured"
    assert word({Key.REKEYS: 3.0}) == "not measured"
    never = {
        key: 0.0 if key in (Key.REKEYS, Key.FIRST_PACKET_TIME) else value for key, value in values.items()
    }
    assert word(never) == "differs"


def moved(counted: float, frames: float, engine: float, descriptors: float) -> dict[Key, float]:
    return {
        Key.BUS_COUNTED: counted, Key.BUS_FRAMES: frames, Key.BUS_ENGINE: engine,
        Key.BUS_DESCRIPTORS: descriptors, Key.BUS_OF_ACCOUNT: 1.0,
    }  # fmt: skip


def bus_of(**by_behaviour: dict[int, dict[Key, float]]) -> Points:
    """Return the points of runs that moved this, for each behaviour by frame size."""
    runs = []
    for name, values in by_behaviour.items():
        bus_findings = findings("bus", values, suite="none" if name == "plain" else "3des-sha1")
        kind = {"plain": "plain", "dual": "xfrm"}.get(name, "xfrm")
        options = {"plain": {"policies": "none"}, "dual": {"crypto": "dual-pass"}}.get(name, {})
        runs.append((manifest_of(bus_findings, kind, **options), bus_findings))
    return Points((), bus=bus_counts(runs))


@pytest.mark.parametrize(
    ("what", "size", "value", "unit"),
    [("growth", 64, 114 / 64, "x"), ("descriptors", 64, 50.0, "%"), ("engine", 64, 1.5, "x")],
)
def test_shares_of_what_crosses_the_bus(what: str, size: int, value: float, unit: str) -> None:
    """64 B come, 110 without FCS leave; of 340 B that count, 170 as many descriptors; two passes move 252 B for 168."""
    judged = bus_of(xfrm={64: moved(340, 64 + 110, 168, 170)}, dual={64: moved(424, 64 + 110, 252, 200)})
    of = {"behaviour": "dual-pass", "direction": "one-way"} if what == "engine" else ONE_WAY
    ours = {"quantity": "bus share", "what": what, "of": of, "frame_sizes": [size]}
    if what == "engine":
        ours["to"] = ONE_WAY
    for factor, word in ((1, "agrees"), (2, "differs")):
        asked = claim(value=factor * value, unit=unit, tolerance=0.001, ours=ours)
        (one,) = judge_all([asked], judged)
        assert one.word == word
    (elsewhere,) = judge_all([claim(value=1, unit=unit, ours=ours | {"frame_sizes": [512]})], judged)
    assert elsewhere.word == "not measured"


def test_a_packet_that_is_cut_sends_the_headers_of_a_second_frame() -> None:
    """1518 B become a packet of 1552 B: 1,566 B with its Ethernet header, 1,600 as two."""
    ours = {"quantity": "bus share", "what": "fragments", "of": ONE_WAY, "frame_sizes": [1518]}

    def word(sent: float) -> str:
        judged = bus_of(xfrm={1518: moved(6000, 1518 + sent, 3000, 100)})
        (one,) = judge_all([claim(ours=ours)], judged)
        return one.word

    packet = suites()["3des-sha1"].esp_packet_size(1500, "tunnel", 4)
    assert (word(packet + 14), word(packet + 14 + 34)) == ("differs", "agrees")


def test_an_increase_over_the_bus_falls_or_jumps() -> None:
    ours = {
        "quantity": "bus increase", "of": ONE_WAY, "to": {"behaviour": "plain", "direction": "one-way"},
        "frame_sizes": [1024, 1456],
    }  # fmt: skip
    plain = {1024: moved(2000, 2000, 0, 1), 1456: moved(3000, 3000, 0, 1), 1518: moved(3000, 3000, 0, 1)}

    def words(esp: list[float]) -> list[str]:
        counts = {size: moved(each, each, 1, 1) for size, each in zip((1024, 1456, 1518), esp, strict=True)}
        judged = bus_of(xfrm=counts, plain=plain)
        return [j.word for j in judge_all([claim(ours=ours), claim(ours=ours | {"beyond": 1518})], judged)]

    assert words([4200, 6000, 6600]) == ["agrees", "agrees"]
    assert words([4200, 6400, 6200]) == ["differs", "differs"]
    assert words([4200, 6000, 6100]) == ["agrees", "differs"]
    (lacking,) = judge_all([claim(ours=ours)], bus_of(plain=plain))
    assert lacking.word == "not measured"


def accelerated(suite: str, size: int, after_us: float, at_once_ns: int = 2_000_000) -> AcceleratorResult:
    return AcceleratorResult(
        dut="mpc8548e", suite=suite, size=size, operations=1000, driver="talitos",
        after_ns=int(1e6 * after_us), at_once_ns=at_once_ns, full=0,
    )  # fmt: skip


def test_claims_about_the_accelerator_are_of_asynchronous_use() -> None:
    """Figures of a CPU that polls, or computes itself, are no answer to them."""
    ours = {"quantity": "accelerator", "suite": "aes128-sha1", "size": 64}
    fast = accelerated("aes128-sha1", 64, 8)
    polling = fast.model_copy(update={"crypto": "polling", "after_ns": 2_000_000})
    asked = claim(value=4, unit="x", ours=ours)
    assert judge_all([asked], Points((), (polling, fast)))[0].word == "agrees"
    assert judge_all([asked], Points((), (polling,)))[0].word == "not measured"


def test_suites_are_compared_in_the_use_of_the_engine_that_a_claim_names() -> None:
    """The hash hides a slower cipher in one pass, and not in two."""
    ours = {"quantity": "accelerator suites", "of": "aes256-sha1", "to": "aes128-sha1", "size": 1456}
    one_pass = [accelerated(suite, 1456, 8) for suite in ("aes128-sha1", "aes256-sha1")]
    two = [
        accelerated(suite, 1456, 8, at_once).model_copy(update={"crypto": "dual-pass"})
        for suite, at_once in (("aes128-sha1", 2_000_000), ("aes256-sha1", 2_200_000))
    ]
    above = {"value": 1.02, "unit": "x", "qualifier": "above", "tolerance": 0}
    asked = [claim(ours=ours, **above), claim(ours=ours | {"crypto": "dual-pass"}, **above)]
    judged_of = [j.word for j in judge_all(asked, Points((), (*one_pass, *two)))]
    assert judged_of == ["differs", "agrees"]
    assert [j.word for j in judge_all(asked, Points((), tuple(one_pass)))] == ["differs", "not measured"]


@pytest.mark.parametrize(("software_us", "word"), [(13, "agrees"), (3, "differs"), (None, "not measured")])
def test_two_uses_of_the_engine_are_compared(software_us: float | None, word: str) -> None:
    of_claim = {
        "quantity": "accelerator uses",
        "of": "software",
        "to": "async",
        "suite": "3des-sha1",
        "size": 64,
    }
    results = [accelerated("3des-sha1", 64, 4)]
    if software_us:
        results.append(accelerated("3des-sha1", 64, software_us).model_copy(update={"crypto": "software"}))
    assert judge_all([claim(ours=of_claim, **FASTER)], Points((), tuple(results)))[0].word == word


@pytest.mark.parametrize(("tick_ns", "word"), [(10_000_000, "agrees"), (15, "differs")])
def test_a_timer_hides_an_operation_that_is_shorter_than_its_tick(tick_ns: float, word: str) -> None:
    ours = {"quantity": "accelerator timer", "tick_ns": tick_ns, "suite": "3des-sha1", "size": 64}
    (one,) = judge_all([claim(ours=ours)], Points((), (accelerated("3des-sha1", 64, 4),)))
    assert one.word == word
    assert one.ours.text.startswith("an operation takes 4.00 µs")
    assert judge_all([claim(ours=ours)], Points(()))[0].word == "not measured"


def test_claims_about_the_accelerator_are_of_no_variant_unless_they_say_so() -> None:
    """A test with prebuilt descriptors is no answer to a claim about one without, and the reverse."""
    ours = {"quantity": "accelerator", "suite": "aes128-sha1", "size": 64}
    usual = accelerated("aes128-sha1", 64, 8)
    prebuilt = usual.model_copy(update={"variant": Variant(descriptors="prebuilt"), "at_once_ns": 1_000_000})
    both = [
        claim(value=4, unit="x", ours=ours),
        claim(value=8, unit="x", ours=ours | {"variant": "prebuilt"}),
    ]
    assert [j.word for j in judge_all(both, Points((), (prebuilt, usual)))] == ["agrees", "agrees"]
    assert [j.word for j in judge_all(both, Points((), (usual,)))] == ["agrees", "not measured"]
    assert [j.word for j in judge_all(both, Points((), (prebuilt,)))] == ["not measured", "agrees"]


def test_a_variant_of_the_accelerator_test_against_the_test_without_it() -> None:
    def word(after_us: float, at_once_ns: int, way: str) -> str:
        ours = {"quantity": "accelerator variant", "variant": "check=during", "way": way}
        asked = claim(
            value=0.99,
            unit="x",
            qualifier="below",
            tolerance=0,
            ours=ours | {"suite": "aes128-sha1", "sizes": [64]},
        )
        usual = accelerated("aes128-sha1", 64, 4, 2_000_000)
        checked = accelerated("aes128-sha1", 64, after_us, at_once_ns)
        checked = checked.model_copy(update={"variant": Variant(check="during")})
        return judge_all([asked], Points((), (usual, checked)))[0].word

    assert word(5, 2_000_000, "n+1 after n") == "agrees"
    assert word(4, 3_000_000, "n+1 after n") == "differs"
    assert word(4, 3_000_000, "all at once") == "agrees"


@pytest.mark.parametrize(("small_us", "word"), [(4.2, "agrees"), (4.04, "differs"), (None, "not measured")])
def test_checks_while_the_clock_runs_are_judged_at_the_smallest_and_the_largest_size(
    small_us: float | None, word: str
) -> None:
    """At 64 B they took 1 % of the speed, which is less than the 2 % of an order."""
    (asked,) = [c for c in claims() if c.id == "accelerator-checks"]
    during = {"variant": Variant(check="during")}
    results = [accelerated("aes128-sha1", 64, 4.0), accelerated("aes128-sha1", 1456, 10.0)]
    results.append(accelerated("aes128-sha1", 1456, 10.7).model_copy(update=during))
    if small_us is not None:
        results.append(accelerated("aes128-sha1", 64, small_us).model_copy(update=during))
    assert judge_all([asked], Points((), tuple(results)))[0].word == word


def test_a_variant_is_compared_with_as_many_operations_without_it() -> None:
    """A run of more operations without the variant, whose figures differ a little, is compared together with it."""
    ours = {"quantity": "accelerator variant", "variant": "decrypt", "way": "n+1 after n"}
    usual = accelerated("aes128-sha1", 64, 4)
    decrypted = accelerated("aes128-sha1", 64, 5).model_copy(update={"variant": Variant(operation="decrypt")})
    longer = usual.model_copy(update={"operations": 2000, "after_ns": 2 * 5_000_000})
    asked = claim(value=0.8, unit="x", tolerance=0.001, ours=ours | {"suite": "aes128-sha1", "sizes": [64]})
    for results in ((usual, decrypted, longer), (longer, decrypted, usual)):
        assert judge_all([asked], Points((), results))[0].word == "agrees"
    assert judge_all([asked], Points((), (decrypted, longer)))[0].word == "not measured"


def test_of_several_accelerator_tests_the_one_of_most_operations_counts() -> None:
    """Whatever the order in which runs are named: one plan has 50,000 of them, others 2,000."""
    ours = {"quantity": "accelerator suites", "of": "3des-sha1", "to": "aes128-sha1", "size": 1456}
    asked = claim(value=1.1, unit="x", tolerance=0.001, ours=ours)
    both = (accelerated("3des-sha1", 1456, 9, 11_000_000), accelerated("aes128-sha1", 1456, 9, 10_000_000))
    short = both[0].model_copy(update={"operations": 10, "at_once_ns": 1})
    for results in ((*both, short), (short, *both)):
        assert judge_all([asked], Points((), results))[0].word == "agrees"


def test_what_block_size_changes_of_the_accelerator_test() -> None:
    falls = {"quantity": "accelerator trend", "what": "time for a byte falls", "sizes": [64, 1456]}
    apart = {"quantity": "accelerator trend", "what": "suites drift apart", "sizes": [64, 1456]}

    def words(*results: AcceleratorResult) -> list[str]:
        return [j.word for j in judge_all([claim(ours=falls), claim(ours=apart)], Points((), results))]

    small = (accelerated("aes128-sha1", 64, 4.0), accelerated("3des-sha1", 64, 4.0))
    assert (
        words(*small, accelerated("aes128-sha1", 1456, 10), accelerated("3des-sha1", 1456, 11))
        == ["agrees"] * 2
    )
    assert (
        words(*small, accelerated("aes128-sha1", 1456, 95), accelerated("3des-sha1", 1456, 95))
        == ["differs"] * 2
    )
    assert words(*small) == ["not measured"] * 2


def test_one_suite_against_another_in_the_accelerator_test() -> None:
    ours = {"quantity": "accelerator suites", "of": "3des-sha1", "to": "aes128-sha1", "size": 1456}
    asked = claim(value=1.1, unit="x", tolerance=0.001, ours=ours)
    both = (accelerated("3des-sha1", 1456, 9, 11_000_000), accelerated("aes128-sha1", 1456, 9, 10_000_000))
    words = [judge_all([asked], Points((), results))[0].word for results in (both, both[:1], both[::-1])]
    assert words == ["agrees", "not measured", "agrees"]
    turned = claim(value=1.1, unit="x", tolerance=0.001, ours=ours | {"of": "aes128-sha1", "to": "3des-sha1"})
    assert judge_all([turned], Points((), both))[0].word == "differs"


def test_the_accelerator_test() -> None:
    result = accelerated
    base = replace(
        points_of(Shape()), accelerator=(result("aes128-sha1", 64, 8), result("3des-sha1", 64, 8.4))
    )
    four = claim(value=4, unit="x", ours={"quantity": "accelerator", "suite": "aes128-sha1", "size": 64})
    late = claim(value=1, unit="x", ours={"quantity": "accelerator", "suite": "aes128-sha1", "size": 1024})
    alike = claim(value=1, unit="x", tolerance=0.06, ours={"quantity": "accelerator spread", "size": 64})
    words = [j.word for j in judge_all([four, late, alike], base)]
    assert words == ["agrees", "not measured", "agrees"]


def test_computed_claims_need_no_run() -> None:
    words = {
        j.claim.id: j.word
        for j in judge_all(claims(), Points(()))
        if j.claim.ours is not None and j.claim.ours.quantity == "computed"
    }
    assert {claim for claim, word in words.items() if word != "agrees"} == {"rsa-sizes-held-out"}
    assert {"link-clear", "link-tunnel", "tunnel-growth", "fragments", "rsa-held-out"} <= set(words)


def test_a_time_of_the_public_key_table_that_is_another_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each time of the half that is held out counts, also one at the highest clock."""
    (table,) = [c for c in claims() if c.id == "rsa-held-out"]
    (sign,) = [
        t for d in documents().values() for t in d.times if (t.modulus_bits, t.exponent_bits) == (512, 512)
    ]
    monkeypatch.setitem(sign.ms, 333, 0.83)
    (one,) = judge_all([table], Points(()))
    assert one.word == "differs"
    assert one.ours.text.startswith("23 of 24 times")


@pytest.mark.parametrize(("bits", "holds"), [(512, True), (1024, True), (2048, False)])
def test_three_magnitudes_are_no_more_and_no_less(bits: int, holds: bool) -> None:
    one = judged(Shape(), ours={"quantity": "computed", "what": "asymmetric", "modulus_bits": bits})
    assert one.ours.holds == holds, one.ours.text


def test_what_cannot_be_measured_keeps_its_reason() -> None:
    one = judged(Shape(), value=1.7, unit="x", cannot="not to be had")
    assert (one.word, one.why) == ("cannot be measured here", "not to be had")


@pytest.mark.parametrize("qualifier", ["above", "below"])
def test_an_order_that_holds_at_some_sizes_only_differs(qualifier: str) -> None:
    """Software is the faster at 64 B and the slower at 1456 B than two passes of the made-up SEC."""
    ours = {
        "quantity": "ratio", "of": {"behaviour": "software"}, "to": {"behaviour": "dual-pass"},
        "frame_sizes": [64, 1456],
    }  # fmt: skip
    one = judged(Shape(), value=1, unit="x", qualifier=qualifier, tolerance=0, ours=ours)
    assert one.ours.low < 1 < one.ours.high
    assert one.word == "differs"


BETWEEN = {"quantity": "ratio", "of": PLAIN, "to": ASYNC, "frame_sizes": [64, 512, 1456]}
FASTER = {"value": 1, "unit": "x", "qualifier": "above", "tolerance": 0}


@pytest.mark.parametrize(("sizes", "absent"), [((64, 512), 1456), ((64, 1456), 512), ((512, 1456), 64)])
def test_every_size_that_a_claim_names_must_be_measured(sizes: tuple[int, ...], absent: int) -> None:
    """Also one between the others: a claim of all sizes is not judged by some."""
    assert judged(Shape(), ours=BETWEEN, **FASTER).word == "agrees"
    one = judged(Shape(sizes=sizes), ours=BETWEEN, **FASTER)
    assert (one.word, one.why) == ("not measured", f"mpc8548e, plain, both ways: {absent} B")


@pytest.mark.parametrize("status", ["VIOLATED", "INVALID", "BELOW_MINIMUM"])
@pytest.mark.parametrize(
    "ours",
    [
        BETWEEN,
        BETWEEN | {"quantity": "trend", "goes": "falls"},
        BETWEEN | {"quantity": "cost ratio", "of": ASYNC, "to": PLAIN},
        {"quantity": "cpu", "of": ASYNC, "frame_sizes": [64, 512, 1456]},
        {"quantity": "cpu falls", "of": ASYNC},
        {"quantity": "goal gain", "of": ASYNC, "goal": 1e-5, "to": 0.0},
    ],
    ids=["ratio", "trend", "cost ratio", "cpu", "cpu falls", "goal gain"],
)
def test_a_size_between_that_failed_is_no_agreement(status: str, ours: dict[str, object]) -> None:
    """A leak at a size of the claim would else be as good as no measurement there."""
    of_claim = {} if ours["quantity"] in ("trend", "cpu falls") else {"value": 1, "unit": "x"}
    shape = Shape(failing={("async", 512): status}, goals={0.0: 0.9, 1e-5: 1.0})
    one = judged(shape, ours=ours, **of_claim)
    why = f"mpc8548e, async 3des-sha1, both ways: 512 B ({status})"
    assert (one.word, one.why) == ("not measured", why)


BOTH_TESTS = {Key.FLOOD_FORWARDING: 1.0, Key.OF_THROUGHPUT: 1.0}
IN_CLEAR_AT_64 = {("mpc8548e", "async", "3des-sha1", "both-ways", 64)}


@pytest.mark.parametrize("of_test", ["throughput", "flood"])
def test_frames_in_clear_void_every_figure_of_their_case(of_test: str) -> None:
    """Figures at each loss goal, of floods and the bus, whichever test and run leaked; other cases stay."""
    manifest, outcomes = made.outcomes(Shape(sizes=(64, 512), goals={0.0: 0.9, 1e-5: 1.0}))
    leaking = {"status": "VIOLATED", "throughput_fps": None}
    if of_test == "throughput":
        outcomes = [
            o.model_copy(update=leaking)
            if (o.stack, o.frame_size, o.loss_goal) == ("xfrm-async", 64, 1e-5)
            else o
            for o in outcomes
        ]
    values = {size: moved(1, 1, 1, 1) | BOTH_TESTS for size in (64, 512)}
    sound = findings("bus", values, direction="both-ways")
    leaks = findings("flood", {64: {}}, direction="both-ways", status="VIOLATED")
    found = [(manifest_of(each), each) for each in (sound, leaks if of_test == "flood" else [])]
    assert in_clear(found) == (IN_CLEAR_AT_64 if of_test == "flood" else set())
    held = points([(manifest, outcomes)], (), (), bus_counts(found), floods(found), in_clear=in_clear(found))

    figures = {(p.dut, p.behaviour, p.suite, p.direction, p.frame_size) for p in held.points}
    assert not figures & IN_CLEAR_AT_64
    assert len(held.points) == len(outcomes) - 2
    assert {key[4] for key in held.bus} == {512}
    flooded = {"quantity": "flood", "of": ASYNC, "frame_sizes": [64]}
    gain = {"quantity": "goal gain", "of": ASYNC, "goal": 1e-5, "to": 0.0}
    (of_flood, of_gain) = judge_all([claim(ours=flooded), claim(ours=gain)], held)
    assert of_flood.why.endswith("flood and throughput at 64 B (frames passed in clear)")
    assert of_gain.why == "mpc8548e, async 3des-sha1, both ways: 64 B (VIOLATED)"


@pytest.mark.parametrize(
    ("behaviour", "name"), [("plain", "plain"), ("null", "null"), ("async", "async 3des-sha1")]
)
def test_a_figure_that_failed_has_its_status_whatever_the_suite(behaviour: str, name: str) -> None:
    """Cases in clear and with NULL/NULL have suites of their own."""
    ours = {"quantity": "throughput", "of": {"behaviour": behaviour}, "frame_size": 1456}
    one = judged(Shape(failing={(behaviour, 1456): "INVALID"}), value=1057, unit="Mbps", ours=ours)
    assert one.why == f"mpc8548e, {name}, both ways: 1456 B (INVALID)"


def test_a_flood_of_null_is_found_under_its_suite() -> None:
    ratio = {64: {Key.FLOOD_FORWARDING: 1.1e5, Key.OF_THROUGHPUT: 1.1}}
    measured = findings("flood", ratio, suite="null-null")
    of = {"behaviour": "null", "direction": "one-way"}
    asked = claim(ours={"quantity": "flood", "of": of, "frame_sizes": [64]}, **FASTER)
    flooded = Points((), flood=floods([(manifest_of(measured, "null"), measured)]))
    assert judge_all([asked], flooded)[0].word == "agrees"


CONSTANT = {
    "quantity": "trend", "of": LEAN, "to": ASYNC, "frame_sizes": list(SIZES), "goes": "falls", "constant_first": True,
}  # fmt: skip


@pytest.mark.parametrize(("cycles", "word", "sizes"), [(4_600.0, "agrees", 3), (2_900.0, "differs", 1)])
def test_an_advantage_is_constant_until_the_accelerator_limits(
    monkeypatch: pytest.MonkeyPatch, cycles: float, word: str, sizes: int
) -> None:
    """One size before that does not show that it is constant."""
    monkeypatch.setitem(made.CYCLES, "lean", cycles)
    shape = Shape(behaviours=("async", "lean"))
    assert judged(shape, ours=CONSTANT | {"constant_first": False}).word == "agrees"
    one = judged(shape, ours=CONSTANT)
    assert one.ours.text.endswith(f"sizes at which the CPU limits both: {sizes}")
    assert one.word == word


@pytest.mark.parametrize(("factor", "word"), [(1.03, "agrees"), (1.1, "differs")])
def test_an_advantage_that_falls_while_the_cpu_limits_is_not_constant(factor: float, word: str) -> None:
    manifest, outcomes = made.outcomes(Shape(behaviours=("async", "lean")))
    falling = [
        o.model_copy(update={"throughput_fps": factor * (o.throughput_fps or 0)})
        if o.stack == "lean" and o.frame_size == 64
        else o
        for o in outcomes
    ]
    (one,) = judge_all([claim(ours=CONSTANT)], points([(manifest, falling)]))
    assert one.word == word
