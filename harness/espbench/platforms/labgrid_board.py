# SPDX-License-Identifier: Apache-2.0
"""A board's power switch and serial console through labgrid, for tests that reset it (RFC 2544 26.6).

labgrid is an optional extra (`pip install espbench[lab]`) and imported only when a board is opened. What
switches and what listens is said in labgrid's own environment file, as its manual describes it: a target with
one driver of PowerProtocol and one of ConsoleProtocol.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from espbench.errors import EspbenchError, MachineLacks, UsageError

# How long a board stays off, so that its capacitors are empty, and how long its console must be silent then, s.
OFF_S, QUIET_S = 2.0, 0.2
_SAID_LAST = re.compile(r"buffer \(last \d+ chars\): (.*)")  # pexpect's words, of a console that timed out


class Board:
    """One target of a labgrid environment; use it as a context, which releases console and switch."""

    def __init__(self, environment: Path, target: str = "main") -> None:
        """UsageError for a file that labgrid refuses, MachineLacks where labgrid is not installed."""
        try:
            labgrid = importlib.import_module("labgrid")
        except ImportError:
            what = "a board with power switch and console needs labgrid"
            raise MachineLacks(what, "pip install espbench[lab]") from None
        self._where = f"{environment}: target {target}"
        self._opened = contextlib.ExitStack()
        try:
            opened = labgrid.Environment(str(environment))
            self._opened.callback(opened.cleanup)
            board = opened.get_target(target)
            if board is None:
                raise UsageError(f"{self._where}: expected one of the file's targets, got no such target")
            self._power: Any = board.get_driver("PowerProtocol")
            self._console: Any = board.get_driver("ConsoleProtocol")
        except UsageError:
            self.close()
            raise
        except Exception as error:  # labgrid's kinds have no base in common
            self.close()
            raise UsageError(f"{self._where}: labgrid refuses it: {error}") from error

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def power_cycle(self, off_s: float = OFF_S) -> None:
        """Off for some time, then on; what the console said before is forgotten. EspbenchError quotes the switch."""
        self._switch("off")
        time.sleep(off_s)
        self._forget()
        self._switch("on")

    def wait_until_up(self, words: str, timeout_s: float) -> float:
        """Seconds until the console shows this regular expression; EspbenchError quotes what it said last."""
        began = time.monotonic()
        try:
            self._console.expect(re.compile(words.encode()), timeout=timeout_s)
        except Exception as error:
            last = _SAID_LAST.search(str(error))
            raise EspbenchError(
                f"{self._where}: its console did not show {words!r} within {timeout_s:g} s"
                + (f"; it said last: {last[1]}" if last else f": {error}")
            ) from error
        return time.monotonic() - began

    def close(self) -> None:
        """Release both."""
        self._opened.close()

    def _switch(self, to: str) -> None:
        try:
            getattr(self._power, to)()
        except Exception as error:
            raise EspbenchError(f"{self._where}: cannot switch it {to}: {error}") from error

    def _forget(self) -> None:
        """Read away what was said before; a board that is off says no more, so the silence comes."""
        for _ in range(100):
            try:
                self._console.expect(re.compile(b"(?s).+"), timeout=QUIET_S)
            except Exception:
                return
        raise EspbenchError(f"{self._where}: its console does not fall silent while it is off")
