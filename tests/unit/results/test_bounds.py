# SPDX-License-Identifier: Apache-2.0
"""A lower bound is marked as one wherever it is shown and used as no more; a violation has no figure anywhere."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from rich.console import Console

from espbench.claims.points import points
from espbench.cli.progress import TerminalObserver, remarks_in_short
from espbench.cli.run import is_incomplete
from espbench.comparison.sorting.operations import operations
from espbench.plan.keys.rfc2544_tests import BackToBack, Flood, Latency, SystemRecovery
from espbench.reporting.compared.comparison_figures import figures, styles
from espbench.reporting.compared.comparison_rows import unplotted
from espbench.reporting.one_run.view import Report, view
from espbench.reporting.parts.figures import Group, colours, groups_of, panel
from espbench.reporting.parts.trial_digest import digest
from espbench.reporting.parts.wording import ratio_at_most
from espbench.reporting.report import write_report
from espbench.results import RunDirectory, outcome_files
from espbench.runs.procedure_kinds import procedure_for
from espbench.sentences import Code
from espbench.terms import PAIRED, CaseIdentity, Finding, Outcome, Reason, Remark, Status
from support.simulated import comparisons as sim
from support.simulated.comparisons import by_stack, only, repeats
from support.simulated.procedures import answer, case_of, known, outcome
from support.simulated.procedures import run as run_procedure
from support.simulated.queue import QueueDut
from support.synthetic import powerquicc as synthetic_powerquicc
from support.synthetic import run as synthetic_run

SHAPE = synthetic_run.Shape(sizes=(256, 512, 1024), suites=("3des-sha1", "aes128-sha1"))
BOUND: dict[str, Any] = {"status": "LOWER_BOUND"}
LEAK: dict[str, Any] = {"status": "VIOLATED"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """A synthetic run with a bound (aes128-sha1, 1024 B, goal 0) and violations (3des-sha1, 256 B)."""
    built = synthetic_run.build(tmp_path_factory.mktemp("runs"), SHAPE)
    write_report(built)
    return built


AT_BOUND = (Code.AT_BOUND, Code.AT_BOUND_BUFFER)


def one(run: RunDirectory, status: Status) -> Outcome:
    return next(o for o in run.outcomes() if o.status == status)


def report_of(run: RunDirectory, outcomes: list[Outcome] | None = None) -> Report:
    return view(run.manifest, outcomes or run.outcomes(), digest([], 0))


@pytest.mark.parametrize("status", get_args(Status))
def test_only_a_run_in_which_all_is_known_ends_with_success(run: RunDirectory, status: Status) -> None:
    """Exit code 3 for whatever is INVALID, UNRESOLVABLE, a bound, or violated."""
    result = run.outcomes()[0].model_copy(update={"status": status})
    assert is_incomplete([result]) == (status not in ("OK", "BELOW_MINIMUM"))


def test_the_table_carries_the_bound_and_how_sure_it_is(run: RunDirectory) -> None:
    """Columns of the contract and two more have them; a row without a figure has nothing there."""
    rows = list(csv.DictReader(io.StringIO((run.path / "results.csv").read_text())))
    (bound,) = [row for row in rows if row["status"] == "LOWER_BOUND"]
    outcome = one(run, "LOWER_BOUND")
    assert outcome.loss_bound
    assert float(bound["throughput_fps"]) == pytest.approx(outcome.throughput_fps)
    assert bound["void_finals"] == "4"
    assert float(bound["loss_bound"]) == pytest.approx(outcome.loss_bound, rel=1e-3)
    violated = [row for row in rows if row["status"] == "VIOLATED"]
    assert len(violated) == 2
    assert {row[c] for row in violated for c in ("throughput_fps", "throughput_mbps", "loss_bound")} == {""}
    assert tuple(rows[0])[:18] == outcome_files.CONTRACT_COLUMNS


def test_results_of_before_are_read(run: RunDirectory) -> None:
    """They know of neither; nothing was void, and nothing is said of the loss."""
    document = json.loads((run.path / "results.json").read_text())
    for entry in document["outcomes"]:
        del entry["void_finals"], entry["loss_bound"]
    read = outcome_files.from_json_text(json.dumps(document))
    assert {(o.void_finals, o.loss_bound) for o in read if isinstance(o, Outcome)} == {(0, None)}


def test_the_terminal_says_at_least(run: RunDirectory) -> None:
    said = io.StringIO()
    observer = TerminalObserver(Console(file=said, width=300, soft_wrap=True), None)
    bound = one(run, "LOWER_BOUND")
    observer.case_done([bound, one(run, "VIOLATED")])
    first, second = said.getvalue().splitlines()
    assert f"LOWER_BOUND zero-loss: at least {bound.throughput_fps:,.0f} fps" in first
    assert "(4 void at this load)" in first
    assert bound.reasons[0].text in first
    assert "VIOLATED" in second
    assert "fps" not in second


def test_the_terminal_names_the_remarks_on_a_figure(run: RunDirectory) -> None:
    """Without them a reader takes each OK for the last word; how often each occurs stands at the end of a run."""
    slow = [Remark.of(Code.SLOW_CPU, pct=85.0), Remark.of(Code.SLOW_LOSSES, pct=20.0, fps=40_000.0)]
    general = Remark.of(Code.EARLIER_WARNING, text="Home and Office share CPU 1", flag="")
    ok = one(run, "OK")
    doubted = ok.model_copy(update={"warnings": [general, *slow, *slow]})
    said = io.StringIO()
    TerminalObserver(Console(file=said, width=300, soft_wrap=True), None).case_done([doubted])
    assert said.getvalue().rstrip().endswith("(slow CPU, slow CPU above)")
    others = [ok.model_copy(update={"warnings": w}) for w in ([], [general], slow[1:])]
    assert remarks_in_short([doubted, *others]).endswith(": slow CPU above (2 results), slow CPU (1 result)")
    assert remarks_in_short(others[:2]) == ""


def test_both_stand_at_the_top_of_the_report(run: RunDirectory) -> None:
    """The violation first, each with its reason, before any figure."""
    html = re.sub(r"<script.*?</script>", "", (run.path / "report.html").read_text(), flags=re.S)
    markdown = (run.path / "report.md").read_text().replace("\\_", "_")
    for text, table in ((html, '<div class="scroll answer"'), (markdown, "| Suite |")):
        order = [
            text.index(words) for words in ("Encryption violated: 1 case", "Lower bounds: 1 result", table)
        ]
        assert order == sorted(order)
        assert "412 frames left home, it encrypted 409: cleartext?" in text[: order[1]]
    assert '<div class="violated" role="alert">' in html


def test_a_leak_in_a_comparison_at_fixed_loads_stands_there_too(tmp_path: Path) -> None:
    """It is of no case of the plan, and no less a leak: in red, and a failure for whoever reads junit.xml."""
    quiet = synthetic_run.Shape(sizes=(512,), suites=("aes128-sha1",))
    run = synthetic_run.build(tmp_path, quiet)
    outcome = run.outcomes()[0]
    leak = Finding(
        **{key: getattr(outcome, key) for key in CaseIdentity.model_fields} | {"case": "0001-at", "test": PAIRED},
        status="VIOLATED", load_fps=1000.0, quantities=[], trials=3, rfc2544=False, encryption="not proven",
        words="Not compared at fixed loads: cleartext (0001-at-a, trial 2).",
        reasons=[Reason.of(Code.PROOF_PROBLEM, text="1 frames reached the tester in clear")],
    )  # fmt: skip
    run.save_results([*run.results(), leak])
    write_report(run, ["html", "md", "junit"])
    for name in ("report.html", "report.md"):
        text = (run.path / name).read_text().replace("\\_", "_")
        assert "Encryption violated: 1 case" in text
        assert "0001-at-a, trial 2" in text
    assert 'failures="1"' in (run.path / "junit.xml").read_text()


def test_a_bound_is_marked_wherever_its_figure_stands(run: RunDirectory) -> None:
    """Answer and table have the mark, with the reason, what was void, and what loss is excluded."""
    report, bound = report_of(run), one(run, "LOWER_BOUND")
    figure = f"≥\N{NO-BREAK SPACE}{bound.throughput_fps:,.0f}"
    cells = [cell for row in report.answers[0].rows for cell in row.cells if cell.status == "LOWER_BOUND"]
    assert [cell.fps for cell in cells] == [figure]
    assert bound.words in cells[0].words
    (row,) = [r for section in report.sections for r in section.rows if r.status == "LOWER_BOUND"]
    assert (row.fps, row.void) == (figure, "4 void")
    assert row.mbps.startswith("≥")
    assert bound.reasons[0].text in row.telling
    assert "4 final trials at this load were void; loss ratio at most" in row.telling
    for name in ("report.html", "report.md"):
        text = (run.path / name).read_text()
        assert figure in text
        assert "4 final trials at this load were void" in text


def test_no_row_of_a_case_that_leaked_says_proven(run: RunDirectory) -> None:
    """The trials before the leak were proven all the same."""
    report = report_of(run)
    rows = [r for section in report.sections for r in section.rows if r.status == "VIOLATED"]
    assert {(row.encryption, row.fps, row.mbps, row.home_cpu) for row in rows} == {
        ("encryption violated", *"–––")
    }
    answers = {row.name: row.encryption for row in report.answers[0].rows}
    assert (answers["xfrm · 3des-sha1"], answers["xfrm · aes128-sha1"]) == ("encryption violated", "proven")
    (verdict,) = [row[-1] for row in report.proof.rows if row[:2] == ["xfrm · 3des-sha1", "256"]]
    assert verdict.startswith("encryption violated: ")


def test_what_another_test_measured_before_a_leak_is_not_shown(run: RunDirectory) -> None:
    """A finding that is VIOLATED has its reason at the top, and no figure below."""
    shape = synthetic_run.Shape(stacks=("xfrm",), suites=("aes128-sha1",), sizes=(64,), tests=("latency",))
    (case,) = synthetic_run.cases_of(shape)
    (finding,) = synthetic_run.results_of(case, shape)[1]
    assert isinstance(finding, Finding)
    leaked = finding.model_copy(update={**LEAK, "reasons": [Reason.of_text("cleartext in trial 3")]})
    report = view(synthetic_run.manifest([case], "one"), [], digest([], 0), [leaked])
    ((name, why),) = report.violated
    assert "aes128-sha1" in name
    assert why == "cleartext in trial 3"
    (cell,) = report.test_answers[0].rows[0].cells
    assert (cell.text, cell.status) == ("", "VIOLATED")
    (row,) = report.tests[0].parts[0].table.rows
    assert set(row.figures[1:]) == {"–"}  # the load is none
    assert report.tests[0].parts[0].figure is None


def test_a_median_over_repeats_of_which_one_is_a_bound_is_a_bound_and_of_which_one_leaks_is_none() -> None:
    shape = synthetic_run.Shape(stacks=("plain",), sizes=(64,), goals=(0.0,), repeats=3)
    cases = synthetic_run.cases_of(shape)
    first, *others = [o for c in cases for o in synthetic_run.outcomes_of(c, shape)]
    manifest = synthetic_run.manifest(cases, "repeats")

    def cell(changed: dict[str, Any]) -> Any:
        outcomes = [first.model_copy(update=changed), *others]
        return view(manifest, outcomes, digest([], 0)).answers[0].rows[0].cells[0]

    assert cell(BOUND).fps.startswith("≥")
    assert (cell(LEAK).fps, cell(LEAK).status) == ("", "VIOLATED")


@pytest.mark.parametrize("unit", ["fps", "mbps"])
def test_a_chart_has_an_arrow_for_a_bound_and_no_line_through_it(run: RunDirectory, unit: Any) -> None:
    """A case that leaks is a red mark at the foot."""
    group: Group = next(g for g in groups_of(run.outcomes()) if g.stack == "xfrm")
    suites = colours(["none", "3des-sha1", "aes128-sha1"])
    drawn = panel(group, unit, 1e9, suites, legend=True)
    data = drawn["datasets"]
    (arrow,) = data["bounds"]
    assert (arrow["series"], arrow["size"], arrow["goal"]) == ("aes128-sha1", "1024", "0 %")
    here = {"series": "aes128-sha1", "size": "1024", "goal": "0 %"}.items()
    assert not any(here <= row.items() for row in data["points"])
    (at_bound,) = [row for row in data["lines"] if here <= row.items()]
    assert at_bound[unit] is None
    leaks = [row for row in data["marks"] if row["status"] == "VIOLATED"]
    assert {(row["series"], row["size"], row["mark"]) for row in leaks} == {("3des-sha1", "256", "‼")}
    (layer,) = [part for part in drawn["layer"][0]["layer"] if part["data"]["name"] == "marks"]
    assert "VIOLATED" in layer["encoding"]["color"]["condition"]["test"]


@settings(deadline=None)
@given(st.floats(1e-12, 1.0))
@example(9.20027886003573e-12)
def test_a_bound_of_the_loss_is_never_rounded_down(ratio: float) -> None:
    bound = float(ratio_at_most(ratio).removesuffix(" %")) / 100
    assert ratio * (1 - 1e-5) <= bound <= 1.11 * ratio + 1e-12


@pytest.mark.parametrize(
    ("a", "b", "bounded", "word"),
    [
        (30e3, 40e3, "b", "B faster"),
        (40e3, 30e3, "a", "A faster"),
        (40e3, 30e3, "b", "no verdict"),
        (30e3, 40e3, "a", "no verdict"),
        (30e3, 30e3, "a", "no verdict"),
        (30e3, 40e3, "ab", "no verdict"),
    ],
)
def test_a_bound_decides_for_its_own_arm_or_nothing(a: float, b: float, bounded: str, word: str) -> None:
    """However far the other is above it: the truth may lie there too."""
    arms = [repeats(n, 64, fps, **(BOUND if n in bounded else {})) for n, fps in (("a", a), ("b", b))]
    verdict = only(comparison := by_stack(*arms))
    assert (verdict.word, verdict.ratio) == (word, None)
    assert "lower bound" in verdict.why
    assert comparison.panels[0].curves["a"][64].at_least == ("a" in bounded)
    chart = figures(comparison.panels[0], ["a", "b"], styles(["a", "b"], []), legend=True)["fps"]
    on_lines = {row["series"]: row["fps"] is not None for row in chart["datasets"]["lines"]}
    assert on_lines == {name: name not in bounded for name in "ab"}
    assert {row["series"] for row in chart["datasets"]["marks"] if row["mark"] == "↑"} == set(bounded)


def test_one_bound_among_the_repeats_makes_the_arm_one() -> None:
    bounded, *others = repeats("b", 64, 30e3)
    arms = [repeats("a", 64, 40e3), [bounded.model_copy(update=BOUND), *others]]
    verdict = only(by_stack(*arms))
    assert verdict.word == "no verdict"
    assert "b's figure is in 1 of 5 repeats a lower bound" in verdict.why


def test_an_arm_that_leaks_once_has_no_figure_and_no_verdict() -> None:
    """Four repeats of five were encrypted, and faster: nobody is told so."""
    leak = sim.made("b", 64, 5, None, upper_fps=None, **LEAK)
    comparison = by_stack(repeats("a", 64, 30e3), [*repeats("b", 64, 40e3, n=4), leak])
    verdict = only(comparison)
    assert (verdict.word, verdict.ratio, verdict.cpu_ratio) == ("no verdict", None, None)
    assert "b let frames pass without encryption in 1 of 5 repeats" in verdict.why
    assert comparison.panels[0].curves["b"][64].fps is None
    assert comparison.words[0].startswith("VIOLATED: frames crossed without encryption with b")
    row = {"series": "b", "key": 64, "x": "64", "fps": None, "sign": ""}
    (mark,) = unplotted(comparison.panels[0], [row], "fps", (1e3, 1e5))
    assert mark["mark"] == "‼"


def test_no_claim_is_judged_by_a_bound_or_a_leak() -> None:
    shape = synthetic_powerquicc.Shape(duts=("mpc8548e",))
    manifest, outcomes = synthetic_powerquicc.outcomes(shape)
    for changed, reason in ((BOUND, "only a lower bound"), (LEAK, "VIOLATED")):
        held = points([(manifest, [o.model_copy(update=changed) for o in outcomes])])
        assert held.points == ()
        assert all(text.startswith(reason) for text in held.failed.values())
    once = [*outcomes, *(o.model_copy(update=LEAK) for o in outcomes)]
    assert points([(manifest, once)]).points == ()


@pytest.mark.parametrize(
    ("asked", "name", "warned"),
    [
        (Latency(), "latency", True),
        (Latency.model_validate({"load": "40000fps"}), "latency", False),
        (Flood(), "flood", True),
        (SystemRecovery(), "system_recovery", True),
        (BackToBack(searches=2), "back_to_back", True),
    ],
)
def test_a_test_at_a_throughput_that_is_a_bound_says_so(asked: Any, name: str, warned: bool) -> None:
    """It is made all the same; not where the plan names the load."""
    for status, labelled in (("LOWER_BOUND", warned), ("OK", False)):
        here = known(40_000.0)
        here.throughput[0.0] = outcome(40_000.0, status)
        procedure = procedure_for(case_of(asked, name), here, [])
        run_procedure(procedure, QueueDut(50_000))
        finding = answer(procedure)
        assert finding.status == "OK"
        assert any(remark.code in AT_BOUND for remark in finding.warnings) == labelled


def test_the_slower_of_two_operations_is_not_named_by_a_bound() -> None:
    """50 or more against 60: nobody knows which is slower; 40 against 50 or more: it is the 40."""
    shape = synthetic_run.Shape(
        stacks=("xfrm",),
        suites=("aes128-sha1",),
        sizes=(64,),
        goals=(0.0,),
        directions=("encryption", "decryption"),
    )
    first, second = [o for c in synthetic_run.cases_of(shape) for o in synthetic_run.outcomes_of(c, shape)]

    def slower(fps: float, bound: float) -> tuple[str, bool]:
        (operation,) = operations(
            [
                first.model_copy(update={"throughput_fps": fps, "upper_fps": 1.01 * fps}),
                second.model_copy(update={"throughput_fps": bound, **BOUND}),
            ]
        )
        assert operation.lower
        return operation.slower, operation.lower.at_limit

    assert slower(60e3, 50e3) == ("", True)
    assert slower(40e3, 50e3) == ("encryption", False)
    leaks = [first.model_copy(update={"throughput_fps": None, **LEAK}), second]
    assert operations(leaks)[0].encryption is None
