# SPDX-License-Identifier: Apache-2.0
"""Makes the charts of a group of findings, with legends, captions, and texts for readers who cannot see them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from espbench.quantities import Key
from espbench.reporting.findings.curve_figures import axes_of, curve_panel
from espbench.reporting.findings.finding_curves import column_title
from espbench.reporting.findings.finding_groups import FindingGroup, headline, value
from espbench.reporting.findings.loss_figures import (
    forwarded_panel,
    highest_loads,
    is_of_highest,
    loss_panel,
)
from espbench.reporting.findings.size_figures import (
    FLOOD_DASHES,
    LATENCY_COLOURS,
    flood_panel,
    latency_domain,
    latency_panel,
)
from espbench.reporting.parts.chart_parts import MARKS_IN_WORDS, Spec, size_colours, size_name
from espbench.reporting.parts.wording import count, figure, number, plural
from espbench.results.run_directory import slug
from espbench.terms import WITH_FIGURE, Finding

_ALL_BELOW = "All figures are in the table."


@dataclass(frozen=True)
class Panel:
    """One chart in two forms: for the page, whose legend it shares, and as a picture with its own legend."""

    anchor: str
    title: str
    alt: str
    page: Spec
    picture: Spec
    subtitle: str = ""  # of the picture


@dataclass(frozen=True)
class Figure:
    """The charts of one group, side by side."""

    panels: list[Panel]
    legend: dict[str, str] = field(default_factory=dict)  # series → colour
    dashes: dict[str, list[float]] = field(default_factory=dict)
    grey: str = ""  # the meaning of a thin grey line
    grey_dash: list[float] = field(default_factory=lambda: [1, 0])
    caption: str = ""


def figure_of(
    group: FindingGroup, anchor: str, line_rate_bps: float, colour_of: dict[str, str]
) -> Figure | None:
    """Return the charts that the standard has for this kind of test, or the curve of another kind; None without any."""
    match group.kind:
        case "latency":
            chart = _latency(group, anchor)
        case "frame_loss":
            chart = _frame_loss(group, anchor)
        case "flood":
            chart = _flood(group, anchor, line_rate_bps, colour_of)
        case _:
            chart = _curves(group, anchor)
    return chart if chart.panels else None


def _without_figure(findings: Sequence[Finding]) -> str:
    missing = sum(f.status not in WITH_FIGURE for f in findings)
    if not missing:
        return ""
    return (
        f" {plural(missing, 'result')} without a figure: marks at the foot ({MARKS_IN_WORDS}), at no height that means "
        "anything."
    )


def _medians(group: FindingGroup) -> str:
    return " Points are the median of the repeats of a case." if group.repeats else ""


def _latency(group: FindingGroup, anchor: str) -> Figure:
    panels: list[Panel] = []
    domain = latency_domain(group.findings)
    if domain is None:
        return Figure(panels)
    for position, (name, of_arm) in enumerate(group.arms().items(), start=1):
        page = latency_panel(of_arm, group.sizes, domain, as_picture=False)
        picture = latency_panel(of_arm, group.sizes, domain, as_picture=True)
        if page is None or picture is None:
            continue
        texts = [
            f"{size_name(f.frame_size)}: tagged frame {figure(q.value)} µs, p99 {figure(value(f, Key.LATENCY_P99))} µs"
            for f in of_arm
            if (q := headline(f))
        ]
        panels.append(
            Panel(
                f"{anchor}-{position}-{slug(name).lower()}",
                name,
                f"Latency percentiles against frame size, {name}. {'; '.join(texts[:8])}. {_ALL_BELOW}",
                page,
                picture,
                "diamonds: mean of the tagged frames; lines: percentiles of all frames",
            )
        )
    caption = (
        "Latency against frame size, with a panel for each stack and suite, all with the same logarithmic axis. "
        "Diamonds: the mean of the tagged frames, with a bar from the minimum to the maximum. Lines: the percentiles "
        "of all frames of the same trials, as the mean of the trials."
    )
    return Figure(
        panels, LATENCY_COLOURS, caption=caption + _medians(group) + _without_figure(group.findings)
    )


def _frame_loss(group: FindingGroup, anchor: str) -> Figure:
    colour_of = size_colours(group.sizes)
    of_highest = is_of_highest(group.findings)
    panels = []
    for position, (name, of_arm) in enumerate(group.arms().items(), start=1):
        for kind, draw in (("loss", loss_panel), ("forwarded", forwarded_panel)):
            page = draw(of_arm, colour_of, of_highest=of_highest, as_picture=False)
            picture = draw(of_arm, colour_of, of_highest=of_highest, as_picture=True)
            if page is None or picture is None:
                continue
            title = "frame loss against load" if kind == "loss" else "forwarded against offered load"
            panels.append(
                Panel(
                    f"{anchor}-{position}-{slug(name).lower()}-{kind}",
                    f"{name}: {title}",
                    f"Line chart, {name}: {title}, one line for each frame size. {_loss_in_words(of_arm)} {_ALL_BELOW}",
                    page,
                    picture,
                    "RFC 2544 26.3" if kind == "loss" else "dashed: where nothing is lost",
                )
            )
    scale = "Loads are in per cent of the line rate at each frame size (RFC 2544 26.3)."
    if of_highest:
        scale = (
            "Loads are in per cent of the highest load at each frame size, the tester's or the plan's maximum: "
            f"{_share_of_line_rate(group.findings)}."
        )
    caption = (
        f"{scale} Left: the share of the load that was lost. Right: the share that was forwarded, with the line of "
        "no loss. Where a curve falls while the load rises, the DUT collapses under overload. "
        "An INVALID trial interrupts the line (✕ at the foot): its loss is unknown, not zero."
    )
    return Figure(panels, colour_of, grey="nothing lost", grey_dash=[5, 3], caption=caption)


def _share_of_line_rate(findings: Sequence[Finding]) -> str:
    shares = highest_loads(findings)
    if not shares:
        return "the line rate, in per cent of which RFC 2544 26.3 draws them, is not known"
    low, high = number(min(shares), 3), number(max(shares), 3)
    span = f"{high} %" if low == high else f"{low} to {high} %"
    return f"{span} of the line rate, in per cent of which RFC 2544 26.3 draws them; the table has both"


def _curves(group: FindingGroup, anchor: str) -> Figure:
    colour_of = size_colours(group.sizes)
    axes = axes_of(group.findings)
    if axes is None:
        return Figure([])
    x, y = map(column_title, axes)
    panels = []
    for position, (name, of_arm) in enumerate(group.arms().items(), start=1):
        page = curve_panel(of_arm, axes, colour_of, as_picture=False)
        picture = curve_panel(of_arm, axes, colour_of, as_picture=True)
        if page is None or picture is None:
            continue
        panels.append(
            Panel(
                f"{anchor}-{position}-{slug(name).lower()}",
                name,
                f"Line chart, {name}: {y} against {x}, one line for each frame size. "
                f"{' '.join(dict.fromkeys(f.words for f in of_arm[:4]))} {_ALL_BELOW}",
                page,
                picture,
            )
        )
    return Figure(panels, colour_of, caption=f"{y} against {x}, one line for each frame size.")


def _loss_in_words(findings: Sequence[Finding]) -> str:
    texts = [
        f"{size_name(f.frame_size)}: {figure(q.value)} % lost at {count(f.load_fps)} frames/s"
        for f in findings
        if (q := headline(f))
    ]
    return "; ".join(texts[:8]) + "."


def _of_throughput(finding: Finding) -> str:
    """Return the ratio of a flood to the throughput as text; empty if the throughput is only a lower bound."""
    ratio = value(finding, Key.OF_THROUGHPUT)
    return "" if ratio is None else f", {number(ratio, 3)} × its throughput"


def _flood(group: FindingGroup, anchor: str, line_rate_bps: float, colour_of: dict[str, str]) -> Figure:
    panels = []
    for position, stack in enumerate(dict.fromkeys(f.stack for f in group.findings), start=1):
        of_stack = [f for f in group.findings if f.stack == stack]
        draw = [
            flood_panel(
                of_stack, group.sizes, group.directions, line_rate_bps, colour_of, as_picture=as_picture
            )
            for as_picture in (False, True)
        ]
        if draw[0] is None or draw[1] is None:
            continue
        texts = [
            f"{f.suite} {size_name(f.frame_size)}: {count(q.value)} frames/s{_of_throughput(f)}"
            for f in of_stack
            if (q := headline(f))
        ]
        panels.append(
            Panel(
                f"{anchor}-{position}-{slug(stack).lower()}",
                stack,
                f"Forwarding rate under flood and throughput against frame size, {stack}. {'; '.join(texts[:8])}. "
                f"{_ALL_BELOW}",
                draw[0],
                draw[1],
                "solid: under flood; dashed: throughput" + ("; grey: line rate" if line_rate_bps else ""),
            )
        )
    suites = {suite: colour_of[suite] for suite in dict.fromkeys(f.suite for f in group.findings)}
    caption = (
        "Forwarding rate under the highest load (solid) and throughput (dashed) against frame size"
        + (", both directions summed." if group.directions == 2 else ".")
        + " Where a solid line is below its dashed one, the DUT forwards less under overload."
    )
    return Figure(
        panels, suites, FLOOD_DASHES, grey="theoretical" if line_rate_bps else "",
        caption=caption + _medians(group) + _without_figure(group.findings),
    )  # fmt: skip
