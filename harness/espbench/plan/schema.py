# SPDX-License-Identifier: Apache-2.0
"""The JSON Schema of a plan, for editors that complete and check a plan while it is written."""

from __future__ import annotations

from typing import Any

from espbench.catalogue.stack_names import INTEROPERABLE, STACKS
from espbench.catalogue.suites import suites
from espbench.plan.checks.kernel_checks import KEYS_OF_NETWORKS
from espbench.plan.checks.stack_checks import keys_of
from espbench.plan.keys.model import NO_NETWORK, Plan
from espbench.plan.keys.stack_choice import StackChoice


def plan_schema() -> dict[str, Any]:
    """Return the JSON Schema, draft 2020-12. Only `espbench validate` checks rules that involve several keys."""
    schema = Plan.model_json_schema(mode="validation")
    definitions = schema["$defs"]
    # These are the shorthands that the model accepts before it validates.
    definitions["Test"] |= {"minProperties": 1, "maxProperties": 1}
    for settings in definitions["Test"]["properties"].values():
        settings.pop("default", None)
    definitions["StackChoice"]["properties"]["stack"].pop("default", None)  # null is the name of a stack
    names = {"type": "string", "examples": [*STACKS]}
    definitions["StackChoice"] = {"anyOf": [names, {"type": "null"}, definitions["StackChoice"]]}
    generators = list(definitions["GeneratorChoice"]["properties"])
    definitions["GeneratorChoice"] |= {"minProperties": 1, "maxProperties": 1}
    definitions["GeneratorChoice"] = {"anyOf": [{"enum": generators}, definitions["GeneratorChoice"]]}
    definitions["Compare"]["properties"]["at"]["anyOf"].append({"type": "boolean"})
    axes = {"enum": definitions["Compare"]["properties"]["by"]["enum"]}
    definitions["Compare"] = {"anyOf": [axes, definitions["Compare"]]}
    schema["properties"]["suites"]["items"]["examples"] = list(suites())
    schema["properties"]["repeat"].pop("default", None)  # it depends on compare
    schema["allOf"] = [
        {
            "if": {"properties": {"topology": {"const": "external"}}, "required": ["topology"]},
            "then": {
                "required": ["ports"],
                "properties": {"compare": {"type": "null"}, "dut": {"type": "string"}},
            },
            "else": {
                "if": {"properties": {"topology": {"const": NO_NETWORK}}, "required": ["topology"]},
                "then": {"properties": dict.fromkeys(KEYS_OF_NETWORKS, False)},
                "else": {
                    "required": ["stacks"],
                    "properties": {
                        "stacks": {"items": _known_stack(), "minItems": 1},
                        "suites": {"items": {"enum": list(suites())}},
                        "ports": False,
                    },
                },
            },
        }
    ]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "espbench plan"}


def _known_stack() -> dict[str, Any]:
    """Return the schema of a stack on gateways that espbench builds: a name, or a mapping with that stack's keys."""
    daemons = {"enum": [*INTEROPERABLE]}
    pair = {"home": daemons, "office": daemons, "stack": False, "version": False, "prefix": False}
    alone = [
        {
            "if": {"properties": {"stack": {"enum": _spellings(name)}}, "required": ["stack"]},
            "then": {
                "properties": {key: False for key in StackChoice.model_fields if key not in keys_of(name)}
            },
        }
        for name in STACKS
    ]
    mapping = {
        "type": "object",
        "if": {"anyOf": [{"required": ["home"]}, {"required": ["office"]}]},
        "then": {"required": ["home", "office"], "properties": pair},
        "else": {"required": ["stack"], "properties": {"stack": {"enum": [*STACKS, None]}}},
        "allOf": alone,
    }
    return {"anyOf": [{"enum": [*STACKS, None]}, mapping]}


def _spellings(name: str) -> list[str | None]:
    """Return the spellings of a stack's name. The stack `null` may also be a bare null, which YAML reads as no
    value.
    """
    return [name, None] if name == "null" else [name]
