# SPDX-License-Identifier: Apache-2.0
"""Makes the tables of the other tests: with the columns of the standard, or one row for each quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from espbench.quantities import Key
from espbench.reporting.findings.finding_groups import FindingGroup, arm_of, is_lower_bound, quantity, value
from espbench.reporting.parts.final_trials import encryption_of
from espbench.reporting.parts.notes import Flag, Notes
from espbench.reporting.parts.statements import not_in_words, why
from espbench.reporting.parts.wording import NONE, at_least, count, figure, number
from espbench.sentences import Code
from espbench.terms import Finding, Quantity, Status, line_rate_fps


@dataclass(frozen=True)
class Column:
    """A column of numbers. Adjacent columns with the same title share one heading.

    unit is shown below the heading: the unit of the numbers, or the statistic that they are.
    """

    title: str
    unit: str = ""
    strong: bool = False
    text: bool = False  # left-aligned


@dataclass(frozen=True)
class FindingRow:
    """One case, or one quantity of it; only the first row of a case names it and shows its status."""

    starts_case: bool
    name: str
    size: str
    repeat: str
    status: Status
    flags: list[Flag]
    encryption: str
    rfc2544: str
    figures: list[str]
    trials: str
    words: str
    telling: str  # a reason or a remark that the figures do not show; empty if there is none


@dataclass(frozen=True)
class FindingTable:
    """The findings of one group."""

    columns: list[Column]
    rows: list[FindingRow]
    repeats: bool

    @property
    def heads(self) -> list[tuple[str, int, bool]]:
        """The title of each heading, the number of its columns, and whether they are text."""
        return [
            (title, len(list(columns)), text)
            for (title, text), columns in groupby(self.columns, key=lambda c: (c.title, c.text))
        ]

    @property
    def several_rows(self) -> bool:
        """True if a case has more than one row."""
        return not all(row.starts_case for row in self.rows)


_MEASURED = ("s", "ms", "µs", "%", "1", "Mbps")  # units of figures that are not counted
_MOST_COLUMNS = 9  # of quantities, that fit into the width of a page
Cell = Callable[[Finding], str]
_Columns = list[tuple[Column, Cell]]


def table(group: FindingGroup, notes: Notes, line_rate_bps: float) -> FindingTable:
    """Return the table of a group: a row for each case, with the columns of its kind of test."""
    columns = _columns(group, line_rate_bps) or _one_column_a_quantity(group)
    if not columns:
        return _one_row_a_quantity(group, notes)
    rows = [_row(f, notes, [[cell(f) for _, cell in columns]]) for f in group.findings]
    return _assembled(group, [column for column, _ in columns], rows)


def _one_column_a_quantity(group: FindingGroup) -> _Columns:
    """Return a column for each quantity of an unknown kind of test, if they are few and each measured once."""
    by_key = {q.key: q for f in group.findings for q in f.quantities if not q.way}
    single = all(q.n <= 1 for f in group.findings for q in f.quantities)
    if not by_key or not single or len(by_key) > _MOST_COLUMNS:
        return []
    load = [_LOAD] if any(f.load_fps is not None for f in group.findings) else []
    return load + [
        (Column(q.name[:1].upper() + q.name[1:], unit_of(q), strong=position == 0), _text_cell(key))
        for position, (key, q) in enumerate(by_key.items())
    ]


def _one_row_a_quantity(group: FindingGroup, notes: Notes) -> FindingTable:
    """Make a table with a row for each quantity, for any unknown kind of test."""
    has_load = any(f.load_fps is not None for f in group.findings)
    head = [
        *([Column("Load", "frames/s")] if has_load else []),
        Column("Figure", text=True), Column("Value", "mean", strong=True), Column("Unit", text=True),
        Column("Measured", "n"), Column("Measured", "least"), Column("Measured", "greatest"),
        Column("Measured", "st. dev."),
    ]  # fmt: skip
    rows = []
    for f in group.findings:
        figures: list[list[str]] = []
        for q in (q for q in f.quantities if not q.way):
            load = [count(f.load_fps) if not figures else ""] if has_load else []
            spread = [figure(q.minimum), figure(q.maximum), figure(q.stdev)] if q.n > 1 else [NONE] * 3
            figures.append([*load, q.name, figure_text(q), unit_of(q), count(q.n), *spread])
        rows.append(_row(f, notes, figures or [[NONE] * len(head)]))
    return _assembled(group, head, rows)


def figure_text(q: Quantity) -> str:
    """Return a figure as text, in the form of its unit: frame rates and counts are written as whole numbers."""
    whole = q.value is not None and float(q.value).is_integer() and q.unit not in _MEASURED
    return count(q.value) if whole or q.unit == "frames/s" else figure(q.value)


def unit_of(q: Quantity) -> str:
    """Return the unit to show; a ratio has none."""
    return "" if q.unit == "1" else q.unit


def _assembled(group: FindingGroup, columns: list[Column], cases: Sequence[list[FindingRow]]) -> FindingTable:
    return FindingTable(columns, [row for rows in cases for row in rows], group.repeats)


def _row(f: Finding, notes: Notes, figures: Sequence[list[str]]) -> list[FindingRow]:
    reasons = not_in_words(f)
    return [
        FindingRow(
            starts_case=position == 0,
            name=arm_of(f),
            size=str(f.frame_size),
            repeat=str(f.repeat),
            status=f.status,
            flags=notes.flags(f),
            encryption=encryption_of([f]),
            rfc2544=_rfc2544(f),
            figures=cells,
            trials=count(f.trials),
            words=f.words + (f" ({'; '.join(map(str, reasons))})" if reasons else ""),
            telling=why(f) if position == 0 and (f.status != "OK" or reasons or not f.quantities) else "",
        )
        for position, cells in enumerate(figures)
    ]


def _rfc2544(f: Finding) -> str:
    if f.rfc2544:
        return "yes"
    if not f.quantities or not f.rfc2544_deviations:
        return NONE
    return "short" if f.is_short else "no"


def _columns(group: FindingGroup, line_rate_bps: float) -> _Columns | None:
    match group.kind:
        case "latency":
            return _latency()
        case "frame_loss":
            return _frame_loss(group, line_rate_bps)
        case "back_to_back":
            return _back_to_back()
        case "system_recovery":
            return _system_recovery()
        case "flood":
            return _flood()
    return None


_LOAD: tuple[Column, Cell] = (Column("Load", "frames/s"), lambda f: count(f.load_fps))


def _latency() -> _Columns:
    all_frames = {
        "mean": Key.LATENCY_MEAN,
        "p50": Key.LATENCY_P50,
        "p90": Key.LATENCY_P90,
        "p99": Key.LATENCY_P99,
        "p99.9": Key.LATENCY_P999,
    }
    return [
        _LOAD,
        *((column, cell) for _, column, cell in _spread(Key.LATENCY_TAGGED, "Tagged frame", "µs", "n")),
        # The least of all trials together is the minimum of each trial's least; the greatest likewise.
        (Column("All frames, µs", "least"), _extreme(Key.LATENCY_LEAST, "minimum")),
        *((Column("All frames, µs", name), _cell(key)) for name, key in all_frames.items()),
        (Column("All frames, µs", "greatest"), _extreme(Key.LATENCY_GREATEST, "maximum")),
    ]


def _frame_loss(group: FindingGroup, line_rate_bps: float) -> _Columns:
    def share(f: Finding) -> str:
        if f.load_fps is None or not isinstance(f.frame_size, int) or not line_rate_bps:
            return NONE
        return number(100 * f.load_fps / (group.directions * line_rate_fps(f.frame_size, line_rate_bps)), 3)

    return [
        (Column("Highest load", "frames/s"), lambda f: count(f.load_fps)),
        (Column("Highest load", "% of line rate"), share),
        (Column("Frame loss there", "%", strong=True), _cell(Key.LOSS_AT_HIGHEST)),
        (Column("Forwarded there", "frames/s"), _whole(Key.FORWARDED_AT_HIGHEST)),
        (Column("Most forwarded", "frames/s"), _whole(Key.MOST_FORWARDED)),
        (Column("Lossless up to", "frames/s"), _whole(Key.LOSSLESS_LOAD)),
    ]


def _back_to_back() -> _Columns:
    bursts = _spread(Key.BURST, "Burst", "frames", "searches")
    return [
        (Column("Rate of bursts", "frames/s"), lambda f: count(f.load_fps)),
        *((column, _burst(field, cell)) for field, column, cell in bursts),
        (Column("Buffer", "implied, µs"), _bound(_cell(Key.IMPLIED_BUFFER_TIME), is_lower_bound)),
        (
            Column("Buffer", "corrected, µs", strong=True),
            _bound(_cell(Key.CORRECTED_BUFFER_TIME), _is_buffer_bound),
        ),
        (Column("Buffer", "corrected, frames"), _bound(_cell(Key.CORRECTED_BUFFER), _is_buffer_bound)),
    ]


def _burst(field: str, cell: Cell) -> Cell:
    """Return the cell of this field of a Quantity of bursts, for searches of which some may have lost nothing."""
    match field:
        case "value" | "maximum":
            return _bound(cell, is_lower_bound)
        case "minimum":  # if some searches found an end, the least of them is a figure
            return _bound(cell, lambda f: is_lower_bound(f) and _are_equal(f))
        case "stdev":  # that of bounds says nothing
            return lambda f: NONE if is_lower_bound(f) else cell(f)
    return cell


def _are_equal(f: Finding) -> bool:
    q = quantity(f, Key.BURST)
    return q is not None and q.minimum == q.maximum


def _is_buffer_bound(f: Finding) -> bool:
    """Return whether the corrected buffer is a lower bound; a throughput that may be higher would make it smaller."""
    return is_lower_bound(f) and not any(remark.code == Code.AT_BOUND_BUFFER for remark in f.warnings)


def _is_at_bound(f: Finding) -> bool:
    """Return whether the throughput that the test used is only a lower bound."""
    return any(remark.code == Code.AT_BOUND for remark in f.warnings)


def _bound(cell: Cell, is_bound: Callable[[Finding], bool]) -> Cell:
    """Return the cell with `≥` before the figures that are lower bounds."""

    def bounded(f: Finding) -> str:
        text = cell(f)
        return at_least(text, is_bound=text != NONE and is_bound(f))

    return bounded


def _system_recovery() -> _Columns:
    return [
        (Column("Throughput", "frames/s"), _bound(_whole(Key.THROUGHPUT), _is_at_bound)),
        (Column("Overload", "frames/s"), lambda f: count(f.load_fps)),
        (Column("Reduced load", "frames/s"), _whole(Key.REDUCED_LOAD)),
        *((column, cell) for _, column, cell in _spread(Key.RECOVERY_TIME, "Recovery time", "s", "n")),
        (Column("Frame loss", "whole trial, %"), _cell(Key.LOSS_OVER_TRIAL)),
    ]


def _flood() -> _Columns:
    return [
        _LOAD,
        (Column("Frame loss", "%"), _cell(Key.FRAME_LOSS)),
        (Column("Forwarding rate", "frames/s", strong=True), _whole(Key.FLOOD_FORWARDING)),
        (Column("Forwarding rate", "Mbps"), _cell(Key.FLOOD_MBPS)),
        (Column("Throughput", "frames/s"), _bound(_whole(Key.THROUGHPUT), _is_at_bound)),
        (Column("Forwarding rate", "/ throughput", strong=True), _times(Key.OF_THROUGHPUT)),
    ]


def _spread(key: Key, title: str, unit: str, n: str) -> list[tuple[str, Column, Cell]]:
    """Return columns for mean, least, greatest, standard deviation, and the number of values, each with the field of
    the Quantity that it shows.
    """

    def of(field: str) -> Cell:
        # A burst is a whole number of frames; the mean of several bursts is not.
        whole = field == "n" or (unit == "frames" and field in ("minimum", "maximum"))
        written = count if whole else figure

        def cell(f: Finding) -> str:
            q = quantity(f, key)
            return written(getattr(q, field)) if q else NONE

        return cell

    shown = {"value": "mean", "minimum": "least", "maximum": "greatest", "stdev": "st. dev.", "n": n}
    return [
        (field, Column(f"{title}, {unit}", head, strong=field == "value"), of(field))
        for field, head in shown.items()
    ]


def _cell(key: Key) -> Cell:
    return lambda f: figure(value(f, key))


def _text_cell(key: str) -> Cell:
    def cell(f: Finding) -> str:
        q = quantity(f, key)
        return figure_text(q) if q else NONE

    return cell


def _whole(key: Key) -> Cell:
    return lambda f: count(value(f, key))


def _times(key: Key) -> Cell:
    def cell(f: Finding) -> str:
        ratio = value(f, key)
        return NONE if ratio is None else f"{number(ratio, 3)} ×"

    return cell


def _extreme(key: Key, field: str) -> Cell:
    def cell(f: Finding) -> str:
        q = quantity(f, key)
        if q is None:
            return NONE
        extreme = getattr(q, field)
        return figure(q.value if extreme is None else extreme)

    return cell
