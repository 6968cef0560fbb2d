# SPDX-License-Identifier: Apache-2.0
"""`board:` of a DUT profile with platform: qemu_e500: the emulated processor, its speed and its crypto engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, PlainSerializer, PlainValidator, SerializerFunctionWrapHandler, model_serializer

from espbench.plan.keys.values import Name, text
from espbench.plan.reading.reader import Problem, Strict, did_you_mean, shown
from espbench.plan.reading.units import Expected
from espbench.terms import CACHE_LINE_BYTES

# These are the names of harness/emulator/sec/costs.c.
COSTS = (
    "descriptor", "bus", "des", "3des", "aes128", "aes192", "aes256",
    "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "rng",
)  # fmt: skip
SEC_VERSIONS = ("2.0", "2.1", "2.2", "2.4", "3.0")
STANDING_IN = " standing in for "
LINE_RATES = (10e6, 100e6, 1e9)
LARGEST_MTU = 1500
MOST_GATHERED_US = 33_553  # the timer counts to 65,535, in steps of 64 periods of the 125 MHz clock
_MOST_CYCLES = 1_000_000
_LARGEST_PART = 1_000_000  # largest numerator or denominator that QEMU takes
_FRACTION_TEXT = r"\d{1,20}(\.\d{1,20}|/\d{1,20})?"
_CLOCK_PATTERN = r"^\d+(\.\d+)?MHz$"
_TIMER_PATTERN = r"^\d+us$"
_CORE_PATTERN = rf"^e[0-9]+(v[0-9])?({STANDING_IN}e[0-9]+(v[0-9])?)?$"


def _clock(value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(_CLOCK_PATTERN, value):
        raise Expected("a clock such as 266MHz", "write a number and MHz")
    hertz = Decimal(value.removesuffix("MHz")) * 10**6
    if hertz < 1 or hertz != hertz.to_integral_value() or hertz > 10**11:
        raise Expected("a clock of whole Hz, above zero", "write a number and MHz")
    return int(hertz)


def _core(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_CORE_PATTERN, value):
        raise Expected(
            f"a core such as e500v2, or e500{STANDING_IN}e300",
            "what is emulated is an e500v2; say so where the board has another core",
        )
    return value


def _fraction(value: object) -> Fraction | None:
    """Return the number or text as a fraction; None if it is neither.

    A text must not have an exponent: one such as 1e99999999 would need more memory than there is.
    """
    if isinstance(value, float):
        value = f"{Decimal(repr(value)):f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return Fraction(value)
    if not isinstance(value, str) or not re.fullmatch(_FRACTION_TEXT, value := value.replace(" ", "")):
        return None
    try:
        return Fraction(value)
    except ZeroDivisionError:
        return None


def _ns(value: object) -> Fraction:
    value_ns = _fraction(value)
    if value_ns is None or not 0 < value_ns <= 1000:
        raise Expected(
            "nanoseconds per instruction, such as 5/3 or 0.75",
            "more than 0, at most 1000; /2 doubles the speed",
        )
    if max(value_ns.numerator, value_ns.denominator) > _LARGEST_PART:
        raise Expected(f"a fraction of numbers up to {_LARGEST_PART}", "round it")
    return value_ns


def _version(value: object) -> str:
    version = str(value) if isinstance(value, float) else value
    if version not in SEC_VERSIONS:
        raise Expected(f"a version of the SEC: {', '.join(SEC_VERSIONS)}", "as the device's manual has it")
    return str(version)


def _cycles(value: object) -> dict[str, Decimal]:
    if not isinstance(value, dict):
        raise Expected(f"the price of each of {', '.join(COSTS)}, in cycles", "write it as a mapping")
    for name in value:
        if name not in COSTS:
            raise Expected(f"no price but {', '.join(COSTS)}", did_you_mean(name, COSTS, f"remove {name}"))
    if missing := [name for name in COSTS if name not in value]:
        raise Expected(f"the price of each of {', '.join(COSTS)}", f"add {', '.join(missing)}")
    return {name: _price(name, value[name]) for name in COSTS}


def _price(name: str, value: object) -> Decimal:
    try:
        price = Decimal(str(value)) if not isinstance(value, bool) else Decimal("NaN")
    except InvalidOperation:
        price = Decimal("NaN")
    if not (price.is_finite() and 0 <= price <= _MOST_CYCLES and price == round(price, 3)):
        raise Expected(
            f"cycles with at most three decimals as the price of {name}",
            f"from 0 to {_MOST_CYCLES}: per descriptor, else per byte; got {shown(value)}",
        )
    return price


def _microseconds(value: object) -> int:
    if not isinstance(value, str) or not re.fullmatch(_TIMER_PATTERN, value):
        raise Expected("whole microseconds such as 205us", "write a number and us")
    if not 1 <= int(value.removesuffix("us")) <= MOST_GATHERED_US:
        raise Expected(f"1us to {MOST_GATHERED_US}us", "the controller's timer has 16 bits, of 512 ns each")
    return int(value.removesuffix("us"))


def _efficiency(value: object) -> float:
    if not isinstance(value, str) or not re.fullmatch(r"\d{1,3}(\.\d{1,3})?%", value):
        raise Expected("a share such as 50%", "write a number and %")
    if not 0 < float(value.removesuffix("%")) <= 100:
        raise Expected("more than 0%, at most 100%", "it is of the bus's data rate")
    return float(value.removesuffix("%")) / 100


def _shown_clock(hertz: int) -> str:
    return f"{Decimal(hertz) / 10**6:f}MHz"


Clock = Annotated[
    int,
    PlainValidator(_clock),
    PlainSerializer(_shown_clock, return_type=str),
    text(_CLOCK_PATTERN, "266MHz"),
]
NsPerInstruction = Annotated[
    Fraction, PlainValidator(_ns), PlainSerializer(str, return_type=str), text(r"^\d+(\.\d+|/\d+)?$", "5/3")
]
Microseconds = Annotated[
    int,
    PlainValidator(_microseconds),
    PlainSerializer(lambda us: f"{us}us", return_type=str),
    text(_TIMER_PATTERN, "205us"),
]
Efficiency = Annotated[
    float,
    PlainValidator(_efficiency),
    PlainSerializer(lambda share: f"{share * 100:g}%", return_type=str),
    text(r"^\d+(\.\d+)?%$", "50%"),
]
Cycles = Annotated[
    dict[str, Decimal],
    PlainValidator(_cycles),
    PlainSerializer(lambda cycles: {name: str(price) for name, price in cycles.items()}),
]


class Sec(Strict):
    """The security engine."""

    keys_are: ClassVar[str] = "a key of the SEC"

    version: Annotated[str, PlainValidator(_version)]
    """2.0, 2.1, 2.2, 2.4 or 3.0, in quotes."""
    clock: Clock
    """Its clock."""
    cycles: Cycles
    """Durations of its work, in its cycles: for a descriptor; for a byte on the bus and through each algorithm."""

    at_once: Annotated[int, Field(ge=1, le=4)] = 1
    """Requests that it serves at once, of different channels, with a set of execution units for each. Default: 1, as
    the devices of the articles have."""

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out the default of at_once, so that conditions equal those of earlier runs."""
        of: dict[str, Any] = written(self)
        return {key: value for key, value in of.items() if key != "at_once" or value != 1}

    @property
    def costs(self) -> str:
        """The prices in the form in which the SEC model takes them."""
        return ":".join(f"{name}={price:f}" for name, price in self.cycles.items())


class Gathered(Strict):
    """The limits at which frames of one direction interrupt: as soon as one of the two is reached."""

    keys_are: ClassVar[str] = "a key of interrupt coalescing: frames or time"

    frames: Annotated[int, Field(ge=1, le=255)]
    """The number of frames since the last interrupt (ICFT of RXIC or TXIC)."""
    time: Microseconds
    """The time after the first of them, µs; the controller rounds it up to 512 ns (ICTT)."""

    def __str__(self) -> str:
        return f"{self.frames} frames or {self.time} µs"


class Coalescing(Strict):
    """The frames that the Ethernet controllers gather before they interrupt the CPU."""

    keys_are: ClassVar[str] = "a direction: receive or transmit"

    receive: Gathered | None = None
    """The limits for received frames. Default: an interrupt for each."""
    transmit: Gathered | None = None
    """The limits for sent frames. Default: an interrupt for each."""


class MemoryBus(Strict):
    """The bus of the memory, at the memory's clock. The Ethernet ports and the SEC get it one after the other."""

    keys_are: ClassVar[str] = "a key of the memory's bus"

    width: Literal[8, 16, 32, 64]
    """Its width, bits."""
    efficiency: Efficiency
    """The share of its data rate that transfers reach."""
    misses_per_us: Annotated[float, Field(ge=0, le=1000, strict=False)]
    """The CPU's cache misses per microsecond, of 32 bytes each. They are subtracted from what devices can use."""
    assumed: list[Literal["width", "efficiency", "misses_per_us"]]
    """The keys above that no document states; the Security Context says so."""

    def bytes_per_second(self, memory_clock: int) -> int:
        """Return the data rate that is left for devices, bytes/s; 0 or less if the CPU needs all of it."""
        usable = memory_clock * self.width / 8 * self.efficiency
        return round(usable - self.misses_per_us * 1e6 * CACHE_LINE_BYTES)

    def __str__(self) -> str:
        said = {
            "width": f"{self.width} bits",
            "efficiency": f"{self.efficiency * 100:g} % of its data rate used",
            "misses_per_us": f"{self.misses_per_us:g} cache misses per µs",
        }
        return ", ".join(
            f"{words} (assumed)" if key in self.assumed else words for key, words in said.items()
        )


class Board(Strict):
    """The device that a profile with platform: qemu_e500 emulates."""

    keys_are: ClassVar[str] = "a key of a board"

    device: Name
    """The processor's name, as reports and published figures have it."""
    core: Annotated[str, PlainValidator(_core), text(_CORE_PATTERN, "e500v2")]
    """Its core. `e500 standing in for e300` where QEMU has none of the device's own kind."""
    core_clock: Clock
    """The core's clock, for the report alone: ns_per_instruction sets the speed."""
    memory_clock: Clock
    """The data rate of its memory: the clock of `bus`; without `bus` for the report alone."""
    ns_per_instruction: NsPerInstruction
    """The time of each instruction, the same for all: 0.75, or a fraction such as 5/3."""
    sec: Sec
    """Its security engine."""
    coalescing: Coalescing = Coalescing()
    """The frames that its Ethernet ports gather before they interrupt. Default: none."""
    bus: MemoryBus | None = None
    """The bus of its memory, which its devices wait for. Default: a bus that takes no time."""

    @model_serializer(mode="wrap")
    def _as_before(self, written: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out a bus that is not given, so that conditions equal those of earlier runs."""
        of: dict[str, Any] = written(self)
        return {key: value for key, value in of.items() if key != "bus" or value is not None}

    @property
    def bus_bytes_per_second(self) -> int | None:
        """The data rate that the bus has for devices, bytes/s; None if the bus takes no time."""
        return None if self.bus is None else self.bus.bytes_per_second(self.memory_clock)

    @property
    def stands_in(self) -> bool:
        """True if the emulated core is of another kind than the device's own."""
        return STANDING_IN in self.core


def board_problems(board: Board | None, line_rate: float, mtu: int) -> Iterator[Problem]:
    """Find keys that a profile with platform: qemu_e500 lacks, and links that are impossible."""
    if board is None:
        remedy = "dut-profiles/mpc8548e.yaml shows it line by line"
        yield Problem((), "board: with platform: qemu_e500", "none", remedy, involves=(("platform",),))
    elif board.bus_bytes_per_second is not None and board.bus_bytes_per_second <= 0:
        yield Problem(
            ("board", "bus", "misses_per_us"),
            "a rate of cache misses that leaves some of the bus for the devices",
            f"{board.bus.misses_per_us:g}" if board.bus else "",
            "at most width / 8 x memory_clock x efficiency / 32 B per µs, less what frames need",
        )
    yield from link_problems("qemu_e500", line_rate, mtu)


def link_problems(platform: str, line_rate: float, mtu: int) -> Iterator[Problem]:
    """Find links that are impossible in virtual time."""
    if line_rate not in LINE_RATES:
        yield Problem(
            ("line_rate",),
            f"10Mbps, 100Mbps or 1Gbps with platform: {platform}",
            shown(f"{line_rate / 1e6:g}Mbps"),
            "its links send a byte in a whole number of nanoseconds",
            involves=(("platform",),),
        )
    if mtu > LARGEST_MTU:
        yield Problem(
            ("mtu",),
            f"at most {LARGEST_MTU} with platform: {platform}",
            str(mtu),
            "its generator makes no larger frames",
            involves=(("platform",),),
        )
