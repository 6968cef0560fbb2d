# SPDX-License-Identifier: Apache-2.0
"""Defines every quantity that tests other than throughput measure: its key, its label for people, its unit, and
whether more or less is better. Also defines how the keys of other figures name their unit and their direction.

The program identifies a quantity by its key alone, so that labels may be reworded here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from espbench.terms import Better, Quantity

# The ending of a figure's key, in the rows of a curve and the columns of a data frame → its unit.
UNIT_OF_ENDING: Mapping[str, str] = {
    "_us_per_frame": "µs/frame",
    "_frames": "frames",
    "_fps": "frames/s",
    "_pps": "packets/s",
    "_mbps": "Mbit/s",
    "_MiB": "MiB",
    "_pct": "%",
    "_us": "µs",
    "_ms": "ms",
    "_s": "s",
}
WAYS = ("west-east", "east-west")
"""The directions, as they stand in records."""


class Key(StrEnum):
    """The quantities that a test can measure.

    Some belong to a part (an operation, a gateway); then the key in the record is `<key>/<part>`.
    """

    TUNNELS_CARRIED = "tunnels-carried"
    SA_PAIRS_CARRIED = "sa-pairs-carried"
    PUBLIC_KEY_RATE = "public-key-rate"
    RECOVERY_TIME = "recovery-time"
    LOSS_OVER_TRIAL = "loss-over-trial"
    THROUGHPUT = "throughput"
    OVERLOAD = "overload"
    REDUCED_LOAD = "reduced-load"
    LATENCY_TAGGED = "latency-tagged"
    LATENCY_LEAST = "latency-least"
    LATENCY_MEAN = "latency-mean"
    LATENCY_P50 = "latency-p50"
    LATENCY_P90 = "latency-p90"
    LATENCY_P99 = "latency-p99"
    LATENCY_P999 = "latency-p99.9"
    LATENCY_GREATEST = "latency-greatest"
    LOSS_AT_HIGHEST = "loss-at-highest-load"
    LOSSLESS_LOAD = "lossless-load"
    MOST_FORWARDED = "most-forwarded"
    FORWARDED_AT_HIGHEST = "forwarded-at-highest-load"
    BURST = "burst"
    IMPLIED_BUFFER_TIME = "implied-buffer-time"
    CORRECTED_BUFFER_TIME = "corrected-buffer-time"
    CORRECTED_BUFFER = "corrected-buffer"
    FLOOD_FORWARDING = "flood-forwarding"
    FLOOD_MBPS = "flood-mbps"
    OF_THROUGHPUT = "of-throughput"
    BUS_TOTAL = "bus-total"
    BUS_COUNTED = "bus-counted"
    BUS_FRAMES = "bus-frames"
    BUS_ENGINE = "bus-engine"
    BUS_DESCRIPTORS = "bus-descriptors"
    BUS_CPU = "bus-cpu"
    BUS_RATE = "bus-rate"
    BUS_BY_ACCOUNT = "bus-by-account"
    BUS_OF_ACCOUNT = "bus-of-account"
    FRAME_LOSS = "frame-loss"
    FORWARDING = "forwarding"
    REKEY_RATE = "rekey-rate"
    REKEY_TIME = "rekey-time"
    LOSS_RATIO = "loss-ratio"
    FRAMES_LOST = "frames-lost"
    REKEYS = "rekeys"
    SA_LIFETIME = "sa-lifetime"
    SA_LIFETIME_BYTES = "sa-lifetime-bytes"
    IDLE_TIMEOUT = "idle-timeout"
    SET_UP_RATE = "set-up-rate"
    SET_UP_TIME = "set-up-time"
    PUBLIC_KEY_TIME = "public-key-time"
    PUBLIC_KEY_BOUND = "public-key-bound"
    PROTOCOL_OVERHEAD = "protocol-overhead"
    FIRST_PACKET_TIME = "first-packet-time"
    TUNNEL_TIME = "tunnel-time"
    FRAMES_LOST_MEANWHILE = "frames-lost-meanwhile"
    FAILOVER_TIME = "failover-time"
    RESET_TIME = "reset-time"
    ACTION_TIME = "action-time"
    KEPT_UNDER_ATTACK = "kept-under-attack"
    FORWARDING_UNDER_ATTACK = "forwarding-under-attack"
    FORWARDING_WITHOUT_ATTACK = "forwarding-without-attack"
    HARMLESS_ATTACK = "harmless-attack"
    LOSS_UNDER_ATTACK = "loss-under-attack"
    CPU_WITHOUT_ATTACK = "cpu-without-attack"
    CPU_UNDER_ATTACK = "cpu-under-attack"
    CPU_RATIO = "cpu-ratio"
    ARM_LOSS = "arm-loss"
    CPU_AT_BASE_LOAD = "cpu-at-base-load"
    LOSS_AT_BASE_LOAD = "loss-at-base-load"


@dataclass(frozen=True)
class Kind:
    """A kind of quantity. label: a format string, filled with the values of `figure`; better: whether more or less
    is better.
    """

    label: str
    unit: str
    better: Better | None = None


KINDS: Mapping[str, Kind] = {
    Key.TUNNELS_CARRIED: Kind("tunnels carried", "tunnels", "more"),
    Key.SA_PAIRS_CARRIED: Kind("SA pairs carried", "sas", "more"),
    Key.PUBLIC_KEY_RATE: Kind("{operation}, {side}", "operations/s", "more"),
    Key.RECOVERY_TIME: Kind("system recovery time", "s", "less"),
    Key.LOSS_OVER_TRIAL: Kind("frame loss over the trial", "%", "less"),
    Key.THROUGHPUT: Kind("throughput", "frames/s", "more"),
    Key.OVERLOAD: Kind("overload", "frames/s"),
    Key.REDUCED_LOAD: Kind("reduced load", "frames/s"),
    Key.LATENCY_TAGGED: Kind("latency, tagged frame", "µs", "less"),
    Key.LATENCY_LEAST: Kind("latency, least", "µs", "less"),
    Key.LATENCY_MEAN: Kind("latency, mean", "µs", "less"),
    Key.LATENCY_P50: Kind("latency, p50", "µs", "less"),
    Key.LATENCY_P90: Kind("latency, p90", "µs", "less"),
    Key.LATENCY_P99: Kind("latency, p99", "µs", "less"),
    Key.LATENCY_P999: Kind("latency, p99.9", "µs", "less"),
    Key.LATENCY_GREATEST: Kind("latency, greatest", "µs", "less"),
    Key.LOSS_AT_HIGHEST: Kind("frame loss at the highest load", "%", "less"),
    Key.LOSSLESS_LOAD: Kind("highest lossless load", "frames/s", "more"),
    Key.MOST_FORWARDED: Kind("highest forwarding rate", "frames/s", "more"),
    Key.FORWARDED_AT_HIGHEST: Kind("forwarding rate at the highest load", "frames/s", "more"),
    Key.BURST: Kind("back-to-back frames", "frames", "more"),
    Key.IMPLIED_BUFFER_TIME: Kind("implied buffer time", "µs", "more"),
    Key.CORRECTED_BUFFER_TIME: Kind("corrected buffer time", "µs", "more"),
    Key.CORRECTED_BUFFER: Kind("corrected buffer", "frames", "more"),
    Key.FLOOD_FORWARDING: Kind("forwarding rate under flood", "frames/s", "more"),
    Key.FLOOD_MBPS: Kind("forwarding rate under flood, Mbps", "Mbps", "more"),
    Key.OF_THROUGHPUT: Kind("of the throughput", "1", "more"),
    Key.BUS_TOTAL: Kind("over the bus for a frame, all", "B", "less"),
    Key.BUS_COUNTED: Kind("over the bus for a frame, as the article counts", "B", "less"),
    Key.BUS_FRAMES: Kind("of these, frames of the Ethernet ports", "B", "less"),
    Key.BUS_ENGINE: Kind("of these, data and keys of the engine", "B", "less"),
    Key.BUS_DESCRIPTORS: Kind("descriptors", "B", "less"),
    Key.BUS_CPU: Kind("the CPU's cache misses, at the assumed rate", "B", "less"),
    Key.BUS_RATE: Kind("over the bus, all", "MB/s", "less"),
    Key.BUS_BY_ACCOUNT: Kind("by the article's account", "B"),
    Key.BUS_OF_ACCOUNT: Kind("counted, of the article's account", "1"),
    Key.FRAME_LOSS: Kind("frame loss", "%", "less"),
    Key.FORWARDING: Kind("forwarding rate", "frames/s", "more"),
    Key.REKEY_RATE: Kind("phase {phase} rekey rate", "rekeys/s", "more"),
    Key.REKEY_TIME: Kind("phase {phase} rekey time", "ms", "less"),
    Key.LOSS_RATIO: Kind("frame loss ratio", "%", "less"),
    Key.FRAMES_LOST: Kind("frames lost", "frames", "less"),
    Key.REKEYS: Kind("phase 2 rekeys", "rekeys"),
    Key.SA_LIFETIME: Kind("lifetime of the ESP SAs", "s"),
    Key.SA_LIFETIME_BYTES: Kind("lifetime of the ESP SAs in bytes", "bytes"),
    Key.IDLE_TIMEOUT: Kind("idle timeout of the ESP SAs", "s"),
    Key.SET_UP_RATE: Kind("{what} set-up rate", "{of}/s", "more"),
    Key.SET_UP_TIME: Kind("{what} set-up time", "ms", "less"),
    Key.PUBLIC_KEY_TIME: Kind("public-key time of a set-up, {side}", "ms", "less"),
    Key.PUBLIC_KEY_BOUND: Kind("public-key bound", "tunnels/s", "more"),
    Key.PROTOCOL_OVERHEAD: Kind("protocol and other overhead", "%", "less"),
    Key.FIRST_PACKET_TIME: Kind("time to first packet", "ms", "less"),
    Key.TUNNEL_TIME: Kind("of it, setting up the tunnel", "ms", "less"),
    Key.FRAMES_LOST_MEANWHILE: Kind("frames lost meanwhile", "frames", "less"),
    Key.FAILOVER_TIME: Kind("tunnel failover time", "s", "less"),
    Key.RESET_TIME: Kind("reset time", "s", "less"),
    Key.ACTION_TIME: Kind("of it, {action}", "s", "less"),
    Key.KEPT_UNDER_ATTACK: Kind("forwarding rate kept under the fastest attack", "%", "more"),
    Key.FORWARDING_UNDER_ATTACK: Kind("forwarding rate under the fastest attack", "frames/s", "more"),
    Key.FORWARDING_WITHOUT_ATTACK: Kind("forwarding rate without attack", "frames/s", "more"),
    Key.HARMLESS_ATTACK: Kind("fastest attack without loss beyond the goal", "packets/s", "more"),
    Key.LOSS_UNDER_ATTACK: Kind("frame loss under the fastest attack", "%", "less"),
    Key.CPU_WITHOUT_ATTACK: Kind("CPU of {side}, without attack", "%", "less"),
    Key.CPU_UNDER_ATTACK: Kind("CPU of {side}, under the fastest attack", "%", "less"),
    Key.CPU_RATIO: Kind(
        "CPU per frame, {b} / {a}, at {share:.0%} of {of_fps:,.0f} frames/s", "ratio", "less"
    ),
    Key.ARM_LOSS: Kind("frame loss of {arm}, at {share:.0%} of {of_fps:,.0f} frames/s", "%", "less"),
    Key.CPU_AT_BASE_LOAD: Kind("CPU per frame of {side}, at {fps:,.0f} frames/s", "µs", "less"),
    Key.LOSS_AT_BASE_LOAD: Kind("frame loss, at {fps:,.0f} frames/s", "%", "less"),
}


def key_of_way(key: str, way: str) -> str:
    """Return the key of a curve's figure of one direction: `frame_loss_pct west-east`."""
    return f"{key} {way}"


def way_of(key: str) -> tuple[str, str]:
    """Split a key that `key_of_way` made into the key and the direction; the direction of any other key is empty."""
    for way in WAYS:
        if key.endswith(ending := key_of_way("", way)):
            return key.removesuffix(ending), way
    return key, ""


def ending_of(key: str) -> str:
    """Return the ending of a key that names its unit (UNIT_OF_ENDING); empty if it has none."""
    return next((ending for ending in UNIT_OF_ENDING if key.endswith(ending)), "")


def figure(
    key: Key, value: float | None, *, n: int = 1, way: str = "", part: str = "", **named: Any
) -> Quantity:
    """Return a quantity of one measurement, or of n measurements that are one figure.

    value: None if nothing was measured. way: the direction, empty for all. part: the part that is added to the key.
    named: the values for the format strings of label and unit.
    """
    kind = KINDS[key]
    label = kind.label.format(**named)
    return Quantity(
        key=f"{key.value}/{part}" if part else key.value,
        name=f"{label}, {way}" if way else label,
        label=label,
        unit=kind.unit.format(**named),
        better=kind.better,
        way=way,
        value=value,
        n=n,
    )
