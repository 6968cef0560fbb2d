#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how small a regression `espbench check` and `profile` find between x86-64 gateways in virtual time.

It builds Debian's own `esp4.ko` twice, from the pinned source of the guests' kernel: as it is, and with one `nop` in
`esp_output`, which each encrypted frame passes once. Frames go in one direction, so Home encrypts, and Office does not.

* **Planted**: the check at 20 points (two suites, ten frame sizes). A point counts as found if Home's figure is above
  the base with `--limit instructions=0`. Then `espbench profile` counts both modules at the same loads, and the
  benchmark prints at how many points `esp_output` became dearer by an instruction for each frame.
* **A against A**: the same module against its own base; half of the checks run beside busy loops on every CPU. The
  recorded trials of all these runs are compared with each other too, each pair in both orders.

Predicted before the first run (30 November 2026): all 20 points are found. At 18 or more of them Home's figure rises by
0.9 to 1.1; at the others a batch of frames moves, and the change is up to 1 % of the figure, up or down. Plain
forwarding is the same to the last instruction. `esp_output` itself costs 1.000 more at all 20 points. No false alarm.
**Wrong**: 15 points were found, and 19 figures of plain forwarding had changed. Since then the check compares at a
tenth of the throughput (docs/decisions/0065): 19 are found, 18 of them at 0.99 to 1.04.

It takes about 20 minutes on two quiet cores: `python benchmarks/gate/x86_sensitivity.py [--checks N]`. Needs
`espbench build x86`, gcc, make, and a network for the headers of the guests' kernel, but not root. With `--keep`, what
is in the folder already is not made again.
"""

from __future__ import annotations

import csv
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
from gate_sensitivity import SIZES, check, espbench, planted, same
from kept_folder import kept_folder, parser_with_keep
from planted_kernel import planted as with_nops

from espbench.paths import cache_dir, data_dir
from espbench.platforms.virtual.parts import recipe, sources
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
from support.virtual.own_module import headers

PLAN = f"""
name: sensitivity
topology: gateway-to-gateway
dut: ./own-esp.yaml
stacks: [plain, xfrm]
suites: [aes128gcm16, aes128-sha1]
frame_sizes: [{", ".join(map(str, SIZES))}]
tests:
  - throughput: {{loss_goals: [0], trial: 20ms, final_trial: 40ms, resolution: 10%, maximum: 200000fps, settle: 0,
      residue: 10ms, warm_up: 10ms, learning: 10ms}}
"""
FUNCTION = "esp_output"


def main() -> None:
    """Build both modules, make the checks and the profiles, and print the results."""
    parser = parser_with_keep(__doc__, "modules and runs")
    parser.add_argument("--checks", type=int, default=4, help="how many fresh checks of A against A")
    asked = parser.parse_args()
    with kept_folder(asked.keep) as folder:
        measure(folder, asked.checks)


def measure(folder: Path, checks: int) -> None:
    """Build the modules, measure the base and run the checks, all in this folder."""
    modules = built(folder / "modules")
    (folder / "plan.yaml").write_text(PLAN, encoding="utf-8")
    profile = (data_dir("dut-profiles") / "virt-x86.yaml").read_text(encoding="utf-8")
    profile = re.sub("^name: .*", "name: own-esp\nmodules: esp4.ko", profile, count=1, flags=re.MULTILINE)
    (folder / "own-esp.yaml").write_text(profile, encoding="utf-8")
    cache, base = cache_dir().parent, folder / "baseline.json"

    def use(nops: int) -> None:
        shutil.copyfile(modules[nops], folder / "esp4.ko")

    use(0)
    if not base.exists():
        run = espbench(cache, "run", folder / "plan.yaml", "--out", folder / "base", "--no-report")
        espbench(cache, "baseline", run, "--out", base, "--runs", folder / "checks")
    use(1)
    planted(check(folder, cache, base, "planted"))
    profiled = [profile_with(folder, cache, nops, use) for nops in (0, 1)]
    named(*profiled)
    use(0)
    same(folder, cache, base, checks)


def built(work: Path) -> list[Path]:
    """Return esp4.ko as Debian's source has it, and with one nop; build them if needed."""
    modules = [work / str(nops) / "esp4.ko" for nops in (0, 1)]
    if all(module.exists() for module in modules):
        return modules
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        of_kernel = headers(work)
    except pytest.skip.Exception as lacks:
        raise SystemExit(str(lacks)) from None
    linux = recipe.used()["linux"]
    with Registry("planted") as registry:
        runner = Runner(registry, work / "log", lambda line: None)
        sources.fetch(["linux"], runner, print)
        sources.unpack(linux, work / "linux", runner)
    text = (work / "linux/net/ipv4/esp4.c").read_text()
    shutil.rmtree(work / "linux")
    for nops, module in enumerate(modules):
        module.parent.mkdir()
        (module.parent / "esp4.c").write_text(with_nops(text, nops))
        (module.parent / "Makefile").write_text("obj-m := esp4.o\n")
        argv = ["make", "-C", str(of_kernel), f"M={module.parent}", "modules"]
        done = subprocess.run(argv, capture_output=True, text=True, check=False, env=os.environ)
        if done.returncode:
            raise SystemExit(f"{' '.join(argv)}:\n{done.stderr[-3000:]}")
    return modules


def profile_with(folder: Path, cache: Path, nops: int, use: Callable[[int], None]) -> Path:
    """Return the profile of the plan with this module, at the loads of the one without a nop."""
    out = folder / f"profile-{nops}"
    if not (kept := [*out.glob("*/profile.csv")]):
        use(nops)
        first = [file.parent for file in (folder / "profile-0").glob("*/profile.csv")]
        against = ["--against", *first] if nops else []
        espbench(cache, "profile", folder / "plan.yaml", *against, "--out", out)
        kept = [*out.glob("*/profile.csv")]
    return kept[0]


def named(without: Path, with_nop: Path) -> None:
    """Print at how many points the function with the nop, and the whole gateway, became dearer, by what."""
    before, after = costs(without), costs(with_nop)
    points = sorted(case for case, side in before if side == "home" and "plain" not in case)
    exact = 0
    for case in points:
        old, new = before[case, "home"], after[case, "home"]
        changes = {
            name: new[name] - old[name] for name in {*old, *new} if abs(new[name] - old[name]) > 0.0005
        }
        exact += abs(changes.get(FUNCTION, 0) - 1) < 0.0005
        others = sum(changes.values()) - changes.get(FUNCTION, 0)
        print(f"  {case}: {FUNCTION} {changes.get(FUNCTION, 0):+.3f}, all others together {others:+.3f}")
    print(f"{FUNCTION} costs one instruction more at {exact} of {len(points)} points")


def costs(file: Path) -> dict[tuple[str, str], defaultdict[str, float]]:
    """Return instructions per frame by function, for each case and gateway of a profile."""
    found: dict[tuple[str, str], defaultdict[str, float]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for row in csv.DictReader(lines):
            of_gateway = found.setdefault((row["case"], row["gateway"]), defaultdict(float))
            of_gateway[row["function"]] += float(row["instructions_per_frame"])
    return found


if __name__ == "__main__":
    main()
