# SPDX-License-Identifier: Apache-2.0
"""`espbench schema`: the JSON Schema of plans, for editors."""

from __future__ import annotations

import json

from espbench.plan import plan_schema


def schema() -> None:
    """Print the JSON Schema of plans (point your editor's YAML support at it)."""
    print(json.dumps(plan_schema(), indent=2))
