# SPDX-License-Identifier: Apache-2.0
"""Has the texts of all sentences in records, by their codes. Such a sentence is worded only here.

The program uses only codes and values (`terms.Statement`), so a sentence may be changed freely here. A template is a
format string of its values; besides Python's own format specifications it may have these:

    {why:?: }     nothing if the value is empty, else `: ` and the value; text after a `|` follows the value
    {goal:goal}   a loss goal in per cent, `0.001 %`; {goal:name} is the same, but `zero-loss` for 0
    {sides:and}   the items of a list, joined by `and`; {names:comma} by commas; {rates:listed} numbers, by commas
    {n:times}     `1 time`, `2 times`; {pct:share} `at most 5 %`, or `nothing` for 0

A value may be a statement itself, or a list of statements, which are joined by semicolons. Run directories of format
1 have sentences without codes: `results/format_1.py` has the old texts of these sentences, which never change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from typing import Any


class Code(StrEnum):
    """The codes of all sentences. The template of a code names the values that it needs."""

    NOTE = "note"  # text that espbench did not make, or that only people look at

    # These say why it is not proven that each frame was encrypted.
    NONE_TRANSFORMED = "none-transformed"
    MORE_TRANSFORMED = "more-transformed"
    MORE_DECRYPTED = "more-decrypted"
    MORE_ARRIVED = "more-arrived"
    MORE_LEFT = "more-left"
    LEFT_BESIDE_SAS = "left-beside-sas"
    LEFT_BESIDE_SAS_AND_OWN = "left-beside-sas-and-own"
    LEFT_UNDER_ATTACK = "left-under-attack"
    NOT_ALL_TRANSFORMED = "not-all-transformed"
    NOT_ALL_ON_BOTH = "not-all-on-both"
    SEEN_IN_CLEAR = "seen-in-clear"
    SPI_UNKNOWN = "spi-unknown"
    SEQUENCE_REPEATED = "sequence-repeated"

    # These say why a trial is INVALID, or not sustained.
    SENT_FEWER = "sent-fewer"
    SENT_SLOWLY = "sent-slowly"
    SENT_NOTHING = "sent-nothing"
    SENDER_STARVED = "sender-starved"
    LATE = "late"
    LATE_IN_VIRTUAL_TIME = "late-in-virtual-time"
    BURST_SLOW = "burst-slow"
    BURST_PAUSED = "burst-paused"
    GENERATOR_FAULT = "generator-fault"
    NOISE_WEAK = "noise-weak"
    STOPPED_EARLY = "stopped-early"
    RECEIVER_OVERRUN = "receiver-overrun"
    MORE_RECEIVED = "more-received"
    CLOCK_STEPPED = "clock-stepped"
    HOST_STALL = "host-stall"
    HOST_STALL_IN_OUTAGE = "host-stall-in-outage"
    HOST_STALL_OF_LOSS = "host-stall-of-loss"
    HOST_STALL_AT_THE_END = "host-stall-at-the-end"
    HOST_STARVATION = "host-starvation"
    HOST_SLOW = "host-slow"
    HOST_UNEVEN = "host-uneven"
    ACTION_UNTIMELY = "action-untimely"
    COUNTER_BACKWARDS = "counter-backwards"
    SAS_REPLACED = "sas-replaced"
    LINK_CHANGED = "link-changed"
    SAS_CHANGED = "sas-changed"
    SPEED_CHANGED = "speed-changed"
    NOT_PROVEN = "not-proven"
    PROOF_PROBLEM = "proof-problem"  # of older records, which have only its text
    STORED = "stored"
    BROKEN = "broken"
    GENERATOR_FAILED = "generator-failed"
    GATEWAY_FAILED = "gateway-failed"
    GATEWAY_DIED = "gateway-died"
    DAEMON_DIED = "daemon-died"
    NEGOTIATION_FAILED = "negotiation-failed"
    TUNNELS_GONE = "tunnels-gone"
    PROBES_LOST = "probes-lost"
    PROBES_NOT_SENT = "probes-not-sent"
    NOT_READY = "not-ready"
    REKEYED_MEANWHILE = "rekeyed-meanwhile"
    NONE_CAME_UP = "none-came-up"
    ATTACK_BESIDE_SAS = "attack-beside-sas"
    NO_REKEY = "no-rekey"
    ENDED_BEFORE_BEGUN = "ended-before-begun"
    FEW_REKEYS = "few-rekeys"
    TUNNELS_BY_THEMSELVES = "tunnels-by-themselves"
    CHILD_SAS_BY_THEMSELVES = "child-sas-by-themselves"
    NOT_ONE_TUNNEL = "not-one-tunnel"
    SAS_KEPT = "sas-kept"
    NOT_MISSED = "not-missed"
    LOSS_TIMES_UNKNOWN = "loss-times-unknown"
    LOST_AT_THE_END = "lost-at-the-end"
    LOST_BEFORE_OUTAGE = "lost-before-outage"
    NO_POWER_SWITCH = "no-power-switch"
    NO_POWER_SWITCH_OF_BOX = "no-power-switch-of-box"
    NO_REASON = "no-reason"

    # These say why a search has no figure, or only a bound.
    BELOW_MINIMUM = "below-minimum"
    FINALS_DISAGREE = "finals-disagree"
    TRIALS_DISAGREE = "trials-disagree"
    LIBRARY_GAVE_UP = "library-gave-up"
    TOO_FEW_BELOW = "too-few-frames-below"
    TOO_FEW_IN_TRIALS = "too-few-frames-in-trials"
    TOO_FEW_IN_TRIAL = "too-few-frames-in-trial"
    TRIAL_SENT_TOO_FEW = "trial-sent-too-few"
    FINALS_SENT_TOO_FEW = "finals-sent-too-few"
    BOUND_ON_TOO_FEW = "bound-on-too-few-frames"
    GIVEN_UP = "given-up"
    INVALID_TRIALS = "invalid-trials"
    OFFERED_LESS = "offered-less"
    OFFERED_MORE = "offered-more"
    ONLY_OFFERED = "only-offered"
    LOST_IN_STALLS = "lost-in-stalls"
    AND_MORE = "and-more"

    # These say why another test has no figure.
    NO_THROUGHPUT = "no-throughput"
    THROUGHPUT_IS = "throughput-is"
    NO_FLOOD = "no-flood"
    NO_LINE_RATE_FOR_BURSTS = "no-line-rate-for-bursts"
    UDP_NOT_FORGED = "udp-not-forged"
    NO_REPLAY_WINDOW = "no-replay-window"
    NOT_RECOVERED = "not-recovered"
    NO_FRAME_CAME = "no-frame-came"
    TAGS_LOST = "tags-lost"
    BUS_OF_LOST = "bus-of-lost"
    VOID_TRIALS = "void-trials"
    OTHER_LOAD = "other-load"
    NO_BOUNDS = "no-bounds"
    CROSSED_IN_CLEAR = "crossed-in-clear"

    # These are remarks that the reader of a figure must know.
    TESTER_LIMITED = "tester-limited"
    AT_MAXIMUM = "at-maximum"
    SLOW_CPU = "slow-cpu"
    SLOW_MISS = "slow-miss"
    SLOW_LOSSES = "slow-losses"
    FASTER_THAN_PLAIN = "faster-than-plain"
    SLOWER_THAN_LARGER = "slower-than-larger"
    MAXIMUM_LOWERED = "maximum-lowered"
    NOT_MONOTONE = "not-monotone"
    LOSS_VERIFIED = "loss-verified"
    TRIAL_BY_TRIAL = "trial-by-trial"
    DISTURBED_PASS = "disturbed-pass"
    EXCEEDED = "exceeded"
    AT_BOUND = "at-bound"
    LOST_WITHOUT_ATTACK = "lost-without-attack"
    AT_BOUND_BUFFER = "at-bound-buffer"
    STORED_IN_SOME = "stored-in-some"
    STORED_AT_LOAD = "stored-at-load"
    LOST_AT_LOAD = "lost-at-load"
    LOSSLESS_OVERLOADS = "lossless-overloads"
    PLAN_LIMIT_REACHED = "plan-limit-reached"
    BURSTS_BELOW_LINE_RATE = "bursts-below-line-rate"
    BURSTS_WITHOUT_LINE_RATE = "bursts-without-line-rate"
    NO_BURST_LOST = "no-burst-lost"
    NO_RATIO = "no-ratio"
    NO_PUBLIC_KEY_BOUND = "no-public-key-bound"
    FASTER_THAN_PUBLIC_KEY = "faster-than-public-key"
    NO_PUBLIC_KEY_RATES = "no-public-key-rates"
    REKEYS_MISSED = "rekeys-missed"
    STANDING_IN = "standing-in"
    CPUS_SHARED = "cpus-shared"
    OF_CASE = "of-case"
    BACKLOG_NOT_JUDGED = "backlog-not-judged"
    OTHERS_COUNT = "others-count"
    LEAVES_IN_BURSTS = "leaves-in-bursts"
    FIRST_LOSS_UNSEEN = "first-loss-unseen"

    # These name clauses of a standard that were not met. The first ones are values smaller than the clause asks for.
    BROUGHT_ANEW = "brought-anew"
    SHORT_FINAL_TRIALS = "short-final-trials"
    SHORT_TRIALS = "short-trials"
    SHORT_TRIAL = "short-trial"
    SHORT_STREAMS = "short-streams"
    EARLY_TAGS = "early-tags"
    FEW_REPEATS = "few-repeats"
    SHORT_OVERLOAD = "short-overload"
    FEW_SEARCHES = "few-searches"
    SHORT_BURSTS = "short-bursts"
    SHORT_DEPLETION = "short-depletion"
    COARSE_STEPS = "coarse-steps"
    SHORT_LEARNING = "short-learning"
    SHORT_RESIDUE = "short-residue"
    SHORT_SETTLE = "short-settle"
    FEW_TUNNELS = "few-tunnels"
    FEW_SIZES = "few-sizes"
    MISSES_TOLERATED = "misses-tolerated"
    LOSS_ALLOWED = "loss-allowed"
    LOSS_VERIFICATION = "loss-verification"
    WEAK_OVERLOAD = "weak-overload"
    LOAD_OF_PLAN = "load-of-plan"
    LOAD_OF_PLAN_FROM = "load-of-plan-from"
    FROM_BOUND = "from-bound"
    FROM_LOSSY = "from-lossy"
    FROM_OTHER = "from-other"
    NOT_SMALLEST = "not-smallest"
    MAXIMUM_NOT_LINE_RATE = "maximum-not-line-rate"
    MAXIMUM_DOWN = "maximum-down"
    BURSTS_AT_MAXIMUM = "bursts-at-maximum"
    ALL_AT_ONCE = "all-at-once"
    NO_REDUNDANT_PAIR = "no-redundant-pair"

    # These are answers, or parts of one, as a sentence.
    PASSES = "passes"
    PASSES_AT_LEAST = "passes-at-least"
    PASSES_MLR = "passes-mlr"
    FAILS_AT_EVERY_RATE = "fails-at-every-rate"
    NO_RESULT = "no-result"
    NOT_MEASURED = "not-measured"
    VIOLATED = "violated"
    INVALID = "invalid"
    NOT_SEARCHED = "not-searched"
    NOT_OVERLOADED = "not-overloaded"
    NOT_OVERLOADED_BY_PLAN = "not-overloaded-by-plan"
    NOT_COMPARED = "not-compared"
    TUNNELS = "tunnels"
    SA_PAIRS = "sa-pairs"
    CARRIED_UNTIL = "carried-until"
    CARRIED_ALL = "carried-all"
    SIGNS = "signs"
    PUBLIC_KEY_OPERATIONS = "public-key-operations"
    LOAD_FELL = "load-fell"
    LOAD_FELL_FROM_BOUND = "load-fell-from-bound"
    LOAD_FELL_OF_PLAN = "load-fell-of-plan"
    STILL_LOSING = "still-losing"
    NOTHING_TO_RECOVER = "nothing-to-recover"
    RECOVERED = "recovered"
    NO_TAG_ARRIVED = "no-tag-arrived"
    TAG_TOOK = "tag-took"
    SPREAD_US = "spread-us"
    CURVE_HAS_GAPS = "curve-has-gaps"
    LOST_OF_HIGHEST = "lost-of-highest"
    NONE_LOST_AT = "none-lost-at"
    SOME_LOST_AT_ALL = "some-lost-at-all"
    LONGEST_BURST_PASSED = "longest-burst-passed"
    BURSTS_PASSED = "bursts-passed"
    BURSTS_PASSED_AT_LEAST = "bursts-passed-at-least"
    FORWARDED_OF = "forwarded-of"
    BUS_MOVED = "bus-moved"
    TIMES_THROUGHPUT = "times-throughput"
    AT_MOST_TIMES_THROUGHPUT = "at-most-times-throughput"
    NOTHING_BESIDE = "nothing-beside"
    REKEYED = "rekeyed"
    REKEYS_OF_PHASE = "rekeys-of-phase"
    LOST_WHILE_REKEYED = "lost-while-rekeyed"
    LOST_EACH = "lost-each"
    SET_UP = "set-up"
    TOGETHER = "together"
    ONE_AT_A_TIME = "one-at-a-time"
    PUBLIC_KEY_ALLOWS = "public-key-allows"
    NO_FRAME_WITHIN = "no-frame-within"
    FIRST_FRAME_CAME = "first-frame-came"
    NO_TRAFFIC_AGAIN = "no-traffic-again"
    TRAFFIC_AGAIN = "traffic-again"
    TRAFFIC_THROUGH_ALL = "traffic-through-all"
    IPSEC_DIED = "ipsec-died"
    DAEMON_STOPPED = "daemon-stopped"
    SAS_DELETED = "sas-deleted"
    SWITCHED_OFF = "switched-off"
    UNDER_ATTACK = "under-attack"
    IKE_FLOOD = "ike-flood"
    BAD_ICV = "bad-icv"
    REPLAY = "replay"
    CPU_GOES = "cpu-goes"
    NOT_COMPARED_VIOLATED = "not-compared-violated"
    PAIRS_MADE = "pairs-made"
    AT_BASE_LOADS = "at-base-loads"

    # These are for whole sentences of format 1 (results/format_1.py) that have no other code.
    WITH_REASONS = "with-reasons"
    EARLIER_HOST = "earlier-host"
    EARLIER_WARNING = "earlier-warning"
    EARLIER_LIMIT = "earlier-limit"
    EARLIER_SHORT = "earlier-short"


class Place(StrEnum):
    """The keys of `Trial.loss_at`: where frames were lost. They are part of a run's format, so they never change.

    A key with `{gateway}` is completed by `at`. NOT_SENT is no loss: these frames were never sent. DAMAGED frames
    arrived, but not intact.
    """

    FIRST_PORT = "first port into {gateway}"
    XFRM_ERROR = "{gateway} xfrm {error}"
    OTHER_ERROR = "{gateway} {error}"
    GATEWAY = "{gateway}"
    RING = "{gateway} ring"
    AFTER_ESP = "{gateway}, after ESP"
    MIDDLE_LINK = "middle link"
    RECEIVER_OVERRUN = "receiver overrun"
    LAST_LINK = "last link"
    DAMAGED = "damaged on the way"
    UNACCOUNTED = "unaccounted"
    BESIDE_ATTACK = "beside an attack, place not known"
    WHILE_SAS_CHANGED = "while SAs came and went, place not known"
    NOT_SENT = "generator, not sent"

    def at(self, gateway: str, error: str = "") -> str:
        """Return the key of this place at a gateway; error: the name of the gateway's counter."""
        return self.value.format(gateway=gateway, error=error)


TEMPLATES: Mapping[str, str] = {
    Code.NONE_TRANSFORMED: "{way}: {entered} frames entered {gateway}, it {did} none",
    Code.MORE_TRANSFORMED: "{way}: {gateway} {did} {n} frames, only {sent} were sent",
    Code.MORE_DECRYPTED: "{way}: {second} decrypted {decrypted} frames, {first} encrypted {encrypted}",
    Code.MORE_ARRIVED: "{way}: {arrived} frames arrived, {gateway} {did} {n}",
    Code.MORE_LEFT: "{way}: {left} frames left {gateway}, it {did} {n}",
    Code.LEFT_BESIDE_SAS: "{way}: {left} frames left {gateway}, it {did} {n}: cleartext?",
    Code.LEFT_BESIDE_SAS_AND_OWN: "{way}: {left} frames left {gateway}, {own} of them its own, it {did} {n}: "
    "cleartext?",
    Code.LEFT_UNDER_ATTACK: "{left} frames left {gateway} under attack, {own} of them its own; it encrypted or "
    "decrypted {n}",
    Code.NOT_ALL_TRANSFORMED: "{way}: {sent} sent and received, {n} {did}",
    Code.NOT_ALL_ON_BOTH: "{way}: {sent} sent and received, {encrypted} encrypted, {decrypted} decrypted",
    Code.SEEN_IN_CLEAR: "{frames} frames reached the tester in clear",
    Code.SPI_UNKNOWN: "{packets} packets reached the tester with an SPI that no SA has",
    Code.SEQUENCE_REPEATED: "{packets} authentic packets bore a sequence number that had come before",
    Code.NOTE: "{text}",
    Code.SENT_FEWER: "generator sent {sent} of {intended} frames ({pct:.2f} %){why:?: }",
    Code.SENT_SLOWLY: "generator sent {sent} frames in {took_s:.3f} s instead of {intended_s:.3f} s",
    Code.SENT_NOTHING: "{way}: the generator sent no frame",
    Code.SENDER_STARVED: "host starvation: other programs or the hypervisor took {pct:.1f} % of the sender's CPU",
    Code.LATE: "departures late: half of the frames left at least {half_ms:.1f} ms late, "
    "1 % at least {slowest_ms:.1f} ms",
    Code.LATE_IN_VIRTUAL_TIME: "departures late: up to {most_us:.1f} µs in virtual time, beyond the rate of the link",
    Code.BURST_SLOW: "generator sent the burst at {fps:,.0f} frames/s instead of {intended_fps:,.0f}",
    Code.BURST_PAUSED: "departures late: within the burst the tester paused for {pause_us:,.0f} µs",
    Code.GENERATOR_FAULT: "{text}",
    Code.NOISE_WEAK: "noise {stream}: {sent} of {intended} frames left: a weaker attack",
    Code.STOPPED_EARLY: "generator stopped early",
    Code.RECEIVER_OVERRUN: "receiver overrun: {frames} frames reached the tester and were dropped there",
    Code.MORE_RECEIVED: "{way}: more received ({received}) than sent ({sent})",
    Code.CLOCK_STEPPED: "the system clock stepped by {ms:.1f} ms during the trial",
    Code.HOST_STALL: "host stall: the host or the sender stood still, or was catching up, for {pct:.1f} % of "
    "the trial",
    Code.HOST_STALL_IN_OUTAGE: "host stall: the host stood still for {pct:.0f} % of the time without traffic",
    Code.HOST_STALL_OF_LOSS: "host stall: {frames} lost frames were due while host or sender stood still",
    Code.HOST_STALL_AT_THE_END: "host stall: the last lost frame was due while host or sender stood still, so it is "
    "not known when the DUT stopped losing frames",
    Code.HOST_STARVATION: "host starvation: others took {starved_pct:.1f} % of the gateways' CPU, "
    "the hypervisor stole up to {stolen_pct:.1f} %",
    Code.HOST_SLOW: "slow CPU: the gateways' CPUs had {pct:.1f} % of their full speed; a trial of this run needs "
    "{least_pct:.1f} %",
    Code.HOST_UNEVEN: "unequal CPUs: in the two trials of a pair, the speeds of the gateways' CPUs differed by more "
    "than {pct:g} %",
    Code.ACTION_UNTIMELY: "host: {action} was planned for {at_s:g} s after the first frame, "
    "but took place from {began_s:.1f} s to {ended_s:.1f} s",
    Code.COUNTER_BACKWARDS: "counter ran backwards: {counter}",
    Code.SAS_REPLACED: "the SAs of {sides:and} were replaced during the trial (rekeying)",
    Code.LINK_CHANGED: "link of {whose}, {interface}: {changes} after the first frame",
    Code.SPEED_CHANGED: "the link of the tester's port {port} ({interface}) runs at {mbps:g} Mbit/s; when the run "
    "began, it was {first_mbps:g} Mbit/s",
    Code.SAS_CHANGED: "SAs of {side}: {changes} after the first frame",
    Code.NOT_PROVEN: "encryption not proven: {problem}",
    Code.PROOF_PROBLEM: "{text}",
    Code.STORED: "stored, not forwarded: the backlog grew by {growth_ms:.0f} ms, {pct:.1f} % of the offered rate",
    Code.BROKEN: "{text}",
    Code.GENERATOR_FAILED: "{text}",
    Code.GATEWAY_FAILED: "{text}",
    Code.GATEWAY_DIED: "{text}",
    Code.DAEMON_DIED: "{text}",
    Code.NEGOTIATION_FAILED: "{text}",
    Code.TUNNELS_GONE: "{text}",
    Code.PROBES_LOST: "{text}",
    Code.PROBES_NOT_SENT: "{text}",
    Code.NOT_READY: "{text}",
    Code.REKEYED_MEANWHILE: "{rekeys} rekeys during the test",
    Code.ATTACK_BESIDE_SAS: "the attack's ESP was of SAs that Home had no more ({gone} SPIs): they were replaced "
    "before the trial (rekeying)",
    Code.NONE_CAME_UP: "not even {wanted} came up: {why}",
    Code.ENDED_BEFORE_BEGUN: "the log of Home's daemon has {n} negotiations that ended before they began: "
    "the gateway's clock stepped",
    Code.NO_REKEY: "no rekey of phase {phase} was seen",
    Code.FEW_REKEYS: "{seen} rekeys were seen; at least {least} were due in {trial_s:g} s",
    Code.TUNNELS_BY_THEMSELVES: "{found} tunnels with an IKE SA each were set up, but {wanted} were asked for",
    Code.CHILD_SAS_BY_THEMSELVES: "{found} CHILD SAs were set up, but {wanted} were asked for",
    Code.NOT_ONE_TUNNEL: "{found} tunnels were set up instead of one",
    Code.SAS_KEPT: "the gateways kept their SAs beyond {idle_s:g} s without traffic",
    Code.NOT_MISSED: "no frame was lost, so there is no outage to measure",
    Code.LOSS_TIMES_UNKNOWN: "it is not known when {frames:,} frames were lost",
    Code.LOST_AT_THE_END: "a frame was lost {at_s:.3f} s after the first, at the end of the trial, although traffic "
    "flowed again",
    Code.LOST_BEFORE_OUTAGE: "a frame was lost {at_s:.3f} s after the first, before the outage ({began_s:.3f} s); with "
    "several tunnels, the time to the last lost frame would be too long",
    Code.NO_POWER_SWITCH: "what: power: espbench cannot switch gateways of platform {platform} off and on; "
    "use dut: uml or virt-x86, or boxes with a power switch behind labgrid (docs/remote.md)",
    Code.NO_POWER_SWITCH_OF_BOX: "{lack}",
    Code.NO_REASON: "no reason recorded",
    Code.BELOW_MINIMUM: "missed at the minimum of {fps:,.0f} frames/s",
    Code.FINALS_DISAGREE: "{trials} final trials did not agree on a throughput",
    Code.TRIALS_DISAGREE: "{trials} trials did not agree on a throughput",
    Code.LIBRARY_GAVE_UP: "the MLRsearch library gave up: {why}",
    Code.TOO_FEW_BELOW: "below {fps:,.0f} frames/s even final trials of {trial_s:g} s ({trials} at a load) hold too "
    "few frames to judge the goal",
    Code.TOO_FEW_IN_TRIALS: "at {fps:,.0f} frames/s {sum_s:g} s of trials hold too few frames to judge the goal",
    Code.TOO_FEW_IN_TRIAL: "at {fps:,.0f} frames/s trials of {trial_s:g} s hold too few frames to judge the goal",
    Code.TRIAL_SENT_TOO_FEW: "a trial at {fps:,.0f} frames/s sent too few frames",
    Code.FINALS_SENT_TOO_FEW: "final trials at {fps:,.0f} frames/s sent too few frames",
    Code.BOUND_ON_TOO_FEW: "the bound of {fps:,.0f} frames/s rests on trials with too few frames to judge the goal: "
    "longer trials would tell",
    Code.GIVEN_UP: "{trials} trials at {fps:,.0f} frames/s could not be judged{why:?: }",
    Code.INVALID_TRIALS: "{trials} trials at {fps:,.0f} frames/s were INVALID{why:?: }",
    Code.OFFERED_LESS: "less was offered than was asked for",
    Code.OFFERED_MORE: "more was offered than was asked for, and frames were lost",
    Code.ONLY_OFFERED: "only {fps:,.0f} frames/s were offered",
    Code.LOST_IN_STALLS: "frames were lost only while the host or the sender stood still",
    Code.AND_MORE: "and others like these",
    Code.NO_THROUGHPUT: "no throughput with the loss goal {goal:goal} was measured at this point",
    Code.THROUGHPUT_IS: "its throughput at {goal:goal} is {status}",
    Code.NO_FLOOD: "the load is below the throughput of {fps:,.0f} frames/s, which is no flood",
    Code.NO_LINE_RATE_FOR_BURSTS: "bursts leave at the line rate (RFC 2544 26.4), which neither the plan (line_rate) "
    "nor a port tells: write line_rate, or maximum for the rate of the bursts",
    Code.UDP_NOT_FORGED: "espbench cannot forge ESP in UDP",
    Code.NO_REPLAY_WINDOW: "its replay window is 0, so it accepts replayed packets as new",
    Code.NOT_RECOVERED: "it had not recovered when the trial ended: lengthen {key}",
    Code.NO_FRAME_CAME: "no frame had arrived when the trial ended: lengthen trial",
    Code.BUS_OF_LOST: "{lost:,} of {sent:,} frames were lost at {fps:,.0f} frames/s, so the bytes are not those of "
    "forwarded frames; a lower load may lose none",
    Code.TAGS_LOST: "every tagged frame was lost, or the generator cannot tag",
    Code.VOID_TRIALS: "{void} of {trials} trials void: {why}",
    Code.OTHER_LOAD: "the tester did not offer the load that it was asked for",
    Code.NO_BOUNDS: "the throughputs of both arms are not known, not even a lower bound",
    Code.CROSSED_IN_CLEAR: "frames crossed without encryption in trial {trial}",
    Code.TESTER_LIMITED: "tester-limited: within 10 % of what the generator itself can offer "
    "({ceiling_fps:,.0f} frames/s); the DUT may be faster",
    Code.AT_MAXIMUM: "at the search's maximum ({fps:,.0f} frames/s): the DUT may be faster",
    Code.SLOW_CPU: "slow CPU: in the final trial the gateways' CPUs had {pct:.0f} % of their full speed, because of "
    "another program on the same core of the host, or a lower clock; at full speed a frame costs less CPU time",
    Code.SLOW_MISS: "slow CPU above: whenever {fps:,.0f} frames/s missed the goal, the gateways' CPUs had {pct:.0f} % "
    "of their full speed or less; at full speed the throughput may be higher",
    Code.SLOW_LOSSES: "slow CPU above: whenever {fps:,.0f} frames/s missed the goal, times in which the gateways' CPUs "
    "were slow can explain it (up to {pct:.1f} % of a trial); without them the throughput may be higher",
    Code.FASTER_THAN_PLAIN: "faster than plain: {pct:.1f} % above the throughput without IPsec at the same size "
    "({fps:,.0f} frames/s). ESP adds work: unless this stack forwards in another way, one of the two figures is wrong",
    Code.SLOWER_THAN_LARGER: "slower than larger frames: frames of this size missed the goal at {missed_fps:,.0f} "
    "frames/s, and those of {size} B met it at {fps:,.0f} frames/s. A smaller frame seldom costs more: unless the "
    "gateways explain it, this figure is too low",
    Code.MAXIMUM_LOWERED: "maximum lowered from {planned_fps:,.0f} to {fps:,.0f} frames/s: the generator could not "
    "offer more with this DUT",
    Code.NOT_MONOTONE: "not monotone: {passed_fps:,.0f} frames/s passed although {missed_fps:,.0f} frames/s missed",
    Code.LOSS_VERIFIED: "loss verification: {lossy} of {trials} trials at this load lost frames ({lost:,} in all); "
    "the last one did not",
    Code.TRIAL_BY_TRIAL: "judged trial by trial: MLRsearch compares the loss ratio of each trial with the goal of "
    "{goal:goal}, so a DUT that loses more may meet it by chance; bisection has a test with stated errors",
    Code.DISTURBED_PASS: "the final trial that passed was disturbed, which can only make a DUT look slower: {why}",
    Code.EXCEEDED: "{missed} of {trials} final trials at this load missed the goal",
    Code.LOST_WITHOUT_ATTACK: "without an attack, the load itself missed the loss goal of {goal:goal}: no attack can "
    "be called harmless",
    Code.AT_BOUND: "at a lower bound ({fps:,.0f} frames/s at {goal:goal}): this test uses the throughput, and "
    "higher loads were not tried or could not be judged; the DUT may forward more",
    Code.AT_BOUND_BUFFER: "at a lower bound ({fps:,.0f} frames/s at {goal:goal}): this test uses the throughput, "
    "and higher loads were not tried or could not be judged; the DUT may forward more, and the corrected buffer may "
    "be smaller",
    Code.STORED_IN_SOME: "in {stored} of {trials} trials the load was stored, not forwarded",
    Code.STORED_AT_LOAD: "at {fps:,.0f} frames/s no frame was lost, but a queue grew: that load was stored, "
    "not forwarded",
    Code.LOST_AT_LOAD: "frames were lost at this load in {lossy} of {trials} trials ({lost:,} in all): it is not the "
    "throughput of trials as long as these",
    Code.LOSSLESS_OVERLOADS: "{lossless} of {trials} overloads lost no frame",
    Code.PLAN_LIMIT_REACHED: "the limit of the plan ({limit}) was reached: the gateway may hold more",
    Code.BURSTS_BELOW_LINE_RATE: "bursts at {fps:,.0f} frames/s, not at the line rate of {line_rate_fps:,.0f}",
    Code.BURSTS_WITHOUT_LINE_RATE: "bursts at {fps:,.0f} frames/s, the line rate is not known",
    Code.NO_BURST_LOST: "the longest burst tried lost nothing: the buffer is larger than that shows",
    Code.NO_RATIO: "no ratio to the throughput: {why}",
    Code.NO_PUBLIC_KEY_BOUND: "no public-key bound: {why}",
    Code.FASTER_THAN_PUBLIC_KEY: "no public-key bound: {per_s:,.4g} tunnels/s are more than the rates of openssl speed "
    "allow ({limit_per_s:,.4g})",
    Code.NO_PUBLIC_KEY_RATES: "{side}: openssl speed gave no rate of {operations:comma}",
    Code.REKEYS_MISSED: "phase {phase}: {due} rekeys were due, {seen} were seen",
    Code.STANDING_IN: "{text}",
    Code.CPUS_SHARED: "{text}",
    Code.OF_CASE: "{text}",
    Code.BACKLOG_NOT_JUDGED: "backlog not judged: TRex does not report when a frame left, so a rate that was only "
    "stored in a queue counts as forwarded; longer final trials make this less likely",
    Code.OTHERS_COUNT: "frames of others count: TRex counts every frame that arrives at its ports, so each frame of "
    "another sender hides a lost one; let nothing else send on the ports' networks",
    Code.LEAVES_IN_BURSTS: "sent in bursts: through AF_PACKET TRex sends the frames of a millisecond back to back; a "
    "DUT may lose frames that it would forward if they were spaced evenly",
    Code.FIRST_LOSS_UNSEEN: "first loss unseen: if the next device refuses a frame, TRex's AF_PACKET port sends it "
    "again, and espbench cannot read that server's kernel; so zero loss may only mean that TRex waited for the DUT",
    Code.BROUGHT_ANEW: "{clause}: the time includes that espbench brings its agent and the daemon to the box again, "
    "because neither is installed there",
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
    Code.LOSS_ALLOWED: "{clause}: the loss goal is {pct:g} %, not zero loss",
    Code.MISSES_TOLERATED: "{clause}: a load passes although up to {pct:g} % of the time its trials miss the goal",
    Code.LOSS_VERIFICATION: "{clause}: a load that missed the goal was tried again, up to {times:times} "
    "(loss_verification)",
    Code.WEAK_OVERLOAD: "{clause}: the overload is below 110 % of the throughput",
    Code.LOAD_OF_PLAN: "{clause}: at a load that the plan sets, not at the throughput",
    Code.LOAD_OF_PLAN_FROM: "{clause}: from a load that the plan sets, not from the throughput",
    Code.FROM_BOUND: "{clause}: from a throughput that is only a lower bound",
    Code.FROM_LOSSY: "{clause}: from a throughput with a loss goal of {goal:goal}, not without loss",
    Code.FROM_OTHER: "{clause}: from a throughput that does not keep RFC 2544; its own deviations say why",
    Code.NOT_SMALLEST: "{clause}: not at the minimum frame size",
    Code.MAXIMUM_NOT_LINE_RATE: "the load is the tester's or the plan's maximum, not the line rate",
    Code.MAXIMUM_DOWN: "{clause}: from the tester's or the plan's maximum down, not from the line rate",
    Code.BURSTS_AT_MAXIMUM: "{clause}: bursts at the tester's or the plan's maximum, not at the line rate",
    Code.ALL_AT_ONCE: "{clause}: all at once, not one after the other",
    Code.NO_REDUNDANT_PAIR: "{clause}: the standby is the same gateway, started cold; there is no redundant pair",
    Code.PASSES: "{goal:name} passes: {fps:,.0f} frames/s{at_maximum:? or more (the maximum tried)|}",
    Code.PASSES_AT_LEAST: "{goal:name} passes at {fps:,.0f} frames/s or more; higher loads could not be judged: {why}",
    Code.PASSES_MLR: "{goal:name} passes: {fps:,.0f} frames/s{at_maximum:? or more (the maximum tried)|} (MLRsearch's "
    "conditional throughput; {exceed_pct:share} of {sum_s:g} s may exceed the goal)",
    Code.FAILS_AT_EVERY_RATE: "{goal:name} fails at every rate with enough frames: {failing}{why:?; }",
    Code.NO_RESULT: "{goal:name} has no result: {why}",
    Code.NOT_MEASURED: "Not measured: {why}.",
    Code.VIOLATED: "VIOLATED: frames crossed without encryption in trial {trial}.",
    Code.INVALID: "INVALID: the last of {trials} trials could not be trusted.",
    Code.NOT_SEARCHED: "Not searched: the throughput equals the rate of the bursts, {fps:,.0f} frames/s, so no burst "
    "fills a buffer (RFC 9004 6.1).",
    Code.NOT_OVERLOADED: "Not overloaded: the throughput equals the highest possible load, {fps:,.0f} frames/s, so "
    "there is nothing to recover from.",
    Code.NOT_OVERLOADED_BY_PLAN: "Not overloaded: the load that the plan sets is the highest possible load, "
    "{fps:,.0f} frames/s, so there is no load above it.",
    Code.NOT_COMPARED: "Not compared at fixed loads: {why}.",
    Code.TUNNELS: "tunnels",
    Code.SA_PAIRS: "pairs of ESP SAs under one IKE SA",
    Code.CARRIED_UNTIL: "{most} {what} carried traffic, {next} did not: {refused}.",
    Code.CARRIED_ALL: "At least {most} {what}: all that were asked for came up and carried traffic.",
    Code.SIGNS: "Home can sign {per_s:,.0f} times/s with RSA-2048 on one CPU; a set-up that needs its signature cannot "
    "be faster.",
    Code.PUBLIC_KEY_OPERATIONS: "Home's public-key operations.",
    Code.LOAD_FELL: "from {fps:,.0f} frames/s ({pct:.4g} % of its throughput) to {reduced_fps:,.0f}",
    Code.LOAD_FELL_FROM_BOUND: "from {fps:,.0f} frames/s ({pct:.4g} % of the lower bound of its throughput) to "
    "{reduced_fps:,.0f}",
    Code.LOAD_FELL_OF_PLAN: "from {fps:,.0f} frames/s ({pct:.4g} % of the load that the plan sets) to "
    "{reduced_fps:,.0f}",
    Code.STILL_LOSING: "UNRESOLVABLE: in {never} of {trials} trials frames were still lost {after_s:g} s after the "
    "load fell {loads}.",
    Code.NOTHING_TO_RECOVER: "The overload lost no frame, so there was nothing to recover from ({loads}).",
    Code.RECOVERED: "It recovered {s:.4g} s (mean of {n}) after the load fell {loads}.",
    Code.NO_TAG_ARRIVED: "INVALID: no tagged frame arrived.",
    Code.TAG_TOOK: "A tagged frame took {us:g} µs (mean of {n}{spread:?}) at {fps:,.0f} frames/s{lost:?; | were "
    "lost}.",
    Code.SPREAD_US: ", from {least:g} to {greatest:g} µs",
    Code.CURVE_HAS_GAPS: "INVALID: {gaps} of {rates} rates could not be measured ({at:listed} frames/s); the curve "
    "has gaps there.",
    Code.LOST_OF_HIGHEST: "{pct:.4g} % of the frames were lost at {fps:,.0f} frames/s, the highest load; {below}.",
    Code.NONE_LOST_AT: "none at {fps:,.0f}",
    Code.SOME_LOST_AT_ALL: "some at every load",
    Code.LONGEST_BURST_PASSED: "No frame of the longest burst tried was lost: {frames:,} frames.",
    Code.BURSTS_PASSED: "Bursts of {frames:,.0f} frames (mean of {n}) lost none, {ms:.3g} ms at {fps:,.0f} frames/s; "
    "the corrected buffer time is {corrected_ms:.3g} ms.",
    Code.BURSTS_PASSED_AT_LEAST: "Bursts of {frames:,.0f} frames or more (mean of {n}; the longest burst tried lost "
    "nothing in some searches) lost none, {ms:.3g} ms at {fps:,.0f} frames/s; the corrected buffer time is "
    "{corrected_ms:.3g} ms or more.",
    Code.BUS_MOVED: "{bytes:,.0f} bytes over the bus for a frame at {fps:,.0f} frames/s; "
    "{counted:,.0f} as the article counts.",
    Code.FORWARDED_OF: "Of {fps:,.0f} frames/s it forwarded {forwarded_fps:,.0f}, {beside}.",
    Code.TIMES_THROUGHPUT: "{ratio:.3g} times its throughput",
    Code.AT_MOST_TIMES_THROUGHPUT: "at most {ratio:.3g} times its throughput",
    Code.NOTHING_BESIDE: "and cannot be compared: {why}",
    Code.REKEYED: "{sas} SAs with a lifetime of {lifetime_s:g} s, for {lifetimes} lifetimes: {phases}.",
    Code.REKEYS_OF_PHASE: "phase {phase} {per_s:,.4g} rekeys/s ({seen} seen, {due} due)",
    Code.LOST_WHILE_REKEYED: "While phase 2 was rekeyed {rekeys} times, {lost:,} of {sent:,} frames were "
    "lost{each:?}.",
    Code.LOST_EACH: " ({frames:.4g} for each)",
    Code.SET_UP: "{tunnel:,.4g} tunnels/s, {how} (phase 1 alone {phase_1:,.4g}/s, phase 2 alone {phase_2:,.4g}/s; "
    "{n} of each).{bound:?}",
    Code.TOGETHER: "all at once",
    Code.ONE_AT_A_TIME: "one at a time",
    Code.PUBLIC_KEY_ALLOWS: " Its public-key operations alone ({operations:comma}, on both gateways) would allow "
    "{per_s:,.4g} tunnels/s: {pct:.0f} % of the time is protocol and other overhead.",
    Code.NO_FRAME_WITHIN: "UNRESOLVABLE: in {never} of {trials} trials no frame arrived within {trial_s:g} s.",
    Code.FIRST_FRAME_CAME: "The first frame arrived {ms:.4g} ms after the first was sent (mean of {n}, {least:.4g} "
    "to {greatest:.4g}).",
    Code.NO_TRAFFIC_AGAIN: "UNRESOLVABLE: in {never} of {trials} trials frames were still lost {after_s:g} s "
    "after {event}, at the end of the trial.",
    Code.TRAFFIC_AGAIN: "Traffic flowed again {s:.4g} s after {event} (mean of {n}, {least:.4g} to {greatest:.4g}).",
    Code.TRAFFIC_THROUGH_ALL: "Traffic flowed again through all {tunnels} tunnels {s:.4g} s after {event} "
    "(mean of {n}, {least:.4g} to {greatest:.4g}).",
    Code.IPSEC_DIED: "Office's IPsec was killed (its standby started {dead_s:g} s later)",
    Code.DAEMON_STOPPED: "{gateway}'s daemon began to restart",
    Code.SAS_DELETED: "the SAs of {gateway}'s kernel were deleted",
    Code.SWITCHED_OFF: "{gateway} was switched off, and on again at once",
    Code.UNDER_ATTACK: "Under {fps:,.0f} packets/s of {what} legitimate traffic keeps {kept_pct:.4g} % of its "
    "forwarding rate ({loss_pct:.3g} % of its frames are lost){cpu:?}.",
    Code.IKE_FLOOD: "phase 1 flood",
    Code.BAD_ICV: "forged ESP with a bad ICV",
    Code.REPLAY: "replayed ESP",
    Code.CPU_GOES: "; Home's CPU goes from {before_pct} % to {pct} %",
    Code.NOT_COMPARED_VIOLATED: "Not compared at fixed loads: frames crossed without encryption ({case}, trial "
    "{trial}).",
    Code.PAIRS_MADE: "{pairs} pairs of trials of {b} and {a} at the same loads; {void} of {trials} trials void.",
    Code.AT_BASE_LOADS: "Measured at {loads} loads of the base; {missed} of them missed their loss goal.",
    Code.WITH_REASONS: "{text}",
    Code.EARLIER_HOST: "{text}",
    Code.EARLIER_WARNING: "{text}",
    Code.EARLIER_LIMIT: "{text}",
    Code.EARLIER_SHORT: "{text}",
}

# Short texts of warnings, and of reasons for a missing figure, for places with room for only a few words.
FLAGS: Mapping[str, str] = {
    Code.TESTER_LIMITED: "tester-limited",
    Code.AT_MAXIMUM: "at the search's maximum",
    Code.SLOW_CPU: "slow CPU",
    Code.SLOW_MISS: "slow CPU above",
    Code.SLOW_LOSSES: "slow CPU above",
    Code.FASTER_THAN_PLAIN: "faster than plain",
    Code.SLOWER_THAN_LARGER: "slower than larger frames",
    Code.MAXIMUM_LOWERED: "maximum lowered",
    Code.NOT_MONOTONE: "not monotone",
    Code.LOSS_VERIFIED: "loss verification",
    Code.TRIAL_BY_TRIAL: "judged trial by trial",
    Code.AT_BOUND: "at a lower bound",
    Code.LOST_WITHOUT_ATTACK: "loss without an attack",
    Code.AT_BOUND_BUFFER: "at a lower bound",
    Code.PLAN_LIMIT_REACHED: "the limit of the plan",
    Code.NO_BURST_LOST: "longest burst tried",
    Code.NO_PUBLIC_KEY_BOUND: "no public-key bound",
    Code.FASTER_THAN_PUBLIC_KEY: "no public-key bound",
    Code.NO_PUBLIC_KEY_RATES: "no rate of some operations",
    Code.REKEYS_MISSED: "phase {phase}",
    Code.STANDING_IN: "core",
    Code.BACKLOG_NOT_JUDGED: "backlog not judged",
    Code.OTHERS_COUNT: "frames of others count",
    Code.LEAVES_IN_BURSTS: "sent in bursts",
    Code.FIRST_LOSS_UNSEEN: "first loss unseen",
    Code.EARLIER_WARNING: "{flag}",
    Code.EARLIER_LIMIT: "{flag}",
    Code.NOT_SEARCHED: "not searched",
    Code.NOT_OVERLOADED: "not overloaded",
    Code.NOT_OVERLOADED_BY_PLAN: "not overloaded",
}


PLACES: Mapping[Place, str] = {
    Place.FIRST_PORT: "first port into {gateway}",
    Place.GATEWAY: "{gateway}",
    Place.RING: "{gateway} ring",
    Place.AFTER_ESP: "{gateway}, after ESP",
    Place.MIDDLE_LINK: "middle link",
    Place.RECEIVER_OVERRUN: "receiver overrun",
    Place.LAST_LINK: "last link",
    Place.DAMAGED: "damaged on the way",
    Place.UNACCOUNTED: "unaccounted",
    Place.BESIDE_ATTACK: "beside an attack, place not known",
    Place.WHILE_SAS_CHANGED: "while SAs came and went, place not known",
    Place.NOT_SENT: "generator, not sent",
}
# Each place with a text, by its complete key. The other keys have the names of counters, which are shown as they are.
_PLACE_OF = {place.at(gateway): (place, gateway) for place in PLACES for gateway in ("home", "office")}


class _Various:
    """Stands for a value that differs from one statement to the next."""

    def __format__(self, specification: str) -> str:
        return "…"


VARIOUS = _Various()


def text(code: str, values: Mapping[str, Any]) -> str:
    """Return the sentence for a code and its values; for a code that this version does not know, the code itself."""
    template = TEMPLATES.get(code)
    return code if template is None else fill(template, values)


def fill(template: str, values: Mapping[str, Any]) -> str:
    """Return a template with its values in place."""
    return template.format_map({name: _Value(value) for name, value in values.items()})


def place_text(key: str) -> str:
    """Return the text of a place by its key in `Trial.loss_at`; a key with a counter's name is shown as it is."""
    if key not in _PLACE_OF:
        return key
    place, gateway = _PLACE_OF[key]
    return PLACES[place].format(gateway=gateway)


def goal_name(goal: float) -> str:
    """Return a loss goal in per cent: `0 %`, `0.001 %`."""
    return f"{goal * 100:.10f}".rstrip("0").rstrip(".") + " %"


def goal_title(goal: float) -> str:
    """Return a loss goal for the beginning of a sentence: `zero-loss`, or in per cent."""
    return goal_name(goal) if goal else "zero-loss"


class _Value:
    """A value that supports the format specifications of this file."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __format__(self, specification: str) -> str:
        value = self._value
        if specification.startswith("?"):
            before, bar, after = specification[1:].partition("|")
            shown = "" if bar and value is True else _plain(value)
            return f"{before}{shown}{after}" if value else ""
        if value is VARIOUS:
            return format(value, specification)
        if specification in _FORMATS:
            return _FORMATS[specification](value)
        return format(value, specification) if specification else _plain(value)


_FORMATS: Mapping[str, Callable[[Any], str]] = {
    "goal": goal_name,
    "name": goal_title,
    "and": lambda items: " and ".join(map(_plain, items)),
    "comma": lambda items: ", ".join(map(_plain, items)),
    "listed": lambda numbers: ", ".join(f"{number:,.0f}" for number in numbers),
    "share": lambda pct: f"at most {pct:g} %" if pct else "nothing",
    "times": lambda n: f"{n} {'time' if n == 1 else 'times'}",
}


def _plain(value: Any) -> str:
    """Return a value as text: of a statement its sentence, of a list its values as text, joined by semicolons."""
    if isinstance(value, Mapping) and "code" in value:
        return text(value["code"], value.get("values", {}))
    if isinstance(value, list | tuple):
        return "; ".join(map(_plain, value))
    return format(value)
