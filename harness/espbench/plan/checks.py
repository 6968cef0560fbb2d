# SPDX-License-Identifier: Apache-2.0
"""What no single key of a plan can show: keys that contradict each other, frames that cannot pass."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan.accelerator_checks import accelerator_problems
from espbench.plan.compare_checks import compare_problems
from espbench.plan.dependent_checks import dependent_problems
from espbench.plan.emulated_checks import emulated_problems
from espbench.plan.external_checks import external_problems
from espbench.plan.frames import USUAL_MTU, framing_bytes, largest_whole, mean_frame_size, shares_of, sizes_of
from espbench.plan.generator_checks import generator_problems
from espbench.plan.ipsec_checks import ipsec_problems
from espbench.plan.model import SINGLE, Plan, Throughput
from espbench.plan.profiles import is_path, load_profile, profile_names
from espbench.plan.reader import KeyPath, Problem, did_you_mean, shown
from espbench.plan.remote_checks import remote_problems
from espbench.plan.search_choice import search_problems
from espbench.plan.single_checks import direction_problems, single_problems
from espbench.plan.stack_checks import stack_problems
from espbench.plan.units import Rate, format_duration, format_fraction
from espbench.stacks.suites import suites

MOST_CASES = 20_000  # two weeks of the shortest trials


def problems(plan: Plan, path: Path | None) -> list[Problem]:
    """Every contradiction in a plan whose keys are right one by one; path is the plan's file."""
    if found := [*_too_many_cases(plan)]:
        return found  # the checks below look at each combination
    found = [*_repeated(plan), *_rates_and_times(plan), *_small_frames(plan), *generator_problems(plan)]
    found += [*accelerator_problems(plan, path), *direction_problems(plan), *dependent_problems(plan)]
    found += ipsec_problems(plan, path)
    if plan.topology == "external":
        return [*found, *external_problems(plan)]
    mtu, about_dut = _mtu(plan, path)
    found += [*single_problems(plan, path, mtu)]
    found += [*about_dut, *stack_problems(plan, path), *_keys_of_external(plan), *_large_frames(plan, mtu)]
    return [*found, *compare_problems(plan), *remote_problems(plan, path), *emulated_problems(plan, path)]


def _too_many_cases(plan: Plan) -> Iterator[Problem]:
    keys = ("stacks", "suites", "ip_versions", "repeat", "directions", "frame_sizes", "tests")
    counts = [value if isinstance(value := getattr(plan, key), int) else max(1, len(value)) for key in keys]
    if (count := math.prod(counts)) > MOST_CASES:
        largest = max(zip(counts, keys, strict=True))[1]
        yield Problem(
            (largest,),
            f"at most {MOST_CASES:,} combinations of {', '.join(keys)}",
            f"{count:,}",
            "shorten one of them, or write several plans",
            involves=tuple((key,) for key in keys),
        )


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
        if test.throughput is None:
            continue
        settings, at = test.throughput, ("tests", index, test.name)
        yield from search_problems(settings, at)
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
        return rate.to_fps(mean_frame_size(plan, size), plan.line_rate or 0.0)

    return all(fps(low, size) < fps(high, size) for size in plan.frame_sizes)


def _small_frames(plan: Plan) -> Iterator[Problem]:
    for version, (index, frame_size) in product(plan.ip_versions, enumerate(plan.frame_sizes)):
        shares = shares_of(plan, frame_size)
        least = [(size, plan.pattern.smallest_frame(version, *header)) for size, _, *header in shares]
        small = [(size, smallest) for size, smallest in least if size < smallest]
        if small:
            size, smallest = small[0]
            got = shown(frame_size) + (f" (it holds {size} B)" if isinstance(frame_size, str) else "")
            yield Problem(
                ("frame_sizes", index),
                f"frames of at least {smallest} B for IPv{version}",
                got,
                "headers and the test payload need that much",
                involves=(("ip_versions",),),
            )


def _mtu(plan: Plan, path: Path | None) -> tuple[int, list[Problem]]:
    """The MTU frames must fit: the least of all DUTs'; and what is wrong with their names."""
    smallest, found = USUAL_MTU, []
    for index, dut in enumerate(plan.duts):
        at: KeyPath = ("dut", index) if isinstance(plan.dut, list) else ("dut",)
        if dut == "auto" and not isinstance(plan.dut, list):
            continue
        if not is_path(dut) and dut not in profile_names():
            known = (*(() if isinstance(plan.dut, list) else ("auto",)), *profile_names())
            remedy = did_you_mean(dut, known, "write the path of a profile of your own as ./my-profile.yaml")
            found.append(Problem(at, f"one of {', '.join(known)}, or a path", shown(dut), remedy))
            continue
        try:
            mtu = load_profile(dut, path).mtu
            smallest = mtu if index == 0 else min(smallest, mtu)
        except UsageError as error:
            found.append(Problem(at, "a DUT profile that can be read", shown(dut), f"it says: {error}"))
    return smallest, found


def _keys_of_external(plan: Plan) -> Iterator[Problem]:
    for key in ("ports", "i_own_this_network"):
        if getattr(plan, key):
            yield Problem(
                (key,),
                f"no {key} with topology: {plan.topology}",
                "one",
                "remove it, or use topology: external",
                on_key=True,
                involves=(("topology",),),
            )


def _large_frames(plan: Plan, mtu: int) -> Iterator[Problem]:
    for index, frame_size in enumerate(plan.frame_sizes):
        at, largest = ("frame_sizes", index), max(sizes_of(plan, frame_size))
        framing = framing_bytes(plan)
        if largest - framing > mtu:
            yield Problem(
                at,
                f"frames of at most {mtu + framing} B (the MTU is {mtu})",
                shown(frame_size),
                "choose a smaller size, or a DUT profile with a larger mtu",
                involves=(("dut",),),
            )
            continue
        refused = list(_frames_no_stack_takes(plan, at, frame_size, largest))
        yield from refused
        if plan.dont_fragment and not refused and plan.topology != SINGLE:
            yield from _frames_that_cannot_pass(plan, mtu, at, frame_size, largest)


def _frames_no_stack_takes(plan: Plan, at: KeyPath, frame_size: int | str, largest: int) -> Iterator[Problem]:
    framing = framing_bytes(plan)
    for choice in plan.stacks:
        for facts in choice.facts:
            if facts.largest_packet is None:
                continue
            packet, why = facts.largest_packet
            if largest - framing > packet:
                yield Problem(
                    at,
                    f"frames of at most {packet + framing} B with {choice.shown} ({why})",
                    shown(frame_size),
                    f"choose {packet + framing} or less, or measure that stack in a plan of its own",
                    involves=(("stacks",),),
                )


def _frames_that_cannot_pass(
    plan: Plan, mtu: int, at: KeyPath, frame_size: int | str, largest: int
) -> Iterator[Problem]:
    for choice, version in product(plan.encrypting, plan.ip_versions):
        for suite in choice.suites(plan.suites):
            if suite not in suites():
                continue
            fits = largest_whole(choice, suite, version, mtu) + plan.pattern.tag_bytes
            if largest <= fits:
                continue
            form = f"{choice.mode} mode" + (" in UDP" if choice.in_udp else "")
            yield Problem(
                at,
                f"frames of at most {fits} B with dont_fragment: true "
                f"({suite}, {form}, IPv{version}, MTU {mtu})",
                shown(frame_size),
                f"choose {fits} or less, or dont_fragment: false",
                involves=(("dont_fragment",), ("suites",), ("stacks",), ("dut",), ("ip_versions",)),
            )
