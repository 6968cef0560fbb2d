# SPDX-License-Identifier: Apache-2.0
"""Makes synthetic runs of one plan on successive days; the caller sets their figures and conditions."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from espbench.results import RunDirectory
from espbench.terms import Outcome, Status
from support.synthetic import run as synthetic_run

BEGUN = datetime(2026, 1, 1, 12, tzinfo=UTC)
SHAPE = synthetic_run.Shape(stacks=("xfrm",), suites=("aes128gcm16",), sizes=(64, 512), goals=(0.0,))


@dataclass(frozen=True)
class Night:
    """The properties of one run: factors on its throughputs, and entries of its manifest.

    factor: on all throughputs. by_repeat: repeat → a further factor. status: of every result that would have a figure.
    is_virtual: whether its gateways are in virtual time.
    """

    factor: float = 1.0
    by_repeat: Mapping[int, float] = field(default_factory=dict)
    status: Status | None = None
    is_virtual: bool = False
    plan: str = "nightly"
    espbench: str = "0.1.0"
    kernel: str = "6.1.0"
    host_kernel: str = "Linux 6.12"
    cpu: str = "invented, 2 cores"
    trial: str = "2s"


def write(
    parent: Path, number: int, night: Night, shape: synthetic_run.Shape = SHAPE, report: str = ""
) -> RunDirectory:
    """Write the run of a night and return it; number: days since BEGUN; report: the text of its report.html, if any."""
    began = BEGUN + timedelta(days=number)
    folder = parent / f"{began:%Y%m%dT%H%M%SZ}-{night.plan}"
    if folder.exists():
        shutil.rmtree(folder)
    cases = synthetic_run.cases_of(shape)
    manifest = synthetic_run.manifest(cases, night.plan)
    profile: dict[str, Any] = {"platform": "synthetic"}
    if night.is_virtual:
        profile["ns_per_instruction"] = "0.5"
    contexts = {
        name: context | {"kernel": {"home": night.kernel, "office": night.kernel}}
        for name, context in manifest.contexts.items()
    }
    changed = manifest.model_copy(
        update={
            "started": began.isoformat(timespec="seconds"),
            "espbench": night.espbench,
            "contexts": contexts,
            "host": {"cpu": night.cpu, "kernel": night.host_kernel, "load average at start": str(number)},
            "conditions": {
                "tests": [{"throughput": {"trial": night.trial}}],
                "profiles": {shape.dut: profile},
            },
        }
    )
    with RunDirectory.create(parent, night.plan, changed, f"name: {night.plan}\n") as made:
        made.save_results(
            [_otherwise(o, night) for case in cases for o in synthetic_run.outcomes_of(case, shape)]
        )
        made.path.rename(folder)
    if report:
        (folder / "report.html").write_text(report, encoding="utf-8")
    return RunDirectory.open(folder)


def _otherwise(outcome: Outcome, night: Night) -> Outcome:
    if outcome.throughput_fps is None:
        return outcome
    if night.status is not None:
        return outcome.model_copy(update={"status": night.status, "throughput_fps": None})
    factor = night.factor * night.by_repeat.get(outcome.repeat, 1.0)
    counted = 9000.0 / factor if night.is_virtual else None
    return outcome.model_copy(
        update={
            "throughput_fps": outcome.throughput_fps * factor,
            "instructions_home_per_frame": counted,
            "instructions_office_per_frame": counted,
        }
    )
