# SPDX-License-Identifier: Apache-2.0
"""Kills or stops a part of a real run at random moments; its figures must be right, or absent with the true reason."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from campaign import announcements, checks, hits
from campaign.observed import ESPBENCH, IN_GATEWAYS, Observed, clean, whole
from campaign.row import FolderRow, Verdict
from campaign.truth import written
from espbench.platforms.base import SIDES
from espbench.platforms.uml import uml_kernel
from espbench.sentences import Code
from espbench.this_machine.processes import descendants
from support.gateways.boxes import RouterBox
from support.gateways.remote_boxes import RemoteBoxes, two_boxes

MOMENTS = 20  # disturbances of one run
WAIT_S = (0.1, 4.0)  # the time between two of them
# Runs whose gateways boot are hit less often; otherwise most gateways would be hit while they boot.
BOOTED_WAIT_S = (0.1, 10.0)
# The durations of stops: shorter than a poll; about a trial; longer than a trial. Once in a row, a stop is longer than
# any timeout.
STOPS_S = ((0.01, 0.1), (0.1, 0.6), (0.6, 3.0))
FOR_GOOD_S = 90.0
RESUMED = MOMENTS + 2  # how many times at most a run is resumed
RESOLUTION = 0.1
BOX_BPS, FRAME_BYTES = 700_000, 60  # tbf counts without FCS
BOX_FPS = BOX_BPS / 8 / FRAME_BYTES
# The box's bucket and queue hold some 80 frames, which it forwards in addition in a final trial of one second.
BOX_TRUTH = checks.Truth(BOX_FPS / (1 + RESOLUTION) ** 2, BOX_FPS * (1 + RESOLUTION))
MAXIMUM_FPS = 2000.0
# The generator's paths are fixed: to choose them takes longer than a case, each time a run is resumed.
GENERATOR = {"native": {"tx": "af_packet", "rx": "af_packet"}}
# These gateways forward every load up to the search's maximum, so the maximum is the truth.
PAIR_TRUTH = checks.Truth(MAXIMUM_FPS / (1 + RESOLUTION), MAXIMUM_FPS * 1.001)
TESTER = (
    Code.GENERATOR_FAILED, Code.GENERATOR_FAULT, Code.STOPPED_EARLY, Code.RECEIVER_OVERRUN, Code.MORE_RECEIVED,
)  # fmt: skip
GATEWAY = (
    Code.GATEWAY_FAILED, Code.GATEWAY_DIED, Code.DAEMON_DIED, Code.NEGOTIATION_FAILED, Code.TUNNELS_GONE,
    Code.NOT_READY,
)  # fmt: skip


def throughput(**changes: Any) -> dict[str, Any]:
    """Return the settings of searches whose trials are short, but long enough to be hit."""
    return {
        "loss_goals": [0], "minimum": "500fps", "maximum": f"{MAXIMUM_FPS:g}fps", "trial": "300ms",
        "final_trial": "1s", "resolution": f"{100 * RESOLUTION:g}%", "settle": "0s", "residue": "100ms",
        "learning": "20ms", "warm_up": "0s", "retries": 2,
    } | changes  # fmt: skip


@dataclass
class Disturbed:
    """The disturbances of a run and of the runs that resumed it, in one repetition of a row.

    chance: the source of random numbers. done: a description of each disturbance. touched: the first and the last line
    of the log that each disturbance may have affected.
    """

    repetition: int
    chance: random.Random
    done: list[str] = field(default_factory=list)
    touched: list[tuple[int, int]] = field(default_factory=list)


class DisturbedRow(FolderRow):
    """A row that disturbs one run in each repetition; if the run ends because of that, it is resumed until complete."""

    repetitions = 3
    truth: checks.Truth
    reasons: Sequence[Code]
    of_the_dut = False
    """True if the part that is hit belongs to the DUT; then a figure below the truth is right for the affected trials.
    """
    starves_unseen = False
    """True if the boxes run on this machine, which espbench cannot know; they are slower when the host is disturbed."""
    program: Sequence[str] = ESPBENCH

    @abstractmethod
    def plan(self, repetition: int) -> dict[str, Any]:
        """Return a plan whose run takes about a minute, including the time that the hits cost."""

    @abstractmethod
    def disturb(self, run: Observed, disturbed: Disturbed) -> None:
        """Disturb a run, and add the disturbances to `disturbed`."""

    def environment(self, seed: int) -> dict[str, str]:
        """Return additional environment variables for the program."""
        return {}

    def around(self) -> AbstractContextManager[Callable[[], list[str]]]:
        """Return a context around all runs; its function returns the faults: what is not as it was before them."""
        return nullcontext(list)

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Disturb a run, then resume it as many times as it takes to complete it."""
        folder = self._folder / str(repetition)
        verdict = Verdict(moments=0)
        disturbed = Disturbed(repetition, random.Random(seed))
        arguments: list[str | Path] = [written(folder, self.plan(repetition)), "--out", folder / "runs"]
        directory: Path | None = None
        with self.around() as unlike:
            for attempt in range(1 + RESUMED):
                before = _log(directory)
                # A program that disturbs itself does so only in its first run, so that the resumed run can complete.
                program = ESPBENCH if disturbed.done else self.program
                env = {} if disturbed.done else self.environment(seed)
                with Observed(folder, *arguments, program=self.prefix() + list(program), env=env) as run:
                    # A resumed run is hit again until there were MOMENTS hits in all.
                    hit_again = len(disturbed.done) < MOMENTS and attempt < RESUMED
                    hit = not disturbed.done or (hit_again and self.program is ESPBENCH)
                    if hit:
                        self.disturb(run, disturbed)
                    code = run.ended()
                    directory = run.directory or directory
                    verdict.faults += checks.kept(
                        before, (directory / "trials.jsonl").read_bytes() if directory else b""
                    )
                    if code == -signal.SIGKILL:
                        clean(run.id)
                        verdict.outcomes["killed, resumed"] += 1
                    verdict.faults += run.left()
                if code in checks.WHOLE:
                    break
                if code != -signal.SIGKILL:
                    verdict.faults += checks.ended(code, run.said, (1, 4))
                    verdict.outcomes["ended with a message, resumed"] += 1
                    verdict.messages.append(run.said[-500:])
                    if not hit:
                        verdict.faults.append(f"resumed and not disturbed, it ended again: {run.said[-300:]}")
                        break
                if directory is not None:
                    arguments = ["--resume", directory]
            verdict.faults += checks.ended(code, run.said) if code in checks.WHOLE else []
            verdict.faults += unlike()
        verdict.moments = len(disturbed.done)
        if not disturbed.done:
            verdict.faults.append("nothing was disturbed, so nothing was shown")
        if code in checks.WHOLE and directory is not None:
            self._judge(run, directory, disturbed.touched, verdict)
        verdict.faults = [f"{text} (seed {seed}: {'; '.join(disturbed.done)})" for text in verdict.faults]
        if not verdict.faults:
            shutil.rmtree(folder, ignore_errors=True)
        return verdict

    def prefix(self) -> list[str]:
        """Return the words before the program on the command line."""
        return []

    def _judge(
        self, run: Observed, directory: Path, touched: list[tuple[int, int]], verdict: Verdict
    ) -> None:
        trials, _ = checks.trials_of((directory / "trials.jsonl").read_bytes())
        slowed = frozenset[str]()
        if self.of_the_dut:
            slowed = frozenset(
                t["case"] for n, t in enumerate(trials) if any(a <= n <= b for a, b in touched)
            )
        if self.starves_unseen:
            slowed |= checks.disturbed_cases(trials)
        rows = checks.rows_of((directory / "results.csv").read_text())
        outcomes, faults = checks.right(rows, self.truth, slowed, trials)
        verdict.outcomes += outcomes
        verdict.faults += faults + whole(run, directory)
        verdict.faults += checks.true_reasons(trials, touched, self.reasons)


class HitRow(DisturbedRow):
    """A row that disturbs a run from outside: a process of the run is hit MOMENTS times."""

    wait_s = WAIT_S

    @abstractmethod
    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        """Kill a process (seconds: None), or stop it for a time; return a description, empty if it is not there now."""

    def disturb(self, run: Observed, disturbed: Disturbed) -> None:
        while len(disturbed.done) < MOMENTS and run.process.poll() is None:
            deadline = time.monotonic() + disturbed.chance.uniform(*self.wait_s)
            while time.monotonic() < deadline and run.process.poll() is None:
                run.look()
                time.sleep(0.01)
            seconds: float | None = None
            if disturbed.chance.random() < 0.5:
                seconds = disturbed.chance.uniform(*disturbed.chance.choice(STOPS_S))
            if disturbed.repetition == 1 and len(disturbed.done) == MOMENTS // 2:
                seconds = FOR_GOOD_S
            first = run.lines()
            if run.process.poll() is None and (what := self.hit(run, disturbed.chance, seconds)):
                # The trial after the hit counts as affected too: the hit may be noticed only there.
                disturbed.touched.append((first, run.lines() + 1))
                disturbed.done.append(f"{what} in trial {first + 1}")


class _DisturbsItself(DisturbedRow):
    """A row whose disturbance cannot be reached from outside: the run disturbs itself (disturbed_run.py)."""

    program = IN_GATEWAYS
    disturbs: str

    def environment(self, seed: int) -> dict[str, str]:
        return {"DISTURB": f'{{"what": "{self.disturbs}", "seed": {seed}}}'}


def _log(directory: Path | None) -> bytes:
    """Return the content of trials.jsonl; empty as long as there is no run directory."""
    return (directory / "trials.jsonl").read_bytes() if directory else b""


def _killed_or_stopped(name: str, pids: Sequence[int], seconds: float | None) -> str:
    if not pids:
        return ""
    if seconds is None:
        hits.kill(pids)
        return f"{name} killed"
    hits.stop(pids, seconds)
    return f"{name} stopped for {seconds:.2f} s"


class _OnABox(DisturbedRow):
    """A row whose DUT is an external box of known rate between the tester's ports."""

    truth = BOX_TRUTH
    reasons: Sequence[Code] = TESTER

    def __enter__(self) -> Self:
        self._box = RouterBox().__enter__()
        self._box.limit_rate(BOX_BPS, burst=2000, limit=3000)
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._box.__exit__(kind, error, trace)

    def plan(self, repetition: int) -> dict[str, Any]:
        """Return a plan with six repeats of one case: long enough for all disturbances."""
        plan = self._box.plan(repeat=6, generator=GENERATOR)
        return plan | {"tests": [{"throughput": throughput()}]}

    def missing(self) -> str:
        """Return `root` if this is not root: namespaces need it."""
        return "" if os.geteuid() == 0 else "root"


class GeneratorHit(_OnABox, HitRow):
    """Hits the generator's whole process: sender, receiver and watchers at the same time."""

    name = "generator"
    what = "the generator's process is killed or stopped"

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        pid = run.pid_of("generator")
        return _killed_or_stopped("generator", [pid] if pid else [], seconds)


class ReceiverHit(_OnABox, HitRow):
    """Stops only the thread that receives; meanwhile, received frames wait in its ring."""

    name = "receiver"
    repetitions = 4
    what = "the generator's receiving thread is stopped, while its sender goes on"

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        pid = run.pid_of("generator")
        threads = hits.threads(pid) if pid else []
        # The threads during a trial are: the main thread, the reader of commands, … the receiver, the sender.
        if len(threads) < 4:
            return ""
        seconds = 0.3 if seconds is None else min(seconds, 5.0)
        return f"receiver stopped for {seconds:.2f} s" if hits.stop_thread(threads[-2], seconds) else ""


class ControllerHit(_OnABox, HitRow):
    """Hits the controller. If it is killed, its processes end too; `clean` and a resumed run do the rest."""

    name = "controller"
    what = "in real time, the controller is killed (then `clean` and `--resume`) or stopped"

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        return _killed_or_stopped("controller", [run.process.pid], seconds)


class AgentHit(HitRow):
    """Hits the agent of one of two gateways that are namespaces."""

    name = "agent"
    repetitions = 4
    what = "the agent inside a gateway (a namespace) is killed or stopped"
    truth = PAIR_TRUTH
    reasons = (*GATEWAY, *TESTER)

    def plan(self, repetition: int) -> dict[str, Any]:
        return _pair("netns", repeat=6)

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        side = random_number.choice(SIDES)
        pid = run.pid_of(f"agent of {side}")
        below = descendants(pid) if pid else []
        return _killed_or_stopped(f"agent of {side}", below[:1] or ([pid] if pid else []), seconds)

    def missing(self) -> str:
        return "" if os.geteuid() == 0 else "root"


class _OnGuests(DisturbedRow):
    """A row whose gateways are two User-Mode Linux guests."""

    truth = PAIR_TRUTH
    reasons = (*GATEWAY, *TESTER)
    of_the_dut = True

    def missing(self) -> str:
        if os.geteuid() != 0:
            return "root"
        return "; ".join(need.missing for need in uml_kernel.readiness() if not need.ready)


class GatewayHit(_OnGuests, HitRow):
    """Hits the process of a guest and all processes below it."""

    name = "gateway"
    what = "a gateway (a User-Mode Linux guest with ESP) is killed or stopped"
    wait_s = BOOTED_WAIT_S

    def plan(self, repetition: int) -> dict[str, Any]:
        return _pair("uml", stacks=["xfrm"], suites=["aes128gcm16"], repeat=3)

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        side = random_number.choice(SIDES)
        pid = run.pid_of(f"{side} (")
        below = descendants(pid) if pid else []
        # A kill hits process 1 of the PID namespace, below the launcher; a stop hits the guest's other processes, too.
        chosen = below[1:2] if seconds is None else below[1:]
        return _killed_or_stopped(f"gateway {side}", chosen, seconds)


class _InGuests(_OnGuests, _DisturbsItself):
    """A row whose program disturbs something inside its guests, for each pair of gateways."""

    def disturb(self, run: Observed, disturbed: Disturbed) -> None:
        """Read the announced disturbances, and note each when it is due.

        Disturbances of a pair are dropped when a newer pair has been announced: the old pair is gone.
        """
        seen = 0
        coming: list[tuple[int, float, str]] = []
        firsts: list[int] = []
        while run.process.poll() is None:
            now = time.monotonic()
            announced = announcements.read(run.disturbances)
            coming += [(d.pair, now + d.after_s, d.what) for d in announced[seen:]]
            coming = [each for each in coming if each[0] == coming[-1][0]]
            seen = len(announced)
            while coming and now >= coming[0][1] - 0.2:
                firsts.append(run.lines())
                disturbed.done.append(coming.pop(0)[2])
            run.look()
            time.sleep(0.02)
        # It is not known here how long an effect lasts, so all trials from then to the end count as affected.
        last = run.lines()
        disturbed.touched += [(first, last) for first in firsts]


class DaemonHit(_InGuests):
    """Hits daemons of four pairs in a run, each with its own suite, up to three times; charon and pluto in turn."""

    name = "daemon"
    what = "an IKE daemon (charon, pluto, or charon doing ESP itself) is killed or stopped inside its gateway"
    repetitions = 4
    disturbs = "daemon"
    stacks = ("strongswan", "libreswan", "strongswan-libipsec")

    def plan(self, repetition: int) -> dict[str, Any]:
        suites = ["aes128-sha1", "aes128gcm16", "aes256gcm16", "3des-sha1"]
        stack = self.stacks[repetition % len(self.stacks)]
        return _pair("uml", stacks=[stack], suites=suites)


class GatewayClockSteps(_InGuests):
    """Steps the clocks of guests, which are their own; this machine's clock is never touched."""

    name = "gateway-clock"
    what = "a gateway's clock is set forward or back by 1 s to a day (in a guest with an IKE daemon)"
    repetitions = 3
    disturbs = "gateway-clock"

    def plan(self, repetition: int) -> dict[str, Any]:
        stack = ("strongswan", "libreswan", "xfrm")[repetition % 3]
        return _pair("uml", stacks=[stack], suites=["aes128gcm16", "aes128-sha1", "3des-sha1"])


class TesterClockSteps(_OnABox, _DisturbsItself):
    """Reports steps of the tester's clock in the generator's record; the machine's clock is never touched."""

    name = "tester-clock"
    what = (
        "the tester's clock steps in 3 trials of 10 (only in the generator's record; this machine's clock is "
        "not touched): these trials are INVALID for that reason, and the figure is right"
    )
    disturbs = "tester-clock"
    reasons = (*TESTER, Code.CLOCK_STEPPED)

    def disturb(self, run: Observed, disturbed: Disturbed) -> None:
        run.ended()
        disturbed.done += [disturbance.what for disturbance in announcements.read(run.disturbances)]
        disturbed.touched.append((0, run.lines()))

    def _judge(
        self, run: Observed, directory: Path, touched: list[tuple[int, int]], verdict: Verdict
    ) -> None:
        super()._judge(run, directory, touched, verdict)
        trials, _ = checks.trials_of((directory / "trials.jsonl").read_bytes())
        noticed = sum(any(r["code"] == Code.CLOCK_STEPPED for r in t["reason_codes"]) for t in trials)
        if noticed != verdict.moments:
            verdict.faults.append(f"{verdict.moments} trials had a step of the clock, {noticed} say so")


class RemoteHelperHit(HitRow):
    """Hits espbench's helper on a box behind ssh, which is a guest on this machine.

    The helper is identified by its parent, a session of the ssh server.
    """

    name = "remote-helper"
    repetitions = 10
    what = "the helper on a box behind ssh is killed or stopped; afterwards the box is as before"
    truth = PAIR_TRUTH
    reasons = (*GATEWAY, *TESTER)
    of_the_dut = True
    starves_unseen = True

    def missing(self) -> str:
        if os.geteuid() != 0:
            return "root"
        lacks = [need.missing for need in uml_kernel.readiness() if not need.ready]
        return "; ".join(lacks) or ("" if shutil.which("ssh") else "no ssh client")

    def __enter__(self) -> Self:
        super().__enter__()
        (self._folder / "lab").mkdir()
        self._made = two_boxes(self._folder / "lab")
        try:
            self._lab: RemoteBoxes = self._made.__enter__()
        except BaseException:
            super().__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._made.__exit__(kind, error, trace)
        super().__exit__(kind, error, trace)

    def plan(self, repetition: int) -> dict[str, Any]:
        return _pair(
            str(self._lab.profile()), name="remote", stacks=["xfrm"], suites=["aes128gcm16"], repeat=6
        )

    def prefix(self) -> list[str]:
        return ["nsenter", f"--net=/run/netns/{self._lab.management}"]

    @contextlib.contextmanager
    def around(self) -> Iterator[Callable[[], list[str]]]:
        """Yield a function that compares the state of both boxes with that before, for up to 60 s.

        In this time the boxes give up a silent connection.
        """
        before = {side: self._lab.state(side) for side in SIDES}

        def unlike() -> list[str]:
            deadline = time.monotonic() + 60
            while (now := {side: self._lab.state(side) for side in SIDES}) != before:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.5)
            return [
                f"{side} is not as before: {what}: {before[side][what]!r} became {now[side][what]!r}"[:600]
                for side in SIDES
                for what in before[side]
                if now[side][what] != before[side][what]
            ]

        yield unlike

    def hit(self, run: Observed, random_number: random.Random, seconds: float | None) -> str:
        side = random_number.choice(SIDES)
        pids = self._lab.run(side, _HELPERS).split()
        if not pids:
            return ""
        if seconds is None:
            self._lab.run(side, f"kill -KILL {' '.join(pids)} || true")
            return f"helper on {side} killed"
        self._lab.run(side, f"kill -STOP {' '.join(pids)} || true")
        time.sleep(min(seconds, 15.0))
        self._lab.run(side, f"kill -CONT {' '.join(pids)} || true")
        return f"helper on {side} stopped for {min(seconds, 15.0):.2f} s"


# This script prints the children of the ssh server's sessions: the one program that came over the connection.
_HELPERS = """\
for p in /proc/[0-9]*; do
  parent=$(sed 's/.*) . //; s/ .*//' $p/stat 2>/dev/null) || continue
  tr '\\0' ' ' </proc/$parent/cmdline 2>/dev/null | grep -q '^sshd: .*@notty' && echo ${p#/proc/}
done; true
"""


def _pair(dut: str, *, name: str = "pair", **changes: Any) -> dict[str, Any]:
    return {
        "name": name, "topology": "gateway-to-gateway", "dut": dut, "stacks": ["plain"], "frame_sizes": [256],
        "directions": ["one-way"], "tests": [{"throughput": throughput()}], "generator": GENERATOR,
    } | changes  # fmt: skip
