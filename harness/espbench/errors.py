# SPDX-License-Identifier: Apache-2.0
"""The errors with which a command can end.

EspbenchError            exit code 1   an unexpected error, explained in one message
├── UsageError           exit code 2   the user's plan or command line is wrong
├── UnreadableRun        exit code 1   a damaged run directory (Python API: also a folder that is no run directory)
├── MachineLacks         exit code 4   the machine lacks something espbench needs
├── GeneratorFailed      exit code 1   the generator died, does not answer, or refuses
├── GatewayFailed        exit code 1   a gateway died, does not answer, or answers nonsense
├── CannotWrite          exit code 1   the disk refuses a file that a run needs: the run ends, and can be resumed
└── Interrupted          exit code 130 Ctrl-C or SIGTERM; the run can be resumed
"""

from __future__ import annotations

import shlex
import sys

from espbench.sentences import Code


class EspbenchError(Exception):
    """Base of every error that espbench raises on purpose. Its text is shown to the user unchanged.

    code: the reason in the record of a trial, if the error affects only that trial.
    """

    exit_code = 1
    code = Code.BROKEN


class UsageError(EspbenchError):
    """A mistake of the user; the text says where it is, what was expected, what espbench got, and what to do."""

    exit_code = 2


class UnreadableRun(EspbenchError):
    """A folder that is not a run, or a damaged run; the text says where it is, what is wrong, and what to do."""


class MachineLacks(EspbenchError):
    """Something is not installed or not allowed on this machine; `install` is the command that fixes it."""

    exit_code = 4

    def __init__(self, what: str, install: str = "") -> None:
        super().__init__(f"{what}\n  to fix it: {install}" if install else what)
        self.what = what
        self.install = install


def install_extra(name: str) -> str:
    """Return the command that installs an extra of espbench into the environment that runs it (docs/install.md)."""
    return f"{shlex.quote(sys.executable)} -m pip install 'espbench[{name}]'"


class GeneratorFailed(EspbenchError):
    """The generator died, does not answer, or refuses a request; `what` is the text without `generator:`."""

    code = Code.GENERATOR_FAILED

    def __init__(self, what: str) -> None:
        super().__init__(f"generator: {what}")
        self.what = what


class GatewayFailed(EspbenchError):
    """A gateway or its agent died, does not answer, or answers nonsense."""

    code = Code.GATEWAY_FAILED


class CannotWrite(EspbenchError):
    """The disk refuses a file that a run needs. This ends the run; no trial and no gateway is the cause."""


class Interrupted(EspbenchError):
    """The user stopped the run; everything measured so far is on disk."""

    exit_code = 130
