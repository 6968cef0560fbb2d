# SPDX-License-Identifier: Apache-2.0
"""Tests that docs/settings.md says what the models of plans and profiles accept."""

from __future__ import annotations

from support import settings_document


def test_the_document_is_that_of_the_models() -> None:
    """To write it anew: PYTHONPATH=harness:tests python -m support.settings_document"""
    assert settings_document.DOCUMENT.read_text(encoding="utf-8") == settings_document.text()


def test_defaults_are_written_as_in_a_plan() -> None:
    """A reader can copy them."""
    document = settings_document.text()
    rows = ("| `trial` | `120s` |", "| `loss_goals` | `[0, 0.001%]` |", "| `load` | `1000fps` |")
    assert all(row in document for row in (*rows, "| `line_rate` | – |"))


def test_keys_within_a_setting_have_a_table_of_their_own() -> None:
    """Also those of each entry of a list; else their values and units would be nowhere."""
    document = settings_document.text()
    for setting in ("accelerator.variants", "cipher_kernels.faster"):
        assert document.count(f"\n### {setting}\n") == 1
    assert "| `check` | `last` |" in document
    assert "| `dram` | `0` |" in document
