# SPDX-License-Identifier: Apache-2.0
"""Tests of what else differs between the arms or the runs of a comparison, and how each is told or refused."""

from __future__ import annotations

import random
from typing import Any

import pytest

from espbench.comparison import of_run
from espbench.comparison.build import of
from espbench.comparison.sorting.comparability import differences
from espbench.comparison.sorting.model import Axis
from espbench.comparison.sorting.samples import Run
from espbench.errors import UsageError
from espbench.gate import real_time
from espbench.gate.limits import DEFAULTS
from espbench.results import RunDirectory
from espbench.terms import Calibration, Outcome
from support.simulated import comparisons as sim
from support.simulated import pairs

SPREAD = (0.99, 1.0, 1.01)


def repeats(stack: str, fps: float, **changed: Any) -> list[Outcome]:
    """Three repeats at 64 B."""
    suite = changed.get("suite", "aes128gcm16")
    return [
        sim.made(
            stack,
            64,
            r + 1,
            fps * SPREAD[r],
            case=f"{stack}-{suite}-{changed.get('dut', '')}-r{r + 1}",
            **changed,
        )
        for r in range(3)
    ]


def run(name: str, outcomes: list[Outcome], by: str = "", **manifest: Any) -> Run:
    """A run, with what its manifest is to hold."""
    made = sim.run_of(outcomes, {"by": by, "seed": 5} if by else None, name)
    return Run(name, made.manifest.model_copy(update=manifest), outcomes)


def kinds(of_run: Run, kind: dict[str, str], options: dict[str, dict[str, Any]]) -> Run:
    """The run with its stacks' kinds and options recorded."""
    cases = [
        e.model_copy(update={"stack_kind": kind[e.stack], "options": options.get(e.stack, {})})
        for e in of_run.manifest.cases
    ]
    return Run(of_run.name, of_run.manifest.model_copy(update={"cases": cases}), of_run.outcomes)


def said(of_run: Run, kernel: str = "", version: dict[str, str] | None = None) -> Run:
    """The run with what its gateways said; version: case → what the daemon called itself."""
    contexts: dict[str, dict[str, Any]] = {
        e.case: {"kernel": {"home": kernel}, "stack_version": {"home": (version or {}).get(e.case, "")}}
        for e in of_run.manifest.cases
    }
    update = {"contexts": contexts, "context_of_case": {case: case for case in contexts}}
    return Run(of_run.name, of_run.manifest.model_copy(update=update), of_run.outcomes)


def refused(runs: list[Run], by: Axis) -> str:
    """The message for runs that may not be compared."""
    with pytest.raises(UsageError) as error:
        of(runs, by=by)
    return str(error.value)


def test_two_interleaved_runs_of_different_stacks_are_not_paired_and_do_not_say_so() -> None:
    comparison = of(
        [run("one", repeats("a", 3e4), "stack"), run("two", repeats("b", 4e4), "stack")], by="stack"
    )
    assert "Welch" in comparison.method
    assert "paired t" not in comparison.method
    assert comparison.seed is None
    assert any(text.startswith("Not interleaved") for text in comparison.warnings)


def test_where_some_pairs_are_paired_they_are_named() -> None:
    runs = [
        run("one", repeats("a", 3e4) + repeats("b", 4e4), "stack"),
        run("two", repeats("c", 4e4), "stack"),
    ]
    comparison = of(runs, by="stack")
    assert [pair.paired for pair in comparison.panels[0].pairs] == [True, False]
    assert "Repeats of b are compared with the reference's in pairs" in comparison.method
    assert any(text.startswith("Not interleaved (c)") for text in comparison.warnings)


def test_a_run_planned_by_stack_is_by_suite_interleaved_by_repeat_alone() -> None:
    outcomes = repeats("a", 3e4) + repeats("a", 4e4, suite="aes128-sha1") + repeats("b", 3e4)
    comparison = of([run("one", outcomes, "stack")], by="suite")
    assert comparison.warnings[0].startswith(
        "Interleaved by repeat, not side by side: the run was planned by stack"
    )
    assert not any("Not interleaved" in text for text in comparison.warnings)
    assert comparison.seed is None, "the seed of an order that was not planned for this axis"
    assert of([run("one", outcomes, "suite")], by="suite").seed == 5


def test_arms_of_a_run_that_differ_in_more_than_the_stack_are_told() -> None:
    options = {"strongswan": {"tunnels": 100, "replay_window": 64, "version": "5.9"}}
    made = run("one", repeats("xfrm", 4e4) + repeats("strongswan", 3e4) + repeats("plain", 9e4), "stack")
    comparison = of([kinds(made, {"xfrm": "xfrm", "strongswan": "strongswan", "plain": "plain"}, options)])
    note = (
        "The arms differ in more than the stack: xfrm: defaults; strongswan: replay_window=64, tunnels=100."
    )
    assert note in comparison.warnings
    assert comparison.arms[1].detail == "replay_window=64, tunnels=100"
    alike = of([kinds(made, {"xfrm": "xfrm", "strongswan": "strongswan", "plain": "plain"}, {})])
    assert not any("differ in more" in text for text in alike.warnings)


def test_two_labels_of_one_stack_are_compared_by_their_options() -> None:
    made = run("one", repeats("one", 4e4) + repeats("many", 3e4), "stack")
    comparison = of([kinds(made, {"one": "xfrm", "many": "xfrm"}, {"many": {"tunnels": 100}})])
    assert not any("differ in more" in text for text in comparison.warnings)
    assert [arm.detail for arm in comparison.arms] == ["", "tunnels=100"]


def test_arms_in_two_runs_that_differ_in_options_are_refused() -> None:
    one = kinds(run("one", repeats("xfrm", 4e4)), {"xfrm": "xfrm"}, {})
    two = kinds(run("two", repeats("ss", 3e4)), {"ss": "strongswan"}, {"ss": {"tunnels": 100}})
    assert "options of the stacks: one: defaults; two: tunnels=100" in refused([one, two], "stack")
    assert of([one, kinds(two, {"ss": "strongswan"}, {"ss": {"version": "5.9"}})], by="stack").family == 1


def test_versions_in_two_runs_that_differ_in_options_are_refused() -> None:
    runs = [
        kinds(run(label, repeats(label, 3e4)), {label: "strongswan"}, {label: {"version": label, **more}})
        for label, more in (("old", {}), ("new", {"esn": True}))
    ]
    assert "options of strongswan: old: defaults; new: esn=True" in refused(runs, "version")


def test_kernels_under_two_stacks_in_two_runs_must_be_equal() -> None:
    one, two = said(run("one", repeats("a", 4e4)), "6.1"), said(run("two", repeats("b", 3e4)), "6.6")
    assert "kernel of the gateways (simulated): one: 6.1; two: 6.6" in refused([one, two], "stack")
    assert of([one, said(run("two", repeats("a", 3e4)), "6.6")], by="kernel").differences == []


@pytest.mark.parametrize(("platform", "follows"), [("netns", True), ("uml", False), ("external", False)])
def test_the_hosts_kernel_follows_from_the_axis_only_where_it_is_the_gateways(
    platform: str, follows: bool
) -> None:
    runs = [
        said(run(name, repeats("a", 4e4), platform=platform, host={"kernel": f"Linux {kernel}"}), kernel)
        for name, kernel in (("one", "6.1"), ("two", "6.6"))
    ]
    if not follows:
        assert "host: kernel: one: Linux 6.1; two: Linux 6.6" in refused(runs, "kernel")
        return
    assert (
        of(runs, by="kernel").facts["Follows from the kernel"]
        == "host: kernel: one: Linux 6.1; two: Linux 6.6"
    )


def test_a_clock_that_is_never_the_same_twice_is_no_difference_and_no_cycles() -> None:
    runs = [
        run(name, repeats("a", 4e4), host={"cpu_mhz": mhz, "load average at start": mhz, "cpu": "one"})
        for name, mhz in (("one", 2599.99), ("two", 3100.2))
    ]
    comparison = of(runs)
    assert (comparison.differences, comparison.cpu_mhz) == ([], None)
    other = run("two", repeats("a", 4e4), host={"cpu": "another", "free pages": 7})
    assert "host: cpu: one: one; two: another" in refused([runs[0], other], "run")


def test_runs_by_different_ways_to_the_wire_are_told_how_to_pin_one() -> None:
    """The way is chosen by a measurement unless the plan names it; nothing else about the tools is said so."""
    runs = [
        run(name, repeats("a", 4e4), tools={"generator": f"native: {way}; {way}", "iproute2": version})
        for name, way, version in (("one", "xdp live frames", "6.1"), ("two", "af_xdp", "6.9"))
    ]
    message = refused(runs, "run")
    assert (
        "tools: generator: one: native: xdp live frames; xdp live frames; two: native: af_xdp; af_xdp"
        in message
    )
    assert "generator: {native: {tx: af_packet, rx: af_packet}}" in message
    same = [run(r.name, repeats("a", 4e4), tools={"iproute2": r.manifest.tools["iproute2"]}) for r in runs]
    assert "generator" not in refused(same, "run")


def test_profiles_are_held_against_each_other_by_name_and_tests_too() -> None:
    def settings(memory: str, tests: list[dict[str, Any]]) -> dict[str, Any]:
        return {"profiles": {"small": {"memory": "64M"}, "big": {"memory": memory}}, "tests": tests}

    one = {"throughput": {"trial": "2s"}}
    runs = [
        run("one", repeats("a", 4e4), conditions=settings("256M", [one])),
        run(
            "two",
            repeats("a", 4e4),
            conditions=settings("512M", [{"throughput": {"trial": "5s"}}, {"other": {}}]),
        ),
    ]
    note = refused(runs, "run")
    assert "profile big: memory: one: 256M; two: 512M" in note
    assert "tests.throughput.trial: one: 2s; two: 5s" in note
    twice = settings("256M", [one, {"throughput": {"trial": "9s"}}])
    assert of([runs[0], run("two", repeats("a", 4e4), conditions=twice)]).differences == []


PLAIN_CONDITIONS: dict[str, Any] = {
    "mtu": 1500,
    "tests": [{"throughput": {"trial": "2s"}}],
    "profiles": {"gw": {"memory": "64M", "board": {"core": "e500v2", "bus": None}}},
}


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"links": {"west": "loss 1%"}}, "links.west: one: not set; two: loss 1%"),
        ({"seed": 7}, "seed: one: not set; two: 7"),
        (
            {"tests": [{"throughput": {"trial": "2s", "lifetime_bytes": 10}}]},
            "tests.throughput.lifetime_bytes: one: not set; two: 10",
        ),
        (
            {"profiles": {"gw": {**PLAIN_CONDITIONS["profiles"]["gw"], "overlay": "/mine"}}},
            "profile gw: overlay: one: not set; two: /mine",
        ),
        (
            {"profiles": {"gw": {"memory": "64M", "board": {"core": "e500v2", "bus": "333"}}}},
            "profile gw: board.bus: one: not set; two: 333",
        ),
    ],
    ids=["links", "seed", "lifetime", "overlay", "bus"],
)
def test_what_only_one_plan_sets_is_a_difference(changed: dict[str, Any], told: str) -> None:
    one = run("one", repeats("a", 4e4), conditions=PLAIN_CONDITIONS)
    two = run("two", repeats("a", 3e4), conditions=PLAIN_CONDITIONS | changed)
    for runs in ([one, two], [two, one]):
        assert set(told.partition(": one: ")[2].split("; two: ")) <= set(
            differences(runs, "run")[0].values.values()
        )
    assert told in refused([one, two], "run")


def test_two_kernels_of_one_release_are_two_arms() -> None:
    """The one is the user's build with a patch; neither may stand for the other."""
    outcomes = [o for dut, fps in (("a", 4e4), ("b", 2e4), ("c", 3e4)) for o in repeats("xfrm", fps, dut=dut)]
    made = run("one", outcomes, "kernel")
    contexts: dict[str, dict[str, Any]] = {
        e.case: {"kernel": {"home": "6.12.0" if e.dut == "c" else "6.1.1"}} for e in made.manifest.cases
    }
    update = {"contexts": contexts, "context_of_case": {case: case for case in contexts}}
    comparison = of([Run(made.name, made.manifest.model_copy(update=update), made.outcomes)], reference="a")
    assert [arm.name for arm in comparison.arms] == ["6.1.1 (a)", "6.1.1 (b)", "6.12.0"]
    ratios = {pair.b: pair.points[0].ratio for pair in comparison.panels[0].pairs}
    assert {b: round(ratio.value, 2) for b, ratio in ratios.items() if ratio} == {
        "6.1.1 (b)": 0.5,
        "6.12.0": 0.75,
    }


def test_pairs_of_kernels_are_verdicts_on_the_arms() -> None:
    """The pairs are planned by the names of the devices, before any kernel is read back."""
    outcomes = [o for dut, fps in (("a", 2e4), ("b", 2e4)) for o in repeats("xfrm", fps, dut=dut)]
    made = run("one", outcomes, "kernel")
    contexts = {e.case: {"kernel": {"home": "6.1.1"}} for e in made.manifest.cases}
    update = {"contexts": contexts, "context_of_case": {case: case for case in contexts}}
    identity = {**pairs.IDENTITY, "dut": "b", "stack": "xfrm"}
    measured = pairs.measured(pairs.QUIET, 1.15, random.Random(1))
    finding = measured.finding(identity, {"a": "a", "b": "b"}, "proven", [])
    whole = Run(made.name, made.manifest.model_copy(update=update), made.outcomes, paired=[finding])
    comparison = of([whole], reference="a")
    (verdict,) = comparison.fixed_loads
    assert [verdict.a, verdict.b] == [arm.name for arm in comparison.arms] == ["6.1.1 (a)", "6.1.1 (b)"]
    assert verdict.cpu_word == "B costs more"
    assert real_time.rows(comparison, verdict.b, DEFAULTS)[-2].word == "regressed"


def test_one_profile_beside_several_is_no_difference() -> None:
    """Each profile is named then, and only equal names are held against each other."""
    profile = PLAIN_CONDITIONS["profiles"]["gw"]
    runs = [
        run(
            name, repeats("a", 4e4), conditions=PLAIN_CONDITIONS | {"profiles": dict.fromkeys(names, profile)}
        )
        for name, names in (("one", ["k1"]), ("two", ["k2", "k3"]))
    ]
    assert differences(runs, "kernel") == []


def test_modules_follow_from_the_kernel() -> None:
    """A kernel has modules of its own; an overlay has nothing to do with it."""
    profile = PLAIN_CONDITIONS["profiles"]["gw"]
    runs = [
        said(
            run(name, repeats("a", 4e4), conditions=PLAIN_CONDITIONS | {"profiles": {name: profile | own}}),
            name,
        )
        for name, own in (("6.1", {}), ("6.6", {"modules": "/lib/6.6"}))
    ]
    assert differences(runs, "kernel") == []


def test_a_profile_or_a_test_that_only_one_run_has_is_no_difference() -> None:
    more = {
        "tests": [*PLAIN_CONDITIONS["tests"], {"burst": {"trial": "9s"}}],
        "profiles": {**PLAIN_CONDITIONS["profiles"], "other": {"memory": "1G"}},
    }
    runs = [
        run("one", repeats("a", 4e4), conditions=PLAIN_CONDITIONS),
        run("two", repeats("a", 3e4), conditions=PLAIN_CONDITIONS | more),
    ]
    assert differences(runs, "run") == []


def test_a_run_without_settings_beside_one_with_is_told() -> None:
    runs = [run("new", repeats("a", 4e4), conditions={"mtu": 1500}), run("old", repeats("a", 4e4))]
    note = "old records no settings: trial lengths, resolution and flows could not be checked."
    assert note in of(runs).warnings
    assert note not in of([runs[1], run("older", repeats("a", 4e4))]).warnings


@pytest.mark.parametrize(("second", "is_told"), [(105e3, False), (150e3, True)])
def test_ceilings_of_the_generator_far_apart_are_told(second: float, is_told: bool) -> None:
    runs = [
        run(
            name,
            repeats("a", 4e4),
            calibration=[Calibration(frame_size=64, ip_version=4, offered_fps=fps, received_fps=fps)],
        )
        for name, fps in (("one", 100e3), ("two", second))
    ]
    note = "at 64 B, one-way, IPv4: one: 100,000 frames/s; two: 150,000 frames/s."
    assert any(text.endswith(note) for text in of(runs).warnings) == is_told


def test_what_follows_from_the_dut_is_listed() -> None:
    runs = [
        run(name, repeats("a", 4e4, dut=name), platform=name, queues={"tap": size})
        for name, size in (("netns", "100"), ("uml", "200"))
    ]
    comparison = of(runs, by="dut")
    assert comparison.facts["Follows from the DUT"] == (
        "platform: netns: netns; uml: uml. queues: tap: netns: 100; uml: 200"
    )
    assert any("User-Mode Linux" in text for text in comparison.warnings)


def virtual(of_run: Run) -> Run:
    """The run with a DUT whose clock counts instructions."""
    conditions = {"profiles": {"virt": {"machine": {"ns_per_instruction": "1"}}}}
    return Run(
        of_run.name,
        of_run.manifest.model_copy(update={"conditions": conditions}),
        of_run.outcomes,
        of_run.where,
    )


@pytest.mark.parametrize("allowed", [False, True])
@pytest.mark.parametrize("by", ["dut", "run", "kernel", None])
def test_virtual_and_real_time_are_never_compared(by: Axis | None, allowed: bool) -> None:
    """Although the platform follows from the DUT, and whatever is allowed."""
    runs = [
        virtual(run("instructions", repeats("a", 4e4, dut="virt"), platform="qemu_x86")),
        run("seconds", repeats("a", 4e4, dut="netns"), platform="netns"),
    ]
    for order in (runs, runs[::-1]):
        with pytest.raises(UsageError) as error:
            of(order, by=by, allow_different=allowed)
        where, *lines = str(error.value).splitlines()
        assert where == f"{order[1].name}: cannot be compared with {order[0].name}"
        assert lines[0] == "  expected: runs that are all in virtual time, or all in real time"
        assert lines[1] == "  got: in virtual time: instructions; in real time: seconds"
        assert lines[2].startswith("  what to do: compare the runs of each kind with each other.")


def on_guests(of_run: Run, **parts: str) -> Run:
    """The run in virtual time with these parts of its guests."""
    contexts: dict[str, Any] = {"all": {"emulation": parts}}
    update = {
        "contexts": contexts,
        "context_of_case": dict.fromkeys((e.case for e in of_run.manifest.cases), "all"),
    }
    return Run(of_run.name, of_run.manifest.model_copy(update=update), of_run.outcomes)


def two_machines(**parts: tuple[str, str]) -> list[Run]:
    """Two runs in virtual time on machines with different programs; parts: of the guests of each."""
    return [
        on_guests(
            virtual(
                run(
                    name,
                    repeats("a", 4e4, dut="virt"),
                    tools={"ip": name, "linux.uml": name},
                    host={"cpu": name, "kernel": name},
                    placement={"policy": name},
                )
            ),
            **{part: digests[n] for part, digests in parts.items()},
        )
        for n, name in enumerate(("one", "two"))
    ]


def test_in_virtual_time_machines_may_differ() -> None:
    """Neither their programs nor their CPUs take part in a measurement."""
    assert differences(two_machines(guest=("a", "a")), "run") == []


def test_in_virtual_time_guests_must_be_the_same() -> None:
    """Parts of other sources or packages are other gateways."""
    (found,) = differences(two_machines(guest=("a", "b"), kernel=("k", "k")), "run")
    assert (found.what, found.values) == ("guests of virt: guest", {"one": "a", "two": "b"})


def test_what_a_guest_has_for_its_stack_is_no_difference_of_guests() -> None:
    parts = {"x86-userland": ("strongswan", "libreswan"), "libraries of this machine": ("a", "b")}
    assert differences(two_machines(**parts), "run") == []


def test_runs_in_virtual_time_are_compared_with_each_other_by_their_instructions_too() -> None:
    runs = [
        virtual(
            run(name, repeats("a", fps, dut="virt", instructions_home_per_frame=cost), platform="qemu_x86")
        )
        for name, fps, cost in (("before", 4e4, 9000.0), ("after", 5e4, 8000.0))
    ]
    comparison = of(runs)
    assert comparison.is_virtual
    points = [comparison.panels[0].curves[arm.name][64] for arm in comparison.arms]
    assert [point.instructions_home.value for point in points if point.instructions_home] == [9000.0, 8000.0]
    assert not any(point.instructions_office for point in points)
    assert not of([run("real", repeats("a", 3e4) + repeats("b", 4e4))], by="stack").is_virtual


def test_differences_that_were_allowed_come_before_any_verdict() -> None:
    runs = [
        run("one", repeats("a", 3e4), espbench="1"),
        run("two", repeats("a", 4e4), espbench="2", topology="x"),
    ]
    comparison = of(runs, allow_different=True)
    assert comparison.words[0] == (
        "The runs also differ in espbench and topology, which was allowed; this may be the cause of a difference."
    )


def test_shared_cpus_guests_and_the_machine_are_told() -> None:
    shared = "Home and Office share CPU 1: every figure of the pair is that of two gateways on one core"
    made = run(
        "one", repeats("a", 3e4) + repeats("b", 4e4), "stack", platform="uml",
        placement={"shared": [shared]}, host={"cpu": "a CPU", "kernel": "Linux 6.1"},
    )  # fmt: skip
    comparison = of([made])
    assert f"{shared}." in comparison.warnings
    assert any("say nothing about hardware" in text for text in comparison.warnings)
    assert comparison.facts == {
        "Platform": "uml",
        "Host CPU": "a CPU",
        "Host kernel": "Linux 6.1",
        "espbench": "0",
    }
    assert all(text[0].isupper() for text in comparison.warnings)


def test_a_suite_that_never_negotiates_does_not_make_a_version_of_its_own() -> None:
    outcomes = [
        o
        for label, fps in (("old", 3e4), ("new", 4e4))
        for o in repeats(label, fps) + repeats(label, fps, suite="3des-sha1")
    ]
    version = {o.case: f"strongSwan {o.stack}" for o in outcomes if o.suite != "3des-sha1"}
    made = kinds(run("one", outcomes, "version"), {"old": "strongswan", "new": "strongswan"}, {})
    comparison = of([said(made, "6.1", version)], reference="old")
    assert [arm.name for arm in comparison.arms] == ["old", "new"]
    assert len(comparison.panels) == 2
    assert [arm.detail for arm in comparison.arms] == [
        "strongSwan old, Linux 6.1",
        "strongSwan new, Linux 6.1",
    ]


def test_a_version_nobody_read_back_is_not_another_version() -> None:
    outcomes = repeats("a", 3e4, dut="one") + repeats("a", 4e4, dut="two")
    version = {o.case: "strongSwan 5.9" for o in outcomes if o.dut == "one"}
    made = said(kinds(run("one", outcomes), {"a": "strongswan"}, {}), "6.1", version)
    with pytest.raises(UsageError, match=r"what does differ: --by dut$"):
        of([made], by="suite")


def test_a_run_whose_comparison_is_impossible_says_why(tmp_path: Any) -> None:
    from support.synthetic import run as synthetic_run  # noqa: PLC0415  (only here)

    made = synthetic_run.build(tmp_path, synthetic_run.Shape(sizes=(64,), suites=("aes128-sha1",), repeats=1))
    with made:
        made.save_manifest(made.manifest.model_copy(update={"compare": {"by": "suite"}}))
    comparison = of_run(RunDirectory.open(made.path))
    assert comparison
    assert (comparison.panels, comparison.arms) == ([], [])
    assert comparison.words[0].startswith(
        "No comparison: nothing to compare by suite; expected: at least two"
    )


def test_one_stack_and_its_baselines_have_overheads() -> None:
    made = run("one", repeats("plain", 9e4) + repeats("null", 6e4) + repeats("xfrm", 3e4), "stack")
    comparison = of([made], reference="plain")
    assert comparison.panels[0].baselines == []
    assert [(o.arm, o.baseline) for o in comparison.overheads] == [("xfrm", "plain"), ("xfrm", "null")]


def test_a_panel_without_the_reference_is_left_out_and_told() -> None:
    outcomes = repeats("a", 3e4) + repeats("b", 3e4)
    outcomes += repeats("b", 3e4, suite="aes128-sha1") + repeats("c", 3e4, suite="aes128-sha1")
    outcomes += repeats("c", 3e4)
    comparison = of([run("one", outcomes, "stack")], reference="a")
    assert len(comparison.panels) == 1
    assert any(text.startswith("Not compared: b and c without a: ") for text in comparison.warnings)


def test_baselines_come_last_where_they_have_panels_of_their_own() -> None:
    outcomes = [o for dut in ("one", "two") for s in ("plain", "a") for o in repeats(s, 3e4, dut=dut)]
    comparison = of([run("run", outcomes, "dut")])
    assert [panel.conditions["stack"] for panel in comparison.panels] == ["a", "plain"]
