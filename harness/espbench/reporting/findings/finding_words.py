# SPDX-License-Identifier: Apache-2.0
"""What each kind of test is called in a report, and what a reader must know to read its figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from espbench.terms import Manifest, kind_of_test


@dataclass(frozen=True)
class Kind:
    """Title of a test's section, and a sentence or two under it."""

    title: str
    about: str = ""


_KINDS = {
    "throughput": Kind("Throughput"),
    "latency": Kind(
        "Latency",
        "RFC 2544 26.2: one tagged frame in mid-stream at the throughput, the trial repeated; the mean is the figure. "
        "Beside it the latencies of all frames of these trials, which RFC 2544 does not ask for. "
        "All are of a tester in software: from before a frame is given to the port until it was taken from the "
        "other one, the time on the wire included (on emulated boards in virtual time, exactly).",
    ),
    "frame_loss": Kind(
        "Frame loss rate",
        "RFC 2544 26.3: the share of the frames that did not arrive intact, from the highest load down, until two "
        "loads in a row lose nothing.",
    ),
    "back_to_back": Kind(
        "Back-to-back frames",
        "RFC 2544 26.4 as updated by RFC 9004: the longest burst, at the highest rate there is, of which no frame is "
        "lost. The implied buffer time is that of the burst; the corrected one takes off what the DUT forwarded "
        "meanwhile, at its throughput: the time its buffer alone covers.",
    ),
    "system_recovery": Kind(
        "System recovery",
        "RFC 2544 26.5: an overload of 110 % of the throughput falls to half of itself; the recovery time goes from "
        "that moment to the last frame that is lost.",
    ),
    "flood": Kind(
        "Forwarding under flood",
        "What still crosses when all comes that the line or the tester gives, beside the throughput. A ratio below 1: "
        "the overload costs the DUT part of what it can do. Above 1: it forwards more than at its throughput, and "
        "loses the rest.",
    ),
    "bus": Kind(
        "Bytes over the bus",
        "What the devices of gateway Home move over its memory's bus for each frame, counted by the emulated devices. "
        "The CPU's part is an assumed rate of cache misses: no cache is emulated.",
    ),
    "time_to_first_packet": Kind(
        "Time to first packet",
        "ipsec-meth 10.5: no SA is there; from the first frame sent, which brings the tunnel up, to the first that "
        "arrives. Those before it are lost, as the draft expects.",
    ),
    "rekey_loss": Kind(
        "Frame loss during phase 2 rekeys",
        "ipsec-meth 11.5: the ESP SAs end several times in one trial.",
    ),
    "set_up_rate": Kind(
        "Set-up rates",
        "ipsec-meth 12.1 to 12.3, by the initiating daemon's own log. The public-key bound is what the operations that "
        "a set-up needs would allow by themselves; the rest is protocol and other overhead.",
    ),
    "rekey_rate": Kind(
        "Rekey rates",
        "ipsec-meth 13.1, 13.2: of the time in which at least one rekey was under way, by the daemon's own log.",
    ),
    "capacity": Kind(
        "Tunnel and SA capacity",
        "ipsec-meth 8.1, 8.2: the most that came up and carried traffic, none of them rekeyed.",
    ),
    "failover": Kind(
        "Tunnel failover",
        "ipsec-meth 14: Office's IPsec dies without a word and is started anew, cold, in place of a standby; from the "
        "last frame that arrived before to the first one after.",
    ),
    "reset": Kind(
        "Reset",
        "RFC 2544 26.6, RFC 6201: from the last frame that arrived before to the first one after. Traffic brings the "
        "tunnels up again.",
    ),
    "attack": Kind(
        "Under attack",
        "ipsec-meth 15: what legitimate traffic keeps, and what it costs, rate by rate of the attack.",
    ),
    "public_key": Kind(
        "Public-key operations",
        "By OpenSSL inside the gateways, per second of one CPU's time: no set-up that needs one is faster.",
    ),
}


@dataclass(frozen=True)
class Names:
    """What the tests of a run are called: those of one kind by what the plan asks of each.

    apart: test → the settings that tell it from others of its kind.
    """

    apart: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, manifest: Manifest) -> Names:
        """By the settings the manifest records, if any."""
        settings: dict[str, list[dict[str, Any]]] = {}
        for entry in manifest.conditions.get("tests", []):
            for name, asked in entry.items():
                settings.setdefault(name, []).append(asked)
        found = {}
        for name, several in settings.items():
            keys = _telling(several)
            for number, asked in enumerate(several, start=1):
                told = [f"{key.replace('_', ' ')}: {asked[key]}" for key in keys if key in asked]
                found[name if number == 1 else f"{name}-{number}"] = ", ".join(told)
        return cls({test: text for test, text in found.items() if text})

    def title(self, test: str) -> str:
        """`Latency`, `Reset (what: power)`; without recorded settings `Reset (2)`."""
        which = self.which(test)
        return f"{_kind(test).title} ({which})" if which else _kind(test).title

    def which(self, test: str) -> str:
        """What tells it from others of its kind; empty where there are none."""
        number = test.removeprefix(kind_of_test(test)).lstrip("-")
        return self.apart.get(test, number)

    def within(self, test: str) -> str:
        """Its title within a sentence."""
        return _within(self.title(test))

    def about(self, test: str) -> str:
        """A sentence or two on what it is; empty for kinds nobody wrote one for."""
        return _kind(test).about


def _telling(several: Sequence[dict[str, Any]]) -> list[str]:
    """The key that tells tests of one kind apart by itself, words before numbers; else all that differ."""
    values = {
        key: [str(asked.get(key)) for asked in several]
        for key, value in several[0].items()
        if isinstance(value, str | int | float)
    }
    differing = [key for key, found in values.items() if len(set(found)) > 1]
    alone = [key for key in differing if len(set(values[key])) == len(several)]
    alone.sort(key=lambda key: any(text[:1].isdigit() for text in values[key]))
    return alone[:1] or differing


def kinds_listed(tests: Sequence[str]) -> str:
    """`latency, frame loss rate and reset`, each kind once."""
    words = list(dict.fromkeys(_within(_kind(test).title) for test in tests)) or ["nothing"]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _kind(test: str) -> Kind:
    """Of a kind that is not in the list its name in the plan, as words."""
    name = kind_of_test(test)
    words = name.replace("_", " ").replace("-", " ").strip()
    return _KINDS.get(name) or Kind(words[:1].upper() + words[1:])


def _within(title: str) -> str:
    # An abbreviation stays as it is.
    return title if title[:2].isupper() else title[:1].lower() + title[1:]
