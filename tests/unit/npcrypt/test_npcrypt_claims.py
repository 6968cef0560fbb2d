# SPDX-License-Identifier: Apache-2.0
"""Claims of NPCryptBench held against results that nobody measured: each can agree, differ, or lack a configuration."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.claims import claims, judge_all
from espbench.claims.kernel_measures import KERNELS, MEASURES, WORKSTATION, answer
from espbench.claims.model import Kernels
from espbench.claims.our_value import OurValue
from espbench.claims.points import Points, points
from espbench.plan import load_profile
from espbench.reporting.parts.wording import number
from espbench.reporting.published.published_view import published_view
from espbench.results import FORMAT
from espbench.results.kernels import KINDS, KernelResult
from espbench.terms import Manifest
from support.synthetic.kernels import everything, made

OURS = [c for c in claims() if c.document == "npcryptbench"]


def manifest_of_nothing() -> Manifest:
    return Manifest(
        format=FORMAT, espbench="0", name="np", started="2026-01-01T00:00:00+00:00", platform="ixp",
        platform_reason="", topology="no-network", line_rate_bps=0.0, cases=[],
    )  # fmt: skip


def changed(**conditions: Any) -> list[KernelResult]:
    """Every configuration; those that meet the conditions, but for `to`, get its fields."""
    to = conditions.pop("to")

    def meets(r: KernelResult) -> bool:
        return all(
            getattr(r, key) in (value if isinstance(value, tuple) else (value,))
            for key, value in conditions.items()
        )

    return [r.model_copy(update=to) if meets(r) else r for r in everything()]


def held(what: str, results: list[KernelResult], dut: str = "ixp2800") -> OurValue:
    return answer(what, dut, results)


def test_every_measure_answers_a_claim_and_every_claim_has_its_measure() -> None:
    assert {c.ours.what for c in OURS if isinstance(c.ours, Kernels)} == set(MEASURES)


def test_every_claim_that_is_measured_was_predicted() -> None:
    """Predictions came before the first run, but for rows that follow from table III, and later rows."""
    given = [
        c
        for c in OURS
        if isinstance(c.ours, Kernels)
        and "follows from the profile" not in c.note
        and "when this row was written" not in c.note
    ]
    assert len(given) > 60
    assert [c.id for c in given if not c.predicted] == []


FROM_THE_PROFILE = {"latency growth", "latency over half", "latency magnitudes"}


@pytest.mark.parametrize("what", sorted(set(MEASURES) - FROM_THE_PROFILE))
def test_a_measure_says_what_was_not_measured(what: str) -> None:
    """Nothing is judged by a part of the kernels."""
    assert held(what, everything()).exists
    assert held(what, []).missing.startswith(("ixp", WORKSTATION))
    without = [r for r in everything() if r.kernel != "seal"]
    if what not in (
        "des more yet faster",
        "branch time",
        "little for des and idea",
        "storage",
        "tables behind",
        "unrolling slows",
        "newer slows",
        "aes ahead on a computer",
    ):
        assert held(what, without).missing, what


def count(**kinds: int) -> dict[str, int]:
    return dict.fromkeys(KINDS, 0) | kinds


LOCAL = {"local": 176, "scratch": 0, "sram": 0}
FAST, SLOW = {"cycles": 10_000}, {"cycles": 2_000_000}
BARELY_SLOWER = {"cycles": 20_680, "code": count(simple=500)}  # 1 % slower, and longer


@pytest.mark.parametrize(
    ("what", "results"),
    [
        ("aes slowest", changed(kernel="aes", dut="ixp2800", to=SLOW)),
        ("rc6 and idea slowest", changed(kernel=("rc6", "idea"), dut="ixp2800", to=SLOW)),
        ("streams to blocks", changed(kernel=("rc4", "seal"), to=FAST)),
        ("gain of the clock", changed(kernel="seal", dut="ixp2400", to={"clock_hz": 600_000_000})),
        (
            "idle over half",
            changed(kernel=("aes", "rc4", "rc5", "rc6", "blowfish", "seal"), to={"idle": 0.6}),
        ),
        ("near linear", changed(kernel=("des", "idea", "sha1"), engines=8, to={"cycles": 160_000})),
        (
            "threads help",
            changed(kernel=("aes", "blowfish", "seal"), threads=4, engines=(1, 2), to={"cycles": 30_000}),
        ),
        ("level 3 against faster memory", changed(level=3, engines=8, to={"cycles": 10_000})),
        (
            "rc4, rc5, rc6 gain most",
            changed(kernel=("rc4", "rc5", "rc6"), level=3, engines=8, to={"cycles": 9_000}),
        ),
        ("hashes longer", changed(kernel=("md5", "sha1"), to={"code": count(simple=500)})),
        ("des longest", changed(kernel="des", to={"code": count(simple=500)})),
        ("small ciphers", changed(level=0, to={"code": count(simple=200)})),
        ("idle rises to 2800", changed(dut="ixp2400", to={"idle": 0.2})),
        ("rarely aborted", changed(dut=("ixp2400", "ixp2800"), to={"aborted": 0.04})),
        ("by hand against compiler", changed(level=2, engines=1, threads=1, to=FAST)),
        ("more computing", changed(level=0, to={"run": count(simple=90, branch=5, load=5)})),
        ("idles most", changed(dut="ixp2800", level=0, to={"idle": 0.5})),
        (
            "unrolling slows",
            changed(kernel="blowfish", compiler="clang", to=SLOW | {"code": count(simple=500)}),
        ),
        ("tables behind", changed(kernel=("des", "rc5", "rc6", "idea"), to=FAST | {"storage": LOCAL})),
        ("busy gain nothing", changed(level=2, engines=1, to={"idle": 0.0, "stalled": 0.0})),
        ("longer queues", changed(dut="ixp2800-long-queues", kernel="seal", to={"stalled": 0.0})),
        ("larger local memory", changed(dut="ixp2800-large-local", kernel=("aes", "blowfish"), to=FAST)),
        ("by hand, most", changed(kernel=KERNELS[:6], level=2, engines=1, threads=1, to=FAST)),
        ("faster engines", changed(dut="ixp2800-fast-engines", kernel=("des", "idea"), to=FAST)),
        ("shorter latency", changed(dut="ixp2800-short-latency", engines=1, to=FAST)),
        ("shorter latency, many threads", changed(dut="ixp2800-short-latency", engines=8, to=FAST)),
    ],
)
def test_a_statement_can_hold_and_can_fail(what: str, results: list[KernelResult]) -> None:
    """It holds with its own figures, and fails with others: all alike, kernels swapped, longer, reversed."""
    assert held(what, results).holds is True
    other_kernel = dict(zip(KERNELS, reversed(KERNELS), strict=True))
    opposite = [r.model_copy(update={"kernel": other_kernel[r.kernel]}) for r in results]
    longer = [r.model_copy(update={"code": count(simple=900)}) for r in results]
    others = (everything(), opposite, longer, reversed_figures(results))
    assert any(held(what, other).holds is False for other in others)


def reversed_figures(results: list[KernelResult]) -> list[KernelResult]:
    """The figures of the first configuration to the last one, and so on."""
    keys = (
        "dut",
        "kernel",
        "level",
        "compiler",
        "option",
        "engines",
        "threads",
        "faster_dram",
        "faster_sram",
    )
    return [
        other.model_copy(update={key: getattr(r, key) for key in keys})
        for r, other in zip(results, reversed(results), strict=True)
    ]


def test_threads_help_whatever_others_gain() -> None:
    """The paper says of AES, Blowfish and SEAL that they gain, not that others gain less."""
    helped = changed(threads=4, engines=(1, 2), to={"cycles": 30_000})
    most = [r.model_copy(update=FAST) if r.kernel == "rc5" and r.threads == 4 else r for r in helped]
    assert held("threads help", most).holds is True


OTHER_SHA1 = {
    "run": count(branch=1), "code": count(simple=9_000), "idle": 0.9, "aborted": 0.5, "executing": 0.99,
    "cycles_of": count(branch=1), "cycles": 100,
}  # fmt: skip


@pytest.mark.parametrize("what", sorted(set(MEASURES) - FROM_THE_PROFILE - {"storage"}))
def test_sha1_is_no_figure_of_the_ixp1200(what: str) -> None:
    """The paper could not compile it there, so neither a mean of this processor nor a comparison with it has it.

    Its table IV has a row for it all the same.
    """
    other = changed(kernel="sha1", dut="ixp1200", to=OTHER_SHA1)
    assert repr(held(what, other, "ixp1200")) == repr(held(what, everything(), "ixp1200"))
    without = [r for r in everything() if (r.kernel, r.dut) != ("sha1", "ixp1200")]
    assert held(what, without, "ixp1200").missing == ""


@pytest.mark.parametrize("what", ["simple mix", "memory and immediate mix", "mean code"])
def test_sha1_is_one_of_the_ten_elsewhere(what: str) -> None:
    other = changed(kernel="sha1", level=0, to={"run": count(simple=7, load=3), "code": count(simple=9_000)})
    assert held(what, other, "ixp2400").low != held(what, everything(), "ixp2400").low


def test_gains_are_means_over_the_kernels() -> None:
    """One that is ten times as fast is +900 %, of ten +90 %."""
    results = changed(kernel="aes", level=2, engines=1, threads=1, to={"cycles": 2_048})
    assert held("by hand", results).low == pytest.approx(90)
    assert held("level 3", everything()).low == pytest.approx(3100)  # level 2 takes 32 times as long


@pytest.mark.parametrize("what", ["faster memory", "level 3 against faster memory"])
@pytest.mark.parametrize(
    "other", [{"faster_dram": 1.0, "faster_sram": 1.0}, {"faster_dram": 0.165, "faster_sram": 0.0}]
)
def test_only_the_papers_faster_memory_answers(what: str, other: dict[str, float]) -> None:
    """Another increase is none of its figures, alone or beside them."""
    changes = {"level": 2, "engines": 8, "threads": 8, "cycles": 1} | other
    twice = [made(kernel=kernel, **changes) for kernel in KERNELS]
    slow = [r for r in everything() if not r.faster_dram]
    assert held(what, [*slow, *twice]).missing.endswith("DRAM faster by 16.5 % and SRAM by 33.5 %")
    for results in ([*everything(), *twice], [*twice, *everything()]):
        assert repr(held(what, results)) == repr(held(what, everything()))


@pytest.mark.parametrize(
    "what", ["by hand", "level 3", "faster memory", "mean code", "aes ahead on a computer"]
)
def test_figures_of_other_amounts_of_data_are_not_mixed_in(what: str) -> None:
    """Short data make the part around the loop count more."""
    short = [r.model_copy(update={"data": 128, "cycles": 1, "code": {"other": 1}}) for r in everything()]
    assert "2,048 B each" in held(what, short).missing
    for results in ([*everything(), *short], [*short, *everything()]):
        assert repr(held(what, results)) == repr(held(what, everything()))


@pytest.mark.parametrize(
    ("what", "field"),
    [("immediate code", "code"), ("immediate time", "cycles_of"), ("memory time", "cycles_of")],
)
def test_figure_5_is_of_the_ixp1200_and_the_ixp2800(what: str, field: str) -> None:
    """Another figure on either changes ours, and one on the IXP2400 does not."""
    usual = held(what, everything())
    for dut in ("ixp1200", "ixp2400", "ixp2800"):
        ours = held(what, changed(dut=dut, level=0, to={field: count(immediate=1, load=9)}))
        assert ((ours.low, ours.high) != (usual.low, usual.high)) == (dut != "ixp2400"), dut


def test_a_figure_is_that_of_the_kernels_it_is_about() -> None:
    """The most of any, MD5's own, a count, and the shares of kinds apart."""
    least = changed(kernel="md5", level=0, to={"run": count(simple=998, load=2)})
    assert held("md5 has least memory and immediate", least).low == pytest.approx(0.2)
    less = changed(kernel="sha1", level=0, to={"run": count(simple=10)})
    assert held("md5 has least memory and immediate", less).low == pytest.approx(
        100 / 3
    )  # MD5's, though SHA-1 has none
    most = changed(kernel="aes", level=0, to={"run": count(simple=1, load=1, store=1, immediate=1)})
    assert held("most memory and immediate", most).low == pytest.approx(75)
    assert held("second memory", changed(kernel=("des", "md5"), to={"storage": LOCAL})).low == 7
    assert held("second memory", everything(), "ixp1200").low == 0  # its second memory is SRAM
    kinds = changed(level=0, to={"run": count(simple=90, jump=1, branch=4, other=5)})
    shares = [held(f"{kind} mix", kinds).low for kind in ("jump", "conditional", "branch", "other")]
    assert shares == pytest.approx([1, 4, 5, 5])
    rise = changed(level=0, to={"run": count(simple=8, load=1, store=1), "executing": 0.5, "idle": 0.5})
    assert held("memory rise", rise).high == pytest.approx(100 * rise[0].memory_time / 20)
    longer = changed(
        kernel="aes", compiler="clang", option="O2", to={"code": count(simple=11 * made().instructions)}
    )
    assert held("unrolling lengthens", longer).low == pytest.approx(2)
    newer = changed(
        kernel="aes", compiler="clang-19", option="O2", to={"code": count(simple=11 * made().instructions)}
    )
    assert held("newer lengthens", newer).low == pytest.approx(2)
    assert (held("versions alike", newer).low, held("versions alike", newer).high) == pytest.approx((1, 11))
    slower = changed(
        kernel="blowfish", compiler="clang-19", to=SLOW | {"code": count(simple=11 * made().instructions)}
    )
    assert (held("newer slows", slower).holds, held("unrolling slows", slower).holds) == (True, False)
    waiting = changed(kernel="seal", level=2, threads=4, engines=1, to={"idle": 0.1, "stalled": 0.3})
    assert held("idle with four threads", waiting).low == pytest.approx(40)


@pytest.mark.parametrize(
    ("row", "newer"), [("np-compilers-alike", "clang"), ("np-versions-alike", "clang-19")]
)
@pytest.mark.parametrize("figure", ["code", "cycles"])
def test_compilers_are_alike_if_every_kernel_is(row: str, newer: str, figure: str) -> None:
    """The mean of the ten hides one that is 1.7 times as long, or as slow; the row says which."""
    (one,) = [c for c in OURS if c.id == row]
    longer = (
        {"code": count(simple=17 * made().instructions // 10)} if figure == "code" else {"cycles": 34_816}
    )
    other = changed(kernel="rc4", compiler=newer, option="O2", to=longer)
    alike, differing = (judge_all([one], points([], kernels=each))[0] for each in (everything(), other))
    assert (alike.word, differing.word) == ("agrees", "differs")
    assert f"rc4's {'size' if figure == 'code' else 'speed'} at O2" in differing.ours.text


SHARES = st.dictionaries(
    st.sampled_from(KERNELS), st.integers(0, 300), min_size=len(KERNELS), max_size=len(KERNELS)
)


@given(SHARES, st.sampled_from([("np-memory-immediate-most", "aes"), ("np-memory-immediate-least", "md5")]))
def test_the_kernel_that_a_claim_names_must_have_most_or_least(
    shares: dict[str, int], named: tuple[str, str]
) -> None:
    """Loads are so many of 1,000 instructions. The figure alone may agree; the row says who has most, or least."""
    name, kernel = named
    (one,) = [c for c in OURS if c.id == name]
    assert one.value is not None
    shares |= {kernel: round(10 * one.value)}
    results = [
        r.model_copy(update={"run": count(simple=1000 - shares[r.kernel], load=shares[r.kernel])})
        for r in everything()
    ]
    (judged,) = judge_all([one], points([], kernels=results))
    extreme = max(shares.values()) if kernel == "aes" else min(shares.values())
    assert judged.ours.low == pytest.approx(one.value)
    assert judged.word == ("agrees" if shares[kernel] == extreme else "differs")
    (row,) = [row for section in published_view([judged], Points(()), []).sections for row in section.rows]
    assert row.ours == f"{number(one.value, 3)} %"
    if judged.word == "differs":
        said = judged.ours.text.partition(" has ")[0]
        assert {shares[said.removeprefix(f"not {kernel} but ")]} == {extreme}


STALLED_LONGER = made(dut="ixp2800-long-queues", kernel="rc5", level=2, engines=8, threads=8, stalled=0.2)
BUSY_AND_GAINING = [
    r.model_copy(update={"idle": 0.0, "stalled": 0.0, "cycles": 20_480}) for r in everything()
]  # eight threads in the time of one


@pytest.mark.parametrize(
    ("what", "results"),
    [
        ("more computing", changed(level=0, to={"run": count(simple=89, branch=11)})),
        ("more computing", changed(level=0, to={"run": count(simple=59, load=41)})),
        (
            "threads help",
            changed(kernel=("aes", "blowfish"), threads=4, engines=(1, 2), to={"cycles": 30_000}),
        ),
        (
            "threads help",
            changed(kernel=("aes", "blowfish", "seal"), threads=4, engines=1, to={"cycles": 30_000}),
        ),
        ("unrolling slows", changed(kernel="blowfish", compiler="clang", to=BARELY_SLOWER)),
        ("newer slows", changed(kernel="blowfish", compiler="clang-19", to=BARELY_SLOWER)),
        ("unrolling slows", changed(kernel="blowfish", compiler="clang", to=SLOW)),
        ("unrolling slows", changed(kernel="blowfish", compiler="clang", to={"code": count(simple=500)})),
        ("newer slows", changed(kernel="blowfish", compiler="clang-19", to=SLOW)),
        ("newer slows", changed(kernel="blowfish", compiler="clang-19", to={"code": count(simple=500)})),
        ("aes ahead on a computer", changed(kernel="rc6", level=0, to=FAST, dut=WORKSTATION)),
        ("tables behind", everything()),
        ("tables behind", changed(kernel="des", level=0, to=FAST | {"storage": LOCAL}, dut="ixp2400")),
        ("busy gain nothing", everything()),
        ("busy gain nothing", BUSY_AND_GAINING),
        ("idles most", changed(dut="ixp2400", level=0, to={"idle": 0.5})),
        (
            "rarely aborted",
            changed(dut="ixp1200", to={"aborted": 0.3}),
        ),  # less than there, and no less than 10 %
        ("rarely aborted", changed(to={"aborted": 0.04})),  # rarely, and as often as there
        ("longer queues", changed(dut="ixp2800-long-queues", to={"stalled": 0.2})),
        ("longer queues", [*changed(dut="ixp2800-long-queues", to={"stalled": 0.0}), STALLED_LONGER]),
        ("larger local memory", changed(dut="ixp2800-large-local", kernel="aes", to=FAST)),
        ("by hand, most", changed(kernel=KERNELS[:5], level=2, engines=1, threads=1, to=FAST)),
        ("by hand, most", changed(level=2, engines=1, threads=1, to={"cycles": 14_000})),  # 1.46 times
        ("faster engines", changed(dut="ixp2800-fast-engines", kernel="des", to=FAST)),
        ("shorter latency", changed(dut="ixp2800-short-latency", engines=8, to=FAST)),
        ("shorter latency, many threads", changed(dut="ixp2800-short-latency", engines=1, to=FAST)),
    ],
)
def test_a_statement_fails_by_each_of_its_parts(what: str, results: list[KernelResult]) -> None:
    """Many branches, little arithmetic; longer code alone, slower code alone; nothing local; another generation."""
    assert held(what, results).holds is False


def test_what_follows_from_the_profiles_needs_no_result() -> None:
    """Writing to the DRAM of the IXP2400 takes 53 cycles after 36: less than half as many more."""
    growth = held("latency over half", [])
    assert (growth.holds, "ixp2400 DRAM write +47 %" in growth.text) == (False, True)
    assert held("latency magnitudes", []).text == "19 to 291 cycles"


def test_a_finished_run_is_judged_by_the_processor_that_it_had() -> None:
    """A profile that is edited later changes nothing; what no run recorded is as the profile has it."""
    profile = load_profile("ixp2400")
    recorded = profile.model_dump(mode="json")
    recorded["processor"]["stated"]["dram"]["write"] = 5000
    manifest = manifest_of_nothing().model_copy(update={"asked": {"profiles": {"ixp2400": recorded}}})
    measured = points([(manifest, [])])
    magnitudes = answer("latency magnitudes", "ixp2400", [], measured.processors)
    assert (magnitudes.holds, magnitudes.text) == (False, "19 to 5000 cycles")
    older = manifest.model_copy(update={"asked": {}})
    assert answer("latency magnitudes", "ixp2400", [], points([(older, [])]).processors).holds is True


def test_memory_time_has_waiting_in_it() -> None:
    """Two of nine equal kinds are of memory: two ninths of the 60 % not waited, and the 40 % waited."""
    assert made().memory_time == pytest.approx(0.4 + 0.6 * 2 / 9)
    assert held("memory time", everything()).low == pytest.approx(100 * made().memory_time)


def test_throughput_is_bytes_by_time() -> None:
    """2,048 bytes in 20,480 cycles of 1.4 GHz."""
    assert made().mbps == pytest.approx(2048 * 8 / (20_480 / 1.4e9) / 1e6)
    assert made(engines=8, threads=4).total_bytes == 2048 * 32
