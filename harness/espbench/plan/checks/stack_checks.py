# SPDX-License-Identifier: Apache-2.0
"""Finds mistakes in a plan's stacks and suites: wrong names, and keys that do not fit together."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from espbench.catalogue.certificate_keys import DEFAULT_KEY, NSS_KEYS
from espbench.catalogue.stack_names import INTEROPERABLE, NULL_SUITE, STACKS
from espbench.catalogue.suites import suites
from espbench.plan.keys.model import Plan
from espbench.plan.keys.stack_choice import StackChoice
from espbench.plan.reading.reader import KeyPath, Problem, did_you_mean, shown
from espbench.plan.reading.units import format_duration
from espbench.plan.resolved.resolved_plan import ResolvedPlan

_ALWAYS = {"label", "tunnels"}
_KERNEL = {"replay_window", "esn", "udp_encapsulation", "df", "interface", "mode"}
_IKE = {"ike", "auth", "certificate", "lifetime", "ike_lifetime"}
_DAEMON = {"version", "prefix"}
_IDLE = "idle_timeout"
_OF_FEW = {"crypto": ("xfrm", "lean-esp"), "policies": ("plain",)}
_INTEROPERATION = frozenset({"home", "office", "lifetime_bytes", _IDLE} | _ALWAYS | _KERNEL | _IKE)


def keys_of(name: str) -> frozenset[str]:
    """Return the keys that an entry of this stack may have."""
    keys = {"stack"} | _ALWAYS
    facts = STACKS[name]
    if facts.kernel_esp:
        keys |= _KERNEL
    keys |= {key for key, stacks in _OF_FEW.items() if name in stacks}
    if facts.ike:
        keys |= _IKE | _DAEMON | {"mode", "udp_encapsulation"}
    if facts.ike and facts.kernel_esp:
        keys |= {"lifetime_bytes", _IDLE}
    return frozenset(keys)


def stack_problems(resolved: ResolvedPlan) -> Iterator[Problem]:
    """Find every mistake in `stacks` and `suites` for gateways that espbench builds."""
    plan = resolved.plan
    if not plan.stacks:
        yield Problem(
            ("stacks",), f"at least one of {', '.join(STACKS)}", "none", "add stacks: [plain, xfrm]"
        )
    for index, choice in enumerate(plan.stacks):
        at: KeyPath = ("stacks", index)
        if choice.stack is None or choice.home or choice.office:
            named = _interoperation(choice, at)
        else:
            named = _one_stack(choice, at)
        wrong = list(named)
        yield from wrong
        if not wrong:
            yield from _options(plan, choice, at, resolved.path)
    yield from _suites(plan)


def _one_stack(choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find a wrong name, and keys that this stack does not have."""
    assert choice.stack is not None
    if choice.stack not in STACKS:
        remedy = did_you_mean(choice.stack, STACKS, "espbench list stacks shows them")
        yield Problem((*at, "stack"), f"one of {', '.join(STACKS)}", shown(choice.stack), remedy)
        return
    for key in sorted(choice.model_fields_set - keys_of(choice.stack)):
        facts = STACKS[choice.stack]
        if not facts.encrypts:
            expected, remedy = "no ESP options on plain", "plain carries no ESP: remove it"
        elif key in _OF_FEW:
            expected, remedy = (
                f"no {key} on {choice.stack}",
                f"{' and '.join(_OF_FEW[key])} alone {'has' if len(_OF_FEW[key]) == 1 else 'have'} this option: "
                "remove it",
            )
        elif facts.boards_only:
            expected, remedy = f"no {key} on {choice.stack}", "it has no such option: remove it"
        elif not facts.ike:
            expected, remedy = (
                f"no {key} on {choice.stack}",
                "its SAs are static, nothing negotiates: remove it",
            )
        else:
            expected, remedy = f"no {key} on {choice.stack}", "its ESP is not the kernel's: remove it"
        yield Problem((*at, key), expected, key, remedy, on_key=True, involves=((*at, "stack"),))


def _interoperation(choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find mistakes in an entry with two daemons, one on each gateway."""
    both = ((*at, "home"), (*at, "office"), (*at, "stack"))
    pair = f"two different ones of {', '.join(INTEROPERABLE)} as home and office"
    if choice.stack is not None:
        remedy = "remove stack, or home and office"
        yield Problem((*at, "stack"), "stack, or home and office", "both", remedy, involves=both)
        return
    if choice.home is None or choice.office is None:
        got = next((key for key in ("home", "office") if getattr(choice, key)), "neither")
        remedy = "write {stack: …}, or {home: strongswan, office: libreswan}"
        yield Problem(at, "stack, or home and office", got, remedy, involves=both)
        return
    for key, name in (("home", choice.home), ("office", choice.office)):
        if name not in INTEROPERABLE:
            remedy = did_you_mean(name, INTEROPERABLE, "only daemons that use the kernel's ESP are paired")
            yield Problem((*at, key), f"one of {', '.join(INTEROPERABLE)}", shown(name), remedy)
    if choice.home == choice.office and choice.home in INTEROPERABLE:
        yield Problem(
            (*at, "office"),
            pair,
            f"{choice.office} twice",
            f"write {{stack: {choice.office}}}",
            involves=both,
        )
    for key in sorted(choice.model_fields_set - _INTEROPERATION):
        remedy = "each gateway runs its own daemon's default package: remove it"
        yield Problem((*at, key), f"no {key} with home and office", key, remedy, on_key=True, involves=both)


def _certificate(choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find a kind of key without certificates, and a kind that libreswan does not support."""
    if choice.certificate == DEFAULT_KEY:
        return
    if choice.auth != "certificates":
        yield Problem(
            (*at, "certificate"),
            "auth: certificates with certificate",
            f"auth: {choice.auth}",
            "add auth: certificates, or remove certificate",
            on_key=True,
            involves=((*at, "auth"),),
        )
    elif "libreswan" in (choice.stack, choice.home, choice.office) and choice.certificate not in NSS_KEYS:
        yield Problem(
            (*at, "certificate"),
            f"one of {', '.join(NSS_KEYS)} with libreswan",
            choice.certificate,
            "use stack: strongswan for the other kinds",
            involves=((*at, "stack"),),
        )


def _options(plan: Plan, choice: StackChoice, at: KeyPath, path: Path | None) -> Iterator[Problem]:
    """Find keys that contradict each other, the tests or the flows."""
    static = choice.stack in ("null", "xfrm")
    this = (*at, "stack")
    if choice.esn and choice.replay_window == 0:
        yield Problem(
            (*at, "replay_window"),
            "a replay window of at least 1 with esn: true",
            "0",
            "ESN needs the window (RFC 4303 3.4.3)",
            involves=((*at, "esn"),),
        )
    if choice.df == {"tunnel": "set", "transport": "clear"}[choice.mode]:
        # XFRM copies the bit or clears it; an IP-in-IP device copies it or sets it.
        yield Problem(
            (*at, "df"),
            f"copy or {'clear' if choice.mode == 'tunnel' else 'set'} with mode: {choice.mode}",
            choice.df,
            f"the kernel has no way to {choice.df} the bit there",
            involves=((*at, "mode"),),
        )
    if choice.mode == "transport" and not static:
        remedy = "transport mode is there for xfrm and null"
        yield Problem((*at, "mode"), f"mode: tunnel on {choice.kind}", "transport", remedy, involves=(this,))
    elif choice.mode == "transport":
        for key, value, usual in (("tunnels", choice.tunnels, 1), ("interface", choice.interface, False)):
            if value != usual:
                yield Problem(
                    (*at, key),
                    f"{key}: {shown(usual)} with mode: transport",
                    shown(value),
                    "transport mode protects one IP-in-IP tunnel: use mode: tunnel",
                    involves=((*at, "mode"),),
                )
    if choice.stack == "strongswan-libipsec":
        yield from _user_space(plan, choice, at)
    if choice.version is not None and choice.prefix is not None:
        yield Problem(
            (*at, "prefix"),
            "version or prefix",
            "both",
            "prefix is your own build, version a package: remove one",
            on_key=True,
            involves=((*at, "version"),),
        )
    folder = choice.prefix_beside(path)
    # Path.is_dir() raises OSError if the name is too long; this does not.
    if folder is not None and not os.path.isdir(folder):  # noqa: PTH112
        remedy = "relative paths start beside the plan file; check the path"
        yield Problem((*at, "prefix"), "a folder that is there", shown(choice.prefix), remedy)
    if choice.tunnels > 1 and plan.flows.networks > 1:
        yield Problem(
            (*at, "tunnels"),
            f"tunnels: 1 with flows.networks: {plan.flows.networks}",
            str(choice.tunnels),
            "tunnels spread the traffic over networks of their own: remove one of the two keys",
            involves=(("flows", "networks"),),
        )
    yield from _certificate(choice, at)
    yield from _lifetime(plan, choice, at)


def _lifetime(plan: Plan, choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    for facts, key in product(choice.facts, ("lifetime", "ike_lifetime")):
        kept_s = facts.longest_lifetime_s
        if kept_s is not None and getattr(choice, key) > kept_s:
            yield Problem(
                (*at, key),
                f"0 (never) or at most {format_duration(kept_s)} with {facts.daemon}",
                shown(format_duration(getattr(choice, key))),
                f"{facts.daemon} keeps no SA longer than a day: shorten it or remove it",
                involves=((*at, "stack"), (*at, "home"), (*at, "office")),
            )
    if choice.idle_timeout:
        yield from idle_problems(choice, (*at, _IDLE), at)
        yield from _short_idle_timeout(plan, choice, (*at, _IDLE))
    if not choice.lifetime:
        return
    longest = max((settings.longest_s for _, settings in plan.traffic_tests), default=0.0)
    if choice.lifetime < 2 * longest:
        least = format_duration(2 * longest)
        yield Problem(
            (*at, "lifetime"),
            f"0 (never) or at least {least}, twice a search trial and a final trial",
            shown(format_duration(choice.lifetime)),
            "a rekey inside a trial makes it INVALID: lengthen lifetime or shorten the trials",
            involves=(("tests",),),
        )


def _short_idle_timeout(plan: Plan, choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find SAs that would be deleted in the waits between two trials."""
    waits_s = max((settings.residue + settings.settle for _, settings in plan.traffic_tests), default=0.0)
    if choice.idle_timeout < 2 * waits_s:
        yield Problem(
            at,
            f"0 (never) or at least {format_duration(2 * waits_s)}, twice the waits between two trials",
            shown(format_duration(choice.idle_timeout)),
            "the SAs would be gone before the next trial: lengthen it, or shorten settle and residue",
            involves=(("tests",),),
        )


def idle_problems(choice: StackChoice, at: KeyPath, stack_at: KeyPath) -> Iterator[Problem]:
    """Find a daemon on Home that does not delete idle SAs; at: the key that needs this."""
    home = choice.stack or choice.home
    if home in STACKS and not STACKS[home].closes_idle:
        yield Problem(
            at,
            "strongswan on Home, whose charon deletes SAs without traffic",
            f"{home}, which has no such timeout",
            "use stack: strongswan, or remove it",
            on_key=True,
            involves=((*stack_at, "stack"), (*stack_at, "home")),
        )


def _user_space(plan: Plan, choice: StackChoice, at: KeyPath) -> Iterator[Problem]:
    """Find options that ESP in user space does not support."""
    this = (*at, "stack")
    if choice.tunnels > 1:
        # Its routes need an address of the gateway itself behind each tunnel.
        yield Problem(
            (*at, "tunnels"),
            "tunnels: 1 on strongswan-libipsec",
            str(choice.tunnels),
            "kernel-libipsec routes only what holds an address of the gateway: remove it",
            involves=(this,),
        )
    if plan.capture:
        yield Problem(
            ("capture",),
            "no capture with strongswan-libipsec",
            "true",
            "the keys of ESP in user space cannot be read back: remove one of the two",
            on_key=True,
            involves=(this,),
        )
    if "udp_encapsulation" in choice.model_fields_set and not choice.udp_encapsulation:
        remedy = "its ESP always travels inside UDP: remove it"
        yield Problem(
            (*at, "udp_encapsulation"),
            "udp_encapsulation: true on strongswan-libipsec",
            "false",
            remedy,
            involves=(this,),
        )


def _suites(plan: Plan) -> Iterator[Problem]:
    negotiating = [c for c in plan.stacks if c.stack is None or (c.stack in STACKS and STACKS[c.stack].ike)]
    for index, name in enumerate(plan.suites):
        if name not in suites():
            remedy = did_you_mean(name, suites(), "espbench list suites shows them")
            yield Problem(("suites", index), f"one of {', '.join(suites())}", shown(name), remedy)
        elif name == NULL_SUITE and negotiating:
            yield Problem(
                ("suites", index),
                f"a suite IKE may negotiate for {negotiating[0].shown}",
                NULL_SUITE,
                "ESP without encryption and integrity is forbidden (RFC 4303 3.2): remove it and add "
                "null to stacks, which has static SAs",
                involves=(("stacks",),),
            )
    if plan.taking_suites and not plan.suites:
        yield Problem(
            ("suites",),
            f"at least one suite for {plan.taking_suites[0].shown}",
            "none",
            "add suites: [aes128gcm16]",
            involves=(("stacks",),),
        )
    if plan.suites and plan.stacks and not plan.taking_suites:
        yield Problem(
            ("suites",),
            "no suites: no stack here takes one",
            "some",
            "add xfrm to stacks or remove suites",
            on_key=True,
            involves=(("stacks",),),
        )
