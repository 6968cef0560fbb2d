# SPDX-License-Identifier: Apache-2.0
"""A claim as data: what a document says, where, and what of a run is to be held against it.

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

Behaviour = Literal["plain", "null", "async", "polling", "dual-pass", "software", "lean"]
Unit = Literal["Mbps", "%", "x", "B", "ms", "instructions", "algorithms", ""]
Size = Annotated[int, Field(ge=64, le=1518)]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Configuration(_Data):
    """What one curve was measured on: behaviour as of docs/powerquicc.md, suite (none: in clear), direction.

    dut: a profile's name; default: the claim's device in lower case.
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
    """The CPU load falls, or stays, from each of the measured frame sizes to the next larger one from `start` on."""

    quantity: Literal["cpu falls"]
    of: Configuration
    start: Size = 64


class Ratio(_Data):
    """Throughput of one configuration in that of another, at these frame sizes."""

    quantity: Literal["ratio"]
    of: Configuration
    to: Configuration
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
    dut: str = ""


class AcceleratorSpread(_Data):
    """Time of the slowest suite in that of the fastest, `n+1 after n`, at one block size."""

    quantity: Literal["accelerator spread"]
    size: int
    dut: str = ""


class BusCount(_Data):
    """Bytes over the bus for a frame that devices counted, in those of the article's own account (test bus)."""

    quantity: Literal["bus count"]
    of: Configuration
    frame_sizes: list[Size] = Field(min_length=1)


class Computed(_Data):
    """A figure that follows from standards or from the SEC model alone: no run is asked."""

    quantity: Literal["computed"]
    what: Literal[
        "rsa",
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


class Kernels(_Data):
    """A figure of cipher kernels on network processors: one of kernel_measures.MEASURES, on the claim's device."""

    quantity: Literal["kernels"]
    what: str


Measure = Annotated[
    Throughput
    | Cpu
    | CpuFalls
    | Ratio
    | CostRatio
    | Saturation
    | SaturatesFirst
    | GoalGain
    | Accelerator
    | AcceleratorSpread
    | BusCount
    | Computed
    | Kernels,
    Field(discriminator="quantity"),
]


class Claim(_Data):
    """One claim.

    says: in the document's words, or nearly. value and unit: the figure it comes to; None: a statement that
    holds or does not. tolerance: the share of the value that ours may differ by and agree. ours: what is held
    against it; without it `cannot` says why nothing can be. because: why ours differs, where that was found.
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
    cannot: str = ""
    note: str = ""
    because: str = ""
    predicted: str = ""

    @model_validator(mode="after")
    def _either(self) -> Claim:
        if (self.ours is None) != bool(self.cannot):
            raise ValueError(f"{self.id}: a claim has `ours`, or `cannot` says why not")
        if self.document not in documents():
            raise ValueError(f"{self.id}: no document {self.document} in reports/published")
        if self.device is not None and self.device not in documents()[self.document].devices:
            raise ValueError(f"{self.id}: {self.device} is not among the devices of {self.document}")
        if (self.value is None) != (self.unit == ""):
            raise ValueError(f"{self.id}: a value has a unit, a statement has neither")
        return self

    def dut(self, configuration: Configuration | Accelerator | AcceleratorSpread | None = None) -> str:
        """The profile that stands for the claim's device, or the one a configuration names."""
        named = configuration.dut if configuration is not None else ""
        return named or (self.device or "").lower()


def read_claims(path: Path) -> list[Claim]:
    """The claims of one file; EspbenchError names the file and every key that is wrong."""
    try:
        return [Claim.model_validate(entry) for entry in own_yaml(path)]
    except (OSError, yaml.YAMLError, ValidationError, TypeError) as error:
        raise EspbenchError(f"{path}: expected a list of claims: {error}") from error


@cache
def claims() -> tuple[Claim, ...]:
    """Every claim, in the order of files and lines."""
    files = sorted((data_dir("reports") / "published" / "claims").glob("*.yaml"))
    return tuple(claim for file in files for claim in read_claims(file))
