# SPDX-License-Identifier: Apache-2.0
"""The claims about public keys: which half is fitted, what a guest's times must be, and that each claim can fail."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from espbench.claims import Points, claims, judge_all
from espbench.claims.model import PublicKeyTable, PublicKeyTime
from espbench.claims.unit_fit import Constants, Printed, as_printed, fit, half, table, without_size
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult, Variant

PKEU = Constants((35.0, 240.0), (1.0, 3.0, 27.0))  # harness/emulator/sec/pkeu.c


def result(entry: Printed, **changes: Any) -> PublicKeyResult:
    """Return what a guest would measure of the emulated unit, with 5 µs of driver and descriptor."""
    fields: dict[str, Any] = {
        "dut": "mpc8548e", "clock_mhz": float(entry.mhz), "by": "unit", "operation": "rsa",
        "bits": entry.modulus_bits, "exponent_bits": entry.exponent_bits, "operations": 1,
        "whole_ns": round(PKEU.ms(entry) * 1e6) + 5_000, "idle_ns": 0, "overhead_ns": 5_000,
    }  # fmt: skip
    return PublicKeyResult(**fields | changes)


def words(results: list[PublicKeyResult]) -> dict[str, tuple[str, str]]:
    judged = judge_all(claims(), Points((), public_keys=tuple(results)))
    return {j.claim.id: (j.word, j.ours.text) for j in judged if j.claim.id.startswith("rsa")}


def test_every_second_entry_is_held_out() -> None:
    fitted, held_out = half("fitted"), half("held out")
    assert len(table()) == 48
    assert {entry.mhz for entry in fitted} == {33, 66, 100, 166}
    assert {entry.mhz for entry in held_out} == {50, 83, 133, 333}
    assert {*fitted} | {*held_out} == {*table()}


def test_the_emulated_unit_has_the_constants_of_the_fitted_half() -> None:
    """Least squares finds the constants again that made-up times are of."""
    fitted = fit(half("fitted"))
    assert fitted.rounded() == PKEU
    assert as_printed(fitted.rounded(), half("held out"))[0] == 24
    assert as_printed(fitted, half("held out"))[0] == 22
    made_up = [Printed(e.modulus_bits, e.exponent_bits, e.mhz, PKEU.ms(e)) for e in half("fitted")]
    again = fit(made_up)
    assert [*again.preparation, *again.multiplication] == pytest.approx([35, 240, 1, 3, 27])


def test_a_pair_of_sizes_that_is_held_out_is_some_percent_off() -> None:
    """Six pairs of sizes and five constants: what is not measured is not known to the printed digit."""
    off = {(e.modulus_bits, e.exponent_bits): without_size(e.modulus_bits, e.exponent_bits) for e in table()}
    assert {size: round(pct, 1) for size, pct in off.items()} == {
        (512, 512): -4.2, (512, 3): 1.3, (1024, 1024): 1.7, (1024, 3): -0.3, (2048, 2048): -2.7, (2048, 3): 0.3,
    }  # fmt: skip


def test_pairs_of_sizes_have_the_row_that_can_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """It differs by the published times, and agrees by times that the formula gives to the last digit."""
    (row,) = [c for c in claims() if c.id == "rsa-sizes-held-out"]
    (published,) = judge_all([row], Points(()))
    assert published.word == "differs"
    assert published.ours.text.startswith("1 of 6 pairs; at 33 MHz 512/512 -4.2 %, ")
    exact = [replace(e, ms=PKEU.ms(e)) for e in table()]
    monkeypatch.setattr("espbench.claims.unit_fit.table", lambda: exact)
    (made_up,) = judge_all([row], Points(()))
    assert (made_up.word, made_up.ours.text[:12]) == ("agrees", "6 of 6 pairs")


def test_times_at_other_clocks_of_fitted_sizes_are_no_predictions() -> None:
    """The fit has every pair of sizes, so a row on a printed time counts as calibration, or as computed."""
    rows = [c for c in claims() if isinstance(c.ours, PublicKeyTime | PublicKeyTable)]
    assert len(rows) == 8
    assert [c.id for c in rows if not c.calibration] == []


@pytest.mark.parametrize(("block_us", "word"), [(200, "agrees"), (5_000, "differs")])
def test_rsa_in_software_is_held_against_the_dearest_large_block(block_us: int, word: str) -> None:
    """A small exponent and small blocks do not count."""
    rsa = {"by": "software", "overhead_ns": 0}
    times = [
        result(Printed(512, 512, 266, 0.0), whole_ns=4_000_000, **rsa),
        result(Printed(512, 3, 266, 0.0), whole_ns=10_000, **rsa),
    ]
    blocks = [
        AcceleratorResult(
            dut="mpc8548e", suite="3des-sha1", size=size, operations=1000, crypto="software", driver="made-up",
            after_ns=1_000_000 * us, at_once_ns=1, full=0,
        )
        for size, us in ((64, 9_000_000), (1024, block_us))
    ]  # fmt: skip
    (asked,) = [c for c in claims() if c.id == "rsa-intensive"]
    (one,) = judge_all([asked], Points((), tuple(blocks), public_keys=tuple(times)))
    assert one.word == word
    assert one.ours.text == f"times 3des-sha1 of 1024 B: 512/512: {4_000 / block_us:,.2f}"
    for lacking in (Points((), tuple(blocks)), Points((), public_keys=tuple(times))):
        assert judge_all([asked], lacking)[0].word == "not measured"


def test_times_of_a_guest_agree_as_printed() -> None:
    judged = words([result(entry) for entry in table()])
    assert judged["rsa-held-out-measured"][0] == judged["rsa-fitted-measured"][0] == "agrees"
    assert {judged[f"rsa-{size}"][0] for size in (512, 1024, 2048)} == {"agrees"}


@pytest.mark.parametrize("which", ["fitted", "held out"])
def test_one_time_that_is_another_differs(which: str) -> None:
    """A time that is 12 µs longer is more than half a printed digit and the empty operation's work."""
    wrong = half(which)[1]
    results = [result(e, overhead_ns=5_000 - 12_000 * (e == wrong)) for e in table()]
    judged = words(results)
    name, other = "rsa-fitted-measured", "rsa-held-out-measured"
    if which == "held out":
        name, other = other, name
    assert judged[name][0] == "differs"
    assert judged[name][1].startswith("23 of 24")
    assert judged[other][0] == "agrees"


def test_a_time_that_is_missing_is_named() -> None:
    (judged,) = [
        j
        for j in judge_all(claims(), Points((), public_keys=tuple(result(e) for e in table()[:-1])))
        if j.claim.id == "rsa-held-out-measured"
    ]
    assert judged.word == "not measured"
    assert judged.why == "mpc8548e: 1 of 24 public-key times, such as 2048/3 at 333 MHz"


@pytest.mark.parametrize(("times", "word"), [(2, "differs"), (600, "agrees"), (1_100, "differs")])
def test_software_against_the_unit(times: int, word: str) -> None:
    entry = Printed(1024, 1024, 266, 0.0)
    unit = result(entry)
    software = result(entry, by="software", whole_ns=unit.whole_ns * times, overhead_ns=0)
    judged = words([unit, software])
    assert judged["rsa-software"] == (word, f"1024/1024: {times:,.2f}")
    assert judged["rsa-software-small"][0] == "not measured"


@pytest.mark.parametrize("overhead_ns", [40, 5_000])
def test_half_a_sentence_without_a_number_has_no_verdict(overhead_ns: int) -> None:
    """The paper says negligible only beside ciphers, which rsa-overhead-compared judges."""
    assert words([result(e, overhead_ns=overhead_ns) for e in table()])["rsa-overhead"][0] == "not measured"


@pytest.mark.parametrize(("busy_pct", "word"), [(40, "agrees"), (60, "differs"), (100, "differs")])
def test_the_unit_relieves_the_cpu_if_it_takes_half_of_it_at_most(busy_pct: int, word: str) -> None:
    """Software is as fast here, and takes the whole CPU."""
    entry = Printed(1024, 1024, 266, 0.0)
    whole_ns = result(entry).whole_ns
    unit = result(entry, idle_ns=round(whole_ns * (1 - busy_pct / 100)))
    software = result(entry, by="software", overhead_ns=0)
    assert words([unit, software])["rsa-cpu"] == (word, f"1024/1024: {100 / busy_pct:.2f}")
    assert words([unit])["rsa-cpu"][0] == "not measured"


def cipher(after_ns: int, **changes: Any) -> AcceleratorResult:
    fields: dict[str, Any] = {
        "dut": "mpc8548e", "suite": "3des-sha1", "size": 64, "operations": 1, "driver": "made-up",
        "after_ns": after_ns, "at_once_ns": 1_000, "full": 0,
    }  # fmt: skip
    return AcceleratorResult(**fields | changes)


@pytest.mark.parametrize(
    ("after_ns", "word"), [(2_000, "agrees"), (1_010, "differs"), (None, "not measured")]
)
def test_overhead_beside_that_of_ciphers(after_ns: int | None, word: str) -> None:
    """At most 6.6 % of a public key's time is overhead, and half or a hundredth of a cipher's."""
    usual = [] if after_ns is None else [cipher(after_ns)]
    others = [cipher(1_001, crypto="polling"), cipher(1_001, variant=Variant(keys=16))]
    points = Points((), (*usual, *others), public_keys=tuple(result(e, overhead_ns=3_000) for e in table()))
    (judged,) = [j for j in judge_all(claims(), points) if j.claim.id == "rsa-overhead-compared"]
    assert judged.word == word
