# SPDX-License-Identifier: Apache-2.0
"""Compares what emulated boards report about their crypto engine, once the tunnel is up, with the plan."""

from __future__ import annotations

from typing import Any

from espbench.catalogue import board_crypto
from espbench.catalogue.suites import suites
from espbench.plan import Case
from espbench.platforms.base import Testbed


def engines(bed: Testbed, case: Case) -> tuple[dict[str, Any], list[str]]:
    """Return the boards' reports for the Security Context, by gateway, and the differences from the plan.

    Each difference begins with its gateway's name.
    """
    said: dict[str, Any] = {}
    mistakes: list[str] = []
    for side, gateway in bed.gateways.items():
        texts = gateway.read(list(board_crypto.FILES))
        if lost := [path for path, text in texts.items() if text is None]:
            mistakes.append(f"{side}: expected {', '.join(lost)}, its kernel has none")
            continue
        crypto = board_crypto.read_back({path: text for path, text in texts.items() if text is not None})
        said[side] = {
            "behaviour": crypto.behaviour,
            "engine": crypto.sec or "none",
            "descriptors before trials": crypto.descriptors,
        }
        if case.stack.kind == "plain":
            continue
        suite = suites()[case.suite]
        said[side]["computed by"] = board_crypto.driver(crypto, suite) or "nobody"
        if case.stack.kind in ("xfrm", "lean-esp"):
            asked = case.stack.crypto or board_crypto.DEFAULT
            mistakes += [f"{side}: {text}" for text in board_crypto.mistakes(asked, crypto, suite)]
    return {"crypto engine": said}, mistakes
