# SPDX-License-Identifier: Apache-2.0
"""Finds keys that a plan cannot use with emulated gateways, and keys that few others take."""

from __future__ import annotations

from collections.abc import Iterator

from espbench.catalogue.board_crypto import WITHOUT_DUAL_PASS
from espbench.plan.duts.boards import LINE_RATES, Board
from espbench.plan.duts.profiles import Profile
from espbench.plan.keys.model import SINGLE, Plan
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.reading.reader import KeyPath, Problem, named, shown
from espbench.plan.reading.units import Rate
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_DUT: tuple[KeyPath, ...] = (("dut",),)
# One answer of a guest has room for this many tunnels: one request reads all SAs with their counters.
MOST_TUNNELS = 200
# These daemons are built for the boards' processor (platforms/virtual/parts/strongswan.py).
_ON_BOARDS = ("strongswan",)


def emulated_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find everything that emulated gateways cannot do, and everything that only they can."""
    plan = resolved.plan
    boards = {dut: profile.board for dut, profile in resolved.duts if profile and profile.board}
    if not boards:
        yield from _only_boards(plan)
    emulated = {dut: profile for dut, profile in resolved.duts if profile and profile.emulated}
    if not emulated:
        return
    name, first = next(iter(emulated.items()))
    where = f"with {name} (platform: {first.platform})"
    for index, choice in enumerate(plan.stacks):
        yield from _stack(choice, ("stacks", index), where, first)
        yield from _lean(plan, choice, ("stacks", index))
        if choice.crypto == "dual-pass":
            yield from no_dual_pass(boards, ("stacks", index, "crypto"))
    if boards:
        yield from _tests(plan, f"with {next(iter(boards))} (platform: qemu_e500)")
    native = plan.generator.native
    if native is None or native.model_dump(exclude_defaults=True):
        yield Problem(
            ("generator",),
            f"generator: native, without settings, {where}",
            shown(plan.generator.shown),
            "only that one keeps virtual time, and there it has no choice of ports or CPUs: remove it",
            involves=_DUT,
        )
    if plan.capture:
        yield Problem(
            ("capture",),
            f"no capture {where}",
            "true",
            "the middle link is memory that no program can listen to: remove it",
            involves=_DUT,
        )
    if plan.line_rate is not None and plan.line_rate not in LINE_RATES:
        yield Problem(
            ("line_rate",),
            f"10Mbps, 100Mbps or 1Gbps {where}",
            shown(str(Rate(plan.line_rate, "bps"))),
            "its links send a byte in a whole number of nanoseconds",
            involves=_DUT,
        )


def _stack(choice: StackChoice, at: KeyPath, where: str, profile: Profile) -> Iterator[Problem]:
    if problem := _no_daemon(choice, at, where, profile):
        yield problem
        return
    if choice.version is not None:
        yield Problem(
            (*at, "version"),
            f"no version {where}",
            shown(choice.version),
            "its guests have the daemons that `espbench build` made of pinned packages: remove it"
            + ("" if profile.board else ", or name a build of your own by prefix"),
            on_key=True,
            involves=_DUT,
        )
    if choice.prefix is not None and profile.board:
        yield Problem(
            (*at, "prefix"),
            f"no prefix {where}",
            shown(choice.prefix),
            "its guests have the daemon that `espbench build` made for their processor: remove it",
            on_key=True,
            involves=_DUT,
        )
    if choice.auth == "certificates" and any(facts.daemon == "libreswan" for facts in choice.facts):
        yield Problem(
            (*at, "auth"),
            f"psk for libreswan {where}",
            "certificates",
            "its certificates are the same in every run, and the file that libreswan takes them from is not: remove it",
            involves=_DUT,
        )
    for key, wrong, why in (
        (
            "mode",
            choice.mode == "transport" and profile.board is not None,
            "transport mode needs an IP-in-IP device",
        ),
        (
            "interface",
            choice.interface and profile.board is not None,
            "its guests have no program that makes XFRM interfaces",
        ),
        # ESP then needs authencesn(…), which Linux's driver of the SEC does not have.
        (
            "esn",
            choice.esn and profile.board is not None,
            "with extended sequence numbers Linux does not use the SEC",
        ),
        ("tunnels", choice.tunnels > MOST_TUNNELS, f"one answer of its guests has room for {MOST_TUNNELS}"),
    ):
        if wrong:
            usual = {
                "mode": "tunnel",
                "interface": "false",
                "esn": "false",
                "tunnels": f"at most {MOST_TUNNELS}",
            }[key]
            got = shown(getattr(choice, key))
            yield Problem((*at, key), f"{key}: {usual} {where}", got, f"{why}: remove it", involves=_DUT)


def _no_daemon(choice: StackChoice, at: KeyPath, where: str, profile: Profile) -> Problem | None:
    """Return why a board cannot run the stack's daemon; None if it can, or if the stack has no daemon."""
    asked = [facts for facts in choice.facts if facts.ike] if profile.board else []
    if any(facts.daemon not in _ON_BOARDS for facts in asked):
        expected = "plain, null, xfrm, lean-esp or strongswan"
        why = "no other daemon is built for its processor"
    elif any(not facts.kernel_esp for facts in asked):
        expected, why = "a stack whose ESP is the kernel's", "its kernel has no TUN devices"
    else:
        return None
    remedy = f"{why}: remove it, or use dut: virt-x86"
    return Problem(at, f"{expected} {where}", shown(choice.shown), remedy, involves=_DUT)


def _tests(plan: Plan, where: str) -> Iterator[Problem]:
    """Find tests that need a program which the guests of boards do not have."""
    for index, test in enumerate(plan.tests):
        if test.public_key is not None:
            yield _not_there(index, "public_key", "", "public_key", where, "its guests have no openssl")
        if test.attack is not None and test.attack.kind == "replay":
            yield _not_there(
                index, "attack", "kind", "replay", where, "its guests have no program that hears ESP"
            )


def _not_there(index: int, test: str, key: str, got: str, where: str, why: str) -> Problem:
    return Problem(
        ("tests", index, test, *([key] if key else [])),
        f"no {got} {where}",
        got,
        f"{why}: measure it with dut: virt-x86, netns or uml",
        on_key=not key,
        involves=_DUT,
    )


def _lean(plan: Plan, choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find options that espbench's own ESP does not support."""
    if choice.kind == "lean-esp" and 6 in plan.ip_versions:
        yield Problem(
            ("ip_versions",),
            "4 with lean-esp",
            shown(plan.ip_versions),
            "it is IPv4's alone: measure IPv6 with xfrm",
            involves=((*at, "stack"),),
        )


def link_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find link faults without emulated links, and frames that would arrive after the wait for late frames."""
    plan = resolved.plan
    if plan.links is None or not (links := plan.links.by_name):
        return
    others = [dut for dut, profile in resolved.duts if profile is None or not _links_can_err(profile)]
    if others or plan.is_external:
        where = f" with {'topology: external' if plan.is_external else named(others[0])}"
        yield Problem(
            ("links",),
            f"no links that err{where}: gateways of User-Mode Linux and in virtual time alone have them",
            ", ".join(links),
            "elsewhere links are the kernel's or cables, where espbench handles no frame: remove it, or use dut: uml, "
            "virt-x86 or mpc8548e",
            on_key=True,
            involves=_DUT,
        )
        return
    if plan.topology == SINGLE and "middle" in links:
        yield Problem(
            ("links", "middle"),
            f"west or east with topology: {SINGLE}",
            "middle",
            "there is no link between gateways: remove it",
            on_key=True,
            involves=(("topology",),),
        )
    late_ns = sum((of.delay or 0) + (of.reordering.by if of.reordering else 0) for of in links.values())
    for index, test in enumerate(plan.tests):
        residue = getattr(test.settings, "residue", None)
        if residue is not None and late_ns >= residue * 1e9:
            yield Problem(
                ("links",),
                f"less delay in all than the residue of the test {test.name}, {residue:g} s",
                f"{late_ns / 1e9:g} s",
                "a frame that comes later counts as lost: raise residue, or lower delay and reordering",
                involves=(("tests", index, test.name),),
            )


def _links_can_err(profile: Profile) -> bool:
    """Return whether each frame on the links of such gateways passes through a program of espbench."""
    return profile.emulated or profile.platform == "uml"


def seed_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find a seed with gateways whose random numbers espbench does not control.

    The profile that replaces `auto` is checked when the plan is run.
    """
    plan = resolved.plan
    real = [dut for dut, profile in resolved.duts if profile is not None and not profile.emulated]
    if "seed" in plan.model_fields_set and (real or plan.is_external):
        yield Problem(
            ("seed",),
            f"no seed with {named(real[0]) if real else 'topology: external'}: gateways in virtual time alone take one",
            str(plan.seed),
            "elsewhere keys and places of memory are drawn by chance: remove it, or use dut: virt-x86 or mpc8548e",
            on_key=True,
            involves=_DUT,
        )


def _only_boards(plan: Plan) -> Iterator[Problem]:
    for index, choice in enumerate(plan.stacks):
        if any(facts.boards_only for facts in choice.facts):
            yield Problem(
                ("stacks", index),
                f"{choice.kind} with a DUT of platform: qemu_e500",
                shown(choice.kind),
                "it is code of the emulated boards' kernel: use dut: mpc8548e, or remove it",
                involves=_DUT,
            )
        if choice.crypto is not None:
            yield Problem(
                ("stacks", index, "crypto"),
                "no crypto but with platform: qemu_e500",
                shown(choice.crypto),
                "elsewhere the kernel has no SEC to be driven in another way: remove it, or use dut: mpc8548e",
                on_key=True,
                involves=_DUT,
            )


def no_dual_pass(boards: dict[str, Board], at: KeyPath) -> Iterator[Problem]:
    """Find boards whose driver does not support dual-pass."""
    for dut, board in boards.items():
        if board.sec.version in WITHOUT_DUAL_PASS:
            yield Problem(
                at,
                f"no dual-pass with {dut}",
                shown("dual-pass"),
                f"Linux has no driver for the hash of a SEC {board.sec.version}: measure that board without it",
                involves=_DUT,
            )
