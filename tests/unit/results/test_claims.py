# SPDX-License-Identifier: Apache-2.0
"""Claims held against made-up runs whose truth is known, and that none of what documents print is without a claim."""

from __future__ import annotations

from dataclasses import replace

import pytest

from espbench.claims import Claim, Judged, Points, claims, judge_all
from espbench.claims.points import Limit, link_fps, points
from espbench.results.accelerator import AcceleratorResult
from espbench.results.published import documents
from espbench.sentences import Code
from espbench.terms import Remark, layer2_mbps
from support.synthetic import powerquicc as made
from support.synthetic.powerquicc import DEVICES, SIZES, Shape


def found(shape: Shape) -> Points:
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
    (one,) = judge_all([claim(**changes)], found(shape))
    return one


ASYNC = {"behaviour": "async"}
POLLING = {"behaviour": "polling"}
PLAIN = {"behaviour": "plain"}


# -- the data ---------------------------------------------------------------------------------------


def test_every_value_a_document_prints_is_a_claim() -> None:
    """Figures (throughput and CPU), ratios and the public-key times at 66 MHz, document by document."""
    claimed = {(c.document, c.value, c.unit) for c in claims()}
    for name, document in documents().items():
        for figure in document.figures:
            if figure.throughput is not None:
                assert (name, figure.throughput.value, "Mbps") in claimed, figure
            if figure.cpu_pct is not None:
                assert (name, figure.cpu_pct, "%") in claimed, figure
        for ratio in document.ratios:
            value = ratio.value if ratio.unit == "x" or ratio.device is None else 1 + ratio.value / 100
            assert (name, value, "x" if ratio.device or ratio.unit == "x" else "%") in claimed, ratio
        for time in document.times:
            assert (name, time.ms[66], "ms") in claimed, time


def test_no_two_claims_have_one_name() -> None:
    ids = [c.id for c in claims()]
    assert len(ids) == len(set(ids))


def test_only_one_device_is_calibrated_on() -> None:
    """Everything else is predicted (but for the public keys, whose cycles are those of every device)."""
    assert {c.device for c in claims() if c.calibration} == {"MPC8548E", None}
    assert all(c.unit == "ms" for c in claims() if c.calibration and c.device is None)


def test_a_claim_without_our_side_says_why() -> None:
    with pytest.raises(ValueError, match="cannot"):
        claim()
    with pytest.raises(ValueError, match="cannot"):
        claim(cannot="never", ours={"quantity": "cpu", "of": ASYNC, "frame_sizes": [64]})


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


def test_the_load_falls_where_the_accelerator_limits_and_not_where_the_cpu_waits() -> None:
    assert judged(Shape(), ours={"quantity": "cpu falls", "of": ASYNC}).word == "agrees"
    assert judged(Shape(), ours={"quantity": "cpu falls", "of": POLLING}).word == "differs"
    rising = Shape(sizes=(64, 1024, 128))
    assert judged(rising, ours={"quantity": "cpu falls", "of": ASYNC}).word == "agrees"  # in order of size


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
    ],
)
def test_what_limits(dut: str, behaviour: str, size: int, limit: Limit) -> None:
    limits = [
        p.limit for p in found(Shape(duts=(dut,))).points if (p.behaviour, p.frame_size) == (behaviour, size)
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


def test_a_tunnel_fills_a_link_before_cleartext_does(monkeypatch: pytest.MonkeyPatch) -> None:
    """100 Mbps: 191 Mbps of 1456 B frames both ways, 197 in clear; the made-up SEC could do 600."""
    monkeypatch.setitem(DEVICES, "mpc8323e", made.Device(333, 133, 100e6))
    shape = Shape(duts=("mpc8323e",), behaviours=("async", "plain"))
    (large,) = [p for p in found(shape).points if (p.behaviour, p.frame_size) == ("async", 1456)]
    assert large.limit == "link"
    assert large.mbps == pytest.approx(190.83, abs=0.01)
    assert link_fps(1456, "3des-sha1", 100e6) < link_fps(1456, "none", 100e6)


def test_the_accelerator_test() -> None:
    def result(suite: str, size: int, after_us: float) -> AcceleratorResult:
        return AcceleratorResult(
            dut="mpc8548e", suite=suite, size=size, operations=1000, driver="talitos",
            after_ns=int(1e6 * after_us), at_once_ns=2_000_000, full=0,
        )  # fmt: skip

    base = replace(found(Shape()), accelerator=(result("aes128-sha1", 64, 8), result("3des-sha1", 64, 8.4)))
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
    assert set(words.values()) == {"agrees"}
    assert {"link-clear", "link-tunnel", "tunnel-growth", "fragments", "rsa-2048"} <= set(words)


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


def test_a_range_of_sizes_needs_its_ends_and_names_what_it_has() -> None:
    """A short run with fewer sizes is judged by those it has; one without the smallest or the largest is not."""
    ours = {"quantity": "ratio", "of": PLAIN, "to": ASYNC, "frame_sizes": [64, 512, 1456]}
    asked = {"value": 1, "unit": "x", "qualifier": "above", "tolerance": 0, "ours": ours}
    ends = judged(Shape(sizes=(64, 1456)), **asked)
    assert ends.word == "agrees"
    assert "512 B" not in ends.ours.text
    assert judged(Shape(sizes=(64, 512)), **asked).why == "mpc8548e, plain, both ways: 1456 B"
