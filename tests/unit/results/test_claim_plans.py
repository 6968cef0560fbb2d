# SPDX-License-Identifier: Apache-2.0
"""Every claim names the plans that measure it: runs of nothing else, with made-up figures, answer it."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from espbench.claims import Claim, Points, claims
from espbench.claims.measures import our_value
from espbench.claims.model import Kernels, Saturation
from espbench.claims.other_tests import bus_counts, floods, lifetimes
from espbench.claims.points import points
from espbench.paths import data_dir
from espbench.plan import Profile, ResolvedPlan, cases, conditions, load_plan
from espbench.plan.keys.ipsec_tests import FirstPacket, RekeyLoss
from espbench.plan.resolved.cases import Case
from espbench.procedures.boards.public_key_unit import operations
from espbench.quantities import Key, figure
from espbench.reporting.published.equal_conditions import refuse_unlike
from espbench.results.accelerator import AcceleratorResult, PublicKeyResult, Variant
from espbench.terms import CaseIdentity, Finding, Manifest, Outcome, layer2_mbps
from support.synthetic import run as synthetic_run
from support.synthetic.kernels import everything

MEASURED = [c for c in claims() if c.ours is not None and c.ours.quantity != "computed"]
FPS, CPU = 1000.0, 50.0
BUS = (Key.BUS_COUNTED, Key.BUS_FRAMES, Key.BUS_ENGINE, Key.BUS_DESCRIPTORS, Key.BUS_OF_ACCOUNT)


@cache
def plan_of(name: str) -> ResolvedPlan:
    return load_plan(data_dir("plans") / f"{name}.yaml")


def profiles_of(name: str) -> list[Profile]:
    return [profile for profile in plan_of(name).profiles if profile is not None]


@cache
def cases_of(name: str) -> list[Case]:
    """The cases of a plan, under the names of its devices."""
    return cases(plan_of(name), [profile.name for profile in profiles_of(name)])


@cache
def manifest_of(name: str) -> Manifest:
    made = synthetic_run.manifest([case.entry() for case in cases_of(name)], name)
    said = conditions(plan_of(name), profiles_of(name))
    return made.model_copy(update={"conditions": said, "line_rate_bps": 1e9})


def of_case(case: Case) -> dict[str, Any]:
    entry = case.entry()
    baseline = case.suite == "none"
    return {key: getattr(entry, key) for key in CaseIdentity.model_fields} | {
        "encryption": "baseline" if baseline else "proven"
    }


def outcomes_of(case: Case) -> list[Outcome]:
    """One a loss goal, all with the same figures."""
    if case.test != "throughput" or not isinstance(case.frame_size, int):
        return []
    goals = getattr(case.settings, "loss_goals", [])
    return [
        Outcome(
            **of_case(case), loss_goal=goal, status="OK", throughput_fps=FPS,
            throughput_mbps=layer2_mbps(FPS, case.frame_size), line_rate_pct=1.0, trials=3, final_trial_s=0.2,
            rfc2544=False, cpu_home_pct=CPU, cpu_office_pct=CPU, final_trial=2,
        )
        for goal in goals
    ]  # fmt: skip


def finding_of(case: Case) -> list[Finding]:
    keys = {"bus": BUS, "flood": (Key.FLOOD_FORWARDING, Key.OF_THROUGHPUT)}.get(case.test, ())
    if isinstance(case.settings, RekeyLoss):
        keys = (Key.REKEYS, Key.SA_LIFETIME_BYTES if case.settings.lifetime_bytes else Key.SA_LIFETIME)
    if isinstance(case.settings, FirstPacket) and case.settings.idle:
        keys = (Key.FIRST_PACKET_TIME, Key.IDLE_TIMEOUT)
    if not keys:
        return []
    return [
        Finding(
            **of_case(case), status="OK", load_fps=FPS, quantities=[figure(key, 2.0) for key in keys], trials=1,
            rfc2544=False,
        )
    ]  # fmt: skip


def accelerator_of(name: str) -> list[AcceleratorResult]:
    asked = plan_of(name).plan.accelerator
    if asked is None:
        return []
    return [
        AcceleratorResult(
            dut=profile.name, suite=suite, size=size, operations=asked.operations, driver="made-up",
            after_ns=4_000_000, at_once_ns=1_000_000, full=0,
            variant=Variant.model_validate(variant.model_dump()), crypto=crypto,
        )
        for profile in profiles_of(name)
        for crypto in asked.crypto
        for suite in asked.suites
        for size in asked.sizes
        for variant in asked.variants
    ]  # fmt: skip


def public_keys_of(name: str) -> list[PublicKeyResult]:
    asked = plan_of(name).plan.public_key_unit
    if asked is None:
        return []
    return [
        PublicKeyResult(
            dut=profile.name, clock_mhz=o.clock_mhz, by=o.by, operation=o.name, bits=o.bits,
            exponent_bits=o.exponent_bits, operations=1, whole_ns=4_000_000, idle_ns=0, overhead_ns=1_000,
        )
        for profile in profiles_of(name)
        if profile.board is not None
        for o in operations(asked, profile.board.sec.clock / 1e6)
    ]  # fmt: skip


def run_of(names: list[str]) -> Points:
    """Return what runs of these plans would give, with the same figures for all."""
    findings = [(manifest_of(name), [f for c in cases_of(name) for f in finding_of(c)]) for name in names]
    has_kernels = any(plan_of(name).plan.cipher_kernels for name in names)
    return points(
        [(manifest_of(name), [o for c in cases_of(name) for o in outcomes_of(c)]) for name in names],
        [a for name in names for a in accelerator_of(name)],
        everything() if has_kernels else [],
        bus_counts(findings),
        floods(findings),
        [p for name in names for p in public_keys_of(name)],
        lifetimes(findings),
    )


@pytest.mark.parametrize("claim", MEASURED, ids=[c.id for c in MEASURED])
def test_its_plans_measure_what_a_claim_asks_for(claim: Claim) -> None:
    assert our_value(claim, run_of(claim.plans)).missing == ""


OF_SIZES = [c for c in MEASURED if hasattr(c.ours, "frame_sizes")]


@pytest.mark.parametrize("claim", OF_SIZES, ids=[c.id for c in OF_SIZES])
def test_its_plans_have_every_size_that_a_claim_names(claim: Claim) -> None:
    sizes = {case.frame_size for name in claim.plans for case in cases_of(name)}
    assert set(getattr(claim.ours, "frame_sizes", ())) <= sizes


MEDIUM = 512  # bytes; larger sizes are large in every row


def test_small_to_medium_sizes_are_all_of_the_plans_up_to_medium() -> None:
    """A size that is left out could be the one that differs."""
    about = [c for c in OF_SIZES if "small to medium" in c.says]
    assert [c.id for c in about] == ["mpc8323e-lean"]
    for claim in about:
        sizes = {case.frame_size for name in claim.plans for case in cases_of(name)}
        wanted = {size for size in sizes if isinstance(size, int) and size <= MEDIUM}
        assert {*getattr(claim.ours, "frame_sizes", ())} == wanted == {64, 256, 512}


@pytest.mark.parametrize(
    "claim", [c for c in MEASURED if len(c.plans) > 1], ids=[c.id for c in MEASURED if len(c.plans) > 1]
)
def test_none_of_several_plans_is_superfluous(claim: Claim) -> None:
    for one in claim.plans:
        others = [name for name in claim.plans if name != one]
        assert our_value(claim, run_of(others)).missing, one


def test_a_claim_is_not_measured_by_another_plan() -> None:
    """The tests above can fail therefore; kernels' figures that follow from profiles alone need no run."""
    (loss,) = [c for c in MEASURED if c.id == "loss-goal-gain"]
    assert our_value(loss, run_of(["powerquicc"])).missing
    needless = [
        c.id for c in MEASURED if not our_value(c, Points(())).missing and not isinstance(c.ours, Kernels)
    ]
    assert needless == []


def test_runs_of_all_plans_can_be_judged_together() -> None:
    """Profiles that differ have names of their own, or a comparison of all plans would be refused."""
    names = dict.fromkeys(name for claim in claims() for name in claim.plans)
    assert len(names) > 20
    refuse_unlike({name: manifest_of(name) for name in names})


def test_sizes_of_plans_can_tell_where_saturation_begins() -> None:
    """Two of them around the printed size, within its tolerance."""
    saturations = [c for c in MEASURED if isinstance(c.ours, Saturation)]
    assert len(saturations) == 3
    for claim in saturations:
        assert claim.value
        (plan,) = claim.plans
        sizes = {case.frame_size for case in cases_of(plan)}
        low, high = claim.value * (1 - claim.tolerance), claim.value * (1 + claim.tolerance)
        assert any(low <= size <= claim.value for size in sizes if isinstance(size, int)), claim.id
        assert any(claim.value <= size <= high for size in sizes if isinstance(size, int)), claim.id


def test_at_most_five_claims_cannot_be_measured() -> None:
    assert [c.id for c in claims() if c.cannot] == [
        "mpc8313e-nanosec-openswan",
        "mpc8323e-nanosec-openswan",
        "mpc8349ea-nanosec-openswan",
        "mpc8379e-nanosec-openswan",
        "np-compiler-failures",
    ]
