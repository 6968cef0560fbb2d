# SPDX-License-Identifier: Apache-2.0
"""A board behind labgrid's own drivers: a script as its power switch, a program as its console."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.labgrid_board import Board

# A board that boots whenever its switch, a file, goes from off to on, and says `login:` twice each time.
_BOARD = """\
import sys, time
from pathlib import Path
switch, number, was = Path(sys.argv[1]), 0, "off"
while True:
    now = switch.read_text().strip()
    if now == "on" and was != "on":
        number += 1
        sys.stdout.write(f"U-Boot\\nboot {number}\\nlogin: \\nlogin: ")
        sys.stdout.flush()
    was = now or was
    time.sleep(0.01)
"""
_ENVIRONMENT = """\
targets:
  main:
    drivers:
      - ExternalConsoleDriver:
          cmd: {python} {board} {switch}
      - ExternalPowerDriver:
          cmd_on: cp {switch}.on {switch}
          cmd_off: cp {switch}.off {switch}
"""


@pytest.fixture
def environment(tmp_path: Path) -> Path:
    for name, word in (("switch", "off"), ("switch.on", "on"), ("switch.off", "off")):
        (tmp_path / name).write_text(word)
    (tmp_path / "board.py").write_text(_BOARD)
    file = tmp_path / "lab.yaml"
    file.write_text(
        _ENVIRONMENT.format(python=sys.executable, board=tmp_path / "board.py", switch=tmp_path / "switch")
    )
    return file


@pytest.fixture
def board(environment: Path) -> Iterator[Board]:
    with Board(environment) as opened:
        yield opened


@pytest.mark.needs("labgrid")
def test_each_power_cycle_is_a_boot_of_its_own(board: Board) -> None:
    """And waiting takes what the console shows from then on."""
    for number in (1, 2, 3):
        board.power_cycle(off_s=0.1)
        assert board.wait_until_up(f"boot {number}", 10) > 0
        assert board.wait_until_up("login:", 10) >= 0
    with pytest.raises(EspbenchError, match=r"did not show 'boot 4' within 0\.3 s"):
        board.wait_until_up("boot 4", 0.3)


@pytest.mark.needs("labgrid")
def test_what_the_last_boot_said_is_forgotten(board: Board, tmp_path: Path) -> None:
    """With a switch that does not switch on nothing boots, and the second `login:` of before is not found."""
    board.power_cycle(off_s=0.1)
    board.wait_until_up("login:", 10)
    (tmp_path / "switch.on").write_text("off")
    board.power_cycle(off_s=0.1)
    with pytest.raises(EspbenchError, match="did not show 'login:'"):
        board.wait_until_up("login:", 0.3)


@pytest.mark.needs("labgrid")
def test_a_console_that_says_something_else_is_quoted(board: Board) -> None:
    board.power_cycle(off_s=0.1)
    with pytest.raises(
        EspbenchError, match=r"did not show 'kernel panic' within 0\.5 s; it said last: .*U-Boot"
    ):
        board.wait_until_up("kernel panic", 0.5)


@pytest.mark.needs("labgrid")
def test_a_switch_that_fails_is_named(environment: Path) -> None:
    environment.write_text(environment.read_text().replace("cmd_off: ", "cmd_off: false "))
    with Board(environment) as board, pytest.raises(EspbenchError, match="cannot switch it off"):
        board.power_cycle(off_s=0)


@pytest.mark.needs("labgrid")
@pytest.mark.parametrize(
    ("right", "wrong", "target", "words"),
    [
        ("main:", "main:", "other", "target other: expected one of the file's targets"),
        ("ExternalPowerDriver", "NoSuchDriver", "main", "labgrid refuses it: .*NoSuchDriver"),
        ("ExternalConsoleDriver:\n          cmd", "ManualPowerDriver: {}\n      # cmd", "main", "refuses it"),
    ],
)
def test_a_file_labgrid_refuses_is_the_users_mistake(
    environment: Path, right: str, wrong: str, target: str, words: str
) -> None:
    environment.write_text(environment.read_text().replace(right, wrong))
    with pytest.raises(UsageError, match=words):
        Board(environment, target)


def test_without_labgrid_the_message_says_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And espbench itself does not import it."""
    monkeypatch.setitem(sys.modules, "labgrid", None)
    with pytest.raises(MachineLacks, match=r"pip install espbench\[lab\]"):
        Board(tmp_path / "lab.yaml")
