# SPDX-License-Identifier: Apache-2.0
"""Makes synthetic runs in virtual time whose gateways execute a known number of instructions per frame."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from espbench.own_code import own_code
from espbench.plan import cases, conditions, load_plan
from espbench.plan.resolved.arms import compare_settings
from espbench.results import FORMAT, RunDirectory
from espbench.runs.beds import choose, profiles_of
from espbench.terms import (
    AT_BASE_LOADS,
    BaseLoad,
    CaseEntry,
    Finding,
    GatewayReading,
    Manifest,
    Outcome,
    Phase,
    Trial,
)
from espbench.version import __version__
from support.plans import plan_text

PLAN = plan_text(
    dut="mpc8548e",
    suites="[aes128-sha1]",
    frame_sizes="[64, 1456]",
    tests="\n  - throughput: {loss_goals: [0], trial: 25ms, final_trial: 100ms, resolution: 4%}",
)

NS_PER_INSTRUCTION = "0.5"
LOAD_FPS, TRIAL_S = 40_000.0, 0.1
FRAMES = 4000
Cost = Callable[[CaseEntry], float]


@dataclass(frozen=True)
class World:
    """The properties of a synthetic measurement; a test changes one at a time.

    cost: returns the instructions per frame of a case. capacity_fps: the load up to which nothing is lost. conditions:
    of the plan, merged into the usual ones. is_up: returns whether the gateways of a case can be set up, so that they
    report their Security Context.
    """

    stacks: Sequence[str] = ("plain", "xfrm")
    sizes: Sequence[int] = (64, 1456)
    repeats: int = 1
    cost: Cost = lambda entry: 5000.0 if entry.stack == "plain" else 12000.0
    capacity_fps: float = LOAD_FPS
    qemu: str = "qemu sha256 0123456789abcdef"
    kernel: str = "6.1.1"
    espbench: str = __version__
    code: str = field(default_factory=lambda: own_code()["measuring"])  # empty: a run that does not record it
    ns_per_instruction: str | None = NS_PER_INSTRUCTION
    conditions: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)
    version: str = "kernel"
    listed: Sequence[CaseEntry] = ()  # replaces stacks, sizes and repeats
    asked: Mapping[str, Any] = field(
        default_factory=dict
    )  # the plan's conditions, which replace the invented ones
    line_rate_bps: float = 1e9
    cost_when_full: float | None = (
        None  # of any case at LOAD_FPS, where the cost depends on a gateway's queues
    )
    platform: str = "made-up"
    plan_path: str = ""
    plan_text: str = "name: made-up\n"
    throughput: Cost = lambda entry: LOAD_FPS  # of a run of searches, frames/s
    compare: Mapping[str, Any] = field(default_factory=dict)  # of the manifest
    host: Mapping[str, Any] = field(default_factory=lambda: {"cpu": "invented, 2 cores"})
    tools: Mapping[str, str] = field(default_factory=dict)
    is_up: Callable[[CaseEntry], bool] = lambda entry: True

    @property
    def entries(self) -> list[CaseEntry]:
        """The cases of the plan."""
        if self.listed:
            return list(self.listed)
        listed: list[CaseEntry] = []
        for stack in self.stacks:
            for repeat in range(1, self.repeats + 1):
                for size in self.sizes:
                    suite = "none" if stack == "plain" else "aes128gcm16"
                    listed.append(
                        CaseEntry(
                            case=f"{len(listed) + 1:04}-{stack}-{size}-r{repeat}", test="throughput", dut="board",
                            stack=stack, suite=suite, ip_version=4, frame_size=size, direction="one-way",
                            repeat=repeat, stack_kind=stack, options={} if stack == "plain" else dict(self.options),
                        )
                    )  # fmt: skip
        return listed

    @property
    def plan_conditions(self) -> dict[str, Any]:
        """The plan's conditions, as `plan.resolved.conditions` makes them."""
        if self.asked:
            return {**self.asked, **self.conditions}
        board: dict[str, Any] = {"core": "e500v2"}
        if self.ns_per_instruction:
            board["ns_per_instruction"] = self.ns_per_instruction
        return {
            "topology": "gateway-to-gateway",
            "tests": [{"throughput": {"trial": "25ms", "final_trial": "100ms"}}],
            "profiles": {"board": {"platform": "made-up", "board": board, "kernel": "espbench's own"}},
            **self.conditions,
        }

    def manifest(self, base_loads: Mapping[str, list[BaseLoad]] | None = None) -> Manifest:
        """Return the manifest of a run with these properties."""
        # A run at the loads of a base measures these cases alone.
        up = [e for e in self.entries if self.is_up(e) and (base_loads is None or e.case in base_loads)]
        contexts = {
            stack: {
                "kernel": {"home": self.kernel, "office": self.kernel},
                "stack_version": {"home": self.version, "office": self.version},
                "emulation": {"qemu": self.qemu},
            }
            for stack in dict.fromkeys(entry.stack for entry in up)
        }
        return Manifest(
            format=FORMAT, espbench=self.espbench, name="made-up", plan_path=self.plan_path,
            code={"measuring": self.code} if self.code else {},
            started="2026-01-02T03:04:05+00:00",
            platform=self.platform, platform_reason="", topology="gateway-to-gateway", line_rate_bps=self.line_rate_bps,
            cases=self.entries, conditions=self.plan_conditions, contexts=contexts,
            context_of_case={entry.case: entry.stack for entry in up}, base_loads=dict(base_loads or {}),
            host=dict(self.host), tools=dict(self.tools), compare=dict(self.compare),
        )  # fmt: skip

    def trial(self, entry: CaseEntry, sequence: int, load_fps: float, phase: Phase) -> Trial:
        """Return a trial at a load; beyond the capacity, a tenth of the frames is lost."""
        full = self.cost_when_full is not None and load_fps >= LOAD_FPS
        cost = (self.cost_when_full or 0.0) if full else self.cost(entry)
        lost = 0 if load_fps <= self.capacity_fps else FRAMES // 10
        counted = round(cost, 3) if self.ns_per_instruction else None
        reading = GatewayReading(instructions_per_frame=counted, frames=FRAMES)
        return Trial(
            case=entry.case, sequence=sequence, phase=phase, intended_fps=round(load_fps, 3), offered_fps=load_fps,
            duration_s=TRIAL_S, intended_duration_s=TRIAL_S, tx_frames=FRAMES, rx_frames=FRAMES - lost, lost=lost,
            duplicated=0, reordered=0, corrupted=0, frame_loss_ratio=lost / FRAMES, validity="VALID",
            gateways={"home": reading, "office": reading}, proof={"proven": True},
        )  # fmt: skip

    def run(self, parent: Path, spoil: Callable[[Outcome], Outcome | Finding] = lambda o: o) -> RunDirectory:
        """Write a whole run of searches and return it; each case has two trials, and the second one is final."""
        with RunDirectory.create(parent, "made-up", self.manifest(), self.plan_text) as run:
            results = []
            for entry in self.entries:
                run.append(self.trial(entry, 0, LOAD_FPS / 2, "search"))
                run.append(self.trial(entry, 1, LOAD_FPS, "final"))
                results.append(spoil(_outcome(entry, self.throughput(entry))))
            run.save_results(results)
        return RunDirectory.open(run.path)

    def check(
        self,
        parent: Path,
        base_loads: Mapping[str, list[BaseLoad]],
        spoil: Callable[[Finding], Finding | None] = lambda f: f,
        spoil_trial: Callable[[Trial], Trial] = lambda t: t,
    ) -> RunDirectory:
        """Write a run at the loads of a base, as `espbench check` makes it, and return it."""
        with RunDirectory.create(parent, "made-up", self.manifest(base_loads), self.plan_text) as run:
            results = []
            for entry in self.entries:
                loads = base_loads.get(entry.case, [])
                trials: list[Trial] = []
                for load in loads:
                    trials.append(self.trial(entry, len(trials), load.load_fps, "measure"))
                    if not trials[-1].meets(load.goal):
                        trials.append(self.trial(entry, len(trials), load.floor_fps, "measure"))
                for trial in trials:
                    run.append(spoil_trial(trial))
                if loads and (finding := spoil(_finding(entry, len(trials)))) is not None:
                    results.append(finding)
            run.save_results(results)
        return RunDirectory.open(run.path)


def world_of(plan: Path) -> World:
    """Return the properties of a run of this plan, on boards of known cost."""
    resolved = load_plan(plan)
    choices = choose(resolved)
    listed = cases(resolved, [c.dut for c in choices], mtu=choices[0].mtu)
    return World(
        listed=[case.entry() for case in listed],
        asked=conditions(resolved, profiles_of(choices)),
        compare=compare_settings(resolved),
        ns_per_instruction="0.472",
        line_rate_bps=choices[0].platform.line_rate_bps,
    )


def _identity(entry: CaseEntry) -> dict[str, Any]:
    return entry.model_dump(exclude={"stack_kind", "options", "tunnels"})


def _outcome(entry: CaseEntry, fps: float) -> Outcome:
    return Outcome(
        **_identity(entry), loss_goal=0.0, status="OK", throughput_fps=fps, lower_fps=fps, upper_fps=1.001 * fps,
        offered_fps=fps, throughput_mbps=1.0,
        line_rate_pct=None, trials=2, final_trial_s=TRIAL_S, rfc2544=False, cpu_home_pct=None, cpu_office_pct=None,
        encryption="baseline" if entry.stack == "plain" else "proven", final_trial=1,
    )  # fmt: skip


def _finding(entry: CaseEntry, trials: int) -> Finding:
    return Finding(
        **(_identity(entry) | {"test": AT_BASE_LOADS}), status="OK", load_fps=LOAD_FPS, quantities=[], trials=trials,
        rfc2544=False, encryption="baseline" if entry.stack == "plain" else "proven",
    )  # fmt: skip


def tree_of_one_commit(folder: Path) -> Path:
    """Return a new git repository in this folder, whose only commit is empty."""
    tree = folder / "tree"
    tree.mkdir()
    for argv in (
        ["init", "-q"],
        ["-c", "user.name=n", "-c", "user.email=e@x", "commit", "-q", "--allow-empty", "-m", "first"],
    ):
        subprocess.run(["git", "-C", str(tree), *argv], check=True, capture_output=True)
    return tree
