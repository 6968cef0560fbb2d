# SPDX-License-Identifier: Apache-2.0
"""Runs the campaign (`python -m campaign` in benchmarks/): makes the chosen rows' missing repetitions and the table."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from pathlib import Path

from campaign import ROOT, table
from campaign.rows import ROWS
from campaign.runner import run
from campaign.state import OtherCampaign, State

DOCUMENT = ROOT / "docs/reliability.md"


def commit() -> str:
    """Return the commit that is measured, with `-changed` if files other than the table's document differ from it."""
    git = ["git", "-C", str(ROOT)]
    named = subprocess.run(
        [*git, "rev-parse", "--short=10", "HEAD"], capture_output=True, text=True, check=True
    )
    others = [".", f":!{DOCUMENT.relative_to(ROOT)}"]
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", *others], check=False).returncode
    return named.stdout.strip() + ("-changed" if changed else "")


def main() -> int:
    """Run the campaign; return the exit code: 0: no faults; 1: some faults; 2: the state file has another seed."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="campaign", description=__doc__)
    parser.add_argument(
        "--rows", nargs="+", choices=names, default=names, metavar="ROW", help=", ".join(names)
    )
    parser.add_argument("--count", type=int, help="make at most this many repetitions of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--state", type=Path, default=ROOT / "runs/campaign.jsonl")
    parser.add_argument("--fresh", action="store_true", help="make all repetitions of the chosen rows anew")
    parser.add_argument("--mended", action="store_true", help="make only repetitions with faults anew")
    parser.add_argument("--no-docs", action="store_true", help="print the table, leave docs/reliability.md")
    options = parser.parse_args()
    try:
        state = State(options.state, commit(), options.seed)
    except OtherCampaign as other:
        print(other, file=sys.stderr)
        return 2
    for row in options.rows if options.fresh or options.mended else ():
        state.forget(row, only_faulty=not options.fresh)
    # SIGTERM is handled like Ctrl-C, so that the campaign ends the programs that it has started.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        run([row for row in ROWS if row.name in options.rows], state, options.count, _say)
    except KeyboardInterrupt:
        print(f"interrupted; the same command goes on with {options.state}", file=sys.stderr)
    print(table.markdown(ROWS, state))
    if not options.no_docs:
        table.write(DOCUMENT, ROWS, state)
    return 1 if table.faults(state) else 0


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
