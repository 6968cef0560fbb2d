# SPDX-License-Identifier: Apache-2.0
"""Documents of runs in virtual time: what they say at the top, the labels of figures, and which figure stands first."""

from __future__ import annotations

import html as html_module
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from espbench.cli.finished.compare import compare
from espbench.plan import cases, conditions, load_plan
from espbench.reporting.parts.labels import ABOUT_VIRTUAL, VIRTUAL
from espbench.reporting.report import write_report
from espbench.results import RunDirectory
from espbench.terms import Outcome
from support.synthetic import findings as synthetic_findings
from support.synthetic import run as synthetic_run

REPOSITORY = Path(__file__).parents[3]
VIRTUAL_PROFILES = {"profiles": {synthetic_run.DUT: {"machine": {"ns_per_instruction": "1"}}}}
SHAPE = synthetic_run.Shape(sizes=(64, 512), suites=("3des-sha1",), goals=(0.0,))
OF_TESTS = synthetic_run.Shape(sizes=(64,), suites=("3des-sha1",), tests=synthetic_findings.TESTS)


def run_of(
    folder: Path,
    shape: synthetic_run.Shape = SHAPE,
    conditions: Mapping[str, Any] = VIRTUAL_PROFILES,
    figures: Mapping[str, Any] | None = None,
) -> RunDirectory:
    """Make a run in virtual time, or with other conditions; figures: of each throughput that was found."""
    built = synthetic_run.build(folder, shape)
    with RunDirectory.open(built.path) as run:
        run.save_manifest(run.manifest.model_copy(update={"conditions": dict(conditions)}))
        run.save_results(
            [
                r.model_copy(update=dict(figures or {})) if isinstance(r, Outcome) and r.throughput_fps else r
                for r in run.results()
            ]
        )
    return RunDirectory.open(built.path)


def documents(run: RunDirectory, formats: Sequence[str] = ("html", "md")) -> dict[str, str]:
    """Write the documents of a run, and return their text."""
    write_report(run, formats)
    return {name: html_module.unescape((run.path / f"report.{name}").read_text()) for name in formats}


@pytest.mark.parametrize(
    ("name", "is_virtual"),
    [
        ("virtual-ike", True),
        ("virtual-links", True),
        ("powerquicc-driver", True),
        ("compare-stacks", False),
        ("external-example", False),
    ],
)
def test_a_manifest_knows_virtual_time_from_its_profiles(name: str, is_virtual: bool) -> None:
    """A plan needs no throughput for it, and no case."""
    plan = load_plan(REPOSITORY / "plans" / f"{name}.yaml")
    manifest = synthetic_run.manifest([case.entry() for case in cases(plan)], name)
    recorded = {"conditions": conditions(plan, plan.known_profiles or [])}
    assert manifest.model_copy(update=recorded).is_virtual == is_virtual


def test_the_sentence_says_what_such_a_clock_does_not_know() -> None:
    """Every document of a run in virtual time has it in full."""
    assert ABOUT_VIRTUAL == (
        "The gateways' clock counts the instructions that they execute; it knows no caches, no branch prediction and "
        "no width of SIMD. The measured figure is instructions per frame, exact to the last one. Frames per second "
        "follow from the time that the profile assumes for each instruction."
    )


@pytest.mark.parametrize("tests", [("throughput",), synthetic_findings.TESTS])
def test_a_run_in_virtual_time_says_so_before_any_figure(tmp_path: Path, tests: tuple[str, ...]) -> None:
    """Also one without a throughput, and one whose figures lack the instructions."""
    shape = synthetic_run.Shape(**{**vars(OF_TESTS), "tests": tests})
    for text in documents(run_of(tmp_path, shape)).values():
        assert text.count(ABOUT_VIRTUAL) == 1
        assert text.index("Virtual.") < text.index(ABOUT_VIRTUAL) < text.index("Loss goal")


def test_a_run_without_any_figure_in_virtual_time_says_so(tmp_path: Path) -> None:
    """All cases INVALID."""
    run = run_of(tmp_path, figures={"status": "INVALID", "throughput_fps": None, "throughput_mbps": None})
    for text in documents(run).values():
        assert ABOUT_VIRTUAL in text
        assert VIRTUAL in text


def test_a_run_in_real_time_says_nothing_of_it(tmp_path: Path) -> None:
    for text in documents(run_of(tmp_path, conditions={})).values():
        assert "virtual: " not in text.lower()
        assert ABOUT_VIRTUAL not in text


def test_a_comparison_in_virtual_time_says_so_with_instructions_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The terminal, the page, Markdown and each picture do."""
    shape = synthetic_run.Shape(**{**vars(SHAPE), "suites": ("3des-sha1", "aes128-sha1"), "repeats": 3})
    run = run_of(tmp_path, shape, figures=COUNTED)
    compare([run.path], by="suite", out=tmp_path / "out")
    said = capsys.readouterr().out
    assert said.count(ABOUT_VIRTUAL) == 1
    page = Path(said.strip().splitlines()[-1])
    texts = [html_module.unescape((page.parent / name).read_text()) for name in (page.name, "comparison.md")]
    for text in texts:
        assert text.count(ABOUT_VIRTUAL) == 1
        assert VIRTUAL[1:] in text
        assert "Instructions/frame (Home / Office), then frames/s at loss goal" in text
        assert text.index("Home / Office, instructions/frame") < text.index("Mbps")
        assert "16,168 / 14,772" in text
    pictures = list((page.parent / "figures").glob("*.svg"))
    assert pictures
    assert all(VIRTUAL in picture.read_text() for picture in pictures)


def test_a_comparison_in_real_time_says_nothing_of_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape = synthetic_run.Shape(**{**vars(SHAPE), "suites": ("3des-sha1", "aes128-sha1"), "repeats": 3})
    compare([run_of(tmp_path, shape, conditions={}).path], by="suite", out=tmp_path / "out")
    said = capsys.readouterr().out
    text = (Path(said.strip().splitlines()[-1]).parent / "comparison.md").read_text()
    for shown in (said, text):
        assert "irtual" not in shown
        assert "nstructions" not in shown


COUNTED = {"instructions_home_per_frame": 16167.6, "instructions_office_per_frame": 14772.0}


def test_at_a_glance_instructions_per_frame_stand_before_frames_and_mbps(tmp_path: Path) -> None:
    """They are what was measured; a rate follows from them."""
    figures = {"throughput_fps": 62_001.0, "throughput_mbps": 31.74, **COUNTED}
    texts = documents(run_of(tmp_path, figures=figures))
    glance = next(part for part in texts["md"].split("\n\n") if part.startswith("| Suite | Encryption |"))
    assert "instructions/frame (Home / Office), then frames/s (Mbps)" in texts["md"]
    assert "| **16,168 / 14,772**; 62,001 (31.74) |" in glance
    assert "instructions/frame (Home / Office), frames/s and Mbps below" in texts["html"]
    assert "<b>16,168 / 14,772</b><small>62,001 frames/s</small><small>31.74 Mbps</small>" in texts["html"]


def test_a_figure_without_instructions_stands_alone(tmp_path: Path) -> None:
    """A bound whose final trial was INVALID has no instructions; a single gateway has those of Home."""
    figures = {"throughput_fps": 62_001.0, "throughput_mbps": 31.74}
    assert "| **62,001** (31.74) |" in documents(run_of(tmp_path / "none", figures=figures), ("md",))["md"]
    alone = {**figures, "instructions_home_per_frame": 16_168.0}
    assert (
        "| **16,168**; 62,001 (31.74) |" in documents(run_of(tmp_path / "one", figures=alone), ("md",))["md"]
    )


def test_findings_in_virtual_time_have_the_label_at_each_heading_and_picture(tmp_path: Path) -> None:
    """A picture may travel without the page."""
    shape = synthetic_run.Shape(**{**vars(OF_TESTS), "tests": ("latency", "frame_loss")})
    run = run_of(tmp_path, shape)
    text = documents(run)["md"]
    answers = [line for line in text.splitlines() if line.startswith("**Tests of ")]
    assert answers
    assert all(VIRTUAL in line for line in answers)
    pictures = list((run.path / "figures").glob("*.svg"))
    assert pictures
    assert all(VIRTUAL in picture.read_text() for picture in pictures)
