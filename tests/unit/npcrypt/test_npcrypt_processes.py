# SPDX-License-Identifier: Apache-2.0
"""Programs and folders of cipher kernels are in the registry: none outlives the run, however it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.npcrypt import board
from espbench.npcrypt.measure import Configuration
from espbench.npcrypt.processes import Processes
from espbench.plan import resolve
from espbench.plan.reading.reader import read_text
from espbench.procedures.boards import cipher_kernels
from espbench.results import RunDirectory
from espbench.this_machine.processes import start_time
from espbench.this_machine.registry import Registry
from support.plans import kernels_text
from support.synthetic import run as synthetic_run

SLEEP = [sys.executable, "-I", "-S", "-c", "import time; print('on', flush=True); time.sleep(600)"]


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[Registry]:
    """One with a journal of its own."""
    with Registry("unit", tmp_path / "state") as made:
        yield made


def running(registry: Registry) -> list[int]:
    """The numbers of the processes that are registered and live."""
    return [e.detail["pid"] for e in registry.entries if e.kind == "process" and start_time(e.detail["pid"])]


def until_one_runs(registry: Registry) -> int:
    while not (numbers := running(registry)):
        time.sleep(0.01)
    return numbers[0]


def test_what_a_program_prints_and_its_exit_code_are_returned(registry: Registry) -> None:
    """Several threads use the same registry; afterwards it has none of their programs."""
    processes = Processes(registry)
    with ThreadPoolExecutor(4) as threads:
        ended = list(
            threads.map(lambda n: processes.run(["sh", "-c", f"cat; exit {n}"], "cat", f"{n}"), range(8))
        )
    assert [(e.code, e.out, e.err) for e in ended] == [(n, f"{n}", "") for n in range(8)]
    assert registry.entries == []


def test_a_program_that_takes_too_long_is_ended(registry: Registry) -> None:
    with pytest.raises(EspbenchError, match=r"^sleep: did not end within 0\.01 s$"):
        Processes(registry).run(SLEEP, "sleep", timeout_s=0.01)
    assert registry.entries == []


def test_a_program_that_runs_is_in_the_registry_and_can_be_ended(registry: Registry) -> None:
    """So `espbench clean` knows it, if espbench itself was killed."""
    processes = Processes(registry)
    with ThreadPoolExecutor(1) as threads:
        ended = threads.submit(processes.run, SLEEP, "sleep")
        number = until_one_runs(registry)
        assert f'"pid": {number}' in registry.path.read_text()
        processes.end()
        assert ended.result().code == -9
    assert registry.entries == []
    with pytest.raises(EspbenchError, match="sleep: not started"):
        processes.run(SLEEP, "sleep")


@pytest.mark.parametrize(
    "printed", ["", '{"id":1,"ok":true,"rc":0,"ou', '{"id":2,"ok":true}', '{"id":1,"ok":']
)
def test_a_board_that_dies_within_its_answer_has_not_answered(
    registry: Registry, tmp_path: Path, printed: str
) -> None:
    """Its last words are told, as if it had said nothing."""
    (tmp_path / "console").write_text("Kernel panic")
    command = ["sh", "-c", f"printf '%s' '{printed}'"]
    with pytest.raises(EspbenchError, match=r"(?s)the program to end with 0 .*, got no answer.*Kernel panic"):
        board._run(command, tmp_path / "console", "mpc8548e, des", Processes(registry))


def test_the_answer_of_a_board_is_found_among_other_lines(registry: Registry, tmp_path: Path) -> None:
    answers = r"U-Boot\n{damaged\n{\"id\":0}\n{\"id\":1,\"ok\":true,\"rc\":0,\"out\":\"12 3\"}\n{\"id\":2"
    command = ["sh", "-c", f'printf "{answers}"']
    assert board._run(command, tmp_path / "console", "mpc8548e", Processes(registry)) == "12 3"


PLAN = kernels_text(dut="[ixp2800]", tests="[cipher_kernels: {kernels: [des, rc4], levels: [0]}]")


def test_a_kernel_that_fails_ends_the_others_and_leaves_no_folder(
    registry: Registry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder is in the registry while it is used; a program that would run for minutes is not awaited."""
    folders: list[Path] = []

    def measured(c: Configuration, processor: object, programs: Any) -> Any:
        folders.append(programs.folder)
        if c.kernel == "rc4":
            return programs.processes.run(SLEEP, "sleep")
        until_one_runs(registry)
        raise EspbenchError("DES computed something else")

    monkeypatch.setattr(cipher_kernels, "on_engines", measured)
    monkeypatch.setattr(cipher_kernels, "_keep_versions", lambda *_: None)
    directory: RunDirectory = synthetic_run.build(tmp_path, synthetic_run.Shape())
    resolved = resolve(read_text(PLAN, "plan.yaml", "plan"), None)
    with pytest.raises(EspbenchError, match="DES computed something else"):
        cipher_kernels.measure(resolved, directory, print, 2, registry)
    assert running(registry) == []
    assert {str(folder) for folder in folders} == {e.name for e in registry.entries if e.kind == "directory"}
