# SPDX-License-Identifier: Apache-2.0
"""Prepares a run for its report: one view for HTML and Markdown, with texts worded and figures rounded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from espbench.reporting.findings import finding_proof
from espbench.reporting.findings.finding_answers import FindingAnswer, finding_answers
from espbench.reporting.findings.finding_view import FindingSection, is_unproven
from espbench.reporting.findings.finding_view import sections as finding_sections
from espbench.reporting.findings.finding_words import Names
from espbench.reporting.one_run import run_tables
from espbench.reporting.one_run.answer import Answer, answers
from espbench.reporting.one_run.overhead import overhead
from espbench.reporting.one_run.subject import subject
from espbench.reporting.one_run.trial_cases import TrialCase, arms_at_loads, trial_cases
from espbench.reporting.parts import final_trials
from espbench.reporting.parts.chart_parts import MARKS_IN_WORDS, size_name
from espbench.reporting.parts.figures import Group, colours, groups_of, theory_is_off_scale
from espbench.reporting.parts.labels import SHORT, VIRTUAL
from espbench.reporting.parts.notes import Flag, Note, Notes
from espbench.reporting.parts.security_context import ContextBlock, blocks
from espbench.reporting.parts.statements import as_above, condensed, not_in_words, reason_key, why
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.trial_digest import TrialDigest
from espbench.reporting.parts.wording import (
    NONE,
    STATUSES,
    at_least,
    count,
    goal_name,
    number,
    plural,
    ratio_at_most,
    seconds,
)
from espbench.results.run_directory import slug
from espbench.terms import PAIRED, WITH_FIGURE, Finding, Manifest, Outcome, Status, line_rate_fps


@dataclass(frozen=True)
class ResultRow:
    """One row of a table: an outcome in words and rounded figures."""

    suite: str
    size: str
    theoretical: str
    goal: str
    status: Status
    fps: str  # `≥ 12,345` if it is a lower bound
    void: str  # number of final trials at that load that were void; empty if there were none
    loss_at_most: str  # bound of the loss ratio by the final trials at that load; empty if they give none
    mbps: str
    line_rate: str
    final_trial: str
    trials: str
    home_cpu: str
    home_us: str
    office_cpu: str
    office_us: str
    home_instructions: str  # per frame, in virtual time
    office_instructions: str
    p50: str
    p99: str
    encryption: str
    rfc2544: str
    flags: list[Flag]
    words: str
    reasons: list[str]
    telling: str  # the result in words, if some goal of this case is not OK or has reasons; else empty
    why: Hashable  # equal for rows of a case that give the same reason; None without a reason
    as_above: str  # replaces `telling` if the row before gives the same reason
    case: str
    repeat: int


@dataclass(frozen=True)
class Section:
    """One group of outcomes: its charts and its table."""

    anchor: str
    title: str
    labels: list[str]  # restrictions, such as VIRTUAL; shown wherever the figures are
    caption: str
    alt: str
    group: Group
    has_figure: bool
    rows: list[ResultRow]
    overhead: Table
    directions: Table
    repeats: bool
    latency: bool
    office: bool
    instructions: bool  # True if the gateways' instructions are known (in virtual time)


@dataclass(frozen=True)
class Report:
    """Everything that the templates show, in their order."""

    manifest: Manifest
    subject: str
    names: Names  # of the tests
    several_tests: bool
    verdicts: list[tuple[Status, int]]
    compared: list[tuple[Status, int]]  # of the comparisons at fixed loads, which are not among the results
    violated: list[tuple[str, str]]  # (case, reason) of cases in which frames crossed without encryption
    bounds: int  # results that are lower bounds
    unfinished: int
    is_virtual: bool  # the gateways' clock counts instructions
    is_short: bool  # the plan's final trials were shorter than RFC 2544 24 wants
    is_shortened: bool  # trials of another test were shorter or fewer than its clause wants
    short: list[str]  # lengths, s, of the final trials that were shorter than RFC 2544 24 wants
    rfc2544_results: int
    rfc2544_of: int  # number of results of tests on which RFC 2544 has a clause
    unproven: int  # number of figures whose frames are not proven to have been encrypted
    deviations: list[tuple[str, int]]
    notes: list[Note]
    sections: list[Section]
    labels: list[str]
    answers: list[Answer]
    tests: list[FindingSection]  # of the tests other than throughput
    test_answers: list[FindingAnswer]
    proof: Table
    proof_of_tests: Table
    losses: Table
    invalid: Table
    contexts: list[ContextBlock]
    facts: list[tuple[str, Table]]
    calibration: Table
    trials: TrialDigest
    trial_cases: list[TrialCase]
    result_count: int


def view(
    manifest: Manifest,
    outcomes: Sequence[Outcome],
    trials: TrialDigest,
    findings: Sequence[Finding] = (),
    compared: Sequence[Finding] = (),
) -> Report:
    """Return the view of a run.

    compared: findings of the comparison at fixed loads. Here they only show how it ended, and whether cleartext
    crossed.
    """
    findings = _without_leaked_figures(findings)
    results: list[Outcome | Finding] = [*outcomes, *findings]
    notes = Notes(manifest.warnings, results)
    groups = groups_of(outcomes)
    finished = {r.case for r in results}
    several, names = len({case.test for case in manifest.cases}) > 1, Names.of(manifest)
    cases = trial_cases(manifest, trials, compared, names)
    tests = finding_sections(findings, manifest, notes, suite_colours(manifest))
    return Report(
        manifest=manifest,
        subject=subject(manifest),
        names=names,
        several_tests=several,
        verdicts=_verdicts(results),
        compared=_verdicts(compared),
        violated=_violated([*results, *compared], names if several else None),
        bounds=sum(r.status == "LOWER_BOUND" for r in results),
        unfinished=sum(case.case not in finished for case in manifest.cases),
        is_virtual=manifest.is_virtual,
        is_short=_is_short(outcomes),
        is_shortened=any(f.is_short for f in findings),
        short=[seconds(length) for length in sorted(o.final_trial_s for o in outcomes if o.is_short)],
        unproven=sum(map(_is_unproven, outcomes)) + sum(map(is_unproven, findings)),
        rfc2544_results=sum(r.rfc2544 for r in results),
        rfc2544_of=sum(r.rfc2544 or bool(r.rfc2544_deviations) or r.status != "OK" for r in results),
        deviations=_deviations(results),
        notes=notes.all,
        sections=[
            _section(n, group, manifest, notes, trials, names if several else None)
            for n, group in enumerate(groups, start=1)
        ],
        labels=_labels(outcomes, manifest),
        answers=answers(groups, notes, names),
        tests=tests,
        test_answers=finding_answers(findings, manifest, notes, {t.test: t.anchor for t in tests}),
        proof=final_trials.proof(outcomes, trials),
        proof_of_tests=finding_proof.proof([*findings, *arms_at_loads(manifest, compared)], trials, names),
        losses=run_tables.losses(cases, trials),
        invalid=run_tables.invalid(trials),
        contexts=blocks(manifest),
        facts=_facts(manifest),
        calibration=run_tables.calibration(manifest),
        trials=trials,
        trial_cases=cases,
        result_count=len(results),
    )


def _without_leaked_figures(findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, without the figures of those in which frames crossed in clear."""
    return [
        f.model_copy(update={"quantities": [], "curve": []}) if f.status == "VIOLATED" else f
        for f in findings
    ]


def _verdicts(results: Sequence[Outcome | Finding]) -> list[tuple[Status, int]]:
    """Return the number of results by status: OK first, then the others as STATUSES orders them."""
    statuses = Counter(r.status for r in results)
    return [(status, statuses[status]) for status in (*STATUSES[-1:], *STATUSES[:-1]) if statuses[status]]


def _deviations(results: Sequence[Outcome | Finding]) -> list[tuple[str, int]]:
    """Return the number of results by deviation from RFC 2544, the most frequent first."""
    counted = Counter(d for r in results for d in r.rfc2544_deviations)
    return [(deviation.text, n) for deviation, n in counted.most_common()]


def _facts(manifest: Manifest) -> list[tuple[str, Table]]:
    """Return the tables of facts about the machine that measured, and of the versions of the tools."""
    return [
        ("Host", run_tables.facts(manifest.host)),
        ("Placement of CPUs and scheduling", run_tables.facts(manifest.placement)),
        ("Queues on the path (part of the DUT)", run_tables.facts(manifest.queues)),
        ("Tool versions", Table(["Tool", "Version"], [[*item] for item in manifest.tools.items()])),
    ]


def _violated(results: Sequence[Outcome | Finding], names: Names | None) -> list[tuple[str, str]]:
    """Return (name, reason) of each case that is VIOLATED, once for all its loss goals."""
    of_case: dict[str, tuple[str, str]] = {}
    for r in (r for r in results if r.status == "VIOLATED"):
        named = ["Compared at fixed loads"] if r.test == PAIRED else [names.title(r.test)] if names else []
        named += [r.dut, r.stack, r.suite, size_name(r.frame_size), r.direction, f"IPv{r.ip_version}"]
        name = " · ".join([*named, f"repeat {r.repeat}"] if r.repeat > 1 else named)
        why = [
            condensed(r.reasons) or r.words,
            *([r.words] if r.test == PAIRED else []),
        ]  # the words of a comparison name the arm
        of_case.setdefault(r.case, (name, "; ".join(dict.fromkeys(why))))
    return list(of_case.values())


def suite_colours(manifest: Manifest) -> dict[str, str]:
    """Return one colour for each suite, the same in every figure of a report."""
    return colours(list(dict.fromkeys(case.suite for case in manifest.cases)))


def _labels(outcomes: Sequence[Outcome], manifest: Manifest) -> list[str]:
    """Return the labels to print wherever these figures are shown: virtual, short, encryption not proven."""
    labels = (
        (VIRTUAL, manifest.is_virtual),
        (SHORT, _is_short(outcomes)),
        (final_trials.NOT_PROVEN, any(map(_is_unproven, outcomes))),
    )
    return [label for label, applies in labels if applies]


def _is_short(outcomes: Sequence[Outcome]) -> bool:
    """Return whether final trials are shorter than RFC 2544 24 wants, or were planned to be."""
    planned = any(d.clause == "24" for o in outcomes for d in o.rfc2544_deviations)
    return planned or any(o.is_short for o in outcomes)


def _is_unproven(o: Outcome) -> bool:
    """Return whether an outcome has a figure that may be of cleartext."""
    return o.throughput_fps is not None and o.encryption == "not proven"


def _section(
    position: int, group: Group, manifest: Manifest, notes: Notes, trials: TrialDigest, names: Names | None
) -> Section:
    telling = {o.case for o in group.outcomes if o.status != "OK" or o.reasons}
    rows = [_row(o, group, manifest, notes, telling=o.case in telling) for o in group.outcomes]
    title = f"{group.dut} · {group.stack} · {group.direction} · IPv{group.ip_version}"
    if names:
        title = f"{names.title(group.test)} · {title}"
    off_scale = theory_is_off_scale(group, manifest.line_rate_bps)
    missing = sum(o.status not in WITH_FIGURE for o in group.outcomes)
    bounds = sum(o.status == "LOWER_BOUND" for o in group.outcomes)
    caption = [
        "Throughput against frame size, "
        + ("both directions summed" if group.directions == 2 else "one direction")
        + "; solid and dashed lines are the loss goals, in the order of the legend."
        + (" Points are the median of the repeats." if any(o.repeat > 1 for o in group.outcomes) else ""),
        "One panel: frames per second"
        + (" with the theoretical line (RFC 2544 26.1)" if manifest.line_rate_bps else "")
        + ". The other: Mbps of frames "
        "without preamble and gap, CPU on the second axis.",
    ]
    if off_scale:
        caption.append(
            "The line rate lies far above the Mbps panel and is drawn in the frame-rate panel only."
        )
    if bounds:
        caption.append(
            f"Arrows up: {plural(bounds, 'lower bound')}. The loads above could not be judged, so the lines stop "
            "before them."
        )
    if missing:
        caption.append(
            f"{plural(missing, 'result')} without a figure: marks at the foot ({MARKS_IN_WORDS}); their height means "
            "nothing."
        )
    best = [
        f"{r.suite} {r.size}{' B' if r.size.isdigit() else ''} at goal {r.goal}: {r.mbps} Mbps"
        for r in rows
        if r.status in WITH_FIGURE
    ][:6]
    return Section(
        # The number keeps anchors distinct: two labels may be equal once slug() has removed some characters.
        anchor=f"figure-{position}-"
        + slug(f"{group.dut}-{group.stack}-{group.direction}-ipv{group.ip_version}").lower(),
        title=title,
        labels=_labels(group.outcomes, manifest),
        caption=" ".join(caption),
        alt=f"Line chart of throughput against frame size for {title}. "
        + "; ".join(best)
        + ". All figures are in the table.",
        group=group,
        has_figure=missing < len(group.outcomes),
        rows=_told_once(rows),
        overhead=overhead(group),
        directions=final_trials.directions(group.outcomes, trials),
        repeats=any(o.repeat > 1 for o in group.outcomes),
        latency=any(o.latency_us.p50 is not None for o in group.outcomes),
        office=any(o.cpu_office_pct is not None for o in group.outcomes),
        instructions=any(o.instructions_home_per_frame is not None for o in group.outcomes),
    )


def _besides(o: Outcome) -> list[str]:
    """Say how many final trials at the load were void, and which loss ratio the trials exclude."""
    texts = []
    if o.void_finals:
        were = "was" if o.void_finals == 1 else "were"
        texts.append(f"{plural(o.void_finals, 'final trial')} at this load {were} void")
    if o.loss_bound is not None and o.throughput_fps is not None:
        texts.append(f"loss ratio at most {ratio_at_most(o.loss_bound)} (95 %)")
    return texts


def _told_once(rows: list[ResultRow]) -> list[ResultRow]:
    """Return the rows; if two goals of a case failed for the same reasons, only the first has the reasons."""
    shown = []
    for before, row in zip([None, *rows], rows, strict=False):
        again = before is not None and before.case == row.case and before.why == row.why is not None
        shown.append(replace(row, telling=row.as_above) if again else row)
    return shown


def _row(o: Outcome, group: Group, manifest: Manifest, notes: Notes, *, telling: bool) -> ResultRow:
    theoretical = (
        group.directions * line_rate_fps(o.frame_size, manifest.line_rate_bps)
        if isinstance(o.frame_size, int) and manifest.line_rate_bps
        else None
    )
    bound = o.status == "LOWER_BOUND"
    beside = _besides(o) if bound else []
    return ResultRow(
        suite=o.suite,
        size=str(o.frame_size),
        theoretical=count(theoretical),
        goal=goal_name(o.loss_goal),
        status=o.status,
        fps=at_least(count(o.throughput_fps), is_bound=bound),
        void=f"{o.void_finals} void" if o.void_finals else "",
        loss_at_most="" if o.loss_bound is None else ratio_at_most(o.loss_bound),
        mbps=at_least(number(o.throughput_mbps), is_bound=bound),
        line_rate=at_least(number(o.line_rate_pct, 3), is_bound=bound),
        final_trial=seconds(o.final_trial_s) if o.final_trial is not None else NONE,
        trials=count(o.trials),
        home_cpu=number(o.cpu_home_pct, 3),
        home_us=number(o.cpu_home_us_per_frame, 3),
        office_cpu=number(o.cpu_office_pct, 3),
        office_us=number(o.cpu_office_us_per_frame, 3),
        home_instructions=count(o.instructions_home_per_frame),
        office_instructions=count(o.instructions_office_per_frame),
        p50=number(o.latency_us.p50, 3),
        p99=number(o.latency_us.p99, 3),
        encryption=final_trials.encryption_of([o]),
        rfc2544=NONE if o.final_trial is None else "yes" if o.rfc2544 else "short" if o.is_short else "no",
        flags=notes.flags(o),
        words="; ".join([o.words, *_besides(o)]),
        reasons=[reason.text for reason in not_in_words(o)],
        telling="; ".join([why(o), *beside]) if telling else "",
        why=(reason_key(o), *beside) if telling and reason_key(o) is not None else None,
        as_above=as_above(o) if reason_key(o) is not None else "",
        case=o.case,
        repeat=o.repeat,
    )
