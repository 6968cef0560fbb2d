# SPDX-License-Identifier: Apache-2.0
"""Lists the gateways that a direction crosses, with their SA counters: of one trial, or summed over several trials."""

from __future__ import annotations

from dataclasses import dataclass

from espbench.terms import OPENED_BY_TESTER, DirectionReading, Trial

# `west-east` enters at Home: Home encrypts, Office decrypts.
_WAYS = {"west-east": ("home", "office"), "east-west": ("office", "home")}
_NAMES = {"home": "Home", "office": "Office"}
_TESTER = "tester"


@dataclass(frozen=True)
class Crossing:
    """One direction of VALID trials, summed: numbers of trials and of frames.

    proven is the number of trials whose encryption is proven. A gateway's count is None if any trial has none.
    """

    trials: int = 0
    proven: int = 0
    sent: int = 0
    received: int = 0
    encrypted: int | None = 0
    decrypted: int | None = 0

    def __add__(self, other: Crossing) -> Crossing:
        return Crossing(
            self.trials + other.trials,
            self.proven + other.proven,
            self.sent + other.sent,
            self.received + other.received,
            _sum(self.encrypted, other.encrypted),
            _sum(self.decrypted, other.decrypted),
        )


def crossing(trial: Trial, way: str, reading: DirectionReading) -> tuple[str, Crossing]:
    """Return the name of one direction of a trial, such as `Home → Office`, and its counts."""
    name, encrypted, decrypted = crossed(trial, way, reading)
    proven = int(bool(trial.proof.get("proven")))
    return name, Crossing(1, proven, reading.tx_frames, reading.rx_frames, encrypted, decrypted)


def crossed(trial: Trial, way: str, reading: DirectionReading) -> tuple[str, int | None, int | None]:
    """Return `Home → Office`, the frames that the first encrypted, and the frames that the second decrypted.

    A count is None if it could not be read.
    """
    first, second = _WAYS.get(way, ("", ""))
    encrypted = trial.gateways[first].encrypted_frames if first in trial.gateways else None
    decrypted = trial.gateways[second].decrypted_frames if second in trial.gateways else None
    names = [_NAMES.get(first, ""), _NAMES.get(second, "")]
    if set(trial.gateways) == {"home"}:
        # The tester is the other end: it counts the frames that it decrypted, and it encrypted all that it sent.
        opened = trial.proof.get(OPENED_BY_TESTER, {}).get("authentic")
        names = ["Home", _TESTER] if first == "home" else [_TESTER, "Home"]
        encrypted, decrypted = (encrypted, opened) if first == "home" else (reading.tx_frames, decrypted)
    return (
        "\N{NO-BREAK SPACE}→\N{NO-BREAK SPACE}".join(names) if trial.gateways else way,
        encrypted,
        decrypted,
    )


def _sum(so_far: int | None, more: int | None) -> int | None:
    return None if so_far is None or more is None else so_far + more
