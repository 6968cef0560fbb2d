# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests of the SEC model (dut-profiles/e500/sec)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sec_console
from sec_console import Make, Sec


@pytest.fixture(scope="session")
def console(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model on its console, compiled once; without gcc or nettle the test is skipped."""
    if sec_console.MISSING:
        pytest.skip(f"the SEC model needs {' and '.join(sec_console.MISSING)}")
    return sec_console.compile_console(tmp_path_factory.mktemp("sec"))


@pytest.fixture
def make(console: Path) -> Iterator[Make]:
    """Make models, started as the driver starts them; each must end without a finding of the sanitizers."""
    made: list[Sec] = []

    def one(**options: object) -> Sec:
        made.append(Sec(console, **options))  # type: ignore[arg-type]
        return made[-1].start()

    yield one
    for sec in made:
        sec.close()


@pytest.fixture
def sec(make: Make) -> Sec:
    """One model: SEC 2.1 at 266 MHz."""
    return make()
