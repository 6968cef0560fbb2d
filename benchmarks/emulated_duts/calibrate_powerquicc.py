# SPDX-License-Identifier: Apache-2.0
"""Fits the emulation to the MPC8548E's published points, and prints the values for the profiles; writes no profile.

    benchmarks/emulated_duts/calibrate_powerquicc.py [--rounds 3] [--keep DIR]

The costs of the SEC are computed. The time of an instruction is found by measurements: a plan of one case (1456 B, the
SEC driven asynchronously, so that the SEC is the limit) is run with a copy of the profile. The time is then scaled by
the ratio of the wanted to the measured CPU time per frame, until both are within half a percent. The values of the
other profiles follow from their clocks. Needs `espbench build e500`.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import powerquicc_calibration as calibration
import yaml

from espbench.claims.model import Configuration
from espbench.claims.points import Point, points
from espbench.paths import data_dir
from espbench.plan.duts.boards import Board
from espbench.plan.duts.profiles import load_profile, profile_names
from espbench.results import RunDirectory

DEVICE = "mpc8548e"
NEAR = 0.005
PLAN = {
    "name": "calibration",
    "topology": "gateway-to-gateway",
    "dut": "./profile.yaml",
    "stacks": [{"stack": "xfrm", "label": "async", "crypto": "async"}],
    "suites": [calibration.SUITE],
    "frame_sizes": [calibration.LARGE],
    "directions": ["both-ways"],
    "tests": [
        {
            "throughput": {
                "loss_goals": [0], "trial": "50ms", "final_trial": "250ms", "resolution": "0.5%",
                "settle": 0, "residue": "20ms", "warm_up": "20ms", "learning": "10ms",
            }
        }
    ],
}  # fmt: skip


def measure(folder: Path, prices: calibration.SecPrices, ns: Fraction) -> Point:
    """Run the plan with a profile of these SEC costs and this time of an instruction, ns; return its point."""
    profile = yaml.safe_load((data_dir("dut-profiles") / f"{DEVICE}.yaml").read_text(encoding="utf-8"))
    profile["board"]["ns_per_instruction"] = str(ns)
    cycles = profile["board"]["sec"]["cycles"]
    cycles |= {"descriptor": str(prices.descriptor), "bus": str(prices.bus), "3des": str(prices.cipher)}
    folder.mkdir()
    (folder / "profile.yaml").write_text(yaml.safe_dump(profile), encoding="utf-8")
    # JSON is valid YAML, without tags and anchors.
    (folder / "plan.yaml").write_text(json.dumps(PLAN), encoding="utf-8")
    command = [sys.executable, "-m", "espbench", "run", "plan.yaml", "--out", "runs"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"the run failed ({done.returncode}):\n{done.stdout}{done.stderr}")
    (run,) = [RunDirectory.open(path) for path in (folder / "runs").iterdir()]
    curve = points([(run.manifest, run.outcomes())]).curve(DEVICE, Configuration(behaviour="async"))
    if calibration.LARGE not in curve:
        raise SystemExit(f"{run.path}: no throughput: {[o.words for o in run.outcomes()]}")
    return curve[calibration.LARGE]


def fit(folder: Path, board: Board, rounds: int) -> tuple[calibration.SecPrices, Fraction]:
    """Return the SEC's costs and the time of an instruction, ns; print each round."""
    wanted = calibration.published()
    prices = calibration.sec_prices(wanted, board.sec.clock)
    print(
        f"published, 1456 B: {wanted.mbps:g} Mbps; CPU {wanted.openswan_cpu_pct:g} % (OpenSwan), "
        f"{wanted.nanosec_cpu_pct:g} % (NanoSec, which saturates the SEC at {wanted.saturation_size} B)"
    )
    ns = board.ns_per_instruction
    wanted_us = calibration.wanted_us_per_frame(wanted)
    for number in range(1, rounds + 1):
        point = measure(folder / f"round-{number}", prices, ns)
        assert point.us_per_frame is not None
        print(
            f"round {number}: {float(ns):.4f} ns an instruction: {point.mbps:.1f} Mbps, limit {point.limit}; "
            f"CPU {point.cpu_pct:.1f} %, {point.us_per_frame:.3f} µs a frame, wanted {wanted_us:.3f}",
            flush=True,
        )
        if abs(point.us_per_frame / wanted_us - 1) <= NEAR:
            break
        ns = calibration.scaled(ns, point.us_per_frame, wanted_us)
    return prices, ns


def main() -> None:
    """Fit the values, and print the keys of every profile of an emulated board."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=4, help="runs at most; 0: the SEC's prices alone")
    parser.add_argument("--keep", type=Path, help="keep the runs in this folder, which must not exist")
    options = parser.parse_args()
    board = load_profile(DEVICE).board
    assert board is not None
    with _folder(options.keep) as folder:
        prices, ns = fit(folder, board, options.rounds)
    print(f"\nsec: cycles: of every profile\n  descriptor: {prices.descriptor}\n  bus: {prices.bus}")
    print(f"  3des: {prices.cipher}\nns_per_instruction")
    for name in profile_names():
        other = load_profile(name).board
        if other is not None:
            same_cycles = calibration.at_clock(ns, board.core_clock, other.core_clock)
            print(f"  {name}: {ns if name == DEVICE else same_cycles}")


@contextlib.contextmanager
def _folder(kept: Path | None) -> Iterator[Path]:
    if kept is not None:
        kept.mkdir(parents=True)
        yield kept
        return
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


if __name__ == "__main__":
    main()
