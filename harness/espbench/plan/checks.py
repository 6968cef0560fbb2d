# SPDX-License-Identifier: Apache-2.0
"""What no single key of a plan can show: keys that contradict each other, frames that cannot pass."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.model import ExternalPort, Plan, Throughput
from espbench.plan.profiles import is_path, load_profile, profile_names
from espbench.plan.reader import KeyPath, Problem, did_you_mean, shown
from espbench.plan.traffic_profiles import ETHERNET_HEADER_BYTES, mix, rfc2544_frame
from espbench.plan.units import Rate, format_duration, format_fraction
from espbench.stacks.suites import suites
from espbench.terms import FCS_BYTES

STACKS = ("plain", "xfrm")
FRAMING_BYTES = ETHERNET_HEADER_BYTES + FCS_BYTES
_USUAL_MTU = 1500


def problems(plan: Plan, path: Path | None) -> list[Problem]:
    """Every contradiction in a plan whose keys are right one by one; path is the plan's file."""
    found = [*_repeated(plan), *_rates_and_times(plan), *_small_frames(plan)]
    if plan.topology == "external":
        return [*found, *_external(plan)]
    mtu, about_dut = _mtu(plan, path)
    return [*found, *about_dut, *_gateway_to_gateway(plan), *_large_frames(plan, mtu)]


def sizes_of(frame_size: int | str) -> list[int]:
    """The size itself, or those of the mix."""
    return [part.size for part in mix(frame_size).mix] if isinstance(frame_size, str) else [frame_size]


def mean_frame_size(frame_size: int | str) -> float:
    """Mean bytes per frame, with FCS."""
    return mix(frame_size).mean_frame_size if isinstance(frame_size, str) else float(frame_size)


def _repeated(plan: Plan) -> Iterator[Problem]:
    lists: dict[str, Sequence[object]] = {
        "suites": plan.suites,
        "frame_sizes": plan.frame_sizes,
        "directions": plan.directions,
        "ip_versions": plan.ip_versions,
    }
    for key, entries in lists.items():
        for index, entry in enumerate(entries):
            if entry in entries[:index]:
                remedy = "remove it; repeat: 2 measures every case twice"
                yield Problem((key, index), "each entry once", f"{shown(entry)} again", remedy)
    labels = [choice.shown for choice in plan.stacks]
    for index, label in enumerate(labels):
        if label in labels[:index]:
            remedy = "give one of them a label, such as {stack: xfrm, label: xfrm-esn, esn: true}"
            yield Problem(
                ("stacks", index), "a label of its own for each stack", f"{shown(label)} again", remedy
            )


def _rates_and_times(plan: Plan) -> Iterator[Problem]:
    for index, test in enumerate(plan.tests):
        settings, at = test.settings, ("tests", index, test.name)
        if settings.final_trial < settings.trial:
            yield Problem(
                (*at, "final_trial"),
                f"at least the trial's {format_duration(settings.trial)}",
                shown(format_duration(settings.final_trial)),
                "lengthen final_trial or shorten trial",
                involves=((*at, "trial"),),
            )
        for position, goal in enumerate(settings.loss_goals):
            if goal in settings.loss_goals[:position]:
                remedy = "one answer is given for each goal: remove it"
                yield Problem(
                    (*at, "loss_goals", position), "each goal once", f"{format_fraction(goal)} again", remedy
                )
        if not _minimum_is_lower(plan, settings):
            yield Problem(
                (*at, "minimum"),
                f"less than maximum ({settings.maximum})",
                shown(str(settings.minimum)),
                "the search runs from minimum to maximum",
                involves=((*at, "maximum"), ("line_rate",)),
            )


def _minimum_is_lower(plan: Plan, settings: Throughput) -> bool:
    """True also where it cannot be told before the line rate is known."""
    low, high = settings.minimum, settings.maximum
    if low is None or high is None:
        return True
    if low.unit == high.unit:
        return low.value < high.value
    if plan.line_rate is None and "%" in (low.unit, high.unit):
        return True

    def fps(rate: Rate, size: int | str) -> float:
        return rate.to_fps(mean_frame_size(size), plan.line_rate or 0.0)

    return all(fps(low, size) < fps(high, size) for size in plan.frame_sizes)


def _small_frames(plan: Plan) -> Iterator[Problem]:
    for version, (index, frame_size) in product(plan.ip_versions, enumerate(plan.frame_sizes)):
        smallest = rfc2544_frame().smallest_frame(version)
        small = [size for size in sizes_of(frame_size) if size < smallest]
        if small:
            got = shown(frame_size) + (f" (it holds {small[0]} B)" if isinstance(frame_size, str) else "")
            yield Problem(
                ("frame_sizes", index),
                f"frames of at least {smallest} B for IPv{version}",
                got,
                "headers and the test payload need that much",
                involves=(("ip_versions",),),
            )


def _mtu(plan: Plan, path: Path | None) -> tuple[int, list[Problem]]:
    if plan.dut == "auto":
        return _USUAL_MTU, []
    if not is_path(plan.dut) and plan.dut not in profile_names():
        known = ("auto", *profile_names())
        remedy = did_you_mean(plan.dut, known, "write the path of a profile of your own as ./my-profile.yaml")
        return _USUAL_MTU, [
            Problem(("dut",), f"one of {', '.join(known)}, or a path", shown(plan.dut), remedy)
        ]
    try:
        return load_profile(plan.dut, path).mtu, []
    except UsageError as error:
        return _USUAL_MTU, [
            Problem(("dut",), "a DUT profile that can be read", shown(plan.dut), f"it says: {error}")
        ]


def _gateway_to_gateway(plan: Plan) -> Iterator[Problem]:
    if not plan.stacks:
        yield Problem(
            ("stacks",), f"at least one of {', '.join(STACKS)}", "none", "add stacks: [plain, xfrm]"
        )
    for index, choice in enumerate(plan.stacks):
        at: KeyPath = ("stacks", index)
        if choice.stack not in STACKS:
            remedy = did_you_mean(choice.stack, STACKS, "espbench list stacks shows them")
            yield Problem((*at, "stack"), f"one of {', '.join(STACKS)}", shown(choice.stack), remedy)
        for key in sorted(choice.model_fields_set & {"mode", "replay_window", "esn"}):
            if choice.stack == "plain":
                yield Problem(
                    (*at, key), "no ESP options on plain", key, "plain carries no ESP: remove it", on_key=True
                )
        if choice.esn and choice.replay_window == 0:
            yield Problem(
                (*at, "replay_window"),
                "a replay window of at least 1 with esn: true",
                "0",
                "ESN needs the window (RFC 4303 3.4.3)",
                involves=((*at, "esn"),),
            )
    for index, name in enumerate(plan.suites):
        if name not in suites():
            remedy = did_you_mean(name, suites(), "espbench list suites shows them")
            yield Problem(("suites", index), f"one of {', '.join(suites())}", shown(name), remedy)
    if plan.encrypting and not plan.suites:
        yield Problem(
            ("suites",),
            f"at least one suite for {plan.encrypting[0].shown}",
            "none",
            "add suites: [aes128gcm16]",
            involves=(("stacks",),),
        )
    if plan.suites and plan.stacks and not plan.encrypting:
        yield Problem(
            ("suites",),
            "no suites: no stack here encrypts",
            "some",
            "add xfrm to stacks or remove suites",
            on_key=True,
            involves=(("stacks",),),
        )
    for key in ("ports", "i_own_this_network"):
        if getattr(plan, key):
            yield Problem(
                (key,),
                f"no {key} with topology: gateway-to-gateway",
                "one",
                "remove it, or use topology: external",
                on_key=True,
                involves=(("topology",),),
            )


def _large_frames(plan: Plan, mtu: int) -> Iterator[Problem]:
    for index, frame_size in enumerate(plan.frame_sizes):
        at, largest = ("frame_sizes", index), max(sizes_of(frame_size))
        if largest - FRAMING_BYTES > mtu:
            yield Problem(
                at,
                f"frames of at most {mtu + FRAMING_BYTES} B (the MTU is {mtu})",
                shown(frame_size),
                "choose a smaller size, or a DUT profile with a larger mtu",
                involves=(("dut",),),
            )
        elif plan.dont_fragment:
            yield from _frames_that_cannot_pass(plan, mtu, at, frame_size, largest)


def _frames_that_cannot_pass(
    plan: Plan, mtu: int, at: KeyPath, frame_size: int | str, largest: int
) -> Iterator[Problem]:
    known = [suites()[name] for name in plan.suites if name in suites()]
    for choice, suite, version in product(plan.encrypting, known, plan.ip_versions):
        # Transport mode carries IP in IP: as many bytes as tunnel mode.
        fits = suite.largest_inner(mtu, "tunnel", version) + FRAMING_BYTES
        if largest > fits:
            yield Problem(
                at,
                f"frames of at most {fits} B with dont_fragment: true "
                f"({suite.name}, {choice.mode} mode, IPv{version}, MTU {mtu})",
                shown(frame_size),
                f"choose {fits} or less, or dont_fragment: false",
                involves=(("dont_fragment",), ("suites",), ("stacks",), ("dut",), ("ip_versions",)),
            )


def _external(plan: Plan) -> Iterator[Problem]:
    for key in ("stacks", "suites"):
        if len(getattr(plan, key)) > 1:
            yield Problem(
                (key, 1),
                "one entry: with topology: external it is a label",
                "another",
                "write one plan per configuration of the box",
                involves=(("topology",),),
            )
    for index, choice in enumerate(plan.stacks):
        for option in sorted(choice.model_fields_set & {"mode", "replay_window", "esn"}):
            yield Problem(
                ("stacks", index, option),
                "no options with topology: external",
                option,
                "espbench does not configure the box: remove it",
                on_key=True,
                involves=(("topology",),),
            )
    if plan.capture:
        yield Problem(
            ("capture",),
            "no capture with topology: external",
            "true",
            "espbench has neither the middle link nor the keys of boxes it did not build: remove it",
            involves=(("topology",),),
        )
    if plan.ports is None:
        yield Problem(
            ("ports",),
            "the tester's two ports",
            "none",
            "add ports: {west: {interface: …, address: …, gateway: …}, east: {…}}",
            involves=(("topology",),),
        )
        return
    west, east = plan.ports.west, plan.ports.east
    yield from _port(plan, "west", west)
    yield from _port(plan, "east", east)
    if (west.netns, west.interface) == (east.netns, east.interface):
        yield Problem(
            ("ports", "east", "interface"),
            "another interface than west's",
            shown(east.interface),
            "frames go out of one port and come back at the other",
        )
    for index, version in enumerate(plan.ip_versions):
        if {west.ip_version, east.ip_version} != {version}:
            yield Problem(
                ("ip_versions", index),
                f"the version of both ports' addresses (IPv{west.ip_version}, IPv{east.ip_version})",
                str(version),
                f"write ip_versions: [{west.ip_version}] or change the addresses",
                involves=(("ports",),),
            )


def _port(plan: Plan, name: str, port: ExternalPort) -> Iterator[Problem]:
    at = ("ports", name)
    own, gateway = ipaddress.ip_interface(port.address), ipaddress.ip_address(port.gateway)
    if gateway not in own.network or gateway == own.ip:
        yield Problem(
            (*at, "gateway"),
            f"another address of {own.network}",
            shown(port.gateway),
            "the DUT's address on the same link as the port",
            involves=((*at, "address"),),
        )
    if port.netns is None and not plan.i_own_this_network:
        yield Problem(
            (*at, "interface"),
            "an interface in a network namespace (netns: …)",
            f"{shown(port.interface)} of the initial namespace",
            "if this network carries nothing but the test (RFC 6815), add i_own_this_network: true",
            involves=(("i_own_this_network",), (*at, "netns")),
        )
