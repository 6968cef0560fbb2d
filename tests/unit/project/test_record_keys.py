# SPDX-License-Identifier: Apache-2.0
"""A key that one module writes into the Security Context and another looks for is spelled once."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from espbench.terms import KERNEL_CONFIGURATION, LIBRARIES_OF_HOST, SHOWN_BEFORE

HARNESS = Path(__file__).parents[3] / "harness"


@pytest.mark.parametrize("key", [KERNEL_CONFIGURATION, LIBRARIES_OF_HOST, SHOWN_BEFORE])
def test_a_key_is_a_literal_in_one_module(key: str) -> None:
    """If one of two spellings changed, a comparison or a report would lack a part without a word."""
    spelled = [
        path.name
        for path in HARNESS.rglob("*.py")
        if key in (text := path.read_text(encoding="utf-8"))
        and any(isinstance(node, ast.Constant) and node.value == key for node in ast.walk(ast.parse(text)))
    ]
    assert spelled == ["terms.py"]
