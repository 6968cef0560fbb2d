# SPDX-License-Identifier: Apache-2.0
"""Defines how a throughput test may search: by bisection, or by MLRsearch with one of its presets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Search = Literal["bisection", "mlr"]
PresetName = Literal["rfc2544", "tst009", "csit"]


@dataclass(frozen=True)
class Preset:
    """The condition under which a load passes (draft-ietf-bmwg-mlrsearch, Search Goal).

    It needs `trials` trials of `final_trial_s` seconds in sum, of which at most the share `exceed_ratio` may miss
    the goal.
    """

    final_trial_s: float
    trials: int
    exceed_ratio: float


PRESETS: dict[PresetName, Preset] = {
    "rfc2544": Preset(60.0, 1, 0.0),
    "tst009": Preset(60.0, 2, 0.5),
    "csit": Preset(1.0, 21, 0.5),
}
_USUAL_TRIAL_S = 2.0


def with_preset(value: Any) -> Any:
    """Return the settings of a throughput test as written; with `search: mlr`, add the settings of its preset."""
    if not isinstance(value, dict) or value.get("search") != "mlr":
        return value
    given = value.get("preset")
    name = "rfc2544" if given is None else given
    if not isinstance(name, str) or name not in PRESETS:
        return value  # the check of `preset` reports it
    preset = PRESETS[name]
    lengths = {
        "trial": f"{min(preset.final_trial_s, _USUAL_TRIAL_S):g}s",
        "final_trial": f"{preset.final_trial_s:g}s",
    }
    return lengths | value | {"preset": name}
