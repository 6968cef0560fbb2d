# SPDX-License-Identifier: Apache-2.0
"""The benchmark of bare roots ends when it should, and its judgement can fail."""

from __future__ import annotations

import signal
from collections import Counter

import bare_roots
import pytest
import rust_version

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


@pytest.mark.parametrize(
    ("said", "manifest", "words"),
    [
        ("rustc 1.85.1 (4eb161250 2025-03-15)\n", 'rust-version = "1.85"\n', ""),
        ("rustc 1.84.0\n", 'rust-version = "1.85"\n', "rust-version 1.85, but Debian trixie has Rust 1.84"),
        ("rustc 1.96.0\n", 'rust-version = "1.85"\n', "rust-version 1.85, but Debian trixie has Rust 1.96"),
        ("rustc 1.85.1\n", 'edition = "2024"\n', 'expected rust-version = "1.N"'),
        ("no rustc\n", 'rust-version = "1.85"\n', "got 'no rustc"),
    ],
)
def test_the_rust_of_the_manifest_is_that_of_the_root(said: str, manifest: str, words: str) -> None:
    """Neither an older one nor a newer one will do: what the manifest promises is what was tried."""
    found = rust_version.other_version(said, manifest)
    assert found == "" if words == "" else words in found
