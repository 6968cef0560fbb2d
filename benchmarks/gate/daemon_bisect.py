#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `espbench bisect` on eight commits of strongSwan, one of which costs 2,000 instructions for each frame.

That commit changes libipsec, where charon encrypts each frame itself (`strongswan-libipsec`), between two x86-64
gateways in virtual time. The others change comments there. After the commit is found, the command profiles it and its
parent, and shows its cost by function. Predicted before the first run: commit 5 is found in three steps, at 2,000
instructions within 10 % (charon's threads pass frames to each other in batches, which a slower thread changes); the
largest change by function is `encrypt` of libipsec, at 2,000 within 1 %. Result: commit 5 was found in three steps. The
first figure was **wrong**: the commit costs 2,814 instructions more on Home, because a slower thread makes the kernel
switch threads more often. `encrypt` costs 2,000.000 more, as predicted. (Then this program called `espbench profile
--half` and `--against` itself; since `espbench bisect` does it, at the load of its own figure, nothing was measured
again.)

`python benchmarks/gate/daemon_bisect.py [--keep FOLDER]`; an interrupted run continues with the same folder.
Needs `espbench build x86`, git, a C compiler and libssl-dev; neither root nor, once strongSwan's sources are there, a
network.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import planted_daemon
from kept_folder import kept_folder, parser_with_keep

COMMITS, PLACE, NOPS = 8, 5, 2000
PLAN = """
name: daemon-history
topology: gateway-to-gateway
dut: virt-x86
stacks: [{{stack: strongswan-libipsec, prefix: {prefix}}}]
suites: [aes128gcm16]
frame_sizes: [512]
directions: [one-way]
tests:
  - throughput: {{loss_goals: [0], trial: 20ms, final_trial: 40ms, resolution: 10%, maximum: 60000fps, settle: 0,
      residue: 10ms, warm_up: 10ms, learning: 10ms}}
"""


def main() -> None:
    """Make the history and bisect it; the command also shows the cost of the commit by function."""
    with kept_folder(parser_with_keep(__doc__, "strongSwan and the runs").parse_args().keep) as folder:
        raise SystemExit(bisect(folder))


def bisect(folder: Path) -> int:
    """Make the history in a folder, bisect it, and return the exit code of `espbench bisect`."""
    work, history = folder / "daemon", folder / "history"
    built = planted_daemon.tree(work)
    if not history.exists():
        grow(history.with_name("history-filling"), planted_daemon.original(work))
        history.with_name("history-filling").rename(history)
    plan = folder / "daemon-history.yaml"
    plan.write_text(PLAN.format(prefix=work / "installed"), encoding="utf-8")
    program = Path(planted_daemon.__file__)
    build = shlex.join([sys.executable, str(program), str(built)])
    argv = [
        sys.executable, "-m", "espbench", "bisect", str(plan), "--good", f"HEAD~{COMMITS - 1}", "--bad", "HEAD",
        "--tree", str(history), "--build", build, "--out", str(folder / "runs"),
    ]  # fmt: skip
    return subprocess.run(argv, check=False).returncode


def grow(history: Path, source: Path) -> None:
    """Make a git history of COMMITS commits of the sources; each changes one file, commit PLACE its cost."""
    shutil.rmtree(history, ignore_errors=True)
    shutil.copytree(source, history / "src")
    git(history, "init", "-q")
    file = history / planted_daemon.CHANGED
    for number in range(1, COMMITS + 1):
        text = file.read_text()
        if number == PLACE:
            text = planted_daemon.planted(text, NOPS)
        else:
            text += f"/* Nothing: {number}. */\n"
        file.write_text(text)
        git(history, "add", ".")
        identity = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
        git(history, *identity, "commit", "-q", "-m", f"libipsec: change {number}")


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", str(folder), *arguments], check=True)


if __name__ == "__main__":
    main()
