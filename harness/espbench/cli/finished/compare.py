# SPDX-License-Identifier: Apache-2.0
"""`espbench compare RUN [RUN…]`: says which of two configurations is faster, where, and by how much."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich import box
from rich.console import Console
from rich.table import Table

from espbench.comparison import compare as compare_runs
from espbench.comparison.sorting.model import Comparison, PairVerdicts
from espbench.comparison.telling.words import title
from espbench.errors import EspbenchError, UsageError
from espbench.reporting.compared.comparison_wording import ratio_or_bound
from espbench.reporting.parts.labels import ABOUT_VIRTUAL
from espbench.results import RunDirectory

PUBLISHED = "published"
TOPOLOGY = "topology"
_PIPED_WIDTH = 120


def compare(
    runs: Annotated[list[Path], typer.Argument(help="Run directories.")],
    by: Annotated[
        str | None,
        typer.Option(
            help="What to compare: stack, suite, dut, kernel, version, frame_size or run. "
            "published: with the figures in published documents. topology: a single gateway with a pair. "
            "Default: what the plan says."
        ),
    ] = None,
    reference: Annotated[
        str | None, typer.Option(help="What the others are compared with. Default: the first.")
    ] = None,
    allow_different: Annotated[
        bool,
        typer.Option(
            "--allow-different", help="Compare runs even if other conditions differ; the comparison says so."
        ),
    ] = False,
    out: Annotated[Path, typer.Option(help="The folder for the directory of the comparison.")] = Path("runs"),
) -> None:
    """Compare finished runs, or the configurations in one run; write comparison.html, .md and .json."""
    from espbench.reporting.compared import operations_documents  # noqa: PLC0415  (charts: slow to import)
    from espbench.reporting.compared.comparison_documents import write  # noqa: PLC0415

    if by == PUBLISHED:
        _against_published(runs, reference, out)
        return
    directories = [RunDirectory.open(path) for path in runs]
    if by in (None, TOPOLOGY) and (operations_documents.is_about(directories) or by == TOPOLOGY):
        _by_topology(directories, reference, out, allow_different=allow_different)
        return
    comparison = compare_runs(directories, by, reference, allow_different)
    page = write(comparison, _directory(out, comparison.axis))
    _show(comparison)
    print(page)


def _against_published(runs: list[Path], reference: str | None, out: Path) -> None:
    from espbench.reporting.published import published_documents  # noqa: PLC0415  (charts: slow to import)

    if reference is not None:
        raise UsageError(f"--reference: expected none with --by {PUBLISHED}, got {reference}; leave it out")
    directories = [RunDirectory.open(path) for path in runs]
    judged, measured = published_documents.judged(directories)  # refuses before anything is made
    console = _console()
    table = Table(box=box.SIMPLE)
    for column in ("device", "claim", "judgement"):
        table.add_column(column, no_wrap=column != "claim")
    for one in judged:
        table.add_row(one.claim.device or "", one.claim.says, one.word)
    console.print(table)
    for text in measured.left_out:
        console.print(f"Left out. {text}", soft_wrap=True, highlight=False, markup=False)
    print(published_documents.write(directories, _directory(out, PUBLISHED)))


def _by_topology(
    runs: list[RunDirectory], reference: str | None, out: Path, *, allow_different: bool
) -> None:
    from espbench.reporting.compared import operations_documents  # noqa: PLC0415  (charts: slow to import)

    if reference is not None:
        raise UsageError(f"--reference: expected none with --by {TOPOLOGY}, got {reference}; leave it out")
    if not operations_documents.is_about(runs):
        got = ", ".join(dict.fromkeys(run.manifest.topology for run in runs))
        raise UsageError(
            f"--by {TOPOLOGY}: expected runs of single-gateway and of gateway-to-gateway, got {got}; "
            "name one of each"
        )
    operations_documents.related(runs, allow_different=allow_different)  # refuses before anything is made
    page, words = operations_documents.write(runs, _directory(out, TOPOLOGY), allow_different=allow_different)
    _say_virtual(is_virtual=all(run.manifest.is_virtual for run in runs))
    for text in words:
        _console().print(text, soft_wrap=True)
    print(page)


def _say_virtual(*, is_virtual: bool) -> None:
    """Print the sentence that is at the top of every document with figures in virtual time, if these are such."""
    if is_virtual:
        _console().print(f"Virtual. {ABOUT_VIRTUAL}", soft_wrap=True)


def _console() -> Console:
    """Return the console; in a pipe it has a fixed width and no colours."""
    console = Console(highlight=False, emoji=False, markup=False)
    if console.is_terminal:
        return console
    return Console(highlight=False, emoji=False, markup=False, width=_PIPED_WIDTH)


def _directory(out: Path, axis: str) -> Path:
    """Make and return a new directory; two comparisons in the same second get different ones."""
    stem = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}-compare-{axis.replace('_', '-')}"
    for number in range(1, 1000):
        path = out / (stem if number == 1 else f"{stem}-{number}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            continue
        except OSError as error:
            raise EspbenchError(f"{path}: cannot make the directory: {error.strerror}") from error
        return path
    raise EspbenchError(f"{out}: a thousand comparisons in one second")


def _show(comparison: Comparison) -> None:
    """Print the verdicts and the sentences of a comparison in the terminal."""
    console = _console()
    _say_virtual(is_virtual=comparison.is_virtual)
    if comparison.common:
        console.print(", ".join(f"{key}: {value}" for key, value in comparison.common.items()))
    for panel in comparison.panels:
        for pair in panel.pairs:
            console.print(_table(pair, panel.x_name, title(panel)))
    for text in comparison.words:
        console.print(text, soft_wrap=True)
    for difference in comparison.differences:
        values = "; ".join(f"{run}: {value}" for run, value in difference.values.items())
        console.print(f"allowed difference: {difference.what}: {values}", soft_wrap=True)
    for text in comparison.warnings:
        console.print(f"note: {text}", soft_wrap=True)


def _table(pair: PairVerdicts, x_name: str, where: str) -> Table:
    table = Table(box=box.SIMPLE, title=f"{where}{pair.b} beside {pair.a}", title_justify="left")
    table.add_column(x_name, justify="right")
    table.add_column(f"{pair.b} / {pair.a}")
    table.add_column("verdict", no_wrap=True)
    table.add_column("rests on")
    faster = {"A faster": f"{pair.a} faster", "B faster": f"{pair.b} faster"}
    for point in pair.points:
        word = faster.get(point.word, point.word)
        table.add_row(str(point.x), ratio_or_bound(point), word, point.why)
    return table
