# SPDX-License-Identifier: Apache-2.0
"""Writes and reads sampled profiles as a CSV file: a row for each function, process and context, with its error."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import cast

from espbench.errors import UsageError
from espbench.profile.attribution import WHERES
from espbench.profile.sampled import Place, SampledProfile
from espbench.profile.symbols import Function
from espbench.results.outcome_files import as_it_was, table_text

FILE = "profile-sampled.csv"
COLUMNS = (
    "case", "gateway", "frames", "cpu_ns", "event", "lost", "equal_samples", "process", "function", "module", "where",
    "samples", "weight", "share", "share_error", "cpu_ns_per_frame", "cpu_ns_per_frame_error",
)  # fmt: skip


def text_of(profiles: Iterable[SampledProfile]) -> str:
    """Return the text of the CSV file; the errors are half the width of a 95 % interval."""
    return table_text(COLUMNS, (cells for profile in profiles for cells in _rows(profile)))


def _rows(p: SampledProfile) -> Iterator[list[object]]:
    for place, weight in sorted(p.weights.items(), key=lambda row: (-row[1], row[0])):
        share = p.share([place])
        yield [
            p.case, p.side, p.frames, p.cpu_ns, p.event, p.lost, f"{p.equal:.1f}", place.process,
            place.function.name, place.function.module, place.where, p.samples[place], f"{weight:.0f}",
            f"{share.value:.6f}", f"{share.error:.6f}", f"{share.value * p.ns_per_frame:.3f}",
            f"{share.error * p.ns_per_frame:.3f}",
        ]  # fmt: skip


def read(text: str, where: str) -> list[SampledProfile]:
    """Return the profiles in a file, without stacks; UsageError, which names `where`, for another kind of file."""
    made: dict[tuple[str, str], SampledProfile] = {}
    lines = csv.reader(io.StringIO(text))
    if (header := tuple(next(lines, ()))) != COLUMNS:
        raise _no_profile(where, f"the columns {', '.join(header) or '(none)'}")
    for number, cells in enumerate(lines, 2):
        try:
            row = dict(zip(COLUMNS, map(as_it_was, cells), strict=True))
            key = row["case"], row["gateway"]
            if key not in made:
                made[key] = SampledProfile(
                    *key, int(row["frames"]), int(row["cpu_ns"]), row["event"], {}, {},
                    float(row["equal_samples"]), int(row["lost"]),
                )  # fmt: skip
            context = WHERES[[str(each) for each in WHERES].index(row["where"])]
            place = Place(row["process"], Function(row["function"], row["module"]), context)
            cast("dict[Place, int]", made[key].samples)[place] = int(row["samples"])
            cast("dict[Place, float]", made[key].weights)[place] = float(row["weight"])
        except (ValueError, KeyError):
            raise _no_profile(where, f"line {number}: {','.join(cells)}") from None
    return list(made.values())


def _no_profile(where: str, got: str) -> UsageError:
    return UsageError(
        f"{where}: no sampled profile\n  expected: a file that espbench profile wrote, with the columns "
        f"{', '.join(COLUMNS)}\n  got: {got}\n  what to do: run espbench profile again"
    )
