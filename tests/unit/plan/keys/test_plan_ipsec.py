# SPDX-License-Identifier: Apache-2.0
"""Plans with IPsec tests: which cases they come to, and what is wrong with them in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from espbench.errors import UsageError
from espbench.plan import ResolvedPlan, cases, conditions, load_profile
from espbench.plan.checks.all_checks import problems
from espbench.plan.keys.model import Plan
from espbench.plan.traffic.traffic_pattern import rfc2544_pattern
from support.plans import pair_plan

GOOD = pair_plan(
    "uml", suites=["aes128gcm16"], frame_sizes=[64, 256], directions=["one-way", "both-ways"],
    stacks=[
        "plain", "null", "xfrm", "strongswan", "strongswan-libipsec",
        {"home": "strongswan", "office": "libreswan"},
    ],
)  # fmt: skip


def plan_of(test: dict[str, object], dut: str = "auto") -> ResolvedPlan:
    plan = Plan.model_validate(GOOD | {"tests": [test], "dut": dut})
    profile = None if dut == "auto" else load_profile(dut)
    return ResolvedPlan(plan, None, "", rfc2544_pattern(), (profile,))


def said(dut: str = "uml", **test: object) -> str:
    complaints = problems(plan_of(test, dut))
    return "; ".join(f"expected {p.expected}, got {p.got}; {p.remedy}" for p in complaints)


@pytest.mark.parametrize(
    ("test", "settings", "stacks", "each"),
    [
        ("set_up_rate", {}, {"strongswan", "strongswan-to-libreswan"}, 1),
        ("reset", {}, {"strongswan", "strongswan-to-libreswan"}, 1),
        ("time_to_first_packet", {"load": "1000fps"}, {"strongswan", "strongswan-to-libreswan"}, 4),
        ("attack", {"load": "1000fps"}, {"xfrm", "strongswan", "strongswan-to-libreswan"}, 4),
        ("attack", {"load": "1000fps", "kind": "ike-flood"}, {"strongswan", "strongswan-to-libreswan"}, 4),
        (
            "attack",
            {"load": "1000fps", "kind": "replay"},
            {"null", "xfrm", "strongswan", "strongswan-to-libreswan"},
            4,
        ),
        ("public_key", {}, {"plain"}, 1),
    ],
)
def test_a_test_has_cases_where_there_is_something_to_measure(
    test: str, settings: dict[str, object], stacks: set[str], each: int
) -> None:
    """Tests of IKE need daemons on the kernel's ESP; those of a pair are there once, whatever the frame sizes."""
    planned = cases(plan_of({test: settings}))
    assert {case.stack.shown for case in planned} == stacks
    assert len(planned) == each * len(stacks)


def test_good_settings_are_good() -> None:
    assert said(rekey_loss={"load": "1000fps", "trial": "16s", "lifetime": "5s"}) == ""
    assert said(reset={"what": "power"}) == said(failover={}) == said(rekey_rate={"lifetime": "5s"}) == ""


@pytest.mark.parametrize(
    ("test", "settings", "words"),
    [
        (
            "rekey_loss",
            {"load": "1000fps", "trial": "8s", "lifetime": "5s"},
            'at least two lifetimes, 10s, got "8s"',
        ),
        ("rekey_loss", {"load": "1000fps", "trial": "3s"}, "IKE daemons count in seconds: lengthen trial"),
        ("rekey_rate", {"lifetime": "2500ms"}, 'a lifetime of whole seconds, 2s or more, got "2.5s"'),
        ("failover", {"trial": "5s", "at": "3s", "dead": "2s"}, "a time well within the trial of 5s"),
        (
            "rekey_loss",
            {"load": "1000fps", "lifetime": "5s", "lifetime_bytes": "1MB"},
            "lifetime or lifetime_bytes, got both",
        ),
        ("rekey_loss", {}, "a throughput test with the loss goal 0 before it"),
        ("reset", {"load": "1fps", "trial": "40s"}, "at least 100 frames in the trial of 40s, got 40; "),
        ("failover", {"load": "3fps", "trial": "30s"}, "at least 100 frames in the trial of 30s, got 90; "),
        ("failover", {"load": "500bps", "trial": "30s"}, "at least 100 frames in the trial of 30s, got "),
        (
            "attack",
            {"load": "1000fps", "rates": ["1000fps", "10kfps", "1000fps"]},
            "expected each rate once, got 1000fps again; remove it",
        ),
    ],
)
def test_settings_that_measure_nothing_are_named(test: str, settings: Any, words: str) -> None:
    assert words in said(**{test: settings})


def test_lifetimes_in_bytes_and_idle_time() -> None:
    """Both daemons count bytes; pluto deletes nothing because it is idle, and one message says so."""
    assert said(rekey_loss={"load": "1000fps", "trial": "16s", "lifetime_bytes": "1MB"}) == ""
    assert said(time_to_first_packet={"load": "1000fps", "idle": "5s"}) == ""
    plan = Plan.model_validate(
        GOOD
        | {
            "stacks": ["libreswan", {"home": "strongswan", "office": "libreswan"}],
            "tests": [{"time_to_first_packet": {"load": "1000fps", "idle": "5s"}}],
            "dut": "uml",
        }
    )
    (problem,) = problems(ResolvedPlan(plan, None, "", rfc2544_pattern(), (load_profile("uml"),)))
    assert problem.expected == "strongswan on Home, whose charon deletes SAs without traffic"
    assert problem.got == "libreswan, which has no such timeout"


def test_conditions_have_what_rekey_loss_is_asked_for() -> None:
    """A lifetime that is not named is a third of the trial; keys that ask for nothing are not in them."""

    def settings(**test: object) -> dict[str, Any]:
        (told,) = conditions(plan_of(test), [load_profile("uml")])["tests"]
        (only,) = told.values()
        return dict(only)

    by_time = settings(rekey_loss={"load": "1000fps"})
    assert by_time["lifetime"] == "a third of the trial"
    assert not {"lifetime_bytes", "idle"} & by_time.keys()
    by_bytes = settings(rekey_loss={"load": "1000fps", "lifetime_bytes": "1MB"})
    assert (by_bytes["lifetime_bytes"], by_bytes.get("lifetime")) == ("1MB", None)
    assert "idle" not in settings(time_to_first_packet={"load": "1000fps"})
    assert settings(time_to_first_packet={"load": "1000fps", "idle": "3s"})["idle"] == "3s"


def test_only_guests_can_be_switched_off() -> None:
    assert (
        "got power with netns (platform: netns); espbench can switch off guests of User-Mode Linux and of virt-x86, and"
        in said("netns", reset={"what": "power"})
    )


def test_boxes_can_be_switched_off_where_labgrid_switches_them(tmp_path: Path) -> None:
    """The box of the named gateway must have a switch; else the message says how to give it one."""
    boxes: dict[str, dict[str, object]] = {
        side: {"host": f"192.0.2.{number}", "lan": "e1", "wan": "e2"}
        for number, side in enumerate(("home", "office"))
    }
    boxes["office"]["labgrid"] = {"config": "lab.yaml", "target": "office", "back_within": "2m"}
    ports = {"west": {"netns": "t1", "interface": "e0"}, "east": {"netns": "t2", "interface": "e0"}}
    profile = tmp_path / "mine.yaml"
    given = {"name": "mine", "description": "d", "platform": "remote", "boxes": boxes, "ports": ports}
    profile.write_text(yaml.safe_dump(given))
    assert said(str(profile), reset={"what": "power", "gateway": "office"}) == ""
    words = said(str(profile), reset={"what": "power"})
    assert "(platform: remote); give home a power switch in the profile (boxes: home: labgrid: …" in words


def test_an_unknown_attack_is_refused() -> None:
    with pytest.raises((UsageError, ValueError), match="ike-flood"):
        plan_of({"attack": {"kind": "syn-flood", "load": "1000fps"}})
