# SPDX-License-Identifier: Apache-2.0
"""The program that uses labgrid: one process for each task, so that labgrid and its programs end with the run.

    labgrid_worker look FILE TARGET          print the drivers of the target; nothing is opened
    labgrid_worker console FILE TARGET LOG   append the console's output to LOG, until the process is ended
    labgrid_worker power FILE TARGET         switch at each line `off` or `on` of stdin

Every answer is one JSON object on a line of stdout; an answer with `error` reports a failure. labgrid counts the steps
of its drivers on one stack for the whole process, so console and power need separate processes. labgrid's configuration
may contain passwords: no value of it is in an answer (`Hidden`), and labgrid's log is discarded.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any, NoReturn

# Values under these keys of labgrid's configuration are not secret, and make messages easier to understand.
_HARMLESS = {"cls", "name", "model", "port", "speed", "index", "protocol", "delay", "timeout"}
_BARE_HOST = re.compile(r"[\w.:-]+")
_PIECE = re.compile(r"[^/@:?&=,;\s]+")
_CREDENTIALS = re.compile(r"//[^/@\s]+@")
# Shorter words are not hidden: they reveal little, and they occur inside ordinary words.
_SHORTEST_HIDDEN = 4
_LONGEST_TOLD = 300
# This driver asks a person to pull the plug, and waits for Enter.
_ASKS_A_PERSON = "ManualPowerDriver"
# The time for which a target stays off, s, if its power driver does not define it.
_OFF_S = 2.0
_READ_S, _IDLE_S = 0.5, 0.1
# The times after a console was lost until it is opened again, and until a new process tries it, s.
_AGAIN_S, _ANEW_S = 2.0, 10.0
_AGAIN = "again"


class Hidden:
    """The values of a target's configuration that a message must not quote."""

    def __init__(self, configuration: Any = None) -> None:
        self._texts = sorted(set(_texts(configuration)), key=len, reverse=True)

    def text_of(self, error: BaseException) -> str:
        """Return an error as one line of text without any of these values."""
        if isinstance(error, subprocess.CalledProcessError):
            command = error.cmd if isinstance(error.cmd, list) else shlex.split(error.cmd)
            said = (error.output or b"").decode(errors="replace").strip().splitlines()
            ours, theirs = f"{Path(command[0]).name} ended with exit status {error.returncode}", said[-1:]
        elif isinstance(error, OSError) and error.strerror:
            ours, theirs = error.strerror, [str(error.filename)] if error.filename else []
        else:
            ours, theirs = "", [str(error) or type(error).__name__]
        return ": ".join(part for part in (ours, *map(self._without, theirs)) if part)

    def _without(self, text: str) -> str:
        for hidden in self._texts:
            text = text.replace(hidden, "…")
        return _CREDENTIALS.sub("//…@", " ".join(text.split()))[:_LONGEST_TOLD]


def _texts(configuration: Any, key: str = "") -> Iterator[str]:
    if isinstance(configuration, dict):
        for name, value in configuration.items():
            yield from _texts(value, str(name))
    elif isinstance(configuration, list):
        for value in configuration:
            yield from _texts(value, key)
    elif not isinstance(configuration, bool | None) and key not in _HARMLESS:
        text = str(configuration)
        if key == "host" and _BARE_HOST.fullmatch(text):
            return
        try:
            words = shlex.split(text)
        except ValueError:
            words = text.split()
        # The program of a command line may be shown. Its arguments may not, nor the parts of an address.
        parts = [part for word in (words[1:] or words) for part in (word, *_PIECE.findall(word))]
        yield from (part for part in (text, *parts) if len(part) >= _SHORTEST_HIDDEN)


def look(file: str, name: str) -> dict[str, Any]:
    """Return the file's targets, and this target's drivers, with those for power and for a console.

    Code that the file imports is not executed: drivers that it may define are `unknown`, and `imports` is true.
    """
    config = importlib.import_module("labgrid.config").Config(file)
    protocols = importlib.import_module("labgrid.protocol")
    targets = config.get_targets() or {}
    answer: dict[str, Any] = {"targets": [str(target) for target in targets]}
    if name not in targets:
        return answer
    importlib.import_module("labgrid.driver")
    factory = importlib.import_module("labgrid").target_factory
    _, drivers = factory.normalize_config(targets[name] or {})
    known = {driver: factory.drivers[driver] for driver in drivers if driver in factory.drivers}
    return answer | {
        "drivers": list(drivers),
        "unknown": [driver for driver in drivers if driver not in known],
        "imports": bool(config.data.get("imports")),
        "power": [n for n, kind in known.items() if issubclass(kind, protocols.PowerProtocol)],
        "console": [n for n, kind in known.items() if issubclass(kind, protocols.ConsoleProtocol)],
        "asks": [n for n in known if n == _ASKS_A_PERSON],
    }


def opened(file: str, name: str) -> Any:
    """Return the labgrid target; none of its drivers is active yet."""
    importlib.import_module("labgrid.driver")
    return importlib.import_module("labgrid").Environment(file).get_target(name)


def driver_of(target: Any, protocol: str) -> Any:
    """Activate and return the target's driver of a protocol; None if it has none."""
    missing = importlib.import_module("labgrid.exceptions").NoDriverFoundError
    try:
        target.get_driver(protocol, activate=False)
    except missing:
        return None
    return target.get_driver(protocol)


def power(file: str, name: str, lines: IO[str], answers: IO[str], hidden: Hidden) -> None:
    """Send the driver's name and its time off as a greeting, then switch at each line until the lines end."""
    driver = driver_of(opened(file, name), "PowerProtocol")
    if _name(driver) == _ASKS_A_PERSON:
        raise RuntimeError(f"{_ASKS_A_PERSON} asks a person, and a run asks nobody")
    _say(answers, driver=_name(driver), delay_s=float(getattr(driver, "delay", _OFF_S)))
    for line in lines if driver is not None else ():
        try:
            {"off": driver.off, "on": driver.on}[line.strip()]()
        except Exception as error:  # labgrid's exceptions have no common base class
            _say(answers, error=hidden.text_of(error))
        else:
            _say(answers)


def console(file: str, name: str, log: Path, answers: IO[str], hidden: Hidden, *, again: bool) -> None:
    """Send the driver's name as a greeting, then append the console's output to the log; reopen a lost console."""
    target = opened(file, name)
    with log.open("ab", buffering=0) as out:
        if not again:
            driver = driver_of(target, "ConsoleProtocol")
            if driver is not None:  # before the greeting: its receiver may then switch the box off
                mark(out, "the console is read from here on")
            _say(answers, driver=_name(driver))
            if driver is None:
                return
        lost = again
        while True:
            try:
                driver = driver_of(target, "ConsoleProtocol")
                if lost:
                    mark(out, "the console is read again")
                lost = False
                _copy(driver, out)
            except Exception as error:  # labgrid's exceptions have no common base class
                if not lost:
                    mark(out, f"the console was lost: {hidden.text_of(error)}")
                lost = True
            time.sleep(_AGAIN_S)
            try:
                target.deactivate_all_drivers()
            except Exception:  # a driver whose program has ended cannot be closed; only a new process helps
                time.sleep(_ANEW_S)
                os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], *([] if again else [_AGAIN])])


def _copy(driver: Any, out: IO[bytes]) -> NoReturn:
    silent = importlib.import_module("pexpect").TIMEOUT
    while True:
        began = time.monotonic()
        try:
            data = driver.read(size=4096, timeout=_READ_S)
        except silent:
            data = b""
        if data:
            out.write(data)
        elif time.monotonic() - began < _IDLE_S:  # some drivers do not wait
            time.sleep(_IDLE_S)


def mark(log: IO[bytes], text: str) -> None:
    """Write a line of espbench itself into the log of the console."""
    log.write(f"\n[espbench {datetime.now(UTC).isoformat(timespec='milliseconds')}] {text}\n".encode())


def _name(driver: Any) -> str | None:
    return None if driver is None else type(driver).__name__


def _say(answers: IO[str], **fields: Any) -> None:
    answers.write(json.dumps(fields) + "\n")
    answers.flush()


def _configuration(file: str, name: str) -> Any:
    with contextlib.suppress(Exception):  # the task reads the file again, and reports the error
        return (importlib.import_module("labgrid.config").Config(file).get_targets() or {}).get(name)
    return None


def main(task: str, file: str, name: str, *rest: str) -> int:
    """Execute one task; labgrid and its programs do not get this process's stdin and stdout."""
    lines, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nowhere, descriptor)
    hidden = Hidden(_configuration(file, name))
    try:
        if task == "look":
            _say(answers, **look(file, name))
        elif task == "console":
            console(file, name, Path(rest[0]), answers, hidden, again=rest[-1] == _AGAIN)
        else:
            power(file, name, lines, answers, hidden)
    except Exception as error:  # labgrid's exceptions have no common base class
        _say(answers, error=hidden.text_of(error))
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
