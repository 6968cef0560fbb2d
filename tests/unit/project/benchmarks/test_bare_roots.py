# SPDX-License-Identifier: Apache-2.0
"""The benchmark of bare roots ends when it should, and its judgement can fail."""

from __future__ import annotations

import signal
from collections import Counter

import bare_roots
import pytest

pytestmark = pytest.mark.usefixtures("own_handlers")


@pytest.mark.parametrize("ignored", [True, False])
def test_an_ignored_hangup_stays_ignored(ignored: bool) -> None:
    """Under nohup the benchmark goes on when its terminal is closed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN if ignored else signal.SIG_DFL)
    bare_roots.end_by_signals()
    assert (signal.getsignal(signal.SIGHUP) is signal.SIG_IGN) == ignored
    with pytest.raises(SystemExit):
        signal.raise_signal(signal.SIGTERM)


@pytest.mark.parametrize(
    ("statuses", "words"),
    [
        ({"OK": 18}, ""),
        ({"OK": 10, "LOWER_BOUND": 6, "INVALID": 2}, ""),
        ({"OK": 1, "INVALID": 17}, "1 of 18 results have a figure, expected at least 16 of 18"),
        ({"OK": 16}, "16 of 16 results have a figure, expected at least 16 of 18"),
        ({}, "0 of 0 results have a figure, expected at least 16 of 18"),
    ],
)
def test_the_demo_must_have_nearly_all_of_its_figures(statuses: dict[str, int], words: str) -> None:
    """One figure of eighteen is no demo."""
    assert bare_roots.too_few_figures(Counter(statuses)) == words
