#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes real comparisons of two equal stacks, and counts how often they claim a difference that does not exist.

Each comparison is a run of its own: xfrm against xfrm under two names, on pairs of UML guests, by searches and by
trials at fixed loads. With `--rules N` the gateways of the second name have N rules of policy routing that match
nothing. This is a real difference, which the comparison must find. Run it as root, with nothing else running:

    python benchmarks/judgement/ab_comparison.py --sizes 512 --pairs 12 -n 40 --out ab-equal
    python benchmarks/judgement/ab_comparison.py --sizes 512 --pairs 12 -n 20 --rules 115 --out ab-planted
    python benchmarks/judgement/ab_comparison.py --sizes 64,512,1424 -n 1 --out ab-whole

It continues where it was stopped: complete run directories are counted, and not made again. With `--records FILE` each
complete comparison becomes a line of JSON in that file, with its date and commit, and comparisons in the file are not
made again. So 40 comparisons can be made in several sessions and on several machines, and the file can be kept in git.

The exit code is 1 if a goal is missed. Goals for equal arms: at most 5 % of the comparisons claim a difference (missed
if the whole 95 % interval of that share is above 5 %), and for each frame size the median half width of the intervals
is at most 3 % for CPU per frame and 10 % for throughput. Goal for a planted difference: 19 of 20 points show more CPU
per frame. Goals for both: each point has an interval of CPU per frame, and the median comparison takes at most ten
minutes.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from shares import surely_above, wilson

from espbench.comparison import of_run
from espbench.comparison.sorting.model import Comparison, Estimate
from espbench.results import RunDirectory

RULES = "ESPBENCH_BENCHMARK_RULES"
EQUAL, OTHER = "first", "second"
FALSE_CLAIMS, FOUND = 0.05, 19 / 20
CPU_HALF, THROUGHPUT_HALF = 0.03, 0.10
LONGEST_S = 600.0
PLAN = """\
name: ab-{number:03}
topology: gateway-to-gateway
dut: {dut}
stacks: [{{stack: xfrm, label: {a}}}, {{stack: xfrm, label: {b}}}]
suites: [aes128gcm16]
frame_sizes: [{sizes}]
repeat: 1
compare: {{by: stack, seed: {number}, at: {{pairs: {pairs}, rounds: {rounds}, trial: {trial}}}}}
tests:
  - throughput:
      loss_goals: [0]
      minimum: 500fps
      maximum: {maximum}fps
      trial: 400ms
      final_trial: 1s
      resolution: 5%
      settle: 0
      residue: 100ms
      warm_up: 200ms
      learning: 20ms
      retries: 3
"""


@dataclass(frozen=True)
class Point:
    """One frame size of a comparison: the ratios second ÷ first with their intervals, and the verdicts."""

    frame_size: int
    cpu: Estimate | None
    cpu_word: str
    throughput: Estimate | None
    word: str


@dataclass(frozen=True)
class Made:
    """One complete comparison.

    seconds: from the first trial to the last. void: the share of trials that are void, or
    found no partner on CPUs of their speed. rules: the planted routing rules.
    """

    number: int
    points: list[Point]
    seconds: float
    void: float
    when: str = ""
    commit: str = ""
    rules: int = 0
    pairs: int = 0
    trial: str = ""

    @property
    def claims(self) -> bool:
        """True if the comparison claims any difference."""
        return any(p.cpu_word.startswith("B") or p.word in ("A faster", "B faster") for p in self.points)


def main() -> int:
    """Make the missing comparisons and print the table; return the exit code: 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-n", type=int, default=40, help="comparisons")
    parser.add_argument("--sizes", default="512", help="frame sizes, with commas")
    parser.add_argument("--pairs", type=int, default=12, help="pairs of trials at each load")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--trial", default="300ms")
    parser.add_argument("--maximum", type=int, default=60_000, help="highest load of a search, frames/s")
    parser.add_argument("--dut", default="uml")
    parser.add_argument("--rules", type=int, default=0, help="routing rules in the second one's gateways")
    parser.add_argument("--out", type=Path, default=Path("ab-comparison"))
    parser.add_argument("--minutes", type=float, default=math.inf, help="start no comparison after this time")
    parser.add_argument("--records", type=Path, help="a file that keeps a line for each comparison")
    parser.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.one is not None:
        _measure(asked.one)
        return 0
    asked.out.mkdir(parents=True, exist_ok=True)
    _same_question(asked)
    began = time.monotonic()
    kept = read_records(asked.records) if asked.records else {}
    for number in range(1, asked.n + 1):
        if number in kept:
            continue
        if (made := _complete(asked, number)) is None and time.monotonic() - began < 60 * asked.minutes:
            _run(asked, number)
            made = _complete(asked, number)
        if made is not None:
            kept[number] = made
            if asked.records:
                with asked.records.open("a") as file:
                    file.write(json.dumps(asdict(made)) + "\n")
    comparisons = [kept[number] for number in sorted(kept)]
    print(table(comparisons, planted=asked.rules > 0))
    missed = missed_goals(comparisons, planted=asked.rules > 0)
    print("\n".join(f"missed: {goal}" for goal in missed))
    return int(bool(missed))


def read_records(file: Path) -> dict[int, Made]:
    """Return the comparisons of a file of records by number; none if there is no such file."""
    if not file.exists():
        return {}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    return {line["number"]: Made(**line | {"points": [_point(p) for p in line["points"]]}) for line in lines}


def _point(line: dict[str, Any]) -> Point:
    ratios = {key: Estimate(**line[key]) if line[key] else None for key in ("cpu", "throughput")}
    return Point(**line | ratios)


def _same_question(asked: argparse.Namespace) -> None:
    """End the program if the folder has comparisons with other options."""
    apart = ("n", "out", "minutes", "one", "records")
    kept = {key: str(value) for key, value in vars(asked).items() if key not in apart}
    file = asked.out / "asked.json"
    if file.exists() and json.loads(file.read_text()) != kept:
        sys.exit(f"{file}: holds comparisons of {file.read_text()}; name another --out")
    file.write_text(json.dumps(kept))


def _run(asked: argparse.Namespace, number: int) -> None:
    """Make one comparison in a process of its own; its messages go into a log file."""
    plan = asked.out / f"ab-{number:03}.yaml"
    plan.write_text(
        PLAN.format(
            number=number, a=EQUAL, b=OTHER, dut=asked.dut, sizes=asked.sizes, pairs=asked.pairs,
            rounds=asked.rounds, trial=asked.trial, maximum=asked.maximum,
        )
    )  # fmt: skip
    began = time.monotonic()
    with (asked.out / f"ab-{number:03}.log").open("w") as log:
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(plan)],
            env={**os.environ, RULES: str(asked.rules)},
            stdout=log,
            stderr=subprocess.STDOUT,
            check=False,
        )
    print(f"comparison {number}: {time.monotonic() - began:.0f} s, exit code {done.returncode}", flush=True)


def _measure(plan: Path) -> None:
    """Do `espbench run`; if rules are to be planted, the second stack's gateways get them."""
    from espbench.cli import main as cli  # noqa: PLC0415  (the parent process needs none of these)
    from espbench.measure.inputs.setup import Setup  # noqa: PLC0415
    from espbench.plan.resolved.cases import Case  # noqa: PLC0415
    from espbench.runs.setups import Setups  # noqa: PLC0415

    rules = int(os.environ.get(RULES, "0"))
    set_up = Setups.set_up

    def with_rules(self: Setups, case: Case) -> Setup:
        setup = set_up(self, case)
        if rules and case.stack.shown == OTHER:
            # None of the rules matches, but each forwarded frame is compared with all of them (TEST-NET-3, RFC 5737).
            lines = [
                f"rule add priority {100 + n} from 203.0.113.{n % 254 + 1} lookup main" for n in range(rules)
            ]
            for gateway in setup.bed.gateways.values():
                gateway.ip(lines)
        return setup

    Setups.set_up = with_rules  # type: ignore[method-assign]
    sys.argv = ["espbench", "run", "--no-report", "--out", str(plan.parent), str(plan)]
    cli.main()


def _complete(asked: argparse.Namespace, number: int) -> Made | None:
    """Return the comparison with this number; None if there is none yet, or if it is incomplete."""
    for path in sorted(asked.out.glob(f"*-ab-{number:03}")):
        try:
            run = RunDirectory.open(path)
            comparison = of_run(run)
        except Exception:  # incomplete: it is made again
            continue
        if comparison is not None and comparison.fixed_loads:
            trials = list(run.trials())
            starts = [t.host["start_ns"] for t in trials if "start_ns" in t.host]
            of_searches = sum(t.validity == "INVALID" for t in trials if t.phase != "measure")
            void = of_searches + sum(v.void for v in comparison.fixed_loads)
            return Made(
                number,
                _points(comparison),
                seconds=(max(starts) - min(starts)) / 1e9 if starts else 0.0,
                void=void / max(1, len(trials)),
                when=f"{datetime.now(UTC):%Y-%m-%dT%H:%M}",
                commit=_commit(),
                rules=asked.rules,
                pairs=asked.pairs,
                trial=asked.trial,
            )
    return None


def _points(comparison: Comparison) -> list[Point]:
    return [Point(int(v.x), v.cpu, v.cpu_word, v.throughput, v.word) for v in comparison.fixed_loads]


def _commit() -> str:
    folder = str(Path(__file__).parent)
    asked = ["git", "-C", folder, "describe", "--always", "--dirty", "--abbrev=10", "--exclude=*"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def missed_goals(made: Sequence[Made], *, planted: bool) -> list[str]:
    """Return the goals that these comparisons miss, in words."""
    if not made:
        return ["no comparison was made"]
    verdicts = [point for one in made for point in one.points]
    missed = []
    if (slow := median([one.seconds for one in made])) > LONGEST_S:
        missed.append(f"a comparison takes {slow:.0f} s, more than {LONGEST_S:.0f}")
    if without := sum(v.cpu is None for v in verdicts):
        missed.append(f"{without} points have no verdict on CPU per frame")
    if planted:
        found = sum(v.cpu_word == "B costs more" for v in verdicts)
        if found < FOUND * len(verdicts):
            missed.append(f"{found} of {len(verdicts)} points find what was planted")
        return missed
    claims = sum(one.claims for one in made)
    if surely_above(claims, len(made), FALSE_CLAIMS):
        missed.append(f"{claims} of {len(made)} comparisons claim a difference that is not there")
    return missed + [goal for points in by_size(verdicts) for goal in too_wide(points)]


def by_size(points: Sequence[Point]) -> list[list[Point]]:
    """Return the points of each frame size, the smallest size first."""
    sizes = sorted({point.frame_size for point in points})
    return [[point for point in points if point.frame_size == size] for size in sizes]


def too_wide(points: Sequence[Point]) -> list[str]:
    """Return in words which intervals of one frame size are wider than the goal, in the median, or are all missing."""
    missed = []
    for what, intervals, most in (
        ("CPU per frame", [p.cpu for p in points], CPU_HALF),
        ("throughput", [p.throughput for p in points], THROUGHPUT_HALF),
    ):
        widths = _half_widths(intervals)
        if not widths:
            missed.append(f"{points[0].frame_size} B: no verdict on {what}")
        elif median(widths) > most:
            missed.append(
                f"{points[0].frame_size} B: the half width of {what} is {median(widths):.1%}, more than {most:.0%}"
            )
    return missed


def _half_widths(intervals: list[Estimate | None]) -> list[float]:
    return [math.sqrt(i.high / i.low) - 1 for i in intervals if i]


def table(made: Sequence[Made], *, planted: bool) -> str:
    """Return a table of the counted shares with their intervals, and of the widths of the ratios' intervals."""
    verdicts = [point for one in made for point in one.points]
    lines = [
        f"{len(made)} comparisons, {len(verdicts)} points",
        f"  seconds for one (median, most)              {_of([one.seconds for one in made], '{:.0f}')}",
        f"  void trials (median, most)                  {_of([one.void for one in made], '{:.1%}')}",
        *map(_widths, by_size(verdicts)),
        f"  ratio of CPU per frame (least, most)        {_ends([v.cpu.value for v in verdicts if v.cpu])}",
        f"  ratio of throughput (least, most)           {_ends([t.value for v in verdicts if (t := v.throughput)])}",
        f"  points without a verdict on CPU, throughput {sum(v.cpu is None for v in verdicts)}, "
        f"{sum(v.throughput is None for v in verdicts)}",
    ]
    if planted:
        lines += [
            _rate("points whose higher CPU per frame was found", [v.cpu_word == "B costs more" for v in verdicts]),
            _rate("points whose lower throughput was found", [v.word == "A faster" for v in verdicts]),
            _rate("points said to be better than they are", [
                v.cpu_word == "B costs less" or v.word == "B faster" for v in verdicts]),
        ]  # fmt: skip
    else:
        lines.append(
            _rate("comparisons that claim a difference (goal: at most 5 %)", [one.claims for one in made])
        )
        for what, hits in (
            ("on CPU per frame", [v.cpu_word.startswith("B") for v in verdicts]),
            ("on throughput", [v.word in ("A faster", "B faster") for v in verdicts]),
        ):
            lines.append(_rate(f"points that claim one {what}", hits))
    return "\n".join(lines)


def _widths(points: Sequence[Point]) -> str:
    cpu = _half_widths([p.cpu for p in points])
    rate = _half_widths([p.throughput for p in points])
    return (
        f"  half width, {points[0].frame_size} B (median, most)             "
        f"CPU per frame {_of(cpu, '{:.2%}')}; throughput {_of(rate, '{:.2%}')}"
    )


def _rate(what: str, hits: list[bool]) -> str:
    if not hits:
        return f"  {what}: none made"
    low, high = wilson(sum(hits), len(hits))
    return f"  {what}: {sum(hits)} of {len(hits)}, {sum(hits) / len(hits):.1%} [{low:.1%}, {high:.1%}]"


def _of(values: list[float], form: str) -> str:
    return f"{form.format(median(values))}, {form.format(max(values))}" if values else "none"


def _ends(values: list[Any]) -> str:
    return f"{min(values):.4f}, {max(values):.4f}" if values else "none"


if __name__ == "__main__":
    sys.exit(main())
