# SPDX-License-Identifier: Apache-2.0
"""`espbench schema`: prints the JSON Schema of plans, for editors."""

from __future__ import annotations

import json

from espbench.plan import plan_schema


def schema() -> None:
    """Print the JSON Schema of plans, for your editor's YAML support."""
    print(json.dumps(plan_schema(), indent=2))
