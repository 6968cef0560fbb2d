# SPDX-License-Identifier: Apache-2.0
"""Prepares the comparison of published with emulated figures for its reader: one view for HTML and Markdown."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from espbench.claims import Claim, Judged, Points
from espbench.claims.judge import WORDS, Word
from espbench.claims.our_value import OurValue
from espbench.claims.points import Point
from espbench.npcrypt.ciphers import KERNELS
from espbench.plan.duts.boards import STANDING_IN
from espbench.reporting.parts.labels import SHORT
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, count, goal_name, number, plural
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult
from espbench.results.kernels import KernelResult
from espbench.results.published import documents

TITLE = "Published against emulated"
SYMBOLS: dict[Word, str] = {
    "agrees": "✓", "differs": "✗", "not measured": "·", "cannot be measured here": "–",
}  # fmt: skip
STANDS_IN = "core: e500 standing in for e300"
UNEXPLAINED = "Not explained: no reason is written down for this difference"
UNPREDICTED = "No prediction was written down before the first run."
_GENERAL = "No single device"
_ABOUT_GENERAL = "Claims about methods, stacks, accelerators and ciphers that name no device, or several"
# A run gives at most one side of these; the other is arithmetic, or an assumed time.
BY_ARITHMETIC = ("computed", "accelerator timer")
_UNITS = {"x": "×", "": ""}
_QUALIFIERS = {"exact": "", "about": "about ", "below": "less than ", "above": "more than "}
_STACKS = {
    "plain": "plain forwarding", "nanosec": "NanoSec", "openswan": "OpenSwan", "strongswan": "StrongSwan",
    "netkey": "NetKey",
}  # fmt: skip
_BEHAVIOURS = {
    "plain": "plain forwarding",
    "null": "ESP, NULL/NULL",
    "async": "SEC, asynchronous, one pass",
    "polling": "SEC, synchronous polling, one pass",
    "dual-pass": "SEC, synchronous, cipher then hash",
    "software": "crypto in software",
    "lean": "lean ESP of espbench's own, SEC asynchronous, one pass",
    "lean-software": "lean ESP of espbench's own, crypto in software",
}


@dataclass(frozen=True)
class ClaimRow:
    """One claim, our value, and the judgement."""

    id: str
    says: str
    source: str  # stack, document's title, place
    published: str
    ours: str
    detail: str  # how our value was computed
    word: Word
    symbol: str
    basis: str  # used for calibration, not fitted or computed; empty if nothing is compared
    tolerance: str
    why: str
    note: str
    predicted: str
    unpredicted: str  # that nobody wrote a prediction down


@dataclass(frozen=True)
class DeviceSection:
    """All claims about one device."""

    anchor: str
    title: str
    device: str  # empty: claims about no single device
    facts: str
    labels: list[str]
    rows: list[ClaimRow]
    results: Table
    duts: list[str]  # the device's DUTs that were measured

    @property
    def answered(self) -> list[ClaimRow]:
        """The claims that the runs answer."""
        return [row for row in self.rows if row.ours != NONE]

    @property
    def open(self) -> list[ClaimRow]:
        """The other claims."""
        return [row for row in self.rows if row.ours == NONE]

    @property
    def counts(self) -> list[int]:
        """The number of its claims with each judgement, in the order of the tally."""
        words = Counter(row.word for row in self.rows)
        return [words[word] for word in WORDS]


@dataclass(frozen=True)
class PublishedView:
    """Everything that both templates (HTML and Markdown) show, in their order."""

    runs: list[str]
    tally: list[tuple[Word, int]]
    conclusion: list[str]
    labels: list[str]
    left_out: list[str]
    sections: list[DeviceSection]
    accelerator: Table
    public_keys: Table
    kernels: Table
    sources: Table


def published_view(judged: Sequence[Judged], points: Points, runs: Sequence[str]) -> PublishedView:
    """Return the view of judged claims; runs: the names of the runs."""
    devices = list(dict.fromkeys(j.claim.device for j in judged if j.claim.device))
    sections = [_section(device, judged, points) for device in [*devices, None]]
    words = Counter(j.word for j in judged)
    is_short = any(p.is_short for p in points.points)
    return PublishedView(
        runs=list(runs),
        tally=[(word, words[word]) for word in WORDS],
        conclusion=_conclusion(judged),
        labels=[SHORT] if is_short else [],
        left_out=[*points.left_out],
        sections=sections,
        accelerator=accelerator_table(points.accelerator),
        public_keys=public_key_table(points.public_keys),
        kernels=kernel_table(points.kernels),
        sources=_sources(),
    )


def _conclusion(judged: Sequence[Judged]) -> list[str]:
    compared = [j for j in judged if j.word in ("agrees", "differs")]
    used, not_fitted, by_arithmetic = (
        [j for j in compared if _basis(j.claim) == basis]
        for basis in ("used for calibration", "not fitted", "computed")
    )

    def agreeing(of: Sequence[Judged]) -> str:
        return f"{sum(j.word == 'agrees' for j in of)} of {len(of)}"

    sentences = (
        [f"Of the claims that the model was not fitted to, {agreeing(not_fitted)} agree."]
        if not_fitted
        else []
    )
    if used:
        sentences.append(f"Of the claims used for the calibration, {agreeing(used)} agree.")
    if by_arithmetic:
        sentences.append(f"Of those that arithmetic decides, {agreeing(by_arithmetic)} agree.")
    if unexplained := sum(map(is_unexplained, judged)):
        sentences.append(f"Claims that differ without a written reason: {unexplained}.")
    unmeasured = [j for j in judged if j.word == "not measured"]
    if missing := sum(not j.claim.lacks for j in unmeasured):
        sentences.append(f"{plural(missing, 'claim')} could be measured and were not, in these runs.")
    if lacking := sum(bool(j.claim.lacks) for j in unmeasured):
        sentences.append(f"For {plural(lacking, 'claim')} espbench has not got what it takes yet.")
    return sentences


def _section(device: str | None, judged: Sequence[Judged], points: Points) -> DeviceSection:
    of_device = [j for j in judged if j.claim.device == device]
    stem = (device or "").lower()
    others = (f"{stem}-", f"{stem} with ")  # other boards of the device, and its own on links with errors
    duts = [dut for dut in points.duts if stem and (dut == stem or dut.startswith(others))]
    return DeviceSection(
        anchor=f"published-{stem or 'general'}",
        title=device or _GENERAL,
        device=device or "",
        facts=_facts(device),
        labels=[label] if (label := core_label(device, points)) else [],
        rows=[_row(j) for j in of_device],
        results=_results([p for p in points.points if p.dut in duts], core_label(device, points)),
        duts=duts,
    )


def core_label(device: str | None, points: Points) -> str:
    """Return `core: e500 standing in for e300` if another core stands in for the device's; else empty.

    The run says so; if the device was not measured, it follows from the core that the document names.
    """
    core = points.cores.get((device or "").lower(), "")
    if STANDING_IN in core:
        return f"core: {core}"
    published = [d.devices[device].core for d in documents().values() if device in d.devices]
    return STANDS_IN if any(core.startswith("e300") for core in published) else ""


def _facts(device: str | None) -> str:
    """Return the published facts: `CDS, e500 at 1,330 MHz, DDR at 533 MHz, SEC 2.1 at 266 MHz, Linux 2.6.11`."""
    entries = [d.devices[device] for d in documents().values() if device in d.devices]
    if not entries:
        return _ABOUT_GENERAL
    d = max(entries, key=lambda each: each.ddr_mhz or 0)
    ddr = f", DDR at {d.ddr_mhz} MHz" if d.ddr_mhz else ""
    if not d.link_mbps:
        return f"Published: {d.core} at {d.core_mhz:,} MHz"
    link = "" if d.link_mbps == 1000 else f", links of {d.link_mbps} Mbps"
    return f"Published: {d.board}, {d.core} at {d.core_mhz:,} MHz{ddr}, SEC {d.sec} at {d.sec_mhz} MHz{link}, {d.os}"


def _row(j: Judged) -> ClaimRow:
    claim = j.claim
    compared = j.word in ("agrees", "differs")
    return ClaimRow(
        id=claim.id,
        says=claim.says,
        source=", ".join(
            part
            for part in (
                _STACKS.get(claim.stack, claim.stack),
                documents()[claim.document].source.called,
                claim.where,
            )
            if part
        ),
        published=_published(claim),
        ours=_ours(claim, j.ours) if compared else NONE,
        detail=_detail(j.ours) if compared else "",
        word=j.word,
        symbol=SYMBOLS[j.word],
        basis=_basis(claim) if compared else "",
        tolerance=_tolerance(claim) if compared else "",
        why=_why(j) if compared else _missing(j),
        note=_note(claim),
        predicted=claim.predicted,
        unpredicted=UNPREDICTED if claim.unpredicted == "none written down" else "",
    )


def _note(claim: Claim) -> str:
    """Return the claim's note, and why it has a tolerance of its own."""
    tolerance = f"the tolerance: {claim.tolerance_why}" if claim.tolerance_why else ""
    return "; ".join(part for part in (claim.note, tolerance) if part)


def _why(j: Judged) -> str:
    """Return the reason of a difference, or that none is written down; empty if the claim agrees."""
    if is_unexplained(j):
        return UNEXPLAINED
    return j.why[:1].upper() + j.why[1:]


def is_unexplained(j: Judged) -> bool:
    """Return whether our value differs and nobody has written down why."""
    return j.word == "differs" and not j.why


def _missing(j: Judged) -> str:
    """Return what a claim without a judgement needs, and which plans measure it."""
    if j.word != "not measured":
        return j.why
    if j.claim.lacks:
        return f"espbench lacks {j.why}"
    plans = [f"plans/{plan}.yaml" for plan in j.claim.plans]
    return ". ".join([f"Missing: {j.why}", *([f"To measure it: {' and '.join(plans)}"] if plans else [])])


def _basis(claim: Claim) -> str:
    if claim.calibration:
        return "used for calibration"
    return "computed" if claim.ours is not None and claim.ours.quantity in BY_ARITHMETIC else "not fitted"


def _published(claim: Claim) -> str:
    if claim.value is None:
        return "no number"
    if claim.unit == "x" and claim.value == 1 and claim.qualifier in ("above", "below"):
        return "more" if claim.qualifier == "above" else "not more"
    return _QUALIFIERS[claim.qualifier] + _quantity(claim.value, claim)


def _quantity(value: float, claim: Claim) -> str:
    return f"{value:,g} {_UNITS.get(claim.unit, claim.unit)}"


def _ours(claim: Claim, ours: OurValue) -> str:
    unit = _UNITS.get(claim.unit, claim.unit)
    if ours.holds is not None and claim.value is None:
        return "holds" if ours.holds else "does not hold"
    if ours.bracket:
        above = f"above {ours.low:g} B" if ours.low else ""
        upto = "" if math.isinf(ours.high) else f"up to {ours.high:g} B"
        return ", ".join(part for part in (above, upto) if part)
    low, high = number(ours.low, 3), number(ours.high, 3)
    if claim.unit in ("Mbps", "ms"):
        low, high = number(ours.low, 4), number(ours.high, 4)
    return f"{low} {unit}" if low == high else f"{low} to {high} {unit}"


def _detail(ours: OurValue) -> str:
    goal = f"loss goal {goal_name(ours.goal)}" if ours.goal is not None else ""
    return "; ".join(part for part in (ours.text, goal) if part)


def _tolerance(claim: Claim) -> str:
    if claim.value is None or (claim.qualifier in ("above", "below") and not claim.tolerance):
        return ""
    return f"± {100 * claim.tolerance:g} %"


def _results(points: Sequence[Point], core: str) -> Table:
    """Return the table of all measured points, by which the claims were judged."""
    order = list(_BEHAVIOURS)
    rows = [
        [
            p.dut + (f" ({core})" if core else ""),
            _BEHAVIOURS[p.behaviour],
            p.suite,
            p.direction,
            str(p.frame_size),
            goal_name(p.loss_goal),
            count(p.fps),
            number(p.mbps),
            NONE if p.cpu_pct is None else f"{p.cpu_pct:.1f}",
            NONE if p.us_per_frame is None else number(p.us_per_frame, 3),
            p.limit,
        ]
        for p in sorted(
            points,
            key=lambda p: (p.dut, p.direction, order.index(p.behaviour), p.suite, p.frame_size, p.loss_goal),
        )
    ]
    head = [
        "DUT", "Stack behaviour", "Suite", "Direction", "Frame, B", "Loss goal", "Frames/s", "Mbps",
        "CPU, %", "CPU, µs/frame", "Limit",
    ]  # fmt: skip
    return Table(head, rows, numeric=[4, 5, 6, 7, 8, 9])


def _sources() -> Table:
    rows = [
        [d.source.called, ", ".join(d.source.authors), d.source.title, d.source.publisher, d.source.copy_read]
        for d in documents().values()
    ]
    return Table(["Called here", "Authors", "Title", "Publisher", "What was read"], rows)


def accelerator_table(results: Sequence[AcceleratorResult]) -> Table:
    """Return the table of the driver-level accelerator test, with a row for each suite, block size and variant."""
    rows = [
        [
            a.dut, a.crypto, ", ".join(a.variant.words) or "–", a.suite, count(a.size), a.driver, count(a.operations),
            *_figures(a),
        ]
        for a in results
    ]  # fmt: skip
    head = [
        "DUT", "Engine", "Variant", "Suite", "Block, B", "Driver", "Operations",
        "n+1 after n, µs each", "All at once, µs each", "n+1 after n, Mbps", "All at once, Mbps",
        "All at once is faster, ×",
    ]  # fmt: skip
    return Table(head, rows, numeric=[4, 6, 7, 8, 9, 10, 11])


def _figures(a: AcceleratorResult) -> list[str]:
    """Return the five last cells of a row: the figures, or only the reason why there are none."""
    if a.disturbed_pct is not None:
        return [NONE] * 4 + [f"INVALID: the host took {a.disturbed_pct:.0f} %"]
    return [
        number(a.after_ns / a.operations / 1e3, 4), number(a.at_once_ns / a.operations / 1e3, 4),
        number(a.after_mbps, 4), number(a.at_once_mbps, 4), f"{a.gain:.2f}",
    ]  # fmt: skip


def kernel_table(results: Sequence[KernelResult]) -> Table:
    """Return the throughput of each cipher kernel as it comes: level 0, gcc -O2, one thread; a column for each DUT."""
    plain = [
        r
        for r in results
        if (r.level, r.compiler, r.option, r.engines, r.threads) == (0, "gcc", "O2", 1, 1)
        and not (r.faster_dram or r.faster_sram)
    ]
    duts, names = (list(dict.fromkeys(getattr(r, key) for r in plain)) for key in ("dut", "kernel"))
    mbps = {(r.kernel, r.dut): number(r.mbps) for r in plain}
    rows = [[KERNELS[name].shown, *(mbps.get((name, dut), NONE) for dut in duts)] for name in names]
    return Table(["Kernel", *(f"{dut}, Mbps" for dut in duts)], rows, numeric=list(range(1, len(duts) + 1)))


def public_key_table(results: Sequence[PublicKeyResult]) -> Table:
    """Return the table of the test of the public-key unit, with a row for each operation."""
    rows = [
        [
            r.dut, "public-key unit" if r.by == "unit" else "software",
            f"{r.clock_mhz:g}" if r.by == "unit" else "", r.operation, count(r.bits),
            count(r.exponent_bits) if r.exponent_bits else "", number(r.ms, 4),
            number(r.unit_ms, 4) if r.overhead_ns else "", number(r.overhead_pct, 3) if r.overhead_ns else "",
            number(r.cpu_pct, 3), number(r.per_s, 4),
        ]
        for r in results
    ]  # fmt: skip
    head = [
        "DUT", "By", "Clock of the unit, MHz", "Operation", "Bits", "Exponent, bits", "Whole, ms", "In the unit, ms",
        "Overhead, %", "CPU, %", "Operations/s: bound of set-ups",
    ]  # fmt: skip
    return Table(head, rows, numeric=[2, 4, 5, 6, 7, 8, 9, 10])
