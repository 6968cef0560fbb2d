# SPDX-License-Identifier: Apache-2.0
"""A comparison on real gateways: a difference that is there is shown, one that is not is not."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from support.plans import PINNED, pair_plan, write_plan
from support.runs import espbench
from support.session.unsettled import require_settled

pytestmark = [pytest.mark.uml, pytest.mark.slow]

SEARCH = {
    "minimum": "1000fps", "maximum": "60000fps", "final_trial": "400ms", "resolution": "15%", "residue": "100ms",
}  # fmt: skip


def plan(name: str, stacks: list[Any], **changes: Any) -> dict[str, Any]:
    few = {"stacks": stacks, "suites": ["aes128gcm16"], "frame_sizes": [512], "repeat": 3}
    return pair_plan("uml", throughput=SEARCH, **{"name": name, **few, **PINNED, **changes})


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run directory of two stacks side by side."""
    folder = tmp_path_factory.mktemp("compared")
    stacks = ["strongswan", "strongswan-libipsec"]
    at = {"loads": ["50%"], "pairs": 6, "rounds": 3, "trial": "200ms"}
    compare = {"by": "stack", "reference": "strongswan", "at": at}
    file = write_plan(folder, plan("stacks", stacks, compare=compare))
    done = espbench("run", file, "--out", folder, timeout=3600)
    assert done.returncode in (0, 3), done.stderr
    run = Path(done.stdout.strip().splitlines()[-1]).parent
    with (run / "results.csv").open() as table:
        require_settled(list(csv.DictReader(table)), bounds=False)
    return run


@pytest.fixture(scope="module")
def verdicts(compared: Path) -> dict[str, Any]:
    """Return what `espbench compare` says of it."""
    done = espbench("compare", compared, "--out", compared.parent)
    assert done.returncode == 0, done.stderr
    report = Path(done.stdout.strip().splitlines()[-1]).parent
    read: dict[str, Any] = json.loads((report / "comparison.json").read_text())
    return read


def test_user_space_esp_is_slower(verdicts: dict[str, Any]) -> None:
    """Forwarding depends on where ESP is done.

    That it does not depend on who put the keys into the kernel, boards/x86/test_x86_daemons.py shows exactly.
    """
    (panel,) = verdicts["panels"]
    (pair,) = panel["pairs"]
    assert pair["b"] == "strongswan-libipsec"
    point = pair["points"][0]
    assert point["word"] == "A faster"
    assert point["ratio"]["n"] == 3
    assert point["ratio"]["high"] < 0.7


def test_the_cases_were_interleaved_by_the_recorded_seed(compared: Path) -> None:
    """All stacks of one repeat before any of the next; the manifest says by which seed they were shuffled."""
    manifest = json.loads((compared / "manifest.json").read_text())
    assert manifest["compare"]["seed"] == 2544
    repeat_of = {case["case"]: case["repeat"] for case in manifest["cases"]}
    trials = [json.loads(line)["case"] for line in (compared / "trials.jsonl").read_text().splitlines()]
    trials = [case for case in trials if case in repeat_of]  # not those at fixed loads
    repeats = [repeat_of[case] for case in trials]
    assert repeats == sorted(repeats)
    orders = [list(dict.fromkeys(c[5:-3] for c in trials if repeat_of[c] == repeat)) for repeat in (1, 2, 3)]
    assert len({tuple(order) for order in orders}) > 1


def test_at_the_same_loads_the_arms_take_turns(compared: Path, verdicts: dict[str, Any]) -> None:
    """After the searches, pairs of trials; every one is on disk, and what they bear is in the report."""
    (verdict,) = verdicts["fixed_loads"]
    assert verdict["b"] == "strongswan-libipsec"
    assert verdict["cpu_word"] in ("B costs more", "no verdict")
    trials = [json.loads(line) for line in (compared / "trials.jsonl").read_text().splitlines()]
    placed = [t["measured"]["compared"] for t in trials if "compared" in t["measured"]]
    assert {(p["arm"], p["round"]) for p in placed} == {(arm, r) for arm in "ab" for r in (1, 2, 3)}
    assert "At the same loads" in (compared / "report.html").read_text()


def test_the_security_context_names_the_daemon_as_it_called_itself(compared: Path) -> None:
    """Read back from the running gateways, and in the report."""
    contexts = json.loads((compared / "manifest.json").read_text())["contexts"]
    context = contexts["strongswan-aes128gcm16-ipv4"]
    assert context["stack_version"]["home"].startswith("strongSwan 5.")
    assert context["kernel"]["home"] == context["kernel"]["office"] != ""
    assert "rfc4106(gcm(aes)), 160 bit key" in str(context["office"]["security_associations"])
    assert context["stack_version"]["home"] in (compared / "report.html").read_text()


def test_the_run_directory_holds_no_secret(compared: Path) -> None:
    """It can be published: PSKs have 64 hexadecimal digits, AES-128-GCM keys 40, and nothing else here has."""
    files = [file for file in compared.rglob("*") if file.is_file()]
    assert {"manifest.json", "home.log", "report.html"} <= {file.name for file in files}
    commit = json.loads((compared / "manifest.json").read_text())["code"].get("commit") or "no commit"
    for file in files:
        # The commit of espbench and the digest of the kernel are public.
        text = re.sub(r"\bsha256 [0-9a-f]{64}\b", "", file.read_text(errors="replace")).replace(commit, "")
        assert not re.search(r"\b([0-9a-fA-F]{40}|[0-9a-fA-F]{64})\b", text), file
        assert "PRIVATE KEY" not in text, file
