# SPDX-License-Identifier: Apache-2.0
"""Reads the figures that documents print, with their sources, from `reports/published/*.yaml`.

The figures are never computed, and keep the unit of the document. The top of
`reports/published/waters-crypto-performance-part-1.yaml` explains the format.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from espbench.errors import EspbenchError
from espbench.paths import data_dir, own_yaml
from espbench.terms import Direction, layer2_mbps, line_rate_fps

SizeInWords = Literal["smallest", "small", "small to medium", "large", "all"]
Qualifier = Literal["exact", "about", "below", "above"]
_MBPS_PER = {"Mbps": 1.0, "Gbps": 1000.0}
_LARGEST_FRAME = 1518  # the largest frame that a size in words can mean (RFC 2544 9.1)


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Rate(_Data):
    """A throughput in the unit that the document uses."""

    value: float = Field(gt=0)
    unit: Literal["Mbps", "Gbps"]


class PublishedFigure(_Data):
    """One throughput, CPU load or both, as a document prints it.

    None means that the document does not say; `suite` None is cleartext. Throughput counts cleartext frames, of both
    directions together if `direction` is both-ways. `cpu_pct` is in per cent of the device's CPU. `reading_error` is ±,
    in the throughput's unit. A figure with a `doubt`, which says why, must not be used in comparisons.
    """

    document: str
    where: str
    device: str
    stack: Literal["plain", "nanosec", "openswan", "strongswan", "netkey"]
    suite: str | None
    frame_size: int | SizeInWords
    throughput: Rate | None
    cpu_pct: float | None = Field(ge=0, le=100)
    qualifier: Qualifier
    loss_goal: float | None
    direction: Direction | None
    reading: Literal["printed", "chart"]
    reading_error: float | None = Field(default=None, gt=0)
    note: str = ""
    doubt: str = ""

    @property
    def mbps(self) -> float | None:
        """The throughput in Mbit/s of frames; None if there is none or it is in doubt."""
        return None if self.throughput is None or self.doubt else self._as_printed

    @property
    def _as_printed(self) -> float:
        return self.throughput.value * _MBPS_PER[self.throughput.unit] if self.throughput else 0.0

    @model_validator(mode="after")
    def _something_said(self) -> PublishedFigure:
        if self.throughput is None and self.cpu_pct is None:
            raise ValueError("a figure has a throughput, a cpu_pct or both")
        if (self.reading == "chart") != (self.reading_error is not None):
            raise ValueError("a figure read off a chart has a reading_error, a printed one has none")
        return self

    def fits(self, link_mbps: float) -> bool:
        """Return whether ports of this rate can carry the throughput (RFC 2544 20).

        A direction that the document does not state counts as both.
        """
        size = self.frame_size if isinstance(self.frame_size, int) else _LARGEST_FRAME
        directions = 1 if self.direction == "one-way" else 2
        return self._as_printed <= directions * layer2_mbps(line_rate_fps(size, link_mbps * 1e6), size)


class PublishedRatio(_Data):
    """One configuration compared with another, as printed: `of` is `value` times `to`, or `value` % more."""

    document: str
    where: str
    device: str | None
    quantity: Literal["throughput", "CPU cycles per packet"]
    of: str
    to: str
    suite: str | None
    frame_size: int | SizeInWords | None
    value: float = Field(gt=0)
    unit: Literal["x", "% more"]
    qualifier: Qualifier
    note: str = ""


class OperationTime(_Data):
    """The duration of an RSA operation in an execution unit, ms, by the unit's clock in MHz."""

    document: str
    where: str
    unit: str
    modulus_bits: int
    exponent_bits: int
    ms: dict[int, float]


class Source(_Data):
    """The source of a document; `copy_read` is the text that the figures were taken from."""

    title: str
    short: str = ""
    authors: list[str]
    editor: str = ""
    publisher: str
    date: str | None
    copy_read: str = Field(alias="copy")

    @property
    def called(self) -> str:
        """The name of the document in reports."""
        return self.short or self.title


class Remark(_Data):
    """A point that a document leaves open or contradicts."""

    where: str
    says: str


class Device(_Data):
    """The device under test as the document describes it; `link_mbps` is that of one port in one direction.

    A processor without a network has no SEC and no link.
    """

    board: str = ""
    core: str
    core_mhz: int
    ddr_mhz: int | None = None
    sec: str = ""
    sec_mhz: int = 0
    os: str = ""
    stacks: list[str] = []
    link_mbps: int = 0
    note: str = ""


class Document(_Data):
    """One file of `reports/published/`."""

    source: Source
    remarks: list[Remark]
    devices: dict[str, Device]
    figures: list[PublishedFigure] = []
    ratios: list[PublishedRatio] = []
    times: list[OperationTime] = []

    @model_validator(mode="after")
    def _plausible(self) -> Document:
        named: list[PublishedFigure | PublishedRatio] = [*self.figures, *self.ratios]
        for entry in named:
            if entry.device is not None and entry.device not in self.devices:
                raise ValueError(f"{entry.where}: {entry.device} is not among the document's devices")
        for figure in self.figures:
            if not figure.doubt and not figure.fits(self.devices[figure.device].link_mbps):
                raise ValueError(f"{figure.where}: above line rate; say in `doubt` why it is printed so")
        return self


def read_document(path: Path) -> Document:
    """Return one document; raise EspbenchError, which names the file and every wrong key."""
    try:
        data = own_yaml(path)
        for kind in ("figures", "ratios", "times"):
            data[kind] = [{"document": path.stem, **entry} for entry in data.get(kind, [])]
        return Document.model_validate(data)
    except (OSError, yaml.YAMLError, ValidationError, TypeError, AttributeError) as error:
        raise EspbenchError(f"{path}: expected a document's figures: {error}") from error


@cache
def documents() -> dict[str, Document]:
    """Return all documents by the names of their files, sorted."""
    files = sorted((data_dir("reports") / "published").glob("*.yaml"))
    return {file.stem: read_document(file) for file in files}


def published() -> list[PublishedFigure]:
    """Return every figure of every document, also those in doubt."""
    return [figure for document in documents().values() for figure in document.figures]
