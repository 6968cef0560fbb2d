# SPDX-License-Identifier: Apache-2.0
"""Whatever the native generator tells of a trial, and of a port, is used: no field is dropped unseen.

`traffic/src/protocol/trial_result.json` has every field there is; a test of the generator holds it against the
structures that it sends. The models have each of them, and the program reads each field of the models by its name.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast, get_args, get_origin

from pydantic import BaseModel

from espbench.generators import base
from espbench.generators.base import EspCounts, LinkCounts, Offered, OpenedPort
from espbench.runs.setups import Setups
from espbench.terms import Latency

RESULT = Path(__file__).parents[3] / "traffic" / "src" / "protocol" / "trial_result.json"
EVENTS = RESULT.with_name("event.rs")
HARNESS = Path(base.__file__).parents[1]
# The client has seen to which answer it is, and to which command.
ENVELOPE = {"event", "id"}
# The record of a trial has these models as they are.
RECORDED_WHOLE = {Latency, EspCounts, LinkCounts}
# No module of the program reads these fields, for the reason after each.
IGNORED = {
    "Offered.last_tx_ns": "the end of sending is start_ns + duration_s, which has the interval of the last frame too",
    "StreamCounts.tx_refused": "part of tx_frames: lost, and at which place the gateway's counters say",
    "StreamCounts.tx_retries": "a frame that was offered again left later, which lateness_us has",
    "StreamCounts.last_rx_ns": "drain_s has the same time, after the last frame sent",
    "StreamCounts.gaps": "no test asks for a list of gaps (gaps_over_s); longest_gap is used",
    "StreamCounts.gaps_more": "as gaps",
    "StreamCounts.sealed_before": "the frames and their times are the same; only tests of the generator look at it",
    "NoiseCounts.tx_refused": "part of tx_frames, as for a stream",
    "PortCounts.rx_total": "the sum of what streams, foreign and esp count; for those who debug a port",
    "PortCounts.merged": "these frames count as damaged, and the generator adds a warning to the trial",
    "OpenedPort.speed_mbps": "espbench reads the speed of the links itself, before and after each trial",
}


def model_of(annotation: Any) -> type[BaseModel] | None:
    """The model in `Model`, `Model | None`, `list[Model]` or `dict[str, Model]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := model_of(inner))), None)


def apart(model: type[BaseModel], reported: dict[str, Any], where: str = "") -> Iterator[str]:
    """Fields on one side only, here and below."""
    fields = {str(field.validation_alias or name): field for name, field in model.model_fields.items()}
    yield from (f"{where}{name} is told and not read" for name in reported.keys() - fields.keys())
    yield from (f"{where}{name} is read and never told" for name in fields.keys() - reported.keys())
    for name in reported.keys() & fields.keys():
        inner = model_of(fields[name].annotation)
        value = reported[name][0] if isinstance(reported[name], list) else reported[name]
        if get_origin(fields[name].annotation) is dict and inner:
            (value,) = value.values()
        if inner and isinstance(value, dict):
            yield from apart(inner, value, f"{where}{name}.")


def test_every_field_of_a_trial_is_read() -> None:
    """No field is waited for that never comes."""
    fields = {name: value for name, value in json.loads(RESULT.read_text()).items() if name not in ENVELOPE}
    differences = {*apart(Offered, fields)}
    # One model for two kinds of stalls.
    differences -= {
        "host_stalls.until_ns is read and never told",
        "streams.tx_stalls.cpu is read and never told",
    }
    assert differences == set()


def models(*roots: type[BaseModel]) -> set[type[BaseModel]]:
    """These models, and all in their fields."""
    found = {*roots}
    for root in roots:
        inner = {model_of(field.annotation) for field in root.model_fields.values()}
        found |= models(*(model for model in inner if model))
    return found


@cache
def names_read() -> frozenset[str]:
    """The names of all attributes that the program reads, but not those of what a module imports (`stalls.merged`)."""
    names = set()
    for file in HARNESS.rglob("*.py"):
        nodes = [*ast.walk(ast.parse(file.read_text()))]
        imports = [node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom)]
        imported = {(alias.asname or alias.name).split(".")[0] for node in imports for alias in node.names}
        names |= {
            node.attr
            for node in nodes
            if isinstance(node, ast.Attribute)
            and isinstance(node.ctx, ast.Load)
            and not (isinstance(node.value, ast.Name) and node.value.id in imported)
        }
    return frozenset(names)


def test_every_field_of_the_models_is_used_or_ignored_with_a_reason() -> None:
    """A field that nobody reads is a count that changes nothing, such as losses that are not listed."""
    fields = {
        f"{model.__name__}.{name}"
        for model in models(Offered, OpenedPort) - RECORDED_WHOLE
        for name in model.model_fields
        if name not in names_read()
    }
    assert fields == IGNORED.keys()


def test_what_the_generator_remarks_is_kept() -> None:
    """The remarks are: no real-time priority, not pinned, frames merged; trial and figures have them."""
    offered = Offered.model_validate_json(RESULT.read_text())
    assert offered.notes == ["what else was noticed"]
    assert [*map(str, offered.warnings)] == ["what holds for each figure"]
    assert not offered.stalls_watched
    assert (offered.streams[0].tx_stalls[0].until_ns, offered.streams[0].duration_s) == (1180, 1.25)


def test_every_field_of_a_port_is_read() -> None:
    struct = re.search(r"pub struct OpenedPort \{(.*?)\}", EVENTS.read_text(), re.DOTALL)
    assert struct is not None
    assert re.findall(r"pub (\w+):", struct[1]) == [*OpenedPort.model_fields]


def a_port(name: str, receiver: str, *notes: str) -> dict[str, Any]:
    return {
        "name": name, "interface": "eth0", "driver": "veth", "mac": "02:00:00:00:00:01", "mtu": 1500, "carrier": True,
        "speed_mbps": None, "sender": "xdp live frames", "receiver": receiver, "notes": [*notes],
    }  # fmt: skip


class Notebook:
    """The parts of a manifest that the generator's ways go into."""

    def __init__(self) -> None:
        self.manifest = SimpleNamespace(tools={}, warnings=["of before"])

    def update_manifest(self, **changes: Any) -> None:
        vars(self.manifest).update(changes)


def recorded(*ports: dict[str, Any]) -> Notebook:
    """Return what is recorded when a set-up attaches to these ports."""
    generator = SimpleNamespace(name="native", open=lambda ports_, watched: [*ports])
    bed = SimpleNamespace(
        virtual_time=False, ports={}, placement=SimpleNamespace(cpus={}), attached=lambda generator: None
    )
    resolved = SimpleNamespace(plan=None, traffic=SimpleNamespace(tags=b""))
    notebook = Notebook()
    setups = Setups(*cast(Any, (resolved, [], notebook, None, lambda: generator, None)))
    for _ in range(2):  # two set-ups say the same once
        setups.attach(cast(Any, bed))
        setups._record_notes()
    return notebook


def test_the_ways_of_both_ports_are_recorded() -> None:
    """Frames leave at one port and arrive at the other, so the receiver of the second decides as well."""
    same = recorded(a_port("west", "xdp, native"), a_port("east", "xdp, native"))
    assert same.manifest.tools == {"generator": "native: xdp live frames; xdp, native"}
    assert same.manifest.warnings == ["of before"]
    other = recorded(
        a_port("west", "xdp, native"), a_port("east", "af_packet", "receives by AF_PACKET: no memory")
    )
    assert other.manifest.tools == {
        "generator": "native: west: xdp live frames; xdp, native; east: xdp live frames; af_packet"
    }
    assert other.manifest.warnings == ["of before", "Tester port east: receives by AF_PACKET: no memory"]
