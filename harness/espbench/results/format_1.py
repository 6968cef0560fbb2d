# SPDX-License-Identifier: Apache-2.0
"""Reads records of format 1, whose sentences have no codes; only this module parses sentences of earlier versions.

It has the sentences as that format had them, even if `sentences.py` words their codes differently today. An unknown
sentence stays as it is, and gets a code that the program does not use.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from espbench import sentences
from espbench.quantities import Key
from espbench.sentences import Code
from espbench.terms import CODES

_REASONS: Mapping[Code, str] = {
    Code.SENT_FEWER: "generator sent {sent} of {intended} frames ({pct:.2f} %){why:?: }",
    Code.SENT_SLOWLY: "generator sent {sent} frames in {took_s:.3f} s instead of {intended_s:.3f} s",
    Code.SENDER_STARVED: "host starvation: others, or the host, had {pct:.1f} % of the sender's CPU",
    Code.LATE: "departures late: half of the frames left {half_ms:.1f} ms after their time or later, "
    "1 % {slowest_ms:.1f} ms",
    Code.LATE_IN_VIRTUAL_TIME: "departures late: up to {most_us:.1f} µs in virtual time, beyond the rate of the link",
    Code.BURST_SLOW: "generator sent the burst at {fps:,.0f} frames/s instead of {intended_fps:,.0f}",
    Code.BURST_PAUSED: "departures late: within the burst the tester paused for {pause_us:,.0f} µs",
    Code.NOISE_WEAK: "noise {stream}: {sent} of {intended} frames left: a weaker attack",
    Code.STOPPED_EARLY: "generator stopped early",
    Code.RECEIVER_OVERRUN: "receiver overrun: {frames} frames reached the tester and were dropped there",
    Code.MORE_RECEIVED: "{way}: more received ({received}) than sent ({sent})",
    Code.CLOCK_STEPPED: "the system clock stepped by {ms:.1f} ms during the trial",
    Code.HOST_STALL: "host stall: host or sender stood still, or made it good, for {pct:.1f} % of the trial",
    Code.HOST_STALL_IN_OUTAGE: "host stall: {pct:.0f} % of the time without traffic the host stood still",
    Code.HOST_STALL_OF_LOSS: "host stall: {frames} lost frames were due while host or sender stood still",
    Code.HOST_STARVATION: "host starvation: others took {starved_pct:.1f} % of the gateways' CPU, "
    "the hypervisor stole up to {stolen_pct:.1f} %",
    Code.ACTION_UNTIMELY: "host: {action}, meant for {at_s:g} s after the first frame, "
    "was from {began_s:.1f} s to {ended_s:.1f} s",
    Code.COUNTER_BACKWARDS: "counter ran backwards: {counter}",
    Code.SAS_REPLACED: "the SAs of {sides:and} were replaced during the trial (rekeying)",
    Code.NOT_PROVEN: "encryption not proven: {problem}",
    Code.STORED: "stored, not forwarded: the backlog grew by {growth_ms:.0f} ms, {pct:.1f} % of the offered rate",
    Code.REKEYED_MEANWHILE: "{rekeys} rekeys during the test",
    Code.NONE_CAME_UP: "not even {wanted} came up: {why}",
    Code.NO_REKEY: "no rekey of phase {phase} was seen",
    Code.FEW_REKEYS: "{seen} rekeys were seen, at least {least} belong into {trial_s:g} s",
    Code.TUNNELS_BY_THEMSELVES: "{found} tunnels with an IKE SA each were set up by themselves, "
    "{wanted} were asked for",
    Code.CHILD_SAS_BY_THEMSELVES: "{found} CHILD SAs were set up by themselves, {wanted} were asked for",
    Code.NOT_ONE_TUNNEL: "{found} tunnels were set up instead of one",
    Code.NOT_MISSED: "no frame was lost: what was taken away was not missed",
    Code.NO_POWER_SWITCH: "what: power: espbench cannot switch gateways of platform {platform} off and on; "
    "use dut: uml",
    Code.NO_REASON: "no reason recorded",
    Code.BELOW_MINIMUM: "missed at the minimum of {fps:,.0f} frames/s",
    Code.FINALS_DISAGREE: "{trials} final trials did not agree on a throughput",
    Code.TRIALS_DISAGREE: "{trials} trials did not agree on a throughput",
    Code.LIBRARY_GAVE_UP: "the MLRsearch library gave up: {why}",
    Code.TOO_FEW_BELOW: "below {fps:,.0f} frames/s even {trials} trials of {trial_s:g} s hold too few frames to judge "
    "the goal",
    Code.TOO_FEW_IN_TRIALS: "at {fps:,.0f} frames/s {sum_s:g} s of trials hold too few frames to judge the goal",
    Code.TOO_FEW_IN_TRIAL: "at {fps:,.0f} frames/s trials of {trial_s:g} s hold too few frames to judge the goal",
    Code.TRIAL_SENT_TOO_FEW: "a trial at {fps:,.0f} frames/s sent too few frames",
    Code.FINALS_SENT_TOO_FEW: "final trials at {fps:,.0f} frames/s sent too few frames",
    Code.BOUND_ON_TOO_FEW: "the bound of {fps:,.0f} frames/s rests on trials with too few frames to judge the goal: "
    "longer trials would tell",
    Code.GIVEN_UP: "{trials} trials at {fps:,.0f} frames/s could not be judged{why:?: }",
    Code.INVALID_TRIALS: "{trials} trials at {fps:,.0f} frames/s were INVALID{why:?: }",
    Code.OFFERED_LESS: "less was offered than was asked for",
    Code.ONLY_OFFERED: "only {fps:,.0f} frames/s were offered",
    Code.LOST_IN_STALLS: "frames were lost only while the host or the sender stood still",
    Code.AND_MORE: "and more of the kind",
    Code.NO_THROUGHPUT: "no throughput with the loss goal {goal:goal} was measured at this point",
    Code.THROUGHPUT_IS: "its throughput at {goal:goal} is {status}",
    Code.NO_FLOOD: "the load is below the throughput of {fps:,.0f} frames/s, which is no flood",
    Code.NO_LINE_RATE_FOR_BURSTS: "bursts leave at the line rate (RFC 2544 26.4), which neither the plan (line_rate) "
    "nor a port tells: write line_rate, or maximum for the rate of the bursts",
    Code.UDP_NOT_FORGED: "ESP in UDP is not forged here",
    Code.NO_REPLAY_WINDOW: "its replay window is 0: replays are taken for new",
    Code.NOT_RECOVERED: "it had not recovered when the trial ended: lengthen {key}",
    Code.NO_FRAME_CAME: "no frame had arrived when the trial ended: lengthen trial",
    Code.TAGS_LOST: "every tagged frame was lost, or the generator cannot tag",
    Code.VOID_TRIALS: "{void} of {trials} trials void: {why}",
    Code.OTHER_LOAD: "the tester offered another load than it was asked for",
    Code.NO_BOUNDS: "no throughput of both arms is known, not even a lower bound",
    Code.CROSSED_IN_CLEAR: "frames crossed without encryption in trial {trial}",
}
_WARNINGS: Mapping[Code, str] = {
    Code.TESTER_LIMITED: "tester-limited: within 10 % of what the generator itself can offer "
    "({ceiling_fps:,.0f} frames/s); the DUT may be faster",
    Code.AT_MAXIMUM: "at the search's maximum ({fps:,.0f} frames/s): the DUT may be faster",
    Code.MAXIMUM_LOWERED: "maximum lowered from {planned_fps:,.0f} to {fps:,.0f} frames/s: the generator could not "
    "offer more with this DUT",
    Code.NOT_MONOTONE: "not monotone: {passed_fps:,.0f} frames/s passed although {missed_fps:,.0f} frames/s missed",
    Code.LOSS_VERIFIED: "loss verification: {lossy} of {trials} trials at this load lost frames ({lost:,} in all); "
    "the last one did not",
    Code.DISTURBED_PASS: "the final trial that passed was disturbed, which takes from a DUT and gives nothing: {why}",
    Code.EXCEEDED: "{missed} of {trials} final trials at this load missed the goal",
    Code.AT_BOUND: "at a lower bound ({fps:,.0f} frames/s at {goal:goal}): above it the throughput that this test "
    "builds on could not be judged; the DUT may carry more",
    Code.AT_BOUND_BUFFER: "at a lower bound ({fps:,.0f} frames/s at {goal:goal}): above it the throughput that this "
    "test builds on could not be judged; the DUT may carry more; the corrected buffer is at most what is given",
    Code.STORED_IN_SOME: "in {stored} of {trials} trials the load was stored, not forwarded",
    Code.STORED_AT_LOAD: "at {fps:,.0f} frames/s no frame was lost, but a queue grew: that load was stored, "
    "not forwarded",
    Code.LOST_AT_LOAD: "frames were lost at this load in {lossy} of {trials} trials ({lost:,} in all): it is not the "
    "throughput of trials as long as these",
    Code.LOSSLESS_OVERLOADS: "{lossless} of {trials} overloads lost no frame",
    Code.PLAN_LIMIT_REACHED: "the limit of the plan ({limit}) was reached: it may hold more",
    Code.BURSTS_BELOW_LINE_RATE: "bursts at {fps:,.0f} frames/s, not at the line rate of {line_rate_fps:,.0f}",
    Code.BURSTS_WITHOUT_LINE_RATE: "bursts at {fps:,.0f} frames/s, the line rate is not known",
    Code.NO_BURST_LOST: "the longest burst tried lost nothing: the buffer is larger than that shows",
    Code.NO_RATIO: "no ratio to the throughput: {why}",
    Code.NO_PUBLIC_KEY_BOUND: "no public-key bound: {why}",
    Code.REKEYS_MISSED: "phase {phase}: {due} rekeys were due, {seen} were seen",
    Code.BACKLOG_NOT_JUDGED: "backlog not judged: TRex does not tell when a frame left, so a rate that a queue only "
    "stored passes as forwarded; a long final trial makes that less likely",
    Code.LEAVES_IN_BURSTS: "sent in bursts: through AF_PACKET TRex sends a millisecond's frames back to back; a DUT "
    "may lose frames that it would forward were they spaced evenly",
    Code.FIRST_LOSS_UNSEEN: "first loss unseen: TRex's AF_PACKET port offers frames again that the next device "
    "refused, and that server's kernel cannot be asked; a DUT without loss may only have been waited for",
}
_DEVIATIONS: Mapping[Code, str] = {
    Code.SHORT_FINAL_TRIALS: "{clause}: final trials of {got:g} s instead of {wanted:g} s",
    Code.SHORT_TRIALS: "{clause}: trials of {got:g} s instead of {wanted:g} s",
    Code.SHORT_TRIAL: "{clause}: a trial of {got:g} s instead of {wanted:g} s",
    Code.SHORT_STREAMS: "{clause}: streams of {got:g} s instead of {wanted:g} s",
    Code.EARLY_TAGS: "{clause}: tagged frames after {got:g} s instead of {wanted:g} s",
    Code.FEW_REPEATS: "{clause}: repeated {got:g} times instead of {wanted:g} times",
    Code.SHORT_OVERLOAD: "{clause}: an overload of {got:g} s instead of {wanted:g} s",
    Code.FEW_SEARCHES: "{clause}: searched {got:g} times instead of {wanted:g} times",
    Code.SHORT_BURSTS: "{clause}: bursts of at most {got:g} s instead of {wanted:g} s",
    Code.SHORT_DEPLETION: "{clause}: after a burst {got:g} s instead of {wanted:g} s",
    Code.COARSE_STEPS: "{clause}: steps of {got:g} % instead of {wanted:g} %",
    Code.SHORT_LEARNING: "{clause}: {got:g} s after learning frames instead of {wanted:g} s",
    Code.SHORT_RESIDUE: "{clause}: {got:g} s for the residue instead of {wanted:g} s",
    Code.SHORT_SETTLE: "{clause}: {got:g} s before the next trial instead of {wanted:g} s",
    Code.FEW_TUNNELS: "{clause}: {got:g} tunnels instead of {wanted:g}",
    Code.FEW_SIZES: "{clause}: fewer than five of the standard frame sizes",
    Code.MISSES_TOLERATED: "{clause}: a load passes although up to {pct:g} % of the time its trials miss the goal",
    Code.LOSS_VERIFICATION: "{clause}: a load that missed the goal was tried again, up to {times:times} "
    "(loss_verification)",
    Code.WEAK_OVERLOAD: "{clause}: the overload is below 110 % of the throughput",
    Code.LOAD_OF_PLAN: "{clause}: at a load of the plan's, not at the throughput",
    Code.LOAD_OF_PLAN_FROM: "{clause}: from a load of the plan's, not from the throughput",
    Code.MAXIMUM_NOT_LINE_RATE: "the load is the tester's or the plan's maximum, not the line rate",
    Code.MAXIMUM_DOWN: "{clause}: from the tester's or the plan's maximum down, not from the line rate",
    Code.BURSTS_AT_MAXIMUM: "{clause}: bursts at the tester's or the plan's maximum, not at the line rate",
    Code.ALL_AT_ONCE: "{clause}: all at once, not each after the one before",
    Code.NO_REDUNDANT_PAIR: "{clause}: the standby is the same gateway, started cold; there is no redundant pair",
}
_WORDS: Mapping[Code, str] = {
    Code.PASSES: "{goal:name} passes: {fps:,.0f} frames/s{at_maximum:? or more (the maximum tried)|}",
    Code.PASSES_AT_LEAST: "{goal:name} passes at {fps:,.0f} frames/s at least; more could not be judged: {why}",
    Code.PASSES_MLR: "{goal:name} passes: {fps:,.0f} frames/s{at_maximum:? or more (the maximum tried)|} (MLRsearch's "
    "conditional throughput; {exceed_pct:share} of {sum_s:g} s may exceed the goal)",
    Code.FAILS_AT_EVERY_RATE: "{goal:name} fails at every rate with enough frames: {failing}{why:?; }",
    Code.NO_RESULT: "{goal:name} has no result: {why}",
    Code.NOT_MEASURED: "Not measured: {why}.",
    Code.VIOLATED: "VIOLATED: frames crossed without encryption in trial {trial}.",
    Code.INVALID: "INVALID: of {trials} trials the last could not be trusted.",
    Code.NOT_SEARCHED: "Not searched: its throughput is the load of the bursts, {fps:,.0f} frames/s, so no burst fills "
    "a buffer (RFC 9004 6.1).",
    Code.NOT_OVERLOADED: "Not overloaded: its throughput is the highest load there is, {fps:,.0f} frames/s, so there "
    "is nothing to recover from.",
    Code.NOT_COMPARED: "Not compared at fixed loads: {why}.",
}

_QUANTITIES = {
    "system recovery time": Key.RECOVERY_TIME,
    "frame loss over the trial": Key.LOSS_OVER_TRIAL,
    "throughput": Key.THROUGHPUT,
    "overload": Key.OVERLOAD,
    "reduced load": Key.REDUCED_LOAD,
    "latency, tagged frame": Key.LATENCY_TAGGED,
    "latency, least": Key.LATENCY_LEAST,
    "latency, mean": Key.LATENCY_MEAN,
    "latency, p50": Key.LATENCY_P50,
    "latency, p90": Key.LATENCY_P90,
    "latency, p99": Key.LATENCY_P99,
    "latency, p99.9": Key.LATENCY_P999,
    "latency, greatest": Key.LATENCY_GREATEST,
    "frame loss at the highest load": Key.LOSS_AT_HIGHEST,
    "highest lossless load": Key.LOSSLESS_LOAD,
    "highest forwarding rate": Key.MOST_FORWARDED,
    "forwarding rate at the highest load": Key.FORWARDED_AT_HIGHEST,
    "back-to-back frames": Key.BURST,
    "implied buffer time": Key.IMPLIED_BUFFER_TIME,
    "corrected buffer time": Key.CORRECTED_BUFFER_TIME,
    "corrected buffer": Key.CORRECTED_BUFFER,
    "forwarding rate under flood": Key.FLOOD_FORWARDING,
    "forwarding rate under flood, Mbps": Key.FLOOD_MBPS,
    "of the throughput": Key.OF_THROUGHPUT,
    "frame loss": Key.FRAME_LOSS,
    "forwarding rate": Key.FORWARDING,
}
_WAYS = (", west-east", ", east-west")
# The program of that time looked at these parts of a sentence.
_AT_A_LIMIT = ("tester-limited", "at the search's maximum")
_SHORTER = re.compile(r"(24|26\.\d|RFC \d+ [\d.]+): .* instead of ")
_HEAD, _FLAG_LENGTH = re.compile(r":| \(| from \d"), 24

_NUMBER = r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_PLACE = re.compile(r"\{(\w+)(?::([^{}]*))?\}")


def trial(record: dict[str, Any]) -> dict[str, Any]:
    """Return a record of `trials.jsonl` in format 2."""
    return _coded(record)


def result(record: dict[str, Any]) -> dict[str, Any]:
    """Return an outcome or a finding of `results.json` in format 2."""
    coded = _coded(record)
    if answer := _answer(record):
        coded["answer"] = answer
    if quantities := record.get("quantities"):
        coded["quantities"] = [_quantity(quantity) for quantity in quantities]
    return coded


def _coded(record: dict[str, Any]) -> dict[str, Any]:
    read = {"reasons": _reason, "warnings": _warning, "rfc2544_deviations": _deviation}
    lists = {key: record[key] for key in read if isinstance(record.get(key), list)}
    return record | {CODES[key]: [read[key](str(text)) for text in texts] for key, texts in lists.items()}


def _reason(text: str) -> dict[str, Any]:
    parsed = _parsed(text, _REASONS)
    values = parsed["values"]
    if parsed["code"] == Code.NOTE and text.startswith("host "):
        return {"code": Code.EARLIER_HOST.value, "values": values}
    if isinstance(values.get("why"), str) and parsed["code"] in _LISTS:
        values["why"] = [_reason(part) for part in values["why"].split("; ")]
    return parsed


def _warning(text: str) -> dict[str, Any]:
    if text.startswith("core: "):
        return {"code": Code.STANDING_IN.value, "values": {"text": text}}
    parsed = _parsed(text, _WARNINGS)
    head = _HEAD.split(text)[0]
    if parsed["code"] == Code.NOTE and len(head) <= _FLAG_LENGTH and head != text:
        code = Code.EARLIER_LIMIT if text.startswith(_AT_A_LIMIT) else Code.EARLIER_WARNING
        return {"code": code.value, "values": {"text": text, "flag": head}}
    return parsed


def _deviation(text: str) -> dict[str, Any]:
    parsed = _parsed(text, _DEVIATIONS)
    values = parsed["values"]
    if parsed["code"] == Code.NOTE:
        code = Code.EARLIER_SHORT if _SHORTER.match(text) else Code.NOTE
        return {"code": code.value, "values": values, "clause": text.partition(": ")[0]}
    return parsed | {name: values.pop(name) for name in ("clause", "wanted", "got") if name in values}


def _answer(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return an answer with its code; of unknown words WITH_REASONS if they contain all reasons, else None."""
    words = record.get("words") or ""
    parsed = _parsed(words, _WORDS)
    if parsed["code"] != Code.NOTE:
        if "why" in parsed["values"]:
            parsed["values"]["why"] = _reason(parsed["values"]["why"])
        return parsed
    reasons = record.get("reasons") or []
    if reasons and all(reason in words for reason in reasons):
        return {"code": Code.WITH_REASONS.value, "values": {"text": words}}
    return None


def _quantity(record: dict[str, Any]) -> dict[str, Any]:
    name = record["name"]
    way = next((way for way in _WAYS if name.endswith(way)), "")
    label = name.removesuffix(way)
    return {"key": _QUANTITIES.get(label, label), "label": label, "way": way.removeprefix(", ")} | record


_TEXTS = ("clause", "why")  # values that are text even if they consist of digits
# The reason of these statements is a list of other statements.
_LISTS = {Code.GIVEN_UP, Code.INVALID_TRIALS}


def _parsed(text: str, known: Mapping[Code, str]) -> dict[str, Any]:
    """Return the code and the values of a sentence; if it is not known, NOTE and the text."""
    for code, template in known.items():
        if match := _pattern(template).fullmatch(text):
            places = _PLACE.findall(template)
            values = {name: _value(name, spec, match[name]) for name, spec in places}
            if sentences.fill(template, values) == text:
                return {"code": code.value, "values": values}
    return {"code": Code.NOTE.value, "values": {"text": text}}


@cache
def _pattern(template: str) -> re.Pattern[str]:
    """Return a pattern that matches the sentences of a template, with their values as groups."""
    pattern, end = "", 0
    for place in _PLACE.finditer(template):
        pattern += re.escape(template[end : place.start()]) + _group(place[1], place[2] or "")
        end = place.end()
    return re.compile(pattern + re.escape(template[end:]), re.DOTALL)


def _group(name: str, specification: str) -> str:
    if specification.startswith("?"):
        before, bar, after = specification[1:].partition("|")
        if bar:
            return f"(?P<{name}>{re.escape(before + after)})?"
        return f"(?:{re.escape(before)}(?P<{name}>.+))?"
    if specification in ("goal", "name"):
        return rf"(?P<{name}>zero-loss|[\d.]+ %)"
    if specification in ("", "and", "share"):
        return f"(?P<{name}>.+?)"
    return f"(?P<{name}>{_NUMBER}){' times?' if specification == 'times' else ''}"


def _value(name: str, specification: str, text: str | None) -> Any:
    if specification.startswith("?"):
        return text is not None if "|" in specification else text or ""
    assert text is not None
    match specification:
        case "goal" | "name":
            return 0.0 if text == "zero-loss" else round(float(text.removesuffix(" %")) / 100, 14)
        case "and":
            return text.split(" and ")
        case "share":
            return float(text.split()[2]) if text.startswith("at most ") else 0.0
        case "":
            is_number = text.isdecimal() and str(int(text)) == text and name not in _TEXTS
            return int(text) if is_number else text
    number = text.replace(",", "")
    return int(number) if specification in (",", "times") else float(number)
