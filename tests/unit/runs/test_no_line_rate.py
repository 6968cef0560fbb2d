# SPDX-License-Identifier: Apache-2.0
"""A line whose rate nobody knows has no shares of it, has loads bounded otherwise, and fails nothing."""

from __future__ import annotations

import csv
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroute2.ethtool import ioctl

from espbench.claims.points import _fills_the_link
from espbench.errors import UsageError
from espbench.plan import resolve
from espbench.plan.keys.generator_choice import FASTEST_FPS
from espbench.plan.keys.model import Throughput
from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, FrameLoss
from espbench.plan.reading.reader import read_text
from espbench.plan.reading.units import Rate
from espbench.plan.resolved.conditions import conditions
from espbench.platforms import external
from espbench.procedures.limits import ASSUMED_BPS, Limits, limits
from espbench.procedures.procedure import Known
from espbench.reporting.report import write_report
from espbench.results import RunDirectory
from espbench.runs.beds import choose
from espbench.runs.procedure_kinds import procedure_for
from espbench.terms import Calibration, line_rate_fps
from support.plans import plan_text
from support.simulated.procedures import SIZES, answer, case_of, outcome, run
from support.simulated.queue import QueueDut
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

BOXES = """
{name: mine, description: d, platform: remote, i_own_this_network: true,
 ports: {west: {interface: a0}, east: {interface: a1}},
 boxes: {home: {host: 192.0.2.10, lan: eth1, wan: eth2}, office: {host: 192.0.2.20, lan: eth1, wan: eth2}}}
"""
BURST = BackToBack.model_validate({"searches": 1, "maximum": "50000fps"})
UNKNOWN = Known(Limits(500.0, 50_000.0, 0.0, None), {0.0: outcome(20_000.0, dut="box")}, SIZES)


@given(st.none() | st.floats(1, 1e7), st.none() | st.floats(1, 1e7), st.none() | st.floats(1, 1e7))
def test_the_loads_of_a_case_are_bounded(
    lowest: float | None, highest: float | None, ceiling: float | None
) -> None:
    """The plan's bounds count, else the generator's ceiling, else what a line of ASSUMED_BPS carries."""
    rates = {"minimum": lowest, "maximum": highest}
    asked = Throughput.model_validate({key: f"{fps:.3f}fps" for key, fps in rates.items() if fps})
    calibrated = (
        Calibration(frame_size=64, ip_version=4, offered_fps=ceiling, received_fps=ceiling)
        if ceiling
        else None
    )
    bounds = limits(case_of(asked, "throughput", "box"), 0.0, calibrated)
    assert 0 < bounds.minimum_fps <= bounds.maximum_fps < math.inf
    otherwise = 0.9 * ceiling if ceiling else line_rate_fps(64, ASSUMED_BPS)
    assert bounds.maximum_fps == (pytest.approx(highest, rel=1e-3) if highest else otherwise)
    assert bounds.line_rate_fps == 0
    assert not bounds.is_line_rate(bounds.maximum_fps)


def test_no_load_is_higher_than_the_generator_takes() -> None:
    """A port of 100 Gbit/s carries more small frames than the generator's own limit."""
    asked = Throughput.model_validate({"maximum": "100%"})
    case = case_of(asked, "throughput", "box")
    assert limits(case, 100e9, None).maximum_fps > FASTEST_FPS
    bounds = limits(case, 100e9, None, FASTEST_FPS)
    assert (bounds.maximum_fps, bounds.minimum_fps) == (FASTEST_FPS, FASTEST_FPS / 100)


def test_a_share_of_it_is_no_load() -> None:
    """The message says where the load is from and what to write."""
    with pytest.raises(UsageError, match=r"a load of 5%: expected a line rate .* add line_rate"):
        Rate(5.0, "%").to_fps(64, 0.0)


@pytest.mark.parametrize(
    ("name", "settings"), [("frame_loss", FrameLoss()), ("flood", Flood()), ("back_to_back", BURST)]
)
def test_the_other_tests_answer_and_do_not_claim_the_line_rate(name: str, settings: Any) -> None:
    """A load that the plan names is one; that it is the line's is not said."""
    procedure = procedure_for(case_of(settings, name, "box"), UNKNOWN, [])
    run(procedure, QueueDut(20_000))
    finding = answer(procedure, "box", "not proven")
    assert finding.status == "OK"
    assert not finding.rfc2544
    assert any("not the line rate" in text or "not from the line rate" in text or "not at the line rate" in text
               for text in map(str, finding.rfc2544_deviations))  # fmt: skip
    assert {row["intended_pct_of_line_rate"] for row in finding.curve} <= {None}
    if name == "back_to_back":
        assert "bursts at 50,000 frames/s, the line rate is not known" in [*map(str, finding.warnings)]


def test_bursts_need_it_or_a_rate_of_the_plans() -> None:
    """Back-to-back frames leave at the line rate: without it, or maximum, nothing is measured, and why is said."""
    procedure = procedure_for(case_of(BackToBack(), "back_to_back", "box"), UNKNOWN, [])
    assert procedure.next() is None
    finding = answer(procedure, "box", "not proven")
    assert finding.status == "INVALID"
    assert "write line_rate, or maximum" in "; ".join([finding.words, *map(str, finding.reasons)])


def test_no_figure_fills_a_link_of_unknown_rate() -> None:
    """Each figure would otherwise be the link's limit and no device's."""
    assert not _fills_the_link(1e6, ("box", "plain", "none", "one-way", 64, 0.0), 0.0)


def test_the_report_leaves_its_columns_empty(tmp_path: Path) -> None:
    """Page, Markdown and pictures of a run of every kind of test; no theoretical rate of 0 frames/s."""
    shape = synthetic_run.Shape(
        suites=("aes128gcm16",), sizes=(64, 512), directions=("one-way",), tests=synthetic_findings.TESTS
    )
    built = synthetic_run.build(tmp_path, shape)
    with RunDirectory.open(built.path) as opened:
        opened.save_manifest(opened.manifest.model_copy(update={"line_rate_bps": 0.0}))
        outcomes = [o.model_copy(update={"line_rate_pct": None}) for o in opened.outcomes()]
        curves = [
            f.model_copy(update={"curve": [{**p, "intended_pct_of_line_rate": None} for p in f.curve]})
            if f.test == "frame_loss" else f
            for f in opened.findings()
        ]  # fmt: skip
        opened.save_results([*outcomes, *curves])
    write_report(RunDirectory.open(built.path))
    with (built.path / "results.csv").open() as table:
        rows = list(csv.DictReader(table))
    assert {row["line_rate_pct"] for row in rows} == {""}
    text = (built.path / "report.md").read_text()
    row = next(line for line in text.splitlines() if line.startswith("| aes128gcm16 | 64 |"))
    theoretical = next(line for line in text.splitlines() if "Theoretical, frames/s" in line).split(" | ")
    column = next(n for n, name in enumerate(theoretical) if name.startswith("Theoretical"))
    assert row.split(" | ")[column : column + 2] == ["–", "–"]
    pictures = list((built.path / "figures").glob("*.svg"))
    assert any("the line rate is not known" in picture.read_text() for picture in pictures)


@pytest.mark.parametrize(
    ("mbps", "bps"), [(1000, 1e9), (0xFFFFFFFF, 0.0), (0xFFFF, 0.0), (0, 0.0), (None, 0.0)]
)
def test_a_port_that_does_not_tell_its_speed_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mbps: int | None, bps: float
) -> None:
    """The slower of both ports is the line's; one that is silent (None: it has no such setting) makes it unknown.

    This is so with topology external and with boxes over ssh, and neither is assumed to have any other rate.
    """
    said = {"a0": 10_000, "a1": mbps}

    class Device:
        def __init__(self, name: str) -> None:
            self.speed = said[name]

        def get_link_settings(self) -> Device:
            if self.speed is None:
                raise ioctl.NotSupportedError
            return self

        def close(self) -> None:
            pass

    monkeypatch.setattr(ioctl, "IoctlEthtool", Device)
    assert external.line_rate_bps((None, name) for name in said) == bps
    profile = tmp_path / "boxes.yaml"
    profile.write_text(BOXES)
    resolved = resolve(read_text(plan_text(dut=str(profile)), "plan.yaml", "plan"))
    (boxes,) = choose(resolved)
    assert resolved.line_rate is None
    assert boxes.platform.line_rate_bps == bps
    assert conditions(resolved, resolved.known_profiles or [])["line_rate"] == "as the interface reports"
    profile.write_text(BOXES.replace("mine,", "mine, line_rate: 100Mbps,"))
    (boxes,) = choose(resolve(read_text(plan_text(dut=str(profile)), "plan.yaml", "plan")))
    assert boxes.platform.line_rate_bps == 100e6
