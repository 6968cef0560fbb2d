# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan's IPsec tests: times that do not fit into a trial, too few frames, a gateway that cannot
be switched off.
"""

from __future__ import annotations

from collections.abc import Iterator

from espbench.plan.checks.stack_checks import idle_problems
from espbench.plan.keys.ipsec_tests import (
    Attack,
    Failover,
    FirstPacket,
    PublicKey,
    RekeyLoss,
    RekeyRate,
    Reset,
)
from espbench.plan.reading.reader import KeyPath, Problem, shown
from espbench.plan.reading.units import format_duration
from espbench.plan.resolved.frame_sizes import mean_frame_size
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_SHORTEST_LIFETIME_S = 2.0  # daemons count in whole seconds
_FEWEST_FRAMES = 100  # of a trial whose outage is measured between frames


def ipsec_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find every mistake in the settings of the tests of plan/keys/ipsec_tests.py."""
    for index, test in enumerate(resolved.plan.tests):
        settings, at = test.settings, ("tests", index, test.name)
        if isinstance(settings, FirstPacket) and settings.idle:
            for number, choice in enumerate(resolved.plan.stacks):
                if settings.applies_to(choice):
                    yield from idle_problems(choice, (*at, "idle"), ("stacks", number))
        elif isinstance(settings, RekeyLoss):
            yield from _rekey_loss(settings, at)
        elif isinstance(settings, RekeyRate):
            yield from _lifetime(settings.lifetime, True, at)
        elif isinstance(settings, Failover | Reset):
            yield from _outage(resolved, settings, at)
        elif isinstance(settings, PublicKey):
            if settings.trial != int(settings.trial):
                got = shown(format_duration(settings.trial))
                yield Problem((*at, "trial"), "whole seconds", got, "openssl speed counts in seconds")
        elif isinstance(settings, Attack):
            yield from _repeated_rates(settings, at)
        if isinstance(settings, Reset) and settings.what == "power":
            yield from _power(resolved, settings, at)


def _rekey_loss(settings: RekeyLoss, at: KeyPath) -> Iterator[Problem]:
    """Find lifetimes of both kinds, and trials in which SAs do not end."""
    if settings.lifetime_bytes:
        if settings.lifetime is not None:
            yield Problem(
                (*at, "lifetime_bytes"),
                "lifetime or lifetime_bytes",
                "both",
                "the test counts the rekeys of one of them: remove the other",
                on_key=True,
                involves=((*at, "lifetime"),),
            )
        return
    yield from _lifetime(settings.lifetime_s, settings.lifetime is not None, at)
    if settings.trial < 2 * settings.lifetime_s:
        yield Problem(
            (*at, "trial"),
            f"at least two lifetimes, {format_duration(2 * settings.lifetime_s)}",
            shown(format_duration(settings.trial)),
            "SAs must end within it: lengthen trial or shorten lifetime",
            involves=((*at, "lifetime"),),
        )


def _outage(resolved: ResolvedPlan, settings: Failover | Reset, at: KeyPath) -> Iterator[Problem]:
    """Find trials that end before the outage does, or whose interval between frames is no small part of that time."""
    gone = settings.at + (settings.dead if isinstance(settings, Failover) else 0.0)
    if gone >= settings.trial:
        yield Problem(
            (*at, "at"),
            f"a time well within the trial of {format_duration(settings.trial)}",
            shown(format_duration(settings.at)),
            "traffic must flow before and again after it: lengthen trial",
            involves=((*at, "trial"), (*at, "dead")),
        )
    if settings.dpd != int(settings.dpd):
        yield Problem(
            (*at, "dpd"),
            "whole seconds, or 0 for never",
            shown(format_duration(settings.dpd)),
            "IKE daemons count in seconds",
        )
    frames = min((fps * settings.trial for fps in _loads_fps(resolved, settings)), default=_FEWEST_FRAMES)
    if frames < _FEWEST_FRAMES:
        yield Problem(
            (*at, "load"),
            f"at least {_FEWEST_FRAMES} frames in the trial of {format_duration(settings.trial)}",
            f"{frames:g}",
            "the interval between frames is the precision of the measured time: raise load, or lengthen trial",
            involves=((*at, "trial"),),
        )


def _loads_fps(resolved: ResolvedPlan, settings: Failover | Reset) -> list[float]:
    """Return the load at each frame size, frames/s; empty if it is a share of a line rate that is not known yet."""
    line_rate = resolved.line_rate
    if settings.load.unit == "%" and line_rate is None:
        return []
    sizes = [mean_frame_size(resolved.traffic, size) for size in resolved.plan.frame_sizes]
    return [settings.load.to_fps(size, line_rate or 0.0) for size in sizes]


def _repeated_rates(settings: Attack, at: KeyPath) -> Iterator[Problem]:
    for index, rate in enumerate(settings.rates):
        if rate in settings.rates[:index]:
            yield Problem((*at, "rates", index), "each rate once", f"{rate} again", "remove it")


def _lifetime(lifetime_s: float, given: bool, at: KeyPath) -> Iterator[Problem]:
    if lifetime_s < _SHORTEST_LIFETIME_S or lifetime_s != int(lifetime_s):
        yield Problem(
            (*at, "lifetime" if given else "trial"),
            "a lifetime of whole seconds, 2s or more",
            shown(format_duration(lifetime_s)),
            "IKE daemons count in seconds" + ("" if given else ": lengthen trial, or say lifetime"),
        )


def _power(resolved: ResolvedPlan, settings: Reset, at: KeyPath) -> Iterator[Problem]:
    """Find gateways that cannot be switched off. The profile that replaces `auto` is checked when the plan is run."""
    for dut, profile in resolved.duts:
        if profile is None or profile.platform in ("uml", "qemu_x86"):
            continue
        box = getattr(profile.boxes, settings.gateway, None)
        if box is not None and box.labgrid is not None:
            continue
        remedy = (
            f"give {settings.gateway} a power switch in the profile (boxes: {settings.gateway}: labgrid: …, see "
            "docs/remote.md), or use dut: uml"
            if profile.platform == "remote"
            else "espbench can switch off guests of User-Mode Linux and of virt-x86, and remote boxes through labgrid: "
            "use dut: uml or virt-x86"
        )
        yield Problem(
            (*at, "what"),
            "daemon or sa-flush",
            f"power with {dut} (platform: {profile.platform})",
            remedy,
            involves=(("dut",), (*at, "gateway")),
        )
