#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `espbench bisect` on twelve commits of the kernel's `esp4.c`, one of which costs 212 instructions per frame.

The others change comments. Each step compiles the kernel of a commit and boots two emulated boards with it. Predicted
before the first run: commit 8 is found, in four steps at most, at 212 instructions within 1 %.

`python benchmarks/gate/gate_bisect.py [--keep FOLDER]`; the folder may have the kernel of gate_sensitivity.py.
Needs `espbench build e500` and its requirements, and git.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import planted_kernel
from kept_folder import kept_folder, parser_with_keep

COMMITS, PLACE, NOPS = 12, 8, 212
PLAN = """
name: history
topology: gateway-to-gateway
dut: mpc8548e
stacks: [plain, {stack: xfrm, label: async, crypto: async}]
suites: [aes128-sha1]
frame_sizes: [512]
tests:
  - throughput: {loss_goals: [0], trial: 20ms, final_trial: 40ms, resolution: 10%, maximum: 200000fps, settle: 0,
      residue: 10ms, warm_up: 10ms, learning: 10ms}
"""


def main() -> None:
    """Make the history, and bisect it."""
    with kept_folder(parser_with_keep(__doc__, "the kernel and the runs").parse_args().keep) as folder:
        raise SystemExit(bisect(folder))


def bisect(folder: Path) -> int:
    """Make the history in a folder, bisect it, and return the exit code of `espbench bisect`."""
    tree, cache = planted_kernel.tree(folder / "kernel"), folder / "cache-bisect"
    planted_kernel.install(planted_kernel.built(tree, planted_kernel.original(tree)), cache)
    history = folder / "history"
    if not history.exists():
        grow(history, planted_kernel.original(tree))
    plan = folder / "history.yaml"
    plan.write_text(PLAN, encoding="utf-8")
    program = Path(planted_kernel.__file__)
    build = shlex.join([sys.executable, str(program), "esp4.c", str(tree), str(cache)])
    argv = [
        sys.executable, "-m", "espbench", "bisect", str(plan), "--good", f"HEAD~{COMMITS - 1}", "--bad", "HEAD",
        "--tree", str(history), "--build", build, "--out", str(folder / "runs"),
    ]  # fmt: skip
    # The runs use the cache into which the build installs each kernel, and not the user's.
    return subprocess.run(argv, env=os.environ | {"XDG_CACHE_HOME": str(cache)}, check=False).returncode


def grow(history: Path, text: str) -> None:
    """Make a git history of COMMITS commits that change one file, with this text at first; commit PLACE costs more."""
    history.mkdir()
    identity = ["-c", "user.name=bench", "-c", "user.email=bench@example.org"]
    subprocess.run(["git", "-C", str(history), "init", "-q"], check=True)
    for number in range(1, COMMITS + 1):
        if number == PLACE:
            text = planted_kernel.planted(text, NOPS)
        else:
            text += f"/* Nothing: {number}. */\n"
        (history / "esp4.c").write_text(text)
        subprocess.run(["git", "-C", str(history), "add", "."], check=True)
        message = f"esp4: change {number}"
        subprocess.run(["git", "-C", str(history), *identity, "commit", "-q", "-m", message], check=True)


if __name__ == "__main__":
    main()
