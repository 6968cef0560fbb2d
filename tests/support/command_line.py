# SPDX-License-Identifier: Apache-2.0
"""A command of espbench in this process: all of its entry point, without the second that a start of Python takes."""

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
    """Run a command to its end; its exit code and what it printed, as if into pipes."""
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
