# SPDX-License-Identifier: Apache-2.0
"""Writes docs/settings.md: the settings of each test, and the keys of a DUT profile, from the models that read them.

PYTHONPATH=harness:tests python -m support.settings_document    # writes the document
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from espbench.plan import plan_schema
from espbench.plan.duts.profiles import Profile

DOCUMENT = Path(__file__).parents[2] / "docs" / "settings.md"
COMMON = ("learning", "residue", "settle", "warm_up", "retries")
HEAD = """\
# Settings of tests, and keys of DUT profiles

This page is made from the program (`tests/support/settings_document.py`). `espbench schema` prints the keys of a plan
as a JSON schema, which editors can use. A setting that you leave out has its default. A dash in
that column means that there is no value without the key, or one that its meaning names.

## Every test

```yaml
tests:
  - latency: {trial: 10s, repeats: 3}     # the name of a test, and its settings
```

Tests that send frames share these settings:

"""
PROFILES = """\
## DUT profiles

A profile is a YAML file that describes a device under test. Those that come with espbench are in `dut-profiles/`
(`espbench list duts`), and `espbench example dut-profiles/uml > mine.yaml` prints one. `dut: ./mine.yaml` in a plan
names one of your own. Brackets name the platforms that have a key.

"""
# Keys whose value is one path, or one for each gateway.
_PATHS = ("kernel", "modules", "overlay")
Schema = Mapping[str, Any]


def text() -> str:
    """Return the whole document."""
    return "".join(_parts()).rstrip() + "\n"


def _parts() -> Iterator[str]:
    schema = plan_schema()
    defined: Schema = schema["$defs"]
    tests = defined["Test"]["properties"]
    yield HEAD
    throughput = _object(tests["throughput"], defined)["properties"]
    yield from _table("setting", {key: throughput[key] for key in COMMON}, defined)
    for name, test in tests.items():
        own = {key: value for key, value in _object(test, defined)["properties"].items() if key not in COMMON}
        yield f"## {name}\n\n{_prose(test)}\n\n"
        yield from _table("setting", own, defined)
        yield from _nested(f"{name}.", {"properties": own}, defined, set())
    yield PROFILES
    profile = Profile.model_json_schema()
    yield from _table("key", profile["properties"], profile["$defs"], profile["required"])
    yield from _nested("", profile, profile["$defs"], set())


def _nested(path: str, within: Schema, defined: Schema, done: set[str]) -> Iterator[str]:
    """Yield a section for each mapping in a mapping, with the path of the first key that has it."""
    for name, value in within["properties"].items():
        nested = _object(value, defined)
        if name in _PATHS or "properties" not in nested or nested["title"] in done:
            continue
        done.add(nested["title"])
        yield f"### {path}{name}\n\n{_prose(nested)}\n\n"
        yield from _table("key", nested["properties"], defined, nested.get("required", ()))
        yield from _nested(f"{path}{name}.", nested, defined, done)


def _table(first: str, keys: Schema, defined: Schema, required: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines of a table; `–` in the column of defaults: without this key there is no value, or another one."""
    if not keys:
        yield "It has no settings of its own.\n\n"
        return
    yield f"| {first} | default | meaning |\n|---|---|---|\n"
    for key, value in keys.items():
        default = "–" if _is_nothing(value.get("default")) else f"`{_shown(value)}`"
        default = "must be written" if key in required else default
        yield f"| `{key}` | {default} | {_meaning(value, defined)} |\n"
    yield "\n"


def _is_nothing(default: Any) -> bool:
    return default is None or (isinstance(default, dict) and all(each is None for each in default.values()))


def _object(value: Schema, defined: Schema) -> Schema:
    """Return the definition to which a key, or each entry of its list, refers; or the key itself."""
    for each in (value, value.get("items", {}), *value.get("anyOf", ())):
        if name := each.get("$ref", "").rpartition("/")[2]:
            return defined[name]  # type: ignore[no-any-return]
    return value


def _meaning(value: Schema, defined: Schema) -> str:
    """Return the description of a key, with the values that it may have if the description does not name them."""
    prose = _prose(value if "description" in value else _object(value, defined))
    choice = [str(each) for each in value.get("enum", ()) if str(each) not in prose]
    return (f"{prose} One of {', '.join(choice)}." if choice else prose).replace("|", r"\|")


def _prose(value: Schema) -> str:
    """Return a description in one line, with links to other documents."""
    plain = " ".join(value.get("description", "").split())
    return re.sub(r"docs/([a-z0-9-]+\.md)", r"[\1](\1)", plain)


def _shown(value: Schema) -> str:
    """Return a default as a plan writes it."""
    default, form = value["default"], json.dumps(value)
    if isinstance(default, list):
        return f"[{', '.join(_one(each, form) for each in default)}]"
    return _one(default, form)


def _one(default: Any, form: str) -> str:
    """Return a single value; form: the schema of its key as text, which tells durations and ratios from numbers."""
    if isinstance(default, dict):
        return _mapping(default)
    if isinstance(default, bool | str):
        return default if isinstance(default, str) else json.dumps(default)
    if "(ms|s|m)$" in form:
        return f"{default:g}s"
    percent = "%" in form and isinstance(default, float) and default
    return f"{100 * default:.6g}%" if percent else f"{default:.15g}"


def _mapping(default: Mapping[str, Any]) -> str:
    if "unit" in default:
        return f"{default['value']:g}{default['unit']}"
    return str(default["home"]) if default.keys() == {"home", "office"} else json.dumps(default)


if __name__ == "__main__":
    DOCUMENT.write_text(text(), encoding="utf-8")
