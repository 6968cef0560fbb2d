# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors that complete and check while one types."""

from __future__ import annotations

from typing import Any

from espbench.plan.checks import STACKS
from espbench.plan.model import Plan
from espbench.stacks.suites import suites


def plan_schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12. What spans several keys is checked by `espbench validate` alone."""
    schema = Plan.model_json_schema(mode="validation")
    definitions = schema["$defs"]
    # The shorthands the model accepts before it validates.
    definitions["Test"] |= {"minProperties": 1}
    settings = definitions["Test"]["properties"]["throughput"]
    settings.pop("default", None)
    names = {"type": "string", "examples": [*STACKS]}
    definitions["StackChoice"] = {"anyOf": [names, definitions["StackChoice"]]}
    known_stack = {
        "anyOf": [{"enum": [*STACKS]}, {"type": "object", "properties": {"stack": {"enum": [*STACKS]}}}]
    }
    schema["properties"]["suites"]["items"]["examples"] = list(suites())
    schema["allOf"] = [
        {
            "if": {"properties": {"topology": {"const": "external"}}, "required": ["topology"]},
            "then": {"required": ["ports"]},
            "else": {
                "required": ["stacks"],
                "properties": {
                    "stacks": {"items": known_stack, "minItems": 1},
                    "suites": {"items": {"enum": list(suites())}},
                    "ports": False,
                },
            },
        }
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "espbench plan"}
