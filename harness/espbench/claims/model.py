# SPDX-License-Identifier: Apache-2.0
"""A claim as data: what a document says, where, and what of a run it is compared with.

`reports/published/claims/*.yaml`, a list of claims each; unknown keys are refused. The figures themselves stay
in `reports/published/*.yaml`; a test shows that none of them is without its claim.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from espbench.errors import EspbenchError
from espbench.paths import data_dir, own_yaml
from espbench.results.published import Qualifier, documents
from espbench.terms import Direction

Behaviour = Literal["plain", "null", "async", "polling", "dual-pass", "software", "lean", "lean-software"]
Unit = Literal["Mbps", "%", "x", "B", "ms", "instructions", "algorithms", ""]
Size = Annotated[int, Field(ge=64, le=1518)]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Configuration(_Data):
    """The configuration in which one curve was measured.

    behaviour: as in docs/powerquicc.md; suite: empty if the traffic was in clear; dut: a profile's name, by default
    the claim's device in lower case.
    """

    behaviour: Behaviour
    suite: str = "3des-sha1"
    direction: Direction = "both-ways"
    dut: str = ""


class Throughput(_Data):
    """Mbps at one frame size."""

    quantity: Literal["throughput"]
    of: Configuration
    frame_size: Size


class Cpu(_Data):
    """CPU load, %, of the busier gateway at the throughput, at these frame sizes."""

    quantity: Literal["cpu"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class CpuFalls(_Data):
    """The CPU load falls, or stays, from each of the measured frame sizes to the next larger one, `start` to `end`.

    steadily: it falls from each to the next.
    """

    quantity: Literal["cpu falls"]
    of: Configuration
    start: Size = 64
    end: Size = 1456
    steadily: bool = False


class Ratio(_Data):
    """Throughput of one configuration in that of another, at these frame sizes."""

    quantity: Literal["ratio"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class Trend(_Data):
    """The ratio of two throughputs falls, or rises, from the smallest to the largest of these frame sizes."""

    quantity: Literal["trend"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=2)
    goes: Literal["falls", "rises"]


class SlowerOperation(_Data):
    """The throughput through both gateways, as a ratio to that of the slower operation on a single one."""

    quantity: Literal["slower operation"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class CostRatio(_Data):
    """CPU time for a frame of one configuration in that of another, at these frame sizes."""

    quantity: Literal["cost ratio"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class Saturation(_Data):
    """The frame size from which something other than the CPU is the limit."""

    quantity: Literal["saturation"]
    of: Configuration


class SaturatesFirst(_Data):
    """The CPU's relief begins at a smaller frame size, or goes further at each, than on the other devices."""

    quantity: Literal["saturates first"]
    of: Configuration
    others: list[str] = Field(min_length=1)
    frame_sizes: list[Size] = Field(min_length=1)


class LimitAt(_Data):
    """The CPU (is_cpu), or something else, limits each of these devices at a frame size."""

    quantity: Literal["limit"]
    of: Configuration
    duts: list[str] = Field(min_length=1)
    frame_size: Size
    is_cpu: bool


class FloodRatio(_Data):
    """The forwarding rate at line rate, as a ratio to the throughput, at these frame sizes (test flood)."""

    quantity: Literal["flood"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class SaLifetime(_Data):
    """ESP SAs end by time, by bytes or without traffic, and new ones take their place (rekey_loss, first packet)."""

    quantity: Literal["sa lifetime"]
    ends: Literal["time", "bytes", "idle"]


class GoalGain(_Data):
    """Throughput at one loss goal in that at another, %, more; every case that has both."""

    quantity: Literal["goal gain"]
    of: Configuration
    goal: float
    to: float


class Accelerator(_Data):
    """Time of `n+1 after n` in that of `all at once`, at one block size (driver-level test)."""

    quantity: Literal["accelerator"]
    suite: str
    size: int
    variant: Literal["", "prebuilt"] = ""
    dut: str = ""


class AcceleratorSpread(_Data):
    """Time of the slowest suite in that of the fastest, `n+1 after n`, at one block size."""

    quantity: Literal["accelerator spread"]
    size: int
    dut: str = ""


class AcceleratorTrend(_Data):
    """The time for a byte falls with the block size, or the suites drift apart (`n+1 after n`)."""

    quantity: Literal["accelerator trend"]
    what: Literal["time for a byte falls", "suites drift apart"]
    sizes: list[int] = Field(min_length=2)
    dut: str = ""


class AcceleratorVariant(_Data):
    """Speed of a variant of the driver-level test, as a ratio to that of the test without it, at one block size."""

    quantity: Literal["accelerator variant"]
    variant: Literal["prebuilt", "decrypt", "cached", "check=after", "check=during"]
    way: Literal["n+1 after n", "all at once"]
    suite: str
    size: int
    dut: str = ""


class AcceleratorSuites(_Data):
    """The time of one suite, as a ratio to that of another, all at once, at one block size."""

    quantity: Literal["accelerator suites"]
    of: str
    to: str
    size: int
    dut: str = ""


class LowLevel(_Data):
    """An accelerator that the CPU feeds through registers, computed, against the measured one (n+1 after n).

    crossover: it is done first with a block of `small` bytes, and later with one of `large`. none: the measured one
    could be first with `small` already, its driver's time aside. set_up: accesses to registers beside the data.
    ns_per_byte: of cipher and hash, one after the other. longest_access_ns: an access does not take longer.
    """

    quantity: Literal["low level"]
    what: Literal["crossover", "none"]
    suite: str = "3des-sha1"
    small: int = 64
    large: int = 256
    set_up: int = Field(ge=0)
    ns_per_byte: float = Field(gt=0)
    longest_access_ns: float = Field(gt=0)
    dut: str = ""


class BusCount(_Data):
    """Bytes over the bus for a frame that devices counted, in those of the article's own account (test bus)."""

    quantity: Literal["bus count"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class BusShare(_Data):
    """One figure of the bytes that devices counted in one configuration (test bus).

    engine: bytes to and from the engine, as a ratio to those of `to`. descriptors: of Ethernet and engine, % of
    what the article's account counts. growth: bytes sent for one received. fragments: whether more than one frame is
    sent.
    """

    quantity: Literal["bus share"]
    what: Literal["engine", "descriptors", "growth", "fragments"]
    of: Configuration
    to: Configuration | None = None
    frame_sizes: list[Size] = Field(min_length=1)


class BusIncrease(_Data):
    """The bytes that `of` moves over the bus beyond those of `to`, %, as devices counted them (test bus).

    beyond 0: it falls from each of the frame sizes to the next; else at that size it is more than at any of them.
    """

    quantity: Literal["bus increase"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=2)
    beyond: int = 0


class Computed(_Data):
    """A figure that follows from standards or from the SEC model alone: no run is asked."""

    quantity: Literal["computed"]
    what: Literal[
        "rsa held out",
        "asymmetric",
        "clear link",
        "tunnel link",
        "tunnel growth",
        "largest whole frame",
        "bus falls",
        "bus beyond the MTU",
    ]
    suite: str = "3des-sha1"
    frame_size: Size = 64
    modulus_bits: int = 0
    exponent_bits: int = 0


class PublicKeyTime(_Data):
    """The time of an RSA operation in the public-key unit at one clock, as a guest measured it."""

    quantity: Literal["public key time"]
    modulus_bits: int
    exponent_bits: int
    clock_mhz: int
    dut: str = ""


class PublicKeyTable(_Data):
    """One half of the published times, measured in a guest, are as they are printed (claims/unit_fit.py)."""

    quantity: Literal["public key table"]
    half: Literal["fitted", "held out"]
    dut: str = ""


class PublicKeyOverhead(_Data):
    """The time that driver, descriptor and operands take, % of the whole, at all published sizes and clocks.

    beside ciphers: whether each of them is less than any of the driver-level test, one operation after the other.
    """

    quantity: Literal["public key overhead"]
    beside: Literal["", "ciphers"] = ""
    dut: str = ""


class PublicKeyGain(_Data):
    """The time of RSA in software, as a ratio to that of the unit, on one guest; 3-bit exponents or others."""

    quantity: Literal["public key gain"]
    small_exponent: bool
    dut: str = ""


class PublicKeyCpu(_Data):
    """The CPU time of RSA in software, as a ratio to that of an operation by the unit; all that were measured."""

    quantity: Literal["public key cpu"]
    dut: str = ""


class Kernels(_Data):
    """A figure of cipher kernels on network processors: one of kernel_measures.MEASURES, on the claim's device."""

    quantity: Literal["kernels"]
    what: str


Measure = Annotated[
    Throughput
    | Cpu
    | CpuFalls
    | Ratio
    | Trend
    | SlowerOperation
    | CostRatio
    | LimitAt
    | FloodRatio
    | Saturation
    | SaturatesFirst
    | GoalGain
    | SaLifetime
    | Accelerator
    | AcceleratorSpread
    | AcceleratorTrend
    | AcceleratorSuites
    | AcceleratorVariant
    | LowLevel
    | BusCount
    | BusShare
    | BusIncrease
    | Computed
    | PublicKeyTime
    | PublicKeyTable
    | PublicKeyOverhead
    | PublicKeyGain
    | PublicKeyCpu
    | Kernels,
    Field(discriminator="quantity"),
]


AcceleratorTest = (
    Accelerator | AcceleratorSpread | AcceleratorTrend | AcceleratorSuites | AcceleratorVariant | LowLevel
)
PublicKeyTest = PublicKeyTime | PublicKeyTable | PublicKeyOverhead | PublicKeyGain | PublicKeyCpu


class Claim(_Data):
    """One claim.

    says: in the document's words, or nearly. value and unit: the figure it comes to; None: a statement that
    holds or does not. tolerance: the share of the value that ours may differ by and agree. ours: what is held
    against it, and plans: those of plans/ that measure it. Without it `cannot` says why nothing can be, or `lacks` what
    espbench has not got yet to measure it. because: why ours differs, where that was found.
    predicted: what was expected of ours, written before it was run.
    """

    id: str
    document: str
    where: str
    device: str | None = None
    stack: str = ""
    says: str
    value: float | None = Field(default=None, gt=0)
    unit: Unit = ""
    qualifier: Qualifier = "exact"
    tolerance: float = Field(default=0.10, ge=0, lt=1)
    calibration: bool = False
    ours: Measure | None = None
    plans: list[str] = []
    cannot: str = ""
    lacks: str = ""
    note: str = ""
    because: str = ""
    predicted: str = ""

    @model_validator(mode="after")
    def _either(self) -> Claim:
        if [self.ours is not None, bool(self.cannot), bool(self.lacks)].count(True) != 1:
            raise ValueError(f"{self.id}: a claim has `ours`, or `cannot` or `lacks` says why not")
        if self.plans and self.ours is None:
            raise ValueError(f"{self.id}: plans measure nothing of a claim without `ours`")
        if self.document not in documents():
            raise ValueError(f"{self.id}: no document {self.document} in reports/published")
        if self.device is not None and self.device not in documents()[self.document].devices:
            raise ValueError(f"{self.id}: {self.device} is not among the devices of {self.document}")
        if (self.value is None) != (self.unit == ""):
            raise ValueError(f"{self.id}: a value has a unit, a statement has neither")
        return self

    def dut(self, configuration: Configuration | AcceleratorTest | PublicKeyTest | None = None) -> str:
        """Return the profile that stands for the claim's device, or the one a configuration names."""
        named = configuration.dut if configuration is not None else ""
        return named or (self.device or "").lower()


def read_claims(path: Path) -> list[Claim]:
    """Return the claims of one file; EspbenchError names the file and every key that is wrong."""
    try:
        return [Claim.model_validate(entry) for entry in own_yaml(path)]
    except (OSError, yaml.YAMLError, ValidationError, TypeError) as error:
        raise EspbenchError(f"{path}: expected a list of claims: {error}") from error


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of files and lines."""
    files = sorted((data_dir("reports") / "published" / "claims").glob("*.yaml"))
    return tuple(claim for file in files for claim in read_claims(file))
