# SPDX-License-Identifier: Apache-2.0
"""`check --json`: the whole verdict for a program; its schema has a version of its own (docs/ci.md)."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any

from espbench.gate.verdict import Check, Row

SCHEMA = 1


def text_of(check: Check) -> str:
    """Return the verdict as JSON; keys are only ever added within a schema version."""
    return json.dumps(document(check), indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def document(check: Check) -> dict[str, Any]:
    """Return the verdict as plain values."""
    return {
        "schema": SCHEMA,
        "espbench": check.espbench,
        "verdict": check.word,
        "exit_code": check.exit_code,
        "plan": check.plan,
        "virtual_time": check.virtual,
        "base": check.base,
        "provenance": list(check.provenance),
        "run": check.run,
        "subjects": {key: {"base": was, "now": now} for key, (was, now) in check.subjects.items()},
        "allowed_differences": [
            {"condition": key, "base": was, "now": now} for key, was, now in check.allowed_differences
        ],
        "rows": [_row(row) for row in check.rows],
        "problems": [asdict(problem) for problem in check.problems],
        "notes": list(check.notes),
    }


def _row(row: Row) -> dict[str, Any]:
    return asdict(row) | {"share": row.share}
