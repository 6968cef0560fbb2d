# SPDX-License-Identifier: Apache-2.0
"""A board behind labgrid's own drivers: a script as its power switch, a program as its console."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.errors import EspbenchError, MachineLacks
from espbench.platforms.remote import labgrid_worker
from espbench.platforms.remote.labgrid_board import Board, LabgridTarget, Unsuitable, examine
from espbench.this_machine.registry import UNDO, Registry

# A board that boots whenever its switch, a file, goes from off to on, and then says `login:`; going off it says so too.
_BOARD = """\
import sys, time
from pathlib import Path
switch, number, was = Path(sys.argv[1]), 0, "off"
while True:
    now = switch.read_text().strip()
    if now == "on" and was != "on":
        number += 1
        sys.stdout.write(f"U-Boot\\nboot {number}\\nlogin: \\n")
    if now == "off" and was != "off":
        sys.stdout.write(f"end of boot {number}\\n")
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
          delay: 0.25
"""
_SECRET = "hunter22"


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
def registry(tmp_path: Path) -> Iterator[Registry]:
    with Registry("board", tmp_path / "journals") as made:
        yield made


def board_of(registry: Registry, environment: Path) -> Board:
    return Board(registry, "home", LabgridTarget(environment), environment.with_name("home-console.log"))


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- switch and console ----------------------------------------------------------------------------


@pytest.mark.needs("labgrid")
def test_each_power_cycle_is_a_boot_whose_console_is_in_the_log(
    registry: Registry, environment: Path
) -> None:
    """A line of espbench's own says where it was switched, so that a panic can be told from a plug."""
    board, log = board_of(registry, environment), environment.with_name("home-console.log")
    assert (board.has_power, board.has_console, board.delay_s) == (True, True, 0.25)
    for number in (1, 2):
        board.off()
        wait_until(lambda before=number - 1: not before or f"end of boot {before}\n" in log.read_text())  # type: ignore[misc]
        board.on()
        wait_until(lambda number=number: f"boot {number}\nlogin:" in log.read_text())  # type: ignore[misc]
    marks = [
        line.partition("] ")[2] for line in log.read_text().splitlines() if line.startswith("[espbench ")
    ]
    assert marks == ["the console is read from here on", *["switched off", "switched on"] * 2]


@pytest.mark.needs("labgrid")
def test_all_that_labgrid_started_ends_with_the_registry(environment: Path) -> None:
    def alive() -> list[str]:
        return [
            path.parent.name
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if str(environment.parent).encode() in _bytes_of(path)
        ]

    with Registry("board", environment.parent / "journals") as registry:
        board_of(registry, environment)
        assert len(alive()) >= 3  # both tasks, and the console's program
    wait_until(lambda: not alive())


def _bytes_of(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.needs("labgrid")
def test_a_switch_that_fails_is_quoted_without_its_secrets(registry: Registry, environment: Path) -> None:
    (environment.parent / "cut").write_text("echo no such outlet for $1 >&2; exit 3")
    cut = f"sh {environment.parent}/cut {_SECRET}"
    text = environment.read_text().replace("cmd_off: cp", f'cmd_off: "{cut}" #')
    environment.write_text(text)
    board = board_of(registry, environment)
    with pytest.raises(
        EspbenchError, match="cannot switch it off: sh ended with exit status 3: no such outlet"
    ) as raised:
        board.off()
    assert _SECRET not in str(raised.value)
    board.on()  # it still listens
    assert (environment.with_name("switch")).read_text() == "on"


@pytest.mark.needs("labgrid")
@pytest.mark.parametrize("kind", ["power", "console"])
def test_a_target_may_have_one_of_the_two(registry: Registry, environment: Path, kind: str) -> None:
    console, power = environment.read_text().split("      - ExternalPowerDriver")
    environment.write_text(
        console
        if kind == "console"
        else console.partition("      - Ext")[0] + "      - ExternalPowerDriver" + power
    )
    board = board_of(registry, environment)
    assert (board.has_power, board.has_console) == (kind == "power", kind == "console")
    abilities = examine(LabgridTarget(environment))
    assert (abilities.power, abilities.console) == (kind == "power", kind == "console")


@pytest.mark.needs("labgrid")
def test_a_console_that_cannot_be_opened_is_named(registry: Registry, environment: Path) -> None:
    environment.write_text(environment.read_text().replace(f"cmd: {sys.executable}", "cmd: /no/such/program"))
    with pytest.raises(
        EspbenchError, match=r"home: labgrid target main of .*lab\.yaml: cannot open its console: "
    ):
        board_of(registry, environment)


@pytest.mark.needs("labgrid")
def test_clean_switches_on_what_a_killed_run_left_off(environment: Path) -> None:
    assert environment.with_name("switch").read_text() == "off"
    UNDO["power"]({"config": str(environment), "target": "main"})
    assert environment.with_name("switch").read_text() == "on"
    with pytest.raises(EspbenchError, match=r"labgrid target other of .*: cannot switch it on"):
        UNDO["power"]({"config": str(environment), "target": "other"})


def test_a_console_that_is_lost_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A console on the board's own power is lost like this; what it says afterwards is in the log too."""

    class Console:
        said: ClassVar[list[Any]] = [
            b"boot 1\n",
            OSError(5, "Input/output error"),
            b"boot 2\n",
            KeyboardInterrupt(),
        ]

        def read(self, size: int, timeout: float) -> bytes:
            said = self.said.pop(0)
            if isinstance(said, BaseException):
                raise said
            return bytes(said)

        def deactivate_all_drivers(self) -> None: ...

    console, answers = Console(), io.StringIO()
    pexpect = type("pexpect", (), {"TIMEOUT": TimeoutError})
    monkeypatch.setattr("importlib.import_module", lambda name: pexpect)
    monkeypatch.setattr(labgrid_worker, "opened", lambda file, name: console)
    monkeypatch.setattr(labgrid_worker, "driver_of", lambda target, protocol: console)
    monkeypatch.setattr(labgrid_worker, "_AGAIN_S", 0.0)
    log = tmp_path / "log"
    with pytest.raises(KeyboardInterrupt):
        labgrid_worker.console("f", "main", log, answers, labgrid_worker.Hidden(), again=False)
    assert json.loads(answers.getvalue()) == {"driver": "Console"}
    lines = [line.partition("] ")[2] or line for line in log.read_text().splitlines() if line]
    assert lines == [
        "the console is read from here on", "boot 1", "the console was lost: Input/output error",
        "the console is read again", "boot 2",
    ]  # fmt: skip


# -- secrets ---------------------------------------------------------------------------------------

_WORDS = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=8, max_size=20)


@given(_WORDS, st.sampled_from(["password", "username", "cmd_on", "host", "community", "extra"]))
def test_no_value_of_the_configuration_is_in_a_message(secret: str, key: str) -> None:
    """Labgrid or a library may quote its own arguments, a command, or an address with a login in it."""
    value = {
        "cmd_on": f"switch --key {secret} 'on {secret}'", "host": f"http://root:{secret}@192.0.2.9/", "extra": [secret],
    }.get(key, secret)  # fmt: skip
    hidden = labgrid_worker.Hidden({"resources": {"Port": {"model": "netio", "index": 1, key: value}}})
    for error in (
        ValueError(f"failed to create Port using {{'model': 'netio', {key!r}: {value!r}}}"),
        OSError(f"no route to {value}"),
        OSError(2, "No such file", secret),
        subprocess.CalledProcessError(2, ["switch", "--key", secret], f"bad key {secret}\n".encode()),
    ):
        message = hidden.text_of(error)
        assert secret not in message
        assert message
    assert "netio" in hidden.text_of(ValueError("model netio is not known"))


def test_the_address_of_a_switch_may_be_named() -> None:
    hidden = labgrid_worker.Hidden({"resources": {"NetworkPowerPort": {"host": "192.0.2.30", "index": 1}}})
    assert "192.0.2.30" in hidden.text_of(OSError("no route to 192.0.2.30"))


# -- early checks ----------------------------------------------------------------------------------


@pytest.mark.needs("labgrid")
@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(
    ("right", "wrong", "target", "key", "words"),
    [
        ("main:", "main:", "other", "target", r"expected a target of .*lab\.yaml \(main\), got other; choose one"),
        ("targets:", "targets: {}\nothers:", "main", "target", r"\(none\), got main; add targets:"),
        (
            "ExternalPowerDriver", "NoSuchDriver", "main", "target",
            "expected drivers that labgrid has, got .* with ExternalConsoleDriver, NoSuchDriver; check the spelling",
        ),
        ("ExternalPowerDriver", "ManualPowerDriver", "main", "target", "a run asks no person"),
        ("main:", "main: [", "main", "config", r"expected a file that labgrid reads, got .*lab\.yaml \(.*; https"),
    ],
)  # fmt: skip
def test_a_file_that_will_not_do_is_the_users_mistake(
    environment: Path, right: str, wrong: str, target: str, key: str, words: str
) -> None:
    environment.write_text(environment.read_text().replace(right, wrong, 1))
    with pytest.raises(Unsuitable, match=words) as raised:
        examine(LabgridTarget(environment, target))
    assert raised.value.key == key
    assert "\n" not in str(raised.value)


@pytest.mark.needs("labgrid")
@pytest.mark.usefixtures("read_here")
def test_a_target_with_neither_is_refused(environment: Path) -> None:
    environment.write_text("targets:\n  main:\n    drivers:\n      SSHDriver: {}\n")
    with pytest.raises(
        Unsuitable, match=r"expected a target with a power driver .* got main of .* SSHDriver"
    ):
        examine(LabgridTarget(environment))


@pytest.mark.needs("labgrid")
def test_code_that_a_file_imports_is_not_run_by_looking(environment: Path, tmp_path: Path) -> None:
    """The file may bring a power driver: only opening it tells."""
    (tmp_path / "own.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    text = environment.read_text().replace("ExternalPowerDriver", "OwnPowerDriver")
    environment.write_text(f"imports: [own.py]\n{text}")
    abilities = examine(LabgridTarget(environment))
    assert (abilities.power, abilities.console) == (None, True)
    assert not (tmp_path / "ran").exists()


def test_a_file_that_is_not_there_needs_no_labgrid_to_be_missed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "labgrid", None)
    with pytest.raises(
        Unsuitable, match=r"expected a labgrid environment file, got .*lab\.yaml \(no such file\)"
    ):
        examine(LabgridTarget(tmp_path / "lab.yaml"))


def test_without_labgrid_the_message_says_how_to_get_it(
    environment: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    for use in (lambda: examine(LabgridTarget(environment)), lambda: board_of(registry, environment)):
        with pytest.raises(MachineLacks, match=r"pip install 'espbench\[lab\]'"):
            use()
