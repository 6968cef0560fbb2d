# SPDX-License-Identifier: Apache-2.0
"""The plan a user writes: its keys, their values and what they mean.

The docstring under each key is also its description in the JSON Schema editors use.
"""

from __future__ import annotations

import ipaddress
import re
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    Field,
    JsonValue,
    PlainSerializer,
    PlainValidator,
    PrivateAttr,
    WithJsonSchema,
    model_validator,
)

from espbench.plan import units
from espbench.plan.reader import Strict, did_you_mean
from espbench.plan.traffic_profiles import mix_names, rfc2544_frame
from espbench.plan.units import Expected, Rate
from espbench.stacks.suites import Mode
from espbench.terms import Direction

Topology = Literal["gateway-to-gateway", "external"]
SMALLEST_FRAME, LARGEST_FRAME = 64, 9000


def _text(pattern: str, *examples: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": pattern, "examples": list(examples)})


def _fraction(*examples: str) -> WithJsonSchema:
    return WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "exclusiveMaximum": 1},
                {"type": "string", "pattern": units.FRACTION_PATTERN},
            ],
            "examples": list(examples),
        }
    )


_DURATION_SCHEMA = WithJsonSchema(
    {
        "anyOf": [{"type": "string", "pattern": units.DURATION_PATTERN}, {"const": 0}],
        "examples": ["2s", "500ms", "1m"],
    }
)
_AS_DURATION = PlainSerializer(units.format_duration, return_type=str)
_AS_FRACTION = PlainSerializer(units.format_fraction, return_type=str)
Duration = Annotated[float, PlainValidator(units.parse_duration), _AS_DURATION, _DURATION_SCHEMA]
TrialDuration = Annotated[
    float,
    PlainValidator(units.parse_positive_duration),
    _AS_DURATION,
    _text(units.DURATION_PATTERN, "2s", "60s"),
]
PlanRate = Annotated[
    Rate,
    PlainValidator(units.parse_rate),
    PlainSerializer(str, return_type=str),
    _text(units.RATE_PATTERN, "40000fps", "50Mbps", "5%"),
]
LineRate = Annotated[
    float,
    PlainValidator(units.parse_line_rate),
    PlainSerializer(lambda bps: str(Rate(bps, "bps")), return_type=str),
    _text(units.LINE_RATE_PATTERN, "1Gbps", "10Gbps"),
]
LossGoal = Annotated[
    float, PlainValidator(units.parse_loss_goal), _AS_FRACTION, _fraction("0", "0.001%", "1e-5")
]
Resolution = Annotated[float, PlainValidator(units.parse_resolution), _AS_FRACTION, _fraction("1%")]


def _name(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise Expected(
            "a name of up to 64 letters, digits, . _ or -",
            "it becomes part of file names (quote numbers and dates)",
        )
    return value


Name = Annotated[str, PlainValidator(_name), _text(r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", "quick")]


def _frame_size(value: object) -> int | str:
    remedy = "sizes count the 4-byte FCS"
    if isinstance(value, str):
        if value not in mix_names():
            expected = f"a frame size in bytes or a mix ({', '.join(mix_names())})"
            raise Expected(
                expected, did_you_mean(value, mix_names(), f"{remedy}; write numbers without quotes")
            )
        return value
    if not isinstance(value, int) or isinstance(value, bool) or not SMALLEST_FRAME <= value <= LARGEST_FRAME:
        raise Expected(
            f"a frame size from {SMALLEST_FRAME} to {LARGEST_FRAME} bytes, or the name of a mix", remedy
        )
    return value


FrameSize = Annotated[
    int | str,
    PlainValidator(_frame_size),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "integer", "minimum": SMALLEST_FRAME, "maximum": LARGEST_FRAME},
                {"type": "string", "enum": mix_names()},
            ]
        }
    ),
]


def _list_of(*default: JsonValue, shown: list[JsonValue] | None = None) -> Any:
    """A list key: its default and, where there is one, that an empty list is a mistake."""
    return Field(
        default_factory=lambda: [*default],
        min_length=1 if default else 0,
        json_schema_extra={"default": shown or [*default]},
    )


class Throughput(Strict):
    """Throughput (RFC 2544 26.1): the highest load at which the loss stays within each goal."""

    keys_are: ClassVar[str] = "a key of a throughput test"

    loss_goals: list[LossGoal] = _list_of(0.0, 1e-5, shown=["0", "0.001%"])
    """Frame loss ratios, one answer for each; all are searched at once."""
    trial: TrialDuration = 2.0
    """Length of a search trial."""
    final_trial: TrialDuration = 60.0
    """Length of the trial a figure is taken from; RFC 2544 24 asks for 60 s."""
    resolution: Resolution = 0.01
    """The search ends when its bounds are this close, relative to the upper one."""
    minimum: PlanRate | None = None
    """Lowest load tried, per direction; below it the case is BELOW_MINIMUM. Default 1 % of maximum."""
    maximum: PlanRate | None = None
    """Highest load tried, per direction. Default: line rate or the generator's ceiling, the lower."""
    settle: Duration = 5.0
    """Wait before the next trial (RFC 2544 23 e: at least 5 s)."""
    residue: Duration = 2.0
    """Wait for late frames after sending (RFC 2544 23 d: 2 s)."""
    warm_up: Duration = 2.0
    """Traffic sent and not judged before the first trial of a case."""
    learning: Duration = 2.0
    """Wait after the learning frames that precede each trial (RFC 2544 23 b: 2 s)."""
    retries: Annotated[int, Field(ge=0, le=20)] = 3
    """How often an INVALID trial is repeated before the case is INVALID."""


class Test(Strict):
    """One test: its name and, under it, its settings. Settings left out have defaults."""

    __test__: ClassVar[bool] = False  # not a test of pytest's
    keys_are: ClassVar[str] = "a test espbench has"

    throughput: Throughput | None = None
    """Throughput (RFC 2544 26.1): the highest load at which the loss stays within each goal."""

    @model_validator(mode="before")
    @classmethod
    def _one_test(cls, value: Any) -> Any:
        if not isinstance(value, dict) or not value:
            raise Expected("a test and its settings", "write - throughput: {}")
        return {key: {} if settings is None else settings for key, settings in value.items()}

    @property
    def name(self) -> str:
        """The test's key, as results.csv shows it."""
        return "throughput"

    @property
    def settings(self) -> Throughput:
        """The settings of that test."""
        return self.throughput or Throughput()


class StackChoice(Strict):
    """A stack and its options; the name alone means the defaults."""

    keys_are: ClassVar[str] = "a key of a stack"

    stack: str
    """The stack's name: `espbench list stacks`."""
    label: Name | None = None
    """What reports call it; needed when one stack is listed twice. Default: the name."""
    mode: Mode = "tunnel"
    """ESP mode (RFC 4303 3.1). Transport mode protects an IP-in-IP tunnel between the gateways."""
    replay_window: Annotated[int, Field(ge=0, le=4096)] = 32
    """Anti-replay window, packets; 0 switches the check off."""
    esn: bool = False
    """64-bit extended sequence numbers (RFC 4304)."""

    @model_validator(mode="before")
    @classmethod
    def _name_alone(cls, value: Any) -> Any:
        return {"stack": value} if isinstance(value, str) else value

    @property
    def shown(self) -> str:
        """Its name in results and reports."""
        return self.label or self.stack


class Flows(Strict):
    """How many flows the offered frames spread over (RFC 2544 12)."""

    keys_are: ClassVar[str] = "a key of flows"

    networks: Annotated[int, Field(ge=1, le=256)] = 1
    """Destination networks; RFC 2544 12 asks for one, then 256."""
    ports: Annotated[int, Field(ge=1, le=64512)] = 1
    """UDP source ports in each network."""


def _cidr(value: object) -> str:
    try:
        if isinstance(value, str) and "/" in value:
            return str(ipaddress.ip_interface(value))
    except ValueError:
        pass
    raise Expected(
        "an address with its prefix length, such as 10.0.1.2/24", "the port's own address on that link"
    )


def _address(value: object) -> str:
    try:
        if isinstance(value, str):
            return str(ipaddress.ip_address(value))
    except ValueError:
        pass
    raise Expected("an IP address such as 10.0.1.1", "the DUT's address on that link")


def _interface(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[^\s/]{1,15}", value) or value in (".", ".."):
        raise Expected("the name of a network interface (up to 15 characters)", "ip -brief link lists them")
    return value


class ExternalPort(Strict):
    """One tester port, wired to a box espbench did not build."""

    keys_are: ClassVar[str] = "a key of a port"

    netns: Annotated[str, Field(min_length=1)] | None = None
    """Network namespace of the interface: a name of `ip netns` or a path. Default: the initial one."""
    interface: Annotated[str, PlainValidator(_interface), _text(r"^[^\s/]{1,15}$", "eth1")]
    """The interface."""
    address: Annotated[str, PlainValidator(_cidr), _text(r"^[0-9a-fA-F.:]+/\d+$", "10.0.1.2/24")]
    """The tester's address on this link; espbench answers ARP and neighbour discovery for it."""
    gateway: Annotated[str, PlainValidator(_address), _text(r"^[0-9a-fA-F.:]+$", "10.0.1.1")]
    """The DUT's address on this link."""

    @property
    def ip_version(self) -> int:
        """4 or 6, of the address."""
        return ipaddress.ip_interface(self.address).version


class Ports(Strict):
    """The tester's two ports."""

    keys_are: ClassVar[str] = "a port (west or east)"

    west: ExternalPort
    """The port on the first gateway's cleartext side."""
    east: ExternalPort
    """The port on the second gateway's cleartext side."""


def _dut(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise Expected("auto, a profile or a label", "espbench list duts shows the profiles")
    return value


class Plan(Strict):
    """An espbench plan: what to measure on which device, with which traffic."""

    keys_are: ClassVar[str] = "a key of the plan"

    name: Name
    """Name of the plan; run directories are called <time>-<name>."""
    topology: Topology
    """gateway-to-gateway: two gateways espbench builds. external: boxes it did not build."""
    dut: Annotated[str, PlainValidator(_dut), _text(r"^.+$", "auto", "netns", "uml", "./my-profile.yaml")] = (
        "auto"
    )
    """Device under test: auto, a profile of dut-profiles/ or the path of one; a label if external."""
    stacks: list[StackChoice] = _list_of()
    """What the gateways run. plain, the baseline, is always measured first."""
    suites: list[str] = _list_of()
    """ESP suites, each measured with each stack that encrypts."""
    frame_sizes: list[FrameSize] = _list_of(*rfc2544_frame().sizes)
    """Bytes with FCS, or names of mixes. Default: the sizes of RFC 2544 9.1."""
    directions: list[Direction] = _list_of("one-way")
    """one-way: west to east. both-ways: both at once (RFC 2544 14)."""
    ip_versions: list[Literal[4, 6]] = _list_of(4)
    """IP versions, inside and outside the tunnel."""
    repeat: Annotated[int, Field(ge=1, le=1000)] = 1
    """How often each case is measured."""
    flows: Flows = Flows()
    """Flows the frames are spread over."""
    dont_fragment: bool = False
    """Set DF in the offered IPv4 frames; all frames must then fit the MTU after ESP."""
    capture: bool = False
    """Capture a sample of the middle link and decrypt it with the known keys."""
    ports: Ports | None = None
    """The tester's ports; external only."""
    i_own_this_network: bool = False
    """You may load this network (RFC 6815): allows interfaces of the initial namespace."""
    line_rate: LineRate | None = None
    """Nominal rate of the ports. Default: the profile's, or what the interface reports."""
    generator: Literal["native"] = "native"
    """What makes the traffic."""
    tests: Annotated[list[Test], Field(min_length=1)]
    """The tests, in order."""

    _path: Path | None = PrivateAttr(default=None)
    _text: str = PrivateAttr(default="")

    @property
    def path(self) -> Path | None:
        """The file the plan was read from; a profile's relative path starts beside it."""
        return self._path

    @property
    def text(self) -> str:
        """The plan as given, comments and all: the run directory's plan.yaml."""
        return self._text

    @property
    def encrypting(self) -> list[StackChoice]:
        """The stacks that need a suite."""
        return [choice for choice in self.stacks if choice.stack != "plain"]
