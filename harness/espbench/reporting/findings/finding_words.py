# SPDX-License-Identifier: Apache-2.0
"""Has the titles of the kinds of test in a report, and explains how to read their figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from espbench.terms import PAIRED, Manifest, kind_of_test


@dataclass(frozen=True)
class Kind:
    """Title of a test's section, and a sentence or two under it."""

    title: str
    about: str = ""


_KINDS = {
    "throughput": Kind("Throughput"),
    "latency": Kind(
        "Latency",
        "RFC 2544 26.2: the latency of one tagged frame within a stream at the throughput. The trial is repeated; the "
        "mean is the figure. The table also has the latencies of all frames of these trials, which RFC 2544 does not "
        "ask for. The tester measures in software, from just before it gives a frame to one port until it takes the "
        "frame from the other, with the time on the wire (exactly, on emulated boards in virtual time).",
    ),
    "frame_loss": Kind(
        "Frame loss rate",
        "RFC 2544 26.3: the share of frames that did not arrive intact, from the highest load down to the first two "
        "loads in a row without loss.",
    ),
    "back_to_back": Kind(
        "Back-to-back frames",
        "RFC 2544 26.4 as updated by RFC 9004: the longest burst, at the highest possible rate, that the DUT forwards "
        "without loss. The implied buffer time is the length of the burst. The corrected one subtracts what the DUT "
        "forwarded during the burst, at its throughput; it is the time that the buffer alone covers.",
    ),
    "system_recovery": Kind(
        "System recovery",
        "RFC 2544 26.5: an overload of 110 % of the throughput drops to half. The recovery time is the time from the "
        "drop to the last lost frame.",
    ),
    "flood": Kind(
        "Forwarding under flood",
        "The forwarding rate at the highest load of the line or the tester, compared with the throughput. A ratio "
        "below 1 means that the DUT forwards less under overload. Above 1 it forwards more than its throughput, and "
        "loses the rest.",
    ),
    "bus": Kind(
        "Bytes over the bus",
        "Bytes that the devices of gateway Home move over its memory bus for each frame, counted by the emulated "
        "devices. The part of the CPU is estimated from an assumed rate of cache misses, because no cache is emulated. "
        "A trial that lost more frames than its loss goal allows has no figure.",
    ),
    "time_to_first_packet": Kind(
        "Time to first packet",
        "ipsec-meth 10.5: at first there is no SA. The time goes from the first frame sent, which triggers the tunnel, "
        "to the first frame that arrives. The frames before it are lost, as the draft expects.",
    ),
    "rekey_loss": Kind(
        "Frame loss during phase 2 rekeys",
        "ipsec-meth 11.5: the ESP SAs are rekeyed several times in one trial.",
    ),
    "set_up_rate": Kind(
        "Set-up rates",
        "ipsec-meth 12.1 to 12.3, from the log of the initiating daemon. The public-key bound is the rate that the "
        "public-key operations alone would allow; the rest of the time is protocol and other overhead.",
    ),
    "rekey_rate": Kind(
        "Rekey rates",
        "ipsec-meth 13.1, 13.2: rekeys per second of the time in which at least one rekey was in progress, from the "
        "log of the daemon.",
    ),
    "capacity": Kind(
        "Tunnel and SA capacity",
        "ipsec-meth 8.1, 8.2: the highest number that came up and carried traffic, without a rekey.",
    ),
    "failover": Kind(
        "Tunnel failover",
        "ipsec-meth 14: Office's IPsec is killed, and a cold start of the same gateway stands in for a standby. The "
        "time goes from the last frame that arrived before to the first frame after.",
    ),
    "reset": Kind(
        "Reset",
        "RFC 2544 26.6, RFC 6201: the time from the last frame that arrived before the reset to the first frame after "
        "it. Traffic triggers the tunnels again.",
    ),
    "attack": Kind(
        "Under attack",
        "ipsec-meth 15: how much legitimate traffic is still forwarded, and the CPU cost, at each rate of attack.",
    ),
    PAIRED: Kind("Comparison at fixed loads"),
    "public_key": Kind(
        "Public-key operations",
        "Measured with OpenSSL inside the gateways, per second of CPU time. No set-up can be faster than these allow.",
    ),
}


@dataclass(frozen=True)
class Names:
    """The names of a run's tests; tests of one kind are distinguished by their settings.

    apart: test → the settings, as text, in which it differs from others of its kind.
    """

    apart: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Manifest) -> Names:
        """Make the names from the settings in the manifest, if it has any."""
        settings: dict[str, list[dict[str, Any]]] = {}
        for entry in manifest.conditions.get("tests", []):
            for name, asked in entry.items():
                settings.setdefault(name, []).append(asked)
        apart = {}
        for name, several in settings.items():
            keys = _telling(several)
            for number, asked in enumerate(several, start=1):
                parts = [f"{key.replace('_', ' ')}: {asked[key]}" for key in keys if key in asked]
                apart[name if number == 1 else f"{name}-{number}"] = ", ".join(parts)
        return cls({test: text for test, text in apart.items() if text})

    def title(self, test: str) -> str:
        """Return `Latency` or `Reset (what: power)`; if no settings were recorded, `Reset (2)`."""
        which = self.which(test)
        return f"{_kind(test).title} ({which})" if which else _kind(test).title

    def which(self, test: str) -> str:
        """Return what distinguishes the test from others of its kind; empty if there are no others."""
        number = test.removeprefix(kind_of_test(test)).lstrip("-")
        return self.apart.get(test, number)

    def within(self, test: str) -> str:
        """Return the test's title as it stands within a sentence."""
        return _within(self.title(test))

    def about(self, test: str) -> str:
        """Return a sentence or two that explain the test; empty for a kind that has no text here."""
        return _kind(test).about


def _telling(several: Sequence[dict[str, Any]]) -> list[str]:
    """Return the key that alone distinguishes all tests of one kind, preferably by words; else all keys that differ."""
    values = {
        key: [str(asked.get(key)) for asked in several]
        for key, value in several[0].items()
        if isinstance(value, str | int | float)
    }
    differing = [key for key, different in values.items() if len(set(different)) > 1]
    alone = [key for key in differing if len(set(values[key])) == len(several)]
    alone.sort(key=lambda key: any(text[:1].isdigit() for text in values[key]))
    return alone[:1] or differing


def kinds_listed(tests: Sequence[str]) -> str:
    """Return `latency, frame loss rate and reset`, with each kind once."""
    words = list(dict.fromkeys(_within(_kind(test).title) for test in tests)) or ["nothing"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _kind(test: str) -> Kind:
    """Return the kind of a test; if the list does not have it, one whose title is the test's name in the plan."""
    name = kind_of_test(test)
    words = name.replace("_", " ").replace("-", " ").strip()
    return _KINDS.get(name) or Kind(words[:1].upper() + words[1:])


def _within(title: str) -> str:
    # An abbreviation stays as it is.
    return title if title[:2].isupper() else title[:1].lower() + title[1:]
