# SPDX-License-Identifier: Apache-2.0
"""Runs a command of espbench in this process, through its entry point, without the second that Python's start takes."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from espbench.cli.main import main
from support.signal_handlers import handlers_kept


def in_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end; return its exit code and its output, as if it had printed into pipes."""
    argv = ["espbench", *map(str, arguments)]
    out, err = io.StringIO(), io.StringIO()
    with (
        handlers_kept(),
        mock.patch.object(sys, "argv", argv),
        mock.patch.object(sys, "unraisablehook", sys.unraisablehook),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(argv, code, out.getvalue(), err.getvalue())
