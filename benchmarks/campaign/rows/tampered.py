# SPDX-License-Identifier: Apache-2.0
"""Changes the plan or log of a finished run and resumes it: it must be refused, or measured anew, never accepted."""

from __future__ import annotations

import copy
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml

from campaign import checks, truth
from campaign.observed import Observed, like, tables
from campaign.row import FolderRow, Verdict
from espbench.results import kernels

REFUSED = 2
COMPILER = "riscv64-unknown-elf-gcc"
KERNELS = {
    "name": "kernels", "topology": "no-network", "dut": ["ixp2800"],
    "tests": [{"cipher_kernels": {"levels": [0, 1]}}],
}  # fmt: skip
Path_ = tuple[str | int, ...]


def keys(value: Any, path: Path_ = ()) -> Iterator[Path_]:
    """Yield the path of each leaf of a plan."""
    if isinstance(value, dict | list):
        for key, below in value.items() if isinstance(value, dict) else enumerate(value):
            yield from keys(below, (*path, key))
    else:
        yield path


def edited(plan: dict[str, Any], path: Path_) -> dict[str, Any]:
    """Return the plan with another value at one place: a value that a user could have written."""
    changed = copy.deepcopy(plan)
    at: Any = changed
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = another(at[path[-1]])
    return changed


def another(value: Any) -> Any:
    """Return another value of the same kind: a number and its unit become larger, a word longer."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value * 2 if value else 1
    digits = len(value) - len(value.lstrip("0123456789."))
    unit = value[digits:]
    if digits and unit in ("%", "s", "ms", "fps", "Gbps", "Mbps"):
        number = float(value[:digits])
        return f"{number * 2 if number else 1:g}{unit}"
    if value.count(".") == 3:  # an address
        return value.replace("10.0.", "10.9.")
    return value + "x"


class _OfAFinishedRun(FolderRow):
    """Holds the common parts of this file's rows: a finished run, its tables, and a copy of it for each repetition."""

    side_by_side = True

    def plan(self) -> dict[str, Any]:
        """Return the plan of the finished run."""
        return whole_plan()

    def __enter__(self) -> Self:
        super().__enter__()
        self._finished, _ = truth.finished(self._folder / "reference", self.plan())
        self._wanted = tables(self._finished)
        return self

    def _copy(self, name: str) -> Path:
        target = self._folder / name / "run"
        shutil.copytree(self._finished, target)
        return target

    def _resumed(self, directory: Path) -> tuple[int | None, str, list[str]]:
        """Resume a run; return its exit code, its messages, and a fault for each thing that it left behind."""
        with truth.start(directory.parent, "--resume", directory) as run:
            code = run.ended()
            return code, run.said, run.left()


def whole_plan() -> dict[str, Any]:
    """Return the plan with additional keys, which a plan may leave out."""
    return truth.plan(
        directions=["one-way"], repeat=1, stacks=["plain"], throughput={"retries": 2, "loss_verification": 0}
    )


def procedures_plan() -> dict[str, Any]:
    """Return a plan with the other tests of RFC 2544 after a throughput test, whose rates they use; one frame size."""
    waits = {"settle": "0s", "residue": "50ms", "learning": "0s", "retries": 2}
    content = truth.plan(directions=["one-way"], repeat=1, stacks=["plain"], frame_sizes=[512])
    content["tests"] += [
        {"latency": {"trial": "500ms", "tag_at": "250ms", "repeats": 2, "loss_goal": 0, **waits}},
        {"frame_loss": {"trial": "200ms", "step": "10%", "maximum": "10000fps", **waits}},
        {"back_to_back": {
            "searches": 2, "longest": "100ms", "maximum": "20000fps", "loss_goal": 0, **waits}},
        {"system_recovery": {"overload": "200ms", "recovery": "200ms", "repeats": 2, "loss_goal": 0, **waits}},
        {"flood": {"trial": "200ms", "maximum": "20000fps", "loss_goal": 0, **waits}},
    ]  # fmt: skip
    return content


class EditedPlan(_OfAFinishedRun):
    """Edits each key of plan.yaml in turn."""

    name = "edited-plan"
    what = (
        "each key of a finished run's plan is edited, then `--resume`: it is refused and changes nothing, or "
        "the results are those of a fresh run of the edited plan"
    )
    repetitions = len(list(keys(whole_plan())))

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Edit one key and resume the run."""
        path = list(keys(self.plan()))[repetition]
        content = edited(self.plan(), path)
        directory = self._copy(str(repetition))
        (directory / "plan.yaml").write_text(yaml.safe_dump(content, sort_keys=False))
        log = (directory / "trials.jsonl").read_bytes()
        code, said, left = self._resumed(directory)
        verdict = Verdict(faults=left)
        if code == REFUSED:
            verdict.faults += checks.ended(code, said, (REFUSED,))
            verdict.faults += checks.same_tables(self._wanted, tables(directory))
            if (directory / "trials.jsonl").read_bytes() != log:
                verdict.faults.append("refused, and trials.jsonl was changed all the same")
            verdict.outcomes["refused"] += 1
        else:
            verdict.faults += checks.ended(code, said, (*checks.WHOLE, REFUSED))
            if code in checks.WHOLE:
                fresh, _ = truth.finished(directory.parent / "fresh", content)
                verdict.faults += checks.same_tables(tables(fresh), tables(directory))
                verdict.outcomes["equal to a fresh run"] += not verdict.faults
        where = ".".join(map(str, path))
        verdict.faults = [f"{where}: {text}" for text in verdict.faults]
        shutil.rmtree(directory.parent, ignore_errors=True)
        return verdict


class EditedProcedures(EditedPlan):
    """Edits each key of a plan with the other tests of RFC 2544."""

    name = "edited-procedures"
    what = "the same for each key of a plan of the other tests of RFC 2544: latency, loss, bursts, recovery, flood"
    repetitions = len(list(keys(procedures_plan())))

    def plan(self) -> dict[str, Any]:
        """Return the plan of the finished run."""
        return procedures_plan()


class DamagedLog(_OfAFinishedRun):
    """Damages lines of trials.jsonl: a line is deleted, or one random bit of it is flipped."""

    name = "damaged-log"
    what = (
        "each line of a finished run's trials.jsonl is deleted, or a random bit of it is flipped, then "
        "`--resume`: it is measured again and the tables are equal, or it is refused"
    )
    repetitions = 40

    def __enter__(self) -> Self:
        super().__enter__()
        all_reached(self._finished / "trials.jsonl", self.repetitions)
        return self

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Delete a line in even repetitions, flip a bit in odd ones (see `damaged`), and resume the run."""
        directory = self._copy(str(repetition))
        log = directory / "trials.jsonl"
        lines, done = damaged(log.read_bytes().splitlines(keepends=True), repetition, seed)
        log.write_bytes(b"".join(lines))
        code, said, left = self._resumed(directory)
        verdict = Verdict(faults=left + checks.ended(code, said, (*checks.WHOLE, REFUSED)))
        if code == REFUSED:
            verdict.outcomes["refused"] += 1
            if log.read_bytes() != b"".join(lines):
                verdict.faults.append("refused, and trials.jsonl was changed all the same")
        elif code in checks.WHOLE:
            verdict.faults += like(directory, self._finished)
            verdict.outcomes["measured anew, equal"] += not verdict.faults
        verdict.faults = [f"{done}: {text}" for text in verdict.faults]
        shutil.rmtree(directory.parent, ignore_errors=True)
        return verdict


class DamagedKernels(FolderRow):
    """Damages lines of kernels.jsonl, the log of the cipher kernels on network processors."""

    name = "damaged-kernels"
    side_by_side = True
    what = (
        "each line of the log of a finished run of cipher kernels is deleted, or a random bit of it is flipped, "
        "then `--resume`: it is executed again and the log and its table are equal, or it is refused"
    )
    repetitions = 40

    def missing(self) -> str:
        """Return what this machine lacks to compile the kernels."""
        return "" if shutil.which(COMPILER) else f"{COMPILER} is not installed"

    def __enter__(self) -> Self:
        super().__enter__()
        plan = truth.written(self._folder, KERNELS)
        with Observed(self._folder / "reference", plan, "--out", self._folder / "runs") as run:
            if run.ended() != 0 or run.directory is None:
                raise RuntimeError(f"a run that nobody disturbed did not end as it should: {run.said[-500:]}")
            self._finished = run.directory
        all_reached(self._finished / kernels.FILE, self.repetitions)
        return self

    def run_one(self, repetition: int, seed: int) -> Verdict:
        """Delete a line in even repetitions, flip a bit in odd ones, and resume the run."""
        directory = self._folder / str(repetition) / "run"
        shutil.copytree(self._finished, directory)
        wanted = kernel_files(directory)
        log = directory / kernels.FILE
        lines, done = damaged(log.read_bytes().splitlines(keepends=True), repetition, seed)
        log.write_bytes(b"".join(lines))
        with Observed(directory.parent, "--resume", directory) as run:
            code = run.ended()
            said, left = run.said, run.left()
        verdict = Verdict(faults=left + checks.ended(code, said, (0, REFUSED)))
        if code == REFUSED:
            verdict.outcomes["refused"] += 1
            if log.read_bytes() != b"".join(lines):
                verdict.faults.append(f"refused, and {kernels.FILE} was changed all the same")
        elif code == 0:
            verdict.faults += checks.same_tables(wanted, kernel_files(directory))
            verdict.outcomes["executed again, equal"] += not verdict.faults
        verdict.faults = [f"{done}: {text}" for text in verdict.faults]
        shutil.rmtree(directory.parent, ignore_errors=True)
        return verdict


def kernel_files(directory: Path) -> dict[str, bytes]:
    """Return the log and the table; the log's lines are sorted, because lines made anew are at its end."""
    log = (directory / kernels.FILE).read_bytes()
    return {
        kernels.FILE: b"".join(sorted(log.splitlines(keepends=True))),
        kernels.TABLE: (directory / kernels.TABLE).read_bytes(),
    }


def all_reached(log: Path, repetitions: int) -> None:
    """Raise RuntimeError if these repetitions do not both delete and flip each line of the log."""
    lines = len(log.read_bytes().splitlines())
    if repetitions < 2 * lines:
        raise RuntimeError(
            f"{log.name} has {lines} lines: expected at least {2 * lines} repetitions, got {repetitions}"
        )


def damaged(lines: list[bytes], repetition: int, seed: int) -> tuple[list[bytes], str]:
    """Delete a line in even repetitions, flip one bit of it in odd ones; return the lines, and what was done.

    Two repetitions after each other have the same line, and the next two the next one.
    """
    number = repetition // 2 % len(lines)
    before, line, after = lines[:number], lines[number], lines[number + 1 :]
    where = f"line {number + 1} of {len(lines)}"
    if repetition % 2:
        return [*before, flipped(line, random.Random(seed)), *after], f"{where} flipped"
    return [*before, *after], f"{where} deleted"


def flipped(line: bytes, random_number: random.Random) -> bytes:
    """Return the line with one bit of one byte flipped; its end of line stays."""
    at = random_number.randrange(len(line) - 1)
    bit = 1 << random_number.randrange(8)
    changed = bytes([line[at] ^ bit])
    return line[:at] + changed + line[at + 1 :]
