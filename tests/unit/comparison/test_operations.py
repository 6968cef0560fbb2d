# SPDX-License-Identifier: Apache-2.0
"""Encryption alone and decryption alone, and what is said of a pair beside them."""

from __future__ import annotations

import dataclasses
import html
import json
from pathlib import Path

import pytest

from espbench.cli.finished.compare import compare
from espbench.comparison.sorting.operations import Figure, Operations, operations
from espbench.errors import UsageError
from espbench.reporting.compared import operations_documents
from espbench.reporting.parts.labels import ABOUT_VIRTUAL
from espbench.reporting.report import write_report
from espbench.results import RunDirectory
from espbench.terms import Outcome
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(sizes=(64, 512), suites=("3des-sha1",), goals=(0.0,))


def figure(fps: float) -> Figure:
    return Figure(fps, fps / 1000, at_limit=False)


def run_of(folder: Path, name: str, topology: str, cpus: dict[str, list[int]] | None = None) -> RunDirectory:
    """A synthetic run of this topology: its gateways cost the same in whatever direction."""
    single = topology == "single-gateway"
    directions = ("encryption", "decryption") if single else ("one-way",)
    shape = synthetic_run.Shape(**{**vars(SHAPE), "directions": directions})
    run = synthetic_run.build(folder, shape, name)
    placement = {"cpus": cpus or {"home": [1], "office": [2]}}
    changes = {"topology": topology, "placement": placement, "calibration": []}
    with RunDirectory.open(run.path) as opened:
        opened.save_manifest(opened.manifest.model_copy(update=changes))
    return RunDirectory.open(run.path)


def test_the_bound_of_a_pair_is_its_slower_half_or_both_in_turns() -> None:
    """30 and 60 kfps: with a core each 30; on one core a frame takes both times, which makes 20."""
    one = Operations(("xfrm", "3des-sha1", 4, 64, 0.0), figure(60e3), figure(30e3))
    assert one.lower == figure(30e3)
    assert one.slower == "decryption"
    assert one.bound_fps(shares_core=False) == 30e3
    assert one.bound_fps(shares_core=True) == pytest.approx(20e3)
    half = Operations(one.key, figure(60e3), None)
    assert (half.lower, half.slower, half.bound_fps(shares_core=True)) == (None, "", None)


def test_neither_is_slower_where_the_search_cannot_tell() -> None:
    """They may be equal, or differ by less than the distance from what passed to what missed."""
    key = ("xfrm", "3des-sha1", 4, 64, 0.0)
    assert Operations(key, figure(30e3), figure(30e3)).slower == ""
    close = dataclasses.replace(figure(30e3), upper_fps=30.3e3)
    assert Operations(key, close, figure(30.2e3)).slower == ""
    assert Operations(key, figure(30.4e3), close).slower == "decryption"
    assert (
        operations([made("encryption", 1.0, 1.01), made("decryption", 2.0, 2.02)])[0].slower == "encryption"
    )
    assert operations([made("encryption", 1.0, 1.01), made("decryption", 1.005, 1.02)])[0].slower == ""


def made(direction: str, fps: float, upper_fps: float) -> Outcome:
    (case,) = synthetic_run.cases_of(
        synthetic_run.Shape(stacks=("xfrm",), suites=("3des-sha1",), sizes=(64,), goals=(0.0,))
    )
    (outcome,) = synthetic_run.outcomes_of(case, SHAPE)
    rates = {"throughput_fps": fps, "lower_fps": fps, "upper_fps": upper_fps}
    return outcome.model_copy(update={"direction": direction, **rates})


@pytest.mark.parametrize(
    ("limited", "shown"),
    [("", ""), ("pair", "≥ "), ("encryption", "≤ "), ("pair encryption", "–")],
)
def test_the_json_tells_bounds_as_the_page_does(limited: str, shown: str) -> None:
    """A program must not take a lower bound for a figure, or a ratio of two bounds for one."""
    of = {
        name: dataclasses.replace(figure(30e3), at_limit=name in limited) for name in ("pair", "encryption")
    }
    one = Operations(("xfrm", "3des-sha1", 4, 64, 0.0), of["encryption"], figure(40e3), of["pair"])
    plain = operations_documents._plain(one, shares_core=False)
    assert operations_documents._ratio(one, shares_core=False).rstrip("1.0") == shown
    assert plain["pair_of_bound"] == (None if shown == "–" else 1.0)
    assert (plain["pair_of_bound_at_least"], plain["pair_of_bound_at_most"]) == (shown == "≥ ", shown == "≤ ")
    assert (plain["pair_at_least"], plain["encryption_at_least"]) == (
        "pair" in limited,
        "encryption" in limited,
    )
    assert plain["lower_at_least"] == plain["in_turns_at_least"] == ("encryption" in limited)
    assert plain["decryption_at_least"] is False


def test_only_what_has_no_pair_beside_it_lacks_one(tmp_path: Path) -> None:
    """Points meet by stack, suite, IP version, size and goal."""
    single = run_of(tmp_path, "single", "single-gateway").outcomes()
    pair = run_of(tmp_path, "pair", "gateway-to-gateway").outcomes()
    lacking = operations(single, [o for o in pair if o.frame_size == 64])
    assert [(one.key[:2], one.key[3], one.pair is not None) for one in lacking] == [
        (("plain", "none"), 64, True), (("plain", "none"), 512, False),
        (("xfrm", "3des-sha1"), 64, True), (("xfrm", "3des-sha1"), 512, False),
    ]  # fmt: skip
    assert operations(pair) == []


def test_the_report_of_a_single_gateway_has_both_beside_each_other(tmp_path: Path) -> None:
    run = run_of(tmp_path, "single", "single-gateway")
    write_report(run)
    for name in ("report.md", "report.html"):
        text = (run.path / name).read_text()
        assert "Encryption alone and decryption alone" in text
    pair = run_of(tmp_path, "pair", "gateway-to-gateway")
    write_report(pair, {"md"})
    assert "Encryption alone" not in (pair.path / "report.md").read_text()


@pytest.mark.parametrize(
    ("cpus", "ratio"), [({"home": [1], "office": [2]}, 1.0), ({"home": [1], "office": [1]}, 2.0)]
)
def test_compare_puts_a_pair_beside_its_halves(
    tmp_path: Path, cpus: dict[str, list[int]], ratio: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """Made-up gateways that cost the same alone and as a pair: with a core each they are at their bound."""
    single = run_of(tmp_path, "single", "single-gateway")
    pair = run_of(tmp_path, "pair", "gateway-to-gateway", cpus)
    compare([single.path, pair.path], out=tmp_path / "out")
    page = Path(capsys.readouterr().out.strip().splitlines()[-1])
    document = json.loads((page.parent / "comparison.json").read_text())
    assert [point["pair_of_bound"] for point in document["points"]] == pytest.approx([ratio] * 4, rel=0.05)
    said = " ".join(document["words"])
    assert ("share a core" in said) == (cpus["home"] == cpus["office"])
    assert ("more than its halves allow" in said) == (ratio > 1.05)
    assert "ways to the wire differ" not in said
    for name in ("comparison.html", "comparison.md"):
        assert "A single gateway beside a pair" in (page.parent / name).read_text()


def in_virtual_time(run: RunDirectory) -> RunDirectory:
    """Make a run one in virtual time, whose gateways execute 9,000 and 8,000 instructions per frame."""
    counted = {"instructions_home_per_frame": 9000.0, "instructions_office_per_frame": 8000.0}
    conditions = {"profiles": {SHAPE.dut: {"board": {"ns_per_instruction": "0.5"}}}}
    with RunDirectory.open(run.path) as opened:
        opened.save_manifest(opened.manifest.model_copy(update={"conditions": conditions}))
        opened.save_results([o.model_copy(update=counted) for o in opened.outcomes()])
    return RunDirectory.open(run.path)


def test_in_virtual_time_a_pair_beside_its_halves_says_so_with_instructions_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = [
        in_virtual_time(run_of(tmp_path, "single", "single-gateway")),
        in_virtual_time(run_of(tmp_path, "pair", "gateway-to-gateway")),
    ]
    compare([run.path for run in runs], out=tmp_path / "out")
    said = capsys.readouterr().out
    assert ABOUT_VIRTUAL in said
    page = Path(said.strip().splitlines()[-1])
    for name in ("comparison.html", "comparison.md"):
        text = html.unescape((page.parent / name).read_text())
        assert ABOUT_VIRTUAL in text
        assert "Encryption, instructions/frame; frames/s (Mbps)" in text
        assert "9,000 / 8,000; " in text


@pytest.mark.parametrize("allowed", [False, True])
def test_a_pair_in_real_time_is_not_put_beside_halves_in_virtual_time(tmp_path: Path, allowed: bool) -> None:
    single = in_virtual_time(run_of(tmp_path, "single", "single-gateway"))
    pair = run_of(tmp_path, "pair", "gateway-to-gateway")
    with pytest.raises(UsageError, match="all in virtual time, or all in real time"):
        compare([single.path, pair.path], allow_different=allowed, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_unequal_runs_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Another line rate is no matter of the topology; nor is there a pair to compare two pairs by topology."""
    single = run_of(tmp_path, "single", "single-gateway")
    pair = run_of(tmp_path, "pair", "gateway-to-gateway")
    with RunDirectory.open(pair.path) as opened:
        opened.save_manifest(opened.manifest.model_copy(update={"line_rate_bps": 1e8}))
    with pytest.raises(UsageError, match="differ in more than the topology"):
        compare([single.path, pair.path], out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with RunDirectory.open(single.path) as opened:
        tools = opened.manifest.tools | {"generator": "native: af_packet"}
        opened.save_manifest(opened.manifest.model_copy(update={"tools": tools}))
    compare([single.path, pair.path], allow_different=True, out=tmp_path / "out")
    assert "ways to the wire differ (single-gateway: native: af_packet;" in capsys.readouterr().out
    with pytest.raises(UsageError, match="expected runs of single-gateway and of gateway-to-gateway"):
        compare([pair.path, pair.path], by="topology", out=tmp_path / "out")
