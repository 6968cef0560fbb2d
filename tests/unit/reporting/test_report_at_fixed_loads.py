# SPDX-License-Identifier: Apache-2.0
"""A run's report counts and lists the trials of its comparisons at fixed loads, and names the case of each trial."""

from __future__ import annotations

import dataclasses
import html
import re
from pathlib import Path

import pytest

from espbench.comparison.sorting.model import FixedLoad, FixedLoadVerdict
from espbench.reporting.compared.comparison_documents import write
from espbench.reporting.one_run.subject import subject
from espbench.reporting.one_run.view import Report, view
from espbench.reporting.parts.trial_digest import digest
from espbench.reporting.report import write_report
from espbench.results import RunDirectory
from espbench.terms import PAIRED, Finding, Reason
from support.synthetic import comparison as synthetic_comparison
from support.synthetic import run as synthetic_run

REPORTS = Path(__file__).parents[3] / "reports"
SHAPE = synthetic_run.Shape(
    stacks=("xfrm",), suites=("aes128-sha1", "aes128gcm16"), sizes=(64,), goals=(0.0,)
)


def compared(directory: Path, *, finished: bool = True) -> RunDirectory:
    """A run by suite whose second arm was compared with the first: a VALID trial that lost, and an INVALID one."""
    run = synthetic_run.build(directory, SHAPE)
    run.save_manifest(run.manifest.model_copy(update={"compare": {"by": "suite", "seed": 7}}))
    second = run.manifest.cases[1]
    (trial, *_) = (t for t in run.trials() if t.case == second.case and t.lost)
    lost = {"sequence": 0, "phase": "measure", "loss_at": {"office: ring": 1_234_567}}
    run.append(trial.model_copy(update={**lost, "case": f"{second.case}-at-a"}))
    why = [Reason.of_text("host stall: made up")]
    void = {"sequence": 0, "phase": "measure", "validity": "INVALID", "reasons": why}
    run.append(trial.model_copy(update={**void, "case": f"{second.case}-at-b"}))
    identity = second.model_dump(exclude={"stack_kind", "options", "tunnels", "case", "test"})
    finding = Finding(
        **identity, case=f"{second.case}-at", test=PAIRED, status="INVALID", load_fps=None, quantities=[],
        trials=2, rfc2544=False, encryption="not proven", words="Not compared: made up.", reasons=why,
    )  # fmt: skip
    run.save_results([*run.outcomes(), *([finding] if finished else [])])
    return RunDirectory.open(run.path)


def with_arms(run: RunDirectory) -> RunDirectory:
    """The run whose finding names its arms, but has no pair of trials."""
    paired = {"a": "aes128-sha1", "b": "aes128gcm16", "loads": [0.5], "step": 0.04, "rungs": 7, "rows": [],
              "bounds_fps": {"a": 1.0, "b": 1.0}, "void": 2, "rounds": 3, "together": True, "trial_s": 0.5}  # fmt: skip
    results = [
        r.model_copy(update={"paired": paired}) if isinstance(r, Finding) else r for r in run.results()
    ]
    run.save_results(results)
    return RunDirectory.open(run.path)


def viewed(run: RunDirectory) -> Report:
    trials, outcomes = list(run.trials()), run.outcomes()
    findings = [f for f in run.findings() if f.test == PAIRED]
    return view(run.manifest, outcomes, digest(trials, len(trials)), [], findings)


@pytest.mark.parametrize("finished", [True, False])
def test_trials_at_fixed_loads_are_listed_and_their_losses_have_places(
    tmp_path: Path, finished: bool
) -> None:
    """Both documents, with the arm of each: the lists add up to the totals, also before a finding is there."""
    run = with_arms(compared(tmp_path, finished=finished))
    report = viewed(run)
    (row,) = (r for r in report.losses.rows if r[5] == "office: ring")
    assert row == ["Comparison at fixed loads", "synthetic", "xfrm", "one-way", "IPv4", "office: ring", "1,234,567",
                   "100.0"]  # fmt: skip
    listed = sum(report.trials.total_of_case[case.case] for case in report.trial_cases)
    assert listed == report.trials.total
    write_report(run)
    page = html.unescape((run.path / "report.html").read_text(encoding="utf-8"))
    known = "aes128-sha1" if finished else "the reference"
    point = "64 B · one-way · IPv4"
    for title in (
        f"xfrm · {known} · {point} · beside aes128gcm16",
        f"xfrm · aes128gcm16 · {point} · beside {known}",
    ):
        assert f"<summary>Comparison at fixed loads · {title} " in page
    assert "host stall: made up" in page
    assert "1,234,567" in (run.path / "report.md").read_text(encoding="utf-8")


def test_the_trials_at_fixed_loads_prove_their_encryption(tmp_path: Path) -> None:
    """One arm has a VALID trial, whose counts are in the table; the other has none."""
    run = with_arms(compared(tmp_path))
    report = viewed(run)
    (trial,) = (t for t in run.trials() if t.case.endswith("-at-a"))
    first, second = report.proof_of_tests.rows
    assert first[:4] == ["Comparison at fixed loads", "xfrm · aes128-sha1", "IPv4, one-way", "1"]
    assert first[5:] == [
        f"{trial.tx_frames:,}", f"{trial.gateways['home'].encrypted_frames:,}",
        f"{trial.gateways['office'].decrypted_frames:,}", f"{trial.rx_frames:,}", "encryption not proven",
    ]  # fmt: skip
    assert [second[1], second[-1]] == ["xfrm · aes128gcm16", "no VALID trial with traffic"]
    proven = [f.model_copy(update={"encryption": "proven"}) for f in run.findings()]
    trials = list(run.trials())
    report = view(run.manifest, run.outcomes(), digest(trials, len(trials)), [], proven)
    assert report.proof_of_tests.rows[0][-1] == f"proven: {trial.lost:,} missing"


def test_a_comparison_at_fixed_loads_that_failed_is_counted_in_the_header(tmp_path: Path) -> None:
    """Such a run ends with exit code 3, so its header must not say that all is OK."""
    run = compared(tmp_path)
    report = viewed(run)
    assert (report.verdicts, report.compared) == ([("OK", 2)], [("INVALID", 1)])
    assert report.result_count == 2, "a comparison is no result of a case"
    write_report(run)
    assert (
        '<span class="INVALID"><b>1</b>INVALID at fixed loads</span>'
        in (run.path / "report.html").read_text()
    )
    assert "; comparisons at fixed loads: **1 INVALID**; " in (run.path / "report.md").read_text()


def test_trials_of_an_unknown_case_are_listed_by_its_name(tmp_path: Path) -> None:
    run = synthetic_run.build(tmp_path, SHAPE)
    trial = next(run.trials())
    run.append(trial.model_copy(update={"case": "elsewhere", "sequence": 0}))
    assert viewed(RunDirectory.open(run.path)).trial_cases[-1].title == "elsewhere"


def test_cases_of_two_duts_and_of_mixes_have_titles_of_their_own(tmp_path: Path) -> None:
    """A mix is not a number of bytes."""
    run = synthetic_run.build(
        tmp_path, synthetic_run.Shape(stacks=("xfrm",), suites=("aes128-sha1",), sizes=(64, "imix"))
    )
    first, mix = run.manifest.cases
    manifest = run.manifest.model_copy(update={"cases": [first, mix.model_copy(update={"dut": "other"})]})
    report = view(manifest, [], digest([], 0))
    assert [case.title for case in report.trial_cases] == [
        "synthetic · xfrm · aes128-sha1 · 64 B · one-way · IPv4",
        "other · xfrm · aes128-sha1 · imix · one-way · IPv4",
    ]
    assert "at 2 frame sizes (64 B, imix), one-way" in subject(manifest)
    write_report(run)
    assert "imix B" not in (run.path / "report.html").read_text()


def judged(suite: str, loss_goal: float) -> FixedLoadVerdict:
    load = FixedLoad(0.5, 1e4, None, 50.0, 51.0, 0.0, 0.0, 12)
    return FixedLoadVerdict(
        {"suite": suite, "IP version": "IPv4"}, 64, "strongswan", "strongswan-libipsec", None, "no verdict", None,
        "no verdict", [load], 12, 0, 24, 6, True, f"twelve pairs of {suite}", loss_goal,
    )  # fmt: skip


def test_every_row_and_reason_at_fixed_loads_names_its_conditions(tmp_path: Path) -> None:
    """Two suites at one size are told apart in the tables and in the list; each row has its loss goal."""
    verdicts = [judged("aes128gcm16", 0.0), judged("3des-sha1", 1e-5)]
    write(synthetic_comparison.comparison(fixed_loads=verdicts), tmp_path)
    for name in ("comparison.html", "comparison.md"):
        text = html.unescape((tmp_path / name).read_text(encoding="utf-8"))
        for suite, goal in (("aes128gcm16", "0 %"), ("3des-sha1", "0.001 %")):
            conditions = f"{suite}, IPv4, loss goal {goal}"
            assert text.count(conditions) == 3, "the verdict, its load, and what it rests on"
            assert f"64 B, strongswan-libipsec / strongswan, {conditions}: twelve pairs of {suite}" in text


@pytest.mark.parametrize(
    ("speeds_pct", "shown"),
    [((55.4, 98.0), "slow CPU, 55–98 %"), ((93.0, 98.4), "93–98 %"), ((96.0, 96.2), "96 %"), (None, "–")],
)
def test_slow_cpus_are_named_beside_the_figures_of_each_arm(
    tmp_path: Path, speeds_pct: tuple[float, float] | None, shown: str
) -> None:
    """A neighbour that slows both arms alike leaves B / A as it is, but not the CPU per frame of each arm."""
    verdict = judged("aes128gcm16", 0.0)
    load = dataclasses.replace(verdict.loads[0], speeds_pct=speeds_pct)
    write(synthetic_comparison.comparison(fixed_loads=[dataclasses.replace(verdict, loads=[load])]), tmp_path)
    document = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    (row,) = (line for line in document.splitlines() if line.startswith("| 64 |") and "| 50 % |" in line)
    assert row.split("|")[-2].strip() == shown


@pytest.mark.parametrize("of_searches", [True, False])
def test_unproven_encryption_is_said_at_the_figures_of_fixed_loads(tmp_path: Path, of_searches: bool) -> None:
    """It is said if the searches are unproven, and if only the trials at fixed loads are."""
    comparison = synthetic_comparison.odd() if of_searches else synthetic_comparison.comparison()
    verdict = dataclasses.replace(judged("aes128gcm16", 0.0), proven=of_searches)
    write(dataclasses.replace(comparison, fixed_loads=[verdict]), tmp_path)
    page = (tmp_path / "comparison.html").read_text(encoding="utf-8")
    (heading,) = re.findall(r"<h2[^>]*>At the same loads.*?</h2>", page)
    assert "encryption not proven" in heading
    markdown = (tmp_path / "comparison.md").read_text(encoding="utf-8")
    below = markdown[
        markdown.index("## At the same loads") : markdown.index("| Frame size | B / A | Conditions")
    ]
    assert "**Encryption not proven.**" in below


def test_an_unknown_line_rate_is_not_a_rate_of_zero(tmp_path: Path) -> None:
    """Boxes whose plan has no line rate; no legend names a line that is not drawn."""
    shape = dataclasses.replace(SHAPE, tests=("throughput", "flood"))
    for line_rate, shown in ((0.0, "not known"), (1e9, "1,000 Mbit/s")):
        run = synthetic_run.build(tmp_path / shown.split()[0], shape)
        run.save_manifest(run.manifest.model_copy(update={"line_rate_bps": line_rate}))
        write_report(run)
        page = (run.path / "report.html").read_text(encoding="utf-8")
        assert f"<dt>Line rate</dt><dd>{shown}</dd>" in page
        assert page.count("theoretical</span>") == (0 if line_rate == 0 else 2)
        assert f"· line rate {shown} ·" in (run.path / "report.md").read_text(encoding="utf-8")


def test_a_printed_page_unfolds_everything_but_the_list_of_trials() -> None:
    """The text points to tables that would be missing on paper."""
    script = (REPORTS / "charts.js").read_text(encoding="utf-8")
    printing = script[script.index('addEventListener("beforeprint"') :].split("});")[0]
    assert 'querySelectorAll("details")' in printing
    assert '!folded.closest("#trials")' in printing


def test_a_short_table_does_not_bind_the_page_around_it() -> None:
    """At most three rows: the first and the last row may be the same ones."""
    style = (REPORTS / "style.css").read_text(encoding="utf-8")
    kept = re.findall(r"tbody tr(:nth[^{]*) \{ break-(\w+): avoid", style)
    assert kept == [
        (":nth-child(-n + 3):not(:last-child)", "after"),
        (":nth-last-child(-n + 3):not(:first-child)", "before"),
    ]
