# SPDX-License-Identifier: Apache-2.0
"""Writes a table and documents that compare encryption alone, decryption alone, and a pair of the same gateways."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median

from espbench.comparison.sorting import comparability
from espbench.comparison.sorting.operations import Figure, Operations, operations
from espbench.comparison.sorting.samples import read
from espbench.errors import UsageError
from espbench.reporting.parts.documents import render, render_page
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, at_least, count, goal_name, instructions, number, plural
from espbench.results import RunDirectory
from espbench.results.durable import to_json, write_atomically
from espbench.terms import Manifest, Outcome

SINGLE, PAIR = "single-gateway", "gateway-to-gateway"
TITLE = "A single gateway beside a pair"
# These conditions differ because the topology does: CPUs, links, and how ESP is sent and received.
_FOLLOWS: comparability.Places = (
    ("topology", ""), ("placement", ""), ("queues", ""), comparability.GENERATOR,
)  # fmt: skip
HOW = (
    "A frame that crosses a pair is encrypted once and decrypted once. Gateways with a core each do that side by "
    "side: the pair is no faster than the slower operation, min(encryption, decryption). Gateways that share a core "
    "do it in turns, and the times of a frame add up: the pair is no faster than 1 / (1/encryption + 1/decryption)."
)


def beside_each_other(outcomes: Sequence[Outcome]) -> Table:
    """Return a table with a row for each stack, suite, size and goal of a single gateway; no rows for other runs."""
    points = operations(outcomes)
    rows = [
        [*_name(one), _shown(one.encryption), _shown(one.decryption), _shown(one.lower), one.slower or NONE]
        for one in points
    ]
    head = [
        "Stack and suite", "Frame, bytes", "Loss goal", f"Encryption, {_unit(points)}",
        f"Decryption, {_unit(points)}", "The lower of the two", "Which is",
    ]  # fmt: skip
    return Table(head, rows, numeric=[1, 2, 3, 4, 5])


def is_about(runs: Sequence[RunDirectory]) -> bool:
    """Return whether some of these runs are of a single gateway, and all others of a pair."""
    return {run.manifest.topology for run in runs} == {SINGLE, PAIR}


def write(runs: Sequence[RunDirectory], directory: Path, *, allow_different: bool) -> tuple[Path, list[str]]:
    """Write comparison.html, .md and .json; return the page's path and its sentences.

    Raise UsageError if the runs differ in more than what follows from the topology, or have no point in common.
    """
    points, differences, words, shares_core = related(runs, allow_different=allow_different)
    table = _table(points, shares_core=shares_core)
    context = {
        "title": TITLE, "how": HOW, "words": words, "differences": differences, "found": table,
        "runs": [run.path.name for run in runs], "is_virtual": all(run.manifest.is_virtual for run in runs),
    }  # fmt: skip
    page = directory / "comparison.html"
    write_atomically(page, render_page("operations.html.j2", {}, **context))
    write_atomically(directory / "comparison.md", render("operations.md.j2", **context))
    plain = [_plain(one, shares_core=shares_core) for one in points]
    write_atomically(
        directory / "comparison.json", to_json({"points": plain, "words": words}, indent=2) + "\n"
    )
    return page, words


def related(
    runs: Sequence[RunDirectory], *, allow_different: bool
) -> tuple[list[Operations], list[str], list[str], bool]:
    """Return the points, the other differences, the page's sentences, and whether the pair's gateways share a core."""
    measured = read(runs)
    comparability.refuse_mixed_time(measured)
    unequal = [
        comparability.in_words(difference)
        for difference in comparability.differences(measured, "run")
        if not comparability.is_within(difference, _FOLLOWS)
    ]
    if unequal and not allow_different:
        raise UsageError(
            "these runs differ in more than the topology\n"
            "  expected: equal conditions, so that a pair stands beside its own halves\n"
            "  got:\n    "
            + "\n    ".join(unequal)
            + "\n  what to do: measure again under equal conditions, or add --allow-different"
        )
    of = {
        topology: [o for run in runs if run.manifest.topology == topology for o in run.outcomes()]
        for topology in (SINGLE, PAIR)
    }
    points = operations(of[SINGLE], of[PAIR])
    if not any(one.pair and one.lower for one in points):
        raise UsageError(
            "nothing to hold against each other\n"
            "  expected: a stack, suite, frame size and loss goal with encryption, decryption, and the pair one-way\n"
            f"  got: {plural(len(points), 'point')} of the single gateway, none of which the pair has\n"
            "  what to do: measure both with the same stacks, suites, frame_sizes and loss_goals"
        )
    pairs = [run.manifest for run in runs if run.manifest.topology == PAIR]
    shares_core = any(map(_shares_core, pairs))
    words = [*_words(points, shares_core=shares_core), *_path_words(runs)]
    return points, unequal, words, shares_core


def _path_words(runs: Sequence[RunDirectory]) -> list[str]:
    """Say so if single gateway and pair got their frames by different paths of the generator.

    The path decides how frames wake the gateway, and so its CPU time per frame.
    """
    paths_of = {
        topology: sorted({_path_of(run.manifest) for run in runs if run.manifest.topology == topology})
        for topology in (SINGLE, PAIR)
    }
    if paths_of[SINGLE] == paths_of[PAIR]:
        return []
    listed = "; ".join(f"{topology}: {', '.join(paths)}" for topology, paths in paths_of.items())
    return [
        f"The generator's ways to the wire differ ({listed}), and frames wake the gateways differently by each; for "
        "equal ones write generator: {native: {tx: af_packet, rx: af_packet}} into both plans."
    ]


def _path_of(manifest: Manifest) -> str:
    return manifest.tools.get("generator", "unknown")


def _shares_core(manifest: Manifest) -> bool:
    cpus = manifest.placement.get("cpus", {})
    return bool(set(cpus.get("home", [])) & set(cpus.get("office", [])))


def _words(points: Sequence[Operations], *, shares_core: bool) -> list[str]:
    ratios = [
        one.pair.fps / bound
        for one in points
        if one.pair
        and one.key[1] != "none"
        and (bound := one.bound_fps(shares_core=shares_core))
        # A ratio of lower bounds must not be counted together with the others.
        and not (one.pair.at_limit or one.is_bound_limited(shares_core=shares_core))
    ]
    where = "share a core" if shares_core else "have a core each"
    formula = "1 / (1/encryption + 1/decryption)" if shares_core else "min(encryption, decryption)"
    words = [f"The pair's gateways {where}, so that its bound is {formula}."]
    if ratios:
        spread = f" ({min(ratios):.2f} to {max(ratios):.2f})" if len(ratios) > 1 else ""
        words.append(
            f"With ESP the pair reached {median(ratios):.2f} of that bound{spread}, "
            f"{plural(len(ratios), 'point')}."
        )
    if any(ratio > 1.05 for ratio in ratios):
        words.append(
            "Above 1 the pair did more than its halves allow: the runs were not made under equal conditions (another "
            "load on the host, another clock), larger batches made its frames cheaper, or its middle link "
            "is cheaper than the tester's port, through which a single gateway's ESP goes."
        )
    return words


def _table(points: Sequence[Operations], *, shares_core: bool) -> Table:
    rows = []
    for one in points:
        rows.append(
            [
                *_name(one), _shown(one.encryption), _shown(one.decryption), _shown(one.lower), one.slower or NONE,
                _in_turns(one), _shown(one.pair), _ratio(one, shares_core=shares_core),
            ]
        )  # fmt: skip
    head = [
        "Stack and suite", "Frame, bytes", "Loss goal", f"Encryption, {_unit(points)}",
        f"Decryption, {_unit(points)}", "The lower of the two", "Which is", "Both in turns on one core, frames/s",
        f"Pair, {_unit(points)}", "Pair / its bound",
    ]  # fmt: skip
    return Table(head, rows, numeric=[1, 2, 3, 4, 5, 7, 8, 9])


def _name(one: Operations) -> list[str]:
    stack, suite, ip_version, size, goal = one.key
    name = stack if suite == "none" else f"{stack} · {suite}"
    return [name if ip_version == 4 else f"{name} · IPv6", str(size), goal_name(goal)]


def _in_turns(one: Operations) -> str:
    return at_least(count(one.in_turns_fps), is_bound=one.is_bound_limited(shares_core=True))


def _ratio(one: Operations, *, shares_core: bool) -> str:
    """Write pair / bound; it is a lower bound if the pair's figure is one, an upper bound if those of the bound are."""
    ratio, above, below = _of_bound(one, shares_core=shares_core)
    return NONE if ratio is None else f"{'≥ ' if above else '≤ ' if below else ''}{number(ratio, 3)}"


def _of_bound(one: Operations, *, shares_core: bool) -> tuple[float | None, bool, bool]:
    """Return pair / bound, and whether it is at least or at most that; None if both, since it says nothing then."""
    bound = one.bound_fps(shares_core=shares_core)
    if one.pair is None or not bound:
        return None, False, False
    above, below = one.pair.at_limit, one.is_bound_limited(shares_core=shares_core)
    return (None, False, False) if above and below else (one.pair.fps / bound, above, below)


def _shown(figure: Figure | None) -> str:
    if figure is None:
        return NONE
    counted = instructions(figure.instructions_home, figure.instructions_office)
    rate = f"{'≥ ' if figure.at_limit else ''}{count(figure.fps)} ({number(figure.mbps)})"
    return f"{counted}; {rate}" if counted else rate


def _unit(points: Sequence[Operations]) -> str:
    """Return the unit of the figures that `_shown` writes; in virtual time instructions per frame are first."""
    figures = [figure for one in points for figure in (one.encryption, one.decryption, one.pair) if figure]
    counted = any(instructions(f.instructions_home, f.instructions_office) for f in figures)
    return "instructions/frame; frames/s (Mbps)" if counted else "frames/s (Mbps)"


def _plain(one: Operations, *, shares_core: bool) -> dict[str, object]:
    """Return a point for comparison.json; a figure whose `…_at_least` is true is a lower bound."""
    stack, suite, ip_version, size, goal = one.key
    ratio, above, below = _of_bound(one, shares_core=shares_core)
    figures = {
        "encryption": one.encryption, "decryption": one.decryption, "lower": one.lower, "pair": one.pair,
    }  # fmt: skip
    return {
        "stack": stack, "suite": suite, "ip_version": ip_version, "frame_size": size, "loss_goal": goal,
        **{f"{name}_fps": figure.fps if figure else None for name, figure in figures.items()},
        **{f"{name}_at_least": bool(figure and figure.at_limit) for name, figure in figures.items()},
        "slower": one.slower,
        "in_turns_fps": one.in_turns_fps,
        "in_turns_at_least": one.in_turns_fps is not None and one.is_bound_limited(shares_core=True),
        "pair_shares_core": shares_core,
        "pair_of_bound": ratio,
        "pair_of_bound_at_least": above,
        "pair_of_bound_at_most": below,
    }  # fmt: skip
