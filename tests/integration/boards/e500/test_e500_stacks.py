# SPDX-License-Identifier: Apache-2.0
"""The four ways to the SEC with packets in them: what each costs a gateway, against what the engine itself takes.

ESP without a cipher and plain forwarding are beside them, and cheaper.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest

from espbench.catalogue.board_crypto import Behaviour
from espbench.plan.duts.profiles import load_profile
from support.plans import pair_plan, write_plan
from support.runs import espbench, rows
from support.virtual.e500_machine import built_by_command

BEHAVIOURS: tuple[Behaviour, ...] = get_args(Behaviour)

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

# Enough for what the guests need of the host, also when somebody else has it for a while.
PATIENCE_S = 1800.0
BOARD = "mpc8548e"
SIZE = 1400
LOAD_FPS = 64000  # what the first of them forwards, and the second all but does
ENCRYPTED = SIZE - 18  # without Ethernet's header and FCS; the padding is left out


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run: one search for each behaviour, and for ESP without a cipher."""
    built_by_command()
    folder = tmp_path_factory.mktemp("stacks")
    throughput = {
        "minimum": "1000fps", "maximum": f"{LOAD_FPS}fps", "trial": "30ms", "final_trial": "40ms",
        "warm_up": "10ms", "resolution": "25%",
    }  # fmt: skip
    stacks = ["null", *({"stack": "xfrm", "crypto": way, "label": way} for way in BEHAVIOURS)]
    plan = pair_plan(BOARD, throughput=throughput, stacks=stacks, suites=["3des-sha1"], frame_sizes=[SIZE])
    command = ("run", write_plan(folder, plan), "--no-report", "--jobs", "1", "--out", folder / "runs")
    done = espbench(*command, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    (run_directory,) = (folder / "runs").iterdir()
    return run_directory


@pytest.fixture(scope="module")
def trials(directory: Path) -> dict[str, list[dict[str, Any]]]:
    """Return the trials with the SEC by behaviour; all are valid."""
    return of_stacks(directory, BEHAVIOURS)


def of_stacks(directory: Path, names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the trials by stack; all are valid."""
    read = [json.loads(line) for line in (directory / "trials.jsonl").read_text().splitlines()]
    by_stack: dict[str, list[dict[str, Any]]] = {
        name: [trial for trial in read if f"-{name}-" in trial["case"]] for name in names
    }
    assert all(of for of in by_stack.values())
    assert all(trial["validity"] == "VALID" for of in by_stack.values() for trial in of)
    return by_stack


def service_us() -> float:
    """Return the SEC's time for one packet in a single pass, without what crosses the bus."""
    board = load_profile(BOARD).board
    assert board is not None
    cycles = board.sec.cycles
    return float((cycles["descriptor"] + ENCRYPTED * cycles["3des"]) * 10**6 / board.sec.clock)


def home(trials: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what the encrypting gateway did under the load with which the search of each case begins."""
    assert trials[0]["intended_fps"] == LOAD_FPS
    return dict(trials[0]["gateways"]["home"])


def test_each_way_is_what_the_guests_say_it_is(directory: Path) -> None:
    contexts = json.loads((directory / "manifest.json").read_text())["contexts"]
    engines = {way: contexts[f"{way}-3des-sha1-ipv4"]["crypto engine"] for way in BEHAVIOURS}
    for side in ("home", "office"):
        assert {way: said[side]["behaviour"] for way, said in engines.items()} == {
            way: way for way in BEHAVIOURS
        }
        assert {way: said[side]["computed by"] for way, said in engines.items()} == {
            "async": "authenc-hmac-sha1-cbc-3des-talitos",
            "polling": "authenc-hmac-sha1-cbc-3des-talitos",
            "dual-pass": "authenc(hmac-sha1-talitos,cbc-3des-talitos)",
            "software": "authenc(hmac(sha1-generic),cbc(des3_ede-generic))",
        }


def test_every_frame_was_encrypted(trials: dict[str, list[dict[str, Any]]]) -> None:
    for of in trials.values():
        assert all(trial["proof"]["proven"] for trial in of)
        kept = [trial for trial in of if not trial["lost"]]
        assert kept
        assert all(trial["gateways"]["office"]["decrypted_frames"] == trial["rx_frames"] for trial in kept)


def test_waiting_costs_what_the_engine_takes(trials: dict[str, list[dict[str, Any]]]) -> None:
    """The engine's time is a polling CPU's too, less an interrupt; two passes are longer; software is dearest."""
    each = {way: home(of)["cpu_us_per_frame"] for way, of in trials.items()}
    assert each["async"] + service_us() / 2 < each["polling"] < each["async"] + 2 * service_us()
    assert each["dual-pass"] > each["polling"] + service_us() / 2
    assert each["software"] > 5 * each["dual-pass"]


def test_esp_without_a_cipher_costs_less_than_with_one(directory: Path) -> None:
    """It costs more than to forward without ESP."""
    of = of_stacks(directory, ("plain", "null", "async"))
    kept = {name: next(trial for trial in trials if not trial["lost"]) for name, trials in of.items()}
    plain, null, with_one = (trial["gateways"]["home"]["cpu_us_per_frame"] for trial in kept.values())
    assert plain < null < with_one


def test_whoever_waits_is_busy_and_forwards_less(
    directory: Path, trials: dict[str, list[dict[str, Any]]]
) -> None:
    """Nearly all of a trial with its residue, in which the queue runs empty; the others have time left."""
    assert home(trials["polling"])["cpu_pct"] > 85
    assert home(trials["dual-pass"])["cpu_pct"] > 85
    assert home(trials["async"])["cpu_pct"] < 75
    rate = {row["stack"]: float(row["throughput_fps"]) for row in rows(directory)}
    assert rate["async"] >= rate["polling"] > rate["dual-pass"] > rate["software"]
