# SPDX-License-Identifier: Apache-2.0
"""Each kind of error ends a command with its own exit code and one message, never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
import typer

from espbench.cli import main
from espbench.cli import run as running
from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import NotBack
from espbench.results import RunDirectory, accelerator
from espbench.this_machine.ending import ENDING
from espbench.this_machine.registry import Registry
from support.command_line import in_process
from support.plans import pair_plan, write_plan

pytestmark = pytest.mark.usefixtures("own_handlers")


def ending(monkeypatch: pytest.MonkeyPatch, error: BaseException | None) -> int:
    """The exit code of a command that ends with this."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        if error is not None:
            raise error

    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["espbench"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (None, 0),
        (typer.Exit(3), 3),
        (EspbenchError("unexpected"), 1),
        (UsageError("wrong"), 2),
        (MachineLacks("no ip", "apt-get install iproute2"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_way_to_end_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, error: BaseException | None, code: int
) -> None:
    """The exit codes are those that the contract lists."""
    assert ending(monkeypatch, error) == code


def test_what_else_went_wrong_is_shown_with_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An error has a note that says what could not be undone, or how to go on."""
    error = MachineLacks("no ip", "apt-get install iproute2")
    error.add_note("go on with: [this]")
    assert ending(monkeypatch, error) == 4
    said = capsys.readouterr().err
    assert said == "no ip\n  to fix it: apt-get install iproute2\ngo on with: [this]\n"


def test_a_run_that_an_error_ends_says_how_it_goes_on(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A box that does not come back after a power cycle: one message, and the command that resumes the run."""

    def measured(*_: object, **__: object) -> Any:
        raise NotBack("home was not back within 5 s")

    for name in ("_require_here", "measuring"):
        monkeypatch.setattr(running, name, lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(running, "Registry", lambda name: Registry(name, tmp_path / "state"))
    monkeypatch.setattr(running, "_one_after_the_other", measured)
    done = in_process("run", write_plan(tmp_path, pair_plan("netns")), "--out", tmp_path / "runs")
    (directory,) = (tmp_path / "runs").iterdir()
    assert done.returncode == EspbenchError.exit_code
    assert done.stderr.endswith(
        f"home was not back within 5 s\nonce that is mended, go on with: espbench run --resume {directory}\n"
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(("disturbed_pct", "code"), [(None, 0), (60.0, running.INCOMPLETE)])
def test_a_run_with_figures_that_the_host_disturbed_is_incomplete(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, disturbed_pct: float | None, code: int
) -> None:
    """The accelerator test is no case, so its figures are no results of cases."""

    def measured(*given: Any, **_: object) -> list[Any]:
        of = {"dut": "uml", "suite": "aes128-sha1", "operations": 10, "crypto": "software", "driver": "d"}
        figures = [
            accelerator.AcceleratorResult.model_validate(
                of | {"size": size, "after_ns": 2, "at_once_ns": 1, "full": 0, "disturbed_pct": pct}
            )
            for size, pct in ((64, None), (1024, disturbed_pct))
        ]
        accelerator.save(given[2].path, figures)
        return []

    for name in ("_require_here", "measuring"):
        monkeypatch.setattr(running, name, lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(running, "_measure", measured)
    plan = write_plan(tmp_path, pair_plan("netns"))
    done = in_process("run", plan, "--out", tmp_path / "runs", "--no-report")
    assert done.returncode == code
    assert ("accelerator test: 1 of 2 figures INVALID" in done.stderr) is (code != 0)


def test_a_run_says_whether_it_was_finished(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its results alone do not say it: figures that are of no case may be missing."""
    ends: list[BaseException | None] = [NotBack("home was not back"), None, KeyboardInterrupt()]

    def measured(*_: object, **__: object) -> Any:
        if (end := ends.pop(0)) is not None:
            raise end
        return []

    for name in ("_require_here", "measuring"):
        monkeypatch.setattr(running, name, lambda *_, **__: contextlib.nullcontext())
    monkeypatch.setattr(running, "Registry", lambda name: Registry(name, tmp_path / "state"))
    monkeypatch.setattr(running, "_one_after_the_other", measured)
    in_process("run", write_plan(tmp_path, pair_plan("netns")), "--out", tmp_path / "runs", "--no-report")
    (directory,) = (tmp_path / "runs").iterdir()
    seen = [RunDirectory.open(directory).manifest.finished]
    for _ in range(2):
        in_process("run", "--resume", directory, "--no-report")
        seen.append(RunDirectory.open(directory).manifest.finished)
    assert seen == [False, True, False]


def test_only_the_first_signal_ends_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later signals must not stop the tidying up that the first has started."""
    app = typer.Typer()
    tidied = []

    @app.command()
    def command() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            for number in ENDING:
                signal.raise_signal(number)
            tidied.append(True)

    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["espbench"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert tidied


def test_an_error_that_an_interruption_leads_to_does_not_hide_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A gateway that cannot be closed after Ctrl-C: told, and 130 all the same."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        try:
            signal.raise_signal(signal.SIGINT)
        finally:
            raise EspbenchError("could not undo: netns n")

    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["espbench"])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert "could not undo: netns n" in capsys.readouterr().err


def test_what_an_interruption_left_in_a_registry_is_undone_at_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It may come in the first moment of leaving one, where nothing of it is undone yet."""
    app = typer.Typer()

    @app.command()
    def command() -> None:
        registry = Registry("lost", tmp_path / "state").__enter__()
        registry.directory("d")
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["espbench"])
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 130
    assert list(tmp_path.glob("**/*")) == [tmp_path / "state"]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_what_a_terminal_cannot_show_is_escaped(
    monkeypatch: pytest.MonkeyPatch, encoding: str, tmp_path: Path
) -> None:
    """µ in another encoding, and the path of a folder whose name is no text."""
    folder = tmp_path / os.fsdecode(b"jos\xe9")
    folder.mkdir()
    app = typer.Typer()

    @app.command()
    def command(path: Path) -> None:
        print("5 µs", path)
        print("5 µs", path, file=sys.stderr)

    shown = {name: io.BytesIO() for name in ("stdout", "stderr")}
    for name, stream in shown.items():
        monkeypatch.setattr(
            sys, name, io.TextIOWrapper(stream, encoding, errors="strict", write_through=True)
        )
    monkeypatch.setattr(main, "app", app)
    monkeypatch.setattr(sys, "argv", ["espbench", str(folder)])
    with pytest.raises(SystemExit) as ended:
        main.main()
    assert ended.value.code == 0
    for stream in shown.values():
        assert stream.getvalue().startswith("5 µs".encode(encoding, "backslashreplace"))
        assert stream.getvalue().rstrip().endswith(rb"jos\udce9")
