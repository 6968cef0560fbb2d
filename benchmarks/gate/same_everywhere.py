#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one plan in virtual time as root and as nobody, alone and beside busy loops, and compares the runs.

The plan is `plans/virtual-quick.yaml` with strongSwan and libreswan in addition to static SAs. These files are compared
with the first run's, byte for byte: `trials.jsonl` without `host` (and without the seals, which are of whole lines),
`results.csv`, `results.json`, and every figure of the report.

`python benchmarks/gate/same_everywhere.py [--keep FOLDER] [--sizes 512] [--runs root nobody …]`. With the same
folder it continues: a complete run is not made again. Needs `espbench build x86`. Run it as root; nobody is a user
without any capability and without a network. docs/virtual-time.md has its results.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import yaml
from busy import busy_loops
from kept_folder import kept_folder, parser_with_keep

from espbench.paths import cache_dir

ROOT = Path(__file__).parents[2]
PLAN = ROOT / "plans/virtual-quick.yaml"
RUNS = ("root", "nobody", "root-loaded", "nobody-loaded")
_NOT_COMPARED = ("host", "seal")


def main() -> None:
    """Make the missing runs, and compare all."""
    parser = parser_with_keep(__doc__, "the runs")
    parser.add_argument("--sizes", type=int, nargs="+", help="frame sizes in place of the plan's, B")
    parser.add_argument(
        "--runs", nargs="+", choices=RUNS, default=RUNS, help="which runs; the first is the reference"
    )
    asked = parser.parse_args()
    with kept_folder(asked.keep) as folder:
        plan = folder / "plan.yaml"
        plan.write_text(text_of_plan(asked.sizes), encoding="utf-8")
        runs = {kind: made(folder / kind, plan, kind) for kind in asked.runs}
        first, *others = runs
        different = [
            name for other in others for name in compared(runs[first], runs[other], f"{first} and {other}")
        ]
    raise SystemExit(bool(different))


def text_of_plan(sizes: list[int] | None) -> str:
    """Return the plan with the daemons added; sizes: frame sizes in place of the plan's."""
    plan = yaml.safe_load(PLAN.read_text())
    plan |= {"name": "same-everywhere", "stacks": [*plan["stacks"], "strongswan", "libreswan"]}
    if sizes:
        plan["frame_sizes"] = sizes
    return yaml.safe_dump(plan, sort_keys=False)


def made(folder: Path, plan: Path, kind: str) -> Path:
    """Make a run of one kind, or resume it if it is there, and return its run directory."""
    words = [sys.executable, "-m", "espbench", "run"]
    begun = [*folder.glob("*/manifest.json")]
    words += ["--resume", str(begun[0].parent)] if begun else [str(plan), "--out", str(folder)]
    if kind.startswith("nobody"):
        words = [*without_rights(folder), *words]
    since = time.monotonic()
    with busy_loops(wanted=kind.endswith("loaded")):
        done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{kind}: ended with {done.returncode}:\n{done.stderr[-3000:]}")
    (run,) = folder.glob("*/manifest.json")
    trials = (run.parent / "trials.jsonl").read_text().count("\n")
    print(f"{kind}: {trials} trials, {time.monotonic() - since:.0f} s", flush=True)
    return run.parent


def compared(one: Path, other: Path, which: str) -> list[str]:
    """Compare two runs, print the result, and return the names of the files that differ."""
    figures = sorted(
        {str(file.relative_to(run)) for run in (one, other) for file in run.glob("figures/**/*.*")}
    )
    different = [] if trials(one) == trials(other) else ["trials.jsonl"]
    for name in ("results.csv", "results.json", *figures):
        contents = [(run / name).read_bytes() if (run / name).is_file() else None for run in (one, other)]
        if contents[0] != contents[1]:
            different.append(name)
    said = (
        "differ in " + ", ".join(different)
        if different
        else f"the same to the byte, {len(figures)} figures too"
    )
    print(f"{which}: {said}", flush=True)
    return different


def trials(run: Path) -> list[str]:
    """Return the lines of trials.jsonl without the keys that are not compared."""
    read = [json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines()]
    return [json.dumps({k: v for k, v in trial.items() if k not in _NOT_COMPARED}) for trial in read]


def without_rights(home: Path) -> list[str]:
    """Return a command prefix that runs a command as a user without capabilities, in an empty network namespace."""
    home.mkdir(parents=True, exist_ok=True)
    nobody = ["unshare", "--user", "--map-user=65534", "--map-group=65534", "--net", "env"]
    return [*nobody, f"HOME={home}", f"XDG_RUNTIME_DIR={home}", f"XDG_CACHE_HOME={cache_dir().parent}"]


if __name__ == "__main__":
    main()
