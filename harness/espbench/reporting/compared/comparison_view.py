# SPDX-License-Identifier: Apache-2.0
"""Prepares a comparison for its reader: one view for HTML and Markdown, with texts worded and figures rounded."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from espbench.comparison.deciding.statistics import PER_CENT
from espbench.comparison.sorting.model import ArmPoint, Comparison, Name, PairVerdicts, Panel, PointVerdict
from espbench.comparison.telling.numbers import factor_and_interval
from espbench.comparison.telling.words import repeats_earlier
from espbench.reporting.compared.comparison_figures import Kind, figures, styles
from espbench.reporting.compared.comparison_rows import series_of
from espbench.reporting.compared.comparison_tables import facts, figures_table, overheads
from espbench.reporting.compared.comparison_wording import (
    SYMBOLS,
    confidence,
    has_instructions,
    instructions_of,
    panel_title,
    rate,
    rate_interval,
    ratio_and_interval,
    repeats_note,
    x_title,
)
from espbench.reporting.compared.fixed_load_tables import loads, verdicts
from espbench.reporting.parts.chart_parts import MARKS_IN_WORDS
from espbench.reporting.parts.final_trials import NOT_PROVEN
from espbench.reporting.parts.labels import SHORT, VIRTUAL
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, goal_name, plural


@dataclass(frozen=True)
class Side:
    """The throughput of one arm at one x, as text."""

    instructions: str  # per frame, of Home and Office; empty in real time
    fps: str
    interval: str
    note: str  # the repeats on which the figure is based, if not on all


@dataclass(frozen=True)
class VerdictRow:
    """A against B at one x."""

    x: str
    a: Side
    b: Side
    factor: str  # `1.35×`
    interval: str  # `[1.28, 1.43]`
    word: str
    symbol: str
    faster: str  # name of the faster arm; empty if none is shown to be faster
    why: str
    cpu_factor: str  # of µs per frame, B / A
    cpu_interval: str


@dataclass(frozen=True)
class PairTable:
    """B against the reference A in one panel."""

    a: str
    b: str
    words: str  # empty if the comparison's own words contain them
    rows: list[VerdictRow]

    @property
    def has_cpu(self) -> bool:
        """True if the CPU figures of both arms are known at any point."""
        return any(row.cpu_factor != NONE for row in self.rows)


@dataclass(frozen=True)
class LegendEntry:
    """One curve in the page's legend."""

    name: str
    colour: str
    shape: str
    is_baseline: bool


@dataclass(frozen=True)
class PanelView:
    """One panel: its verdicts, pictures and overheads."""

    anchor: str
    title: str
    labels: list[str]
    panel: Panel
    x_title: str
    x_head: str  # x_title, shorter
    key: str  # explains the intervals in the tables
    pairs: list[PairTable]
    kinds: list[Kind]  # the pictures that have something to show
    legend: list[LegendEntry]
    alt: str
    caption: str
    figures: Table
    overhead: Table

    @property
    def tally(self) -> str:
        """The numbers of verdicts of each pair: `B faster 4×, no difference shown 3×`."""
        parts = []
        for pair in self.pairs:
            counts = ", ".join(f"{word} {n}×" for word, n in Counter(r.word for r in pair.rows).items())
            parts.append(f"{pair.b} (B) against {pair.a} (A): {counts}")
        return "; ".join(parts)


@dataclass(frozen=True)
class GlanceRow:
    """One line of the overview: one pair in one panel, with a verdict for each x."""

    anchor: str
    title: str
    a: str
    b: str
    cells: dict[str, VerdictRow]


@dataclass(frozen=True)
class ComparisonView:
    """Everything that both templates (HTML and Markdown) show, in their order."""

    comparison: Comparison
    title: str
    labels: list[str]
    confidence: str
    style: dict[str, tuple[str, str]]  # curve → colour, shape
    xs: list[str]  # of the overview
    glance: list[GlanceRow]  # empty if there is only one pair, whose table suffices
    panels: list[PanelView]
    facts: Table
    arms: Table
    differences: Table
    fixed_verdicts: Table  # by trials at the same loads; no rows where there were none
    fixed_loads: Table

    @property
    def fixed_confidence(self) -> str:
        """The confidence of the verdicts at the same loads, of which each point has two."""
        family = 2 * len(self.comparison.fixed_loads)
        return f"{PER_CENT}, simultaneous over {plural(family, 'verdict')}"

    @property
    def fixed_labels(self) -> list[str]:
        """The labels of the figures at the same loads, whose trials have a proof of their own."""
        unproven = not all(verdict.proven for verdict in self.comparison.fixed_loads)
        return list(dict.fromkeys([*self.labels, *([NOT_PROVEN] if unproven else [])]))

    @property
    def shared_labels(self) -> list[str]:
        """The labels that all panels have; they are shown once at the top."""
        return [label for label in self.labels if all(label in panel.labels for panel in self.panels)]


def compared_view(comparison: Comparison | None) -> ComparisonView | None:
    """Return the view of a comparison; None if there is no comparison."""
    if comparison is None:
        return None
    arms = [arm.name for arm in comparison.arms]
    style = styles(arms, [name for panel in comparison.panels for name in panel.curves])
    panels = [_panel(n, comparison, style) for n in range(len(comparison.panels))]
    glance = [
        GlanceRow(panel.anchor, panel.title, pair.a, pair.b, {row.x: row for row in pair.rows})
        for panel in panels
        for pair in panel.pairs
    ]
    labels = list(dict.fromkeys(label for panel in panels for label in panel.labels))
    runs = list(dict.fromkeys(run for d in comparison.differences for run in d.values))
    differences = [[d.what, *(d.values.get(run, NONE) for run in runs)] for d in comparison.differences]
    by = comparison.axis.replace("_", " ")
    return ComparisonView(
        comparison=comparison,
        title=f"Comparison by {by}" + (f": {', '.join(arms)}" if arms else ""),
        labels=labels,
        confidence=confidence(comparison),
        style=style,
        xs=list(dict.fromkeys(str(x) for panel in comparison.panels for x in panel.x)),
        glance=glance if len(glance) > 1 else [],
        panels=panels,
        facts=facts(comparison),
        arms=Table(
            [by.capitalize(), "Part", "What the gateways said they run"],
            [
                [arm.name, "reference (A)" if n == 0 else "compared with it (B)", arm.detail or NONE]
                for n, arm in enumerate(comparison.arms)
            ],
        ),
        differences=Table(["Condition", *runs], differences),
        fixed_verdicts=verdicts(comparison.fixed_loads),
        fixed_loads=loads(comparison.fixed_loads),
    )


def _panel(position: int, comparison: Comparison, style: dict[str, tuple[str, str]]) -> PanelView:
    panel = comparison.panels[position]
    arms = [arm.name for arm in comparison.arms]
    series = series_of(panel, arms)
    charts = figures(panel, arms, style, legend=False)
    title = panel_title(panel, comparison)
    pairs = [_pair(pair, panel, comparison) for pair in panel.pairs]
    unproven = any(p.fps and not p.proven for curve in panel.curves.values() for p in curve.values())
    view = PanelView(
        anchor=f"comparison-{position + 1}",
        title=title,
        labels=[
            label
            for label, holds in (
                (VIRTUAL, comparison.is_virtual),
                (SHORT, comparison.is_short),
                (NOT_PROVEN, unproven),
            )
            if holds
        ],
        panel=panel,
        x_title=x_title(panel),
        x_head="Frame, bytes" if panel.x_name == Name.FRAME_SIZE else x_title(panel),
        key=_key(panel, comparison),
        pairs=pairs,
        kinds=list(charts),
        legend=[LegendEntry(name, *style[name], is_baseline=name not in arms) for name in series],
        alt="",
        caption=_caption(panel, list(charts), comparison),
        figures=figures_table(panel, series),
        overhead=overheads(position, comparison),
    )
    return _with_alt(view)


def _key(panel: Panel, comparison: Comparison) -> str:
    first = "instructions/frame (Home / Office), then frames/s" if has_instructions(panel) else "frames/s"
    return (
        f"{first[:1].upper()}{first[1:]} at loss goal {goal_name(panel.loss_goal)}. Brackets after B / A (throughput): "
        f"{confidence(comparison)}. All other intervals, CPU included, are {PER_CENT} for that point alone; "
        "no verdict rests on them."
    )


def _with_alt(view: PanelView) -> PanelView:
    text = f"{view.title}. {view.tally}. All figures are in the tables."
    return PanelView(**(vars(view) | {"alt": text}))


def _caption(panel: Panel, kinds: list[Kind], comparison: Comparison) -> str:
    parts = [
        "Throughput: mean of the repeats, bars are the confidence interval"
        + (" (narrower than the point where none is seen)." if "fps" in kinds else "."),
    ]
    if "ratio" in kinds:
        parts.append(
            "Ratio: each arm to the reference, with the interval of the verdict. Hollow points: no "
            "difference shown (the bar crosses the dashed line at 1), or no verdict (no bar)."
        )
    if "cpu" in kinds:
        parts.append(
            "CPU: µs per frame at each arm's own throughput; filled, solid: Home + Office; "
            "hollow: Home (dashed) and Office (dotted) separately."
        )
    missing = sum(
        point.fps is None and bool(point.statuses) for c in panel.curves.values() for point in c.values()
    )
    if missing:
        parts.append(
            f"{plural(missing, 'point')} without a figure: marks at the foot ({MARKS_IN_WORDS}, "
            "– nothing to compare); their height means nothing."
        )
    if any(point.at_least for curve in panel.curves.values() for point in curve.values()):
        parts.append(
            "Arrows up and ≥ at a throughput: a lower bound, because of the limit of the tester or the search, because "
            "the loads above could not be judged, or because slow CPUs may have lowered it at another time than the "
            "other arm. The true figure may be higher."
        )
    if any(v.at_least is not None or v.at_most is not None for pair in panel.pairs for v in pair.points):
        parts.append("An arrow at a ratio, ≥ or ≤: a bound; the arrow points towards the true ratio.")
    arms = [arm.name for arm in comparison.arms]
    if grey := [name for name in panel.curves if name not in arms]:
        are = "baselines, which are" if len(grey) > 1 else "baseline, which is"
        parts.append(f"Grey: {' and '.join(grey)}, the {are} not compared.")
    return " ".join(parts)


def _pair(pair: PairVerdicts, panel: Panel, comparison: Comparison) -> PairTable:
    panels = zip(comparison.panels, repeats_earlier(comparison.panels), strict=True)
    repeated = pair.words in {one.words for other, again in panels if not again for one in other.pairs}
    rows = [_row(point, pair, panel) for point in pair.points]
    return PairTable(pair.a, pair.b, "" if repeated else pair.words, rows)


def _row(point: PointVerdict, pair: PairVerdicts, panel: Panel) -> VerdictRow:
    of_rate, interval = ratio_and_interval(point)
    cpu_factor, cpu_interval = factor_and_interval(point.cpu_ratio)
    return VerdictRow(
        x=str(point.x),
        a=_side(panel.curves.get(pair.a, {}).get(point.x)),
        b=_side(panel.curves.get(pair.b, {}).get(point.x)),
        factor=of_rate,
        interval=interval,
        word=point.word,
        symbol=SYMBOLS[point.word],
        faster={"A faster": pair.a, "B faster": pair.b}.get(point.word, ""),
        why=point.why,
        cpu_factor=cpu_factor,
        cpu_interval=cpu_interval,
    )


def _side(point: ArmPoint | None) -> Side:
    return Side(instructions_of(point), rate(point), rate_interval(point), repeats_note(point))
