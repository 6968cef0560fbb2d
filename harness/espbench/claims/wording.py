# SPDX-License-Identifier: Apache-2.0
"""Writes as text the configurations and sizes that a claim needs."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.claims.model import Configuration


def name(configuration: Configuration) -> str:
    """Return `async 3des-sha1, both ways`."""
    suite = "" if configuration.behaviour in ("plain", "null") else f" {configuration.suite}"
    return f"{configuration.behaviour}{suite}, {configuration.direction.replace('-', ' ')}"


def sizes_in_words(sizes: Sequence[int]) -> str:
    """Return `64, 128 B`."""
    return f"{', '.join(map(str, sizes))} B"
