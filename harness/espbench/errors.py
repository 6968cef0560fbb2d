# SPDX-License-Identifier: Apache-2.0
"""The ways a command can end without success.

EspbenchError            exit code 1   something unexpected, said in one message
├── UsageError           exit code 2   the user's plan or command line is wrong
├── UnreadableRun        exit code 1   not a run directory, or a damaged one (of the Python API)
├── MachineLacks         exit code 4   the machine lacks something espbench needs
├── GeneratorFailed      exit code 1   the generator died, is silent or refuses
├── GatewayFailed        exit code 1   a gateway died, is silent or answers nonsense
├── CannotWrite          exit code 1   the disk refuses what a run must keep: it ends, and can be resumed
└── Interrupted          exit code 130 Ctrl-C or SIGTERM; the run can be resumed
"""

from __future__ import annotations

from espbench.sentences import Code


class EspbenchError(Exception):
    """Base of every error espbench raises on purpose; its text is shown as it is.

    code: what it is as the reason of a trial, where it costs no more than that trial.
    """

    exit_code = 1
    code = Code.BROKEN


class UsageError(EspbenchError):
    """A mistake of the user's: where it is, what was expected, what came, what to do."""

    exit_code = 2


class UnreadableRun(EspbenchError):
    """A folder that is no run, or a run that is damaged: where, what is wrong, what to do."""


class MachineLacks(EspbenchError):
    """Something is not installed or not allowed here; `install` is the command that mends it."""

    exit_code = 4

    def __init__(self, what: str, install: str = "") -> None:
        super().__init__(f"{what}\n  to fix it: {install}" if install else what)
        self.what = what
        self.install = install


class GeneratorFailed(EspbenchError):
    """The generator died, does not answer, or refuses what it is asked."""

    code = Code.GENERATOR_FAILED


class GatewayFailed(EspbenchError):
    """A gateway, or the agent in it, died, does not answer, or answers nonsense."""

    code = Code.GATEWAY_FAILED


class CannotWrite(EspbenchError):
    """The disk refuses what a run must keep. It ends the run: no trial and no gateway is to blame for it."""


class Interrupted(EspbenchError):
    """The user stopped the run; everything measured so far is on disk."""

    exit_code = 130
