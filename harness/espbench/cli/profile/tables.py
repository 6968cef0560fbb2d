# SPDX-License-Identifier: Apache-2.0
"""Prints profiles in the terminal: what each function costs per frame, or the difference, the largest first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from espbench.profile.attribution import Profile, Where
from espbench.profile.difference import difference
from espbench.profile.symbols import Function

_EVERYWHERE = 0.995  # at this share, a function counts as executed in one place only


def show(profiles: Sequence[Profile], loads: Mapping[str, float], console: Console, top: int) -> None:
    """Print a table for each profile; loads: case → frames/s."""
    for profile in profiles:
        each = profile.instructions / profile.frames
        console.print(
            f"{profile.case}, {profile.side}, {at(loads, profile.case)}: "
            f"{each:,.3f} instructions per frame, {profile.instructions:,} of "
            f"{profile.frames:,} frames; {profile.naming}",
            soft_wrap=True,
        )
        shares = [
            f"{where} {count / profile.frames:,.1f} ({count / profile.instructions:.1%})"
            for where, count in profile.by_where().items()
        ]
        console.print("  per frame in: " + ", ".join(shares), soft_wrap=True)
        ran: defaultdict[Function, dict[Where, int]] = defaultdict(dict)
        for (function, where), count in profile.costs.items():
            ran[function][where] = count
        rows = sorted(profile.by_function().items(), key=lambda row: (-row[1], row[0]))
        table = Table(box=box.SIMPLE)
        for column in ("function", "module", "instructions/frame", "share", "in"):
            right = column in ("instructions/frame", "share")
            table.add_column(column, justify="right" if right else "left", no_wrap=True)
        for function, count in rows[:top]:
            share = f"{count / profile.instructions:.2%}"
            table.add_row(
                function.name, function.module, f"{count / profile.frames:,.3f}", share, _where(ran[function])
            )
        if rest := rows[top:]:
            count = sum(count for _, count in rest)
            share = f"{count / profile.instructions:.2%}"
            table.add_row(f"{len(rest)} others", "", f"{count / profile.frames:,.3f}", share, "")
        console.print(table)


def show_differences(
    pairs: Sequence[tuple[Profile, Profile]],
    loads: Mapping[str, float],
    console: Console,
    top: int,
    names: tuple[str, str] = ("was", "is"),
) -> None:
    """Print a table for each pair of profiles: before and now, or of the reference and another stack.

    loads: case → frames/s. names: the titles of the two columns.
    """
    for was, now in pairs:
        before, after = was.instructions / was.frames, now.instructions / now.frames
        from_ = "" if was.case == now.case else f" against {was.case}"
        console.print(
            f"{now.case}{from_}, {now.side}, {at(loads, was.case, now.case)}: "
            f"{before:,.3f} → {after:,.3f} instructions per frame "
            f"({after - before:+,.3f})",
            soft_wrap=True,
        )
        rows = [row for row in difference(was, now) if row.change]
        if not rows:
            console.print("  every function is the same, to the last instruction")
            continue
        table = Table(box=box.SIMPLE)
        for column in ("function", "module", *names, "change"):
            right = column in (*names, "change")
            table.add_column(column, justify="right" if right else "left", no_wrap=True)
        for row in rows[:top]:
            table.add_row(
                row.function.name,
                row.function.module,
                f"{row.was:,.3f}",
                f"{row.now:,.3f}",
                f"{row.change:+,.3f}",
            )
        if rest := rows[top:]:
            table.add_row(f"{len(rest)} others", "", "", "", f"{sum(row.change for row in rest):+,.3f}")
        console.print(table)


def at(loads: Mapping[str, float], *cases: str) -> str:
    """Return `at 40,000 frames/s` for the load of some cases, with each different load once."""
    known = dict.fromkeys(f"{loads[case]:,.0f}" for case in cases if case in loads)
    return f"at {' and '.join(known) or 'an unknown number of'} frames/s"


def _where(ran: dict[Where, int]) -> str:
    total = sum(ran.values())
    ordered = sorted(ran.items(), key=lambda each: -each[1])
    if ordered[0][1] >= _EVERYWHERE * total:
        return ordered[0][0]
    return ", ".join(f"{where} {count / total:.0%}" for where, count in ordered)
