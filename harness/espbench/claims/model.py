# SPDX-License-Identifier: Apache-2.0
"""Defines a claim as data: what a document says, where, and with which figure of a run it is compared.

Each file `reports/published/claims/*.yaml` has a list of claims; unknown keys are refused. The figures themselves are
in `reports/published/*.yaml`; a test checks that each of them has a claim.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Annotated, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from espbench.catalogue.board_crypto import DEFAULT
from espbench.catalogue.board_crypto import Behaviour as EngineUse
from espbench.errors import EspbenchError
from espbench.paths import data_dir, own_yaml
from espbench.results.published import Qualifier, documents
from espbench.terms import Direction

Behaviour = Literal["plain", "null", "async", "polling", "dual-pass", "software", "lean", "lean-software"]
Unit = Literal["Mbps", "%", "x", "B", "ms", "instructions", "algorithms", ""]
Unpredicted = Literal["", "none written down", "figure known", "follows from the profile"]
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
    """The throughput at one frame size, Mbps."""

    quantity: Literal["throughput"]
    of: Configuration
    frame_size: Size


class Cpu(_Data):
    """CPU load, %, of the busier gateway at the throughput, at these frame sizes."""

    quantity: Literal["cpu"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class CpuFalls(_Data):
    """The CPU load falls from each measured frame size to the next, from `start` to `end`, three sizes at least."""

    quantity: Literal["cpu falls"]
    of: Configuration
    start: Size = 64
    end: Size = 1456


class Ratio(_Data):
    """The ratio of the throughput of one configuration to that of another, at these frame sizes."""

    quantity: Literal["ratio"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class Trend(_Data):
    """The ratio of two throughputs falls, or rises, from the smallest to the largest of these frame sizes.

    constant_first: before, while the CPU limits both, it stays the same; so it must limit both at two sizes or more.
    """

    quantity: Literal["trend"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=2)
    goes: Literal["falls", "rises"]
    constant_first: bool = False


class SlowerOperation(_Data):
    """The ratio of the throughput through both gateways to that of the slower operation on a single gateway."""

    quantity: Literal["slower operation"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class CostRatio(_Data):
    """The ratio of the CPU time per frame of one configuration to that of another, at these frame sizes."""

    quantity: Literal["cost ratio"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class Saturation(_Data):
    """The frame size from which something other than the CPU is the limit."""

    quantity: Literal["saturation"]
    of: Configuration


class SaturatesFirst(_Data):
    """At none of these frame sizes is the CPU load higher than on the other devices, and at some it is lower."""

    quantity: Literal["saturates first"]
    of: Configuration
    others: list[str] = Field(min_length=1)
    frame_sizes: list[Size] = Field(min_length=1)


class LimitAt(_Data):
    """The CPU, or the accelerator, limits each of these devices at a frame size.

    The accelerator is the limit if neither the CPU nor a link is fully used.
    """

    quantity: Literal["limit"]
    of: Configuration
    duts: list[str] = Field(min_length=1)
    frame_size: Size
    by: Literal["CPU", "accelerator"]


class FloodRatio(_Data):
    """The ratio of the forwarding rate at line rate to a throughput that is no bound, at these sizes (test flood)."""

    quantity: Literal["flood"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class SaLifetime(_Data):
    """ESP SAs end after a time, after bytes or without traffic, and are replaced by new ones.

    The tests are rekey_loss and, for SAs without traffic, time_to_first_packet. A stack that keeps its SAs differs.
    """

    quantity: Literal["sa lifetime"]
    ends: Literal["time", "bytes", "idle"]


class GoalGain(_Data):
    """The gain in throughput at one loss goal (`goal`) over another (`to`), %, at all common frame sizes."""

    quantity: Literal["goal gain"]
    of: Configuration
    goal: float
    to: float


class Accelerator(_Data):
    """The ratio of the time of `n+1 after n` to that of `all at once`, at one block size (driver-level test)."""

    quantity: Literal["accelerator"]
    suite: str
    size: int
    variant: Literal["", "prebuilt"] = ""
    dut: str = ""


class AcceleratorSpread(_Data):
    """The ratio of the time of the slowest suite to that of the fastest, `n+1 after n`, at one block size."""

    quantity: Literal["accelerator spread"]
    size: int
    dut: str = ""


class AcceleratorTrend(_Data):
    """The time per byte falls with the block size, or the times of the suites drift apart (`n+1 after n`)."""

    quantity: Literal["accelerator trend"]
    what: Literal["time for a byte falls", "suites drift apart"]
    sizes: list[int] = Field(min_length=2)
    dut: str = ""


class AcceleratorVariant(_Data):
    """The ratio of the speed of a variant of the driver-level test to that of the usual test, at each block size."""

    quantity: Literal["accelerator variant"]
    variant: Literal["prebuilt", "decrypt", "cached", "check=after", "check=during"]
    way: Literal["n+1 after n", "all at once"]
    suite: str
    sizes: list[int] = Field(min_length=1)
    dut: str = ""


class AcceleratorSuites(_Data):
    """The ratio of the time of one suite to that of another, `all at once`, at one block size.

    crypto: how the driver uses the engine.
    """

    quantity: Literal["accelerator suites"]
    of: str
    to: str
    size: int
    crypto: EngineUse = DEFAULT
    dut: str = ""


class AcceleratorUses(_Data):
    """The ratio of the time of one use of the engine to that of another, `n+1 after n`, at one block size."""

    quantity: Literal["accelerator uses"]
    of: EngineUse
    to: EngineUse
    suite: str
    size: int
    dut: str = ""


class AcceleratorTimer(_Data):
    """A timer that counts in steps of tick_ns cannot show the time of a single operation (`n+1 after n`).

    The time is the mean of many operations, and the tick an assumption; no timer is read.
    """

    quantity: Literal["accelerator timer"]
    tick_ns: float = Field(gt=0)
    suite: str
    size: int
    dut: str = ""


class BusCount(_Data):
    """The ratio of the bytes over the bus per frame that devices counted to those that the article accounts for.

    The test is bus.
    """

    quantity: Literal["bus count"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class BusShare(_Data):
    """A figure made of the bytes that devices counted in one configuration (test bus).

    engine: the ratio of the bytes to and from the engine to those of `to`. descriptors: bytes of the descriptors of
    Ethernet and engine, % of the bytes that the article accounts for. growth: bytes sent for each byte received.
    fragments: whether more than one frame is sent.
    """

    quantity: Literal["bus share"]
    what: Literal["engine", "descriptors", "growth", "fragments"]
    of: Configuration
    to: Configuration | None = None
    frame_sizes: list[Size] = Field(min_length=1)


class BusIncrease(_Data):
    """The increase of the bytes over the bus from `to` to `of`, %, as devices counted them (test bus).

    beyond 0: the claim is that the increase falls from each of the frame sizes to the next. Otherwise the claim is that
    it is higher at the size `beyond` than at any of them.
    """

    quantity: Literal["bus increase"]
    of: Configuration
    to: Configuration
    frame_sizes: list[Size] = Field(min_length=2)
    beyond: int = 0


class Computed(_Data):
    """A figure that follows from standards or from the model of the SEC, without a run."""

    quantity: Literal["computed"]
    what: Literal[
        "rsa held out",
        "rsa sizes held out",
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
    """All times of one half of the published table, measured in a guest, are as printed (claims/unit_fit.py)."""

    quantity: Literal["public key table"]
    half: Literal["fitted", "held out"]
    dut: str = ""


class PublicKeyOverhead(_Data):
    """The share of time that driver, descriptor and operands take, at all published sizes and clocks, beside ciphers'.

    The claim holds if every such share is below the least share in the driver-level test (`n+1 after n`).
    """

    quantity: Literal["public key overhead"]
    dut: str = ""


class PublicKeyGain(_Data):
    """The ratio of the time of RSA in software to that of the unit, on one guest.

    small_exponent: of exponents of 3 bits, else of all others.
    """

    quantity: Literal["public key gain"]
    small_exponent: bool
    dut: str = ""


class PublicKeyCpu(_Data):
    """The ratio of the CPU time of RSA in software to that of an operation by the unit, for all that were measured."""

    quantity: Literal["public key cpu"]
    dut: str = ""


class PublicKeyIntensity(_Data):
    """The least ratio of the CPU time of RSA with a full exponent, in software, to that of a cipher and its hash.

    The latter is the software's in the driver-level test, for the most expensive block of at least 1024 bytes.
    """

    quantity: Literal["public key intensity"]
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
    | AcceleratorUses
    | AcceleratorTimer
    | BusCount
    | BusShare
    | BusIncrease
    | Computed
    | PublicKeyTime
    | PublicKeyTable
    | PublicKeyOverhead
    | PublicKeyGain
    | PublicKeyCpu
    | PublicKeyIntensity
    | Kernels,
    Field(discriminator="quantity"),
]


AcceleratorTest = (
    Accelerator
    | AcceleratorSpread
    | AcceleratorTrend
    | AcceleratorSuites
    | AcceleratorVariant
    | AcceleratorUses
    | AcceleratorTimer
)
PublicKeyTest = (
    PublicKeyTime | PublicKeyTable | PublicKeyOverhead | PublicKeyGain | PublicKeyCpu | PublicKeyIntensity
)


class Claim(_Data):
    """One claim of a document.

    says: the claim, in the document's words or nearly. value, unit: its figure; value None: it is a statement, which
    holds or does not. tolerance: our value agrees if it differs by at most this share of the value,
    tolerance_why: why that is not the tolerance of the sentence's words (docs/published.md). calibration: the
    model was fitted to this figure, or to figures that determine it. ours: the quantity
    of our runs that is compared, and plans: the plans of plans/ that measure it. Without ours, `cannot` says why no run
    can answer the claim, or `lacks` what espbench would need to measure it. because: why our value differs, if that is
    known. predicted: our expectation, written before the run. unpredicted: why a claim that runs measure has none.
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
    tolerance_why: str = ""
    calibration: bool = False
    ours: Measure | None = None
    plans: list[str] = []
    cannot: str = ""
    lacks: str = ""
    note: str = ""
    because: str = ""
    predicted: str = ""
    unpredicted: Unpredicted = ""

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
        if self.predicted and self.unpredicted:
            raise ValueError(f"{self.id}: a claim with a prediction does not say why it has none")
        return self

    def dut(self, configuration: Configuration | AcceleratorTest | PublicKeyTest | None = None) -> str:
        """Return the name of the profile that a configuration names, or of that of the claim's device."""
        named = configuration.dut if configuration is not None else ""
        return named or (self.device or "").lower()


def read_claims(path: Path) -> list[Claim]:
    """Return the claims of one file; raise EspbenchError, which names the file and every wrong key."""
    try:
        return [Claim.model_validate(entry) for entry in own_yaml(path)]
    except (OSError, yaml.YAMLError, ValidationError, TypeError) as error:
        raise EspbenchError(f"{path}: expected a list of claims: {error}") from error


@cache
def claims() -> tuple[Claim, ...]:
    """Return every claim, in the order of files and lines."""
    files = sorted((data_dir("reports") / "published" / "claims").glob("*.yaml"))
    return tuple(claim for file in files for claim in read_claims(file))
