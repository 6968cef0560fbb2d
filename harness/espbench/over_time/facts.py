# SPDX-License-Identifier: Apache-2.0
"""Extracts the conditions of a run: what must be equal in a series, and what may explain a change."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from espbench.comparison.sorting.comparability import READERS, flat
from espbench.gate import conditions
from espbench.terms import Manifest

_DIGITS = 10
_HOST = "host: "
# Said of each run anew; it is no condition.
_FLUCTUATING = ("cpu_mhz", "load average at start", "note")


def is_exact(manifest: Manifest) -> bool:
    """Return whether the run was made in virtual time."""
    return manifest.is_virtual


def facts(manifest: Manifest) -> dict[str, str]:
    """Return everything that could be why a figure is otherwise than another run's, as text.

    In virtual time nothing of the machine is in a figure, so nothing of it is here.
    """
    exact = is_exact(manifest)
    recorded = conditions.of_run(manifest, virtual=exact)
    known = {**recorded.instrument, **recorded.subject, "platform": manifest.platform}
    # The commit is left out: most change nothing of what measures.
    known |= {
        f"espbench's {key}": manifest.code[key] for key in ("code", "generator") if key in manifest.code
    }
    tools = {name: version for name, version in manifest.tools.items() if name not in READERS}
    known |= {f"tool: {name}": version for name, version in flat(tools)}
    if not exact:
        known |= {
            f"{_HOST}{key.removeprefix('host.')}": value
            for key, value in flat({"host": manifest.host})
            if key.removeprefix("host.") not in _FLUCTUATING
        }
        known = {key: value for key, value in known.items() if not key.startswith("host.")}
    return known


def series_conditions(manifest: Manifest) -> str:
    """Return a digest of what must be equal for two runs' figures to be of one series.

    That is what the plan asked, the platform and, in real time, the CPU; not versions of espbench, of kernels and of
    daemons, which are what a series is to show.
    """
    known = conditions.of_plan("", manifest.topology, manifest.line_rate_bps, manifest.conditions)
    own = conditions.own_kernels(known)
    kept = {key: value for key, value in known.items() if key not in own}
    kept["platform"] = manifest.platform
    if not is_exact(manifest):
        kept |= {key: str(manifest.host.get(key)) for key in ("cpu", "cpus usable")}
    text = json.dumps(kept, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:_DIGITS]


def differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return (what, was, now) of each fact that differs; `nothing` where one run does not say it."""
    return conditions.differences(was, now)
