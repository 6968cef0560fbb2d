# SPDX-License-Identifier: Apache-2.0
"""Makes plans for tests: as text if the place of a mistake matters, otherwise as a dict."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import yaml

from espbench.plan import plan_schema

# This many retries make a case OK even if the machine stalls in some of its trials.
RETRIES = 6
# The generator's path is fixed, because to choose it takes longer than most runs of tests.
PINNED: dict[str, Any] = {"generator": {"native": {"tx": "af_packet"}}}
_PAIR: dict[str, str | None] = {
    "name": "good",
    "topology": "gateway-to-gateway",
    "dut": "uml",
    "stacks": "[plain, xfrm]",
    "suites": "[aes128gcm16]",
    "frame_sizes": "[64]",
    "tests": "[throughput: {}]",
}
_EXTERNAL: dict[str, str | None] = {
    "name": "outside",
    "topology": "external",
    "ports": """
  west: {netns: t1, interface: a0, address: 10.0.1.2/24, gateway: 10.0.1.1}
  east: {netns: t2, interface: a1, address: 10.0.2.2/24, gateway: 10.0.2.1}""",
    "frame_sizes": "[64]",
    "tests": "[throughput: {}]",
}
_KERNELS: dict[str, str | None] = {
    "name": "kernels",
    "topology": "no-network",
    "dut": "ixp2800",
    "tests": "[cipher_kernels: {}]",
}


def plan_text(**changes: str | None) -> str:
    """Return a plan for a pair that espbench builds, as YAML with one key on each line; a change is the text of a key.

    None leaves a key out. A key that _PAIR does not have comes before `tests`, which is the last key.
    """
    return _text(_PAIR | changes)


def external_text(**changes: str | None) -> str:
    """Return a plan for boxes that espbench did not build, in the same way."""
    return _text(_EXTERNAL | changes)


def kernels_text(**changes: str | None) -> str:
    """Return a plan of cipher kernels on network processors, in the same way."""
    return _text(_KERNELS | changes)


def _text(keys: dict[str, str | None]) -> str:
    ordered = {key: text for key, text in keys.items() if key != "tests"} | {"tests": keys["tests"]}
    given = {key: text for key, text in ordered.items() if text is not None}
    return "".join(
        f"{key}:{text if text.startswith(chr(10)) else ' ' + text}\n" for key, text in given.items()
    )


def quick(**changes: Any) -> dict[str, Any]:
    """Return throughput settings with very short trials."""
    return {
        "loss_goals": [0], "minimum": "500fps", "maximum": "2000fps", "trial": "200ms",
        "final_trial": "400ms", "resolution": "10%", "settle": "0s", "residue": "50ms", "learning": "0s",
        "warm_up": "0s", "retries": RETRIES,
    } | changes  # fmt: skip


def coarse(minimum: str, maximum: str) -> dict[str, Any]:
    """Return throughput settings of a coarse search between two loads, for virtual time: a trial is 20 ms."""
    return {
        "loss_goals": [0], "minimum": minimum, "maximum": maximum, "trial": "20ms", "final_trial": "40ms",
        "warm_up": "10ms", "learning": "10ms", "residue": "10ms", "resolution": "40%",
    }  # fmt: skip


def pair_plan(dut: str, *, throughput: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    """Return a plan for a plain pair that espbench builds."""
    return {
        "name": dut, "topology": "gateway-to-gateway", "dut": dut, "stacks": ["plain"], "frame_sizes": [64],
        "tests": [{"throughput": quick(**throughput or {})}],
    } | changes  # fmt: skip


def write_plan(folder: Path, plan: dict[str, Any]) -> Path:
    """Write a plan to a file, and return the file."""
    file = folder / f"{plan['name']}.yaml"
    file.write_text(yaml.safe_dump(plan))
    return file


@cache
def plan_validator() -> Any:
    """Return a validator that checks plans against the schema as an editor does; it is made once, which is slow."""
    return jsonschema.Draft202012Validator(plan_schema())
