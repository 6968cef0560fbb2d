# SPDX-License-Identifier: Apache-2.0
"""Sampled profiles in the terminal: each function's share of the CPU time, with the error that comes of sampling."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from espbench.cli.profile.tables import at
from espbench.profile.sampled import Place, SampledProfile, by_function, difference

_CLOCKS = ("cpu-clock", "cpu-clock-ticks", "task-clock")
_MASKED = (
    ". A sample by the clock waits while interrupts are off: what runs then is booked where they come on again "
    "(finish_task_switch, …_irqrestore)"
)
_LEFT = ("function", "module", "process", "in", "sampled")


def show(profiles: Sequence[SampledProfile], loads: Mapping[str, float], console: Console, top: int) -> None:
    """Print a table for each profile; loads: case → frames/s."""
    for profile in profiles:
        lost = f"; perf lost {profile.lost:,}" if profile.lost else ""
        console.print(
            f"{profile.case}, {profile.side}, {at(loads, profile.case)}: "
            f"SAMPLED: {profile.ns_per_frame:,.1f} ns of CPU time per frame (from the "
            f"trial's record, {profile.frames:,} frames); {profile.count:,} samples of {profile.event}{lost}; "
            f"± is half of the 95 % interval{_MASKED if profile.event in _CLOCKS else ''}",
            soft_wrap=True,
        )
        shares = [
            f"{where} {share.value:.1%} ± {share.error:.1%}"
            for where, share in sorted(profile.by_where().items(), key=lambda each: -each[1].value)
        ]
        console.print("  CPU time (sampled) in: " + ", ".join(shares), soft_wrap=True)
        rows = by_function(profile)
        table = _table("function", "module", "process", "samples", "share", "±", "ns/frame", "±", "in")
        for (process, function), places in [*rows.items()][:top]:
            contexts = ", ".join(dict.fromkeys(place.where for place in places))
            table.add_row(function.name, function.module, process, *_figures(profile, places), contexts)
        if rest := [place for places in [*rows.values()][top:] for place in places]:
            table.add_row(f"{len(rows) - top} others", "", "", *_figures(profile, rest), "")
        console.print(table)


def _figures(profile: SampledProfile, places: Sequence[Place]) -> list[str]:
    share, each = profile.share(places), profile.ns_per_frame
    return [
        f"{sum(profile.samples[place] for place in places):,}", f"{share.value:.2%}", f"{share.error:.2%}",
        f"{share.value * each:,.1f}", f"{share.error * each:,.1f}",
    ]  # fmt: skip


def show_differences(
    pairs: Sequence[tuple[SampledProfile, SampledProfile]],
    loads: Mapping[str, float],
    console: Console,
    top: int,
    names: tuple[str, str] = ("was", "is"),
) -> None:
    """Print a table for each pair of profiles: before, now. What sampling alone may do is said at each row."""
    for was, now in pairs:
        before, after = was.ns_per_frame, now.ns_per_frame
        from_ = "" if was.case == now.case else f" against {was.case}"
        console.print(
            f"{now.case}{from_}, {now.side}, {at(loads, was.case, now.case)}: "
            f"SAMPLED: {before:,.1f} → {after:,.1f} ns of CPU time per frame "
            f"({after - before:+,.1f}); {was.count:,} and {now.count:,} samples",
            soft_wrap=True,
        )
        rows = difference(was, now)
        certain = sum(row.is_certain for row in rows)
        console.print(
            f"  {certain} of {len(rows)} functions differ by more than their error (95 %); "
            f"chance alone may make {math.ceil(0.05 * len(rows))} of them do so",
            soft_wrap=True,
        )
        table = _table("function", "module", "process", *names, "change", "±", "sampled")
        for row in rows[:top]:
            table.add_row(
                row.function.name, row.function.module, row.process, f"{row.was:,.1f}", f"{row.now:,.1f}",
                f"{row.change:+,.1f}", f"{row.error:,.1f}", "differs" if row.is_certain else "may be chance",
            )  # fmt: skip
        console.print(table)


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE)
    for column in columns:
        table.add_column(column, justify="left" if column in _LEFT else "right", no_wrap=True)
    return table
