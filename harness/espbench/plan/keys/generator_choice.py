# SPDX-License-Identifier: Apache-2.0
"""A plan's `generator:`: the program that makes the traffic, and its settings."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainSerializer, PlainValidator, WithJsonSchema, model_validator

from espbench.plan.keys.values import text
from espbench.plan.reading.reader import Strict, did_you_mean
from espbench.plan.reading.units import Expected

PortPath = Literal["auto", "xdp", "af_xdp", "af_packet"]
TREX_PORT = 4501
FASTEST_FPS = 50e6
"""The highest rate of a port that native and scapy accept, frames/s; it is more than any port can reach with them."""
_LAST_PORT = 255  # more than any TRex server has
_SERVER_PATTERN = r"^(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9][A-Za-z0-9.-]*)(:[0-9]{1,5})?$"


def _server(value: object) -> tuple[str, int]:
    match = re.fullmatch(_SERVER_PATTERN, value) if isinstance(value, str) else None
    port = int(match[2][1:]) if match and match[2] else TREX_PORT
    if match is None or not 0 < port < 65536:
        raise Expected(
            "the address of a TRex server, such as 192.0.2.9:4501",
            "write host or host:port, IPv6 addresses in brackets and quotes",
        )
    return match[1].strip("[]"), port


def _indices(value: object) -> tuple[int, int]:
    match value:
        case [int(west), int(east)] if _are_ports(west, east):
            return west, east
    raise Expected(
        f"two different port numbers of the server, up to {_LAST_PORT}, such as [0, 1]",
        "west first, then east",
    )


def _are_ports(west: int, east: int) -> bool:
    is_a_number = bool not in (type(west), type(east))
    return is_a_number and west != east and min(west, east) >= 0 and max(west, east) <= _LAST_PORT


def shown_server(server: tuple[str, int]) -> str:
    """Return a server's address as a plan writes it."""
    host, port = server
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


Server = Annotated[
    tuple[str, int],
    PlainValidator(_server),
    PlainSerializer(shown_server, return_type=str),
    text(_SERVER_PATTERN, "192.0.2.9:4501"),
]
Indices = Annotated[
    tuple[int, int],
    PlainValidator(_indices),
    PlainSerializer(list, return_type=list[int]),
    WithJsonSchema(
        {
            "type": "array",
            "items": {"type": "integer", "minimum": 0, "maximum": _LAST_PORT},
            "minItems": 2,
            "maxItems": 2,
            "uniqueItems": True,
        }
    ),
]


class Native(Strict):
    """The native generator, espbench-traffic."""

    keys_are: ClassVar[str] = "a key of the native generator"

    tx: PortPath = "auto"
    """The way to send frames. auto: espbench chooses (docs/generators.md)."""
    rx: PortPath = "auto"
    """The way to receive and check frames."""
    senders: int = Field(default=1, ge=1, le=1024)
    """Number of CPUs that send; more than one only with xdp."""
    esp_memory_mib: int = Field(default=1024, ge=16, le=1_048_576)
    """Memory for packets that are encrypted before a trial or decrypted after it, MiB (topology: single-gateway)."""


class Trex(Strict):
    """TRex, stateless."""

    keys_are: ClassVar[str] = "a key of trex"

    server: Server | None = None
    """A server that you run, host:port. Default: espbench starts one from TREX_DIR in the ports' namespace."""
    ports: Indices = (0, 1)
    """The server's ports that are west and east; only with server."""


class Scapy(Strict):
    """Scapy: slow, for unusual frames and for teaching."""

    keys_are: ClassVar[str] = "a key of scapy"


class GeneratorChoice(Strict):
    """One generator and its settings; the name alone means the defaults."""

    keys_are: ClassVar[str] = "a generator espbench has"

    native: Native | None = None
    """espbench-traffic: numbers, stamps and checks every frame."""
    trex: Trex | None = None
    """TRex: counts frames per port; no latency, no check of each frame."""
    scapy: Scapy | None = None
    """Scapy: slow, any frame."""

    @model_validator(mode="before")
    @classmethod
    def _one(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {value: None}
            if not cls.model_fields.keys() & value:
                (name,) = value
                raise _unknown(name)
        if not isinstance(value, dict) or len(value) != 1:
            raise Expected(
                f"one of {', '.join(cls.model_fields)}, or one with its settings",
                "such as generator: trex, or generator: {trex: {server: 192.0.2.9:4501}}",
            )
        return {name: {} if settings is None else settings for name, settings in value.items()}

    @property
    def name(self) -> str:
        """The generator's name."""
        return next(name for name in type(self).model_fields if getattr(self, name) is not None)

    @property
    def fastest_fps(self) -> float:
        """The highest rate in each direction that the generator accepts, frames/s; infinite for TRex."""
        return math.inf if self.trex is not None else FASTEST_FPS

    @property
    def settings(self) -> dict[str, Any]:
        """The generator's settings, defaults included, as its constructor takes them."""
        return dict(getattr(self, self.name))

    @property
    def senders(self) -> int:
        """The number of CPUs that send together."""
        return self.native.senders if self.native else 1

    @property
    def shown(self) -> str:
        """The generator's name, and the settings that are not defaults."""
        options = getattr(self, self.name).model_dump(mode="json", exclude_defaults=True)
        return " ".join([self.name, *(f"{key}={value}" for key, value in options.items())])


def _unknown(name: str) -> Expected:
    known = list(GeneratorChoice.model_fields)
    return Expected(f"one of {', '.join(known)}", did_you_mean(name, known, "espbench list generators"))
