# SPDX-License-Identifier: Apache-2.0
"""The settings of tests that only emulated boards have.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from espbench.plan.keys.rfc2544_tests import AtThroughput
from espbench.plan.keys.values import TrialDuration
from espbench.plan.reading.reader import Strict


class AcceleratorVariant(Strict):
    """One way to make the test, with these keys; `{}` is the usual way, with all defaults."""

    keys_are: ClassVar[str] = "a key of a variant"

    operation: Literal["encrypt", "decrypt"] = "encrypt"
    """encrypt: encrypt, and make the ICV. decrypt: check the ICV, and decrypt what the kernel's software encrypted."""
    descriptors: Literal["as-dispatched", "prebuilt"] = "as-dispatched"
    """The time at which the test with all operations at once builds their descriptors.

    as-dispatched: each when it is dispatched. prebuilt: all before the measured time.
    """
    data: Literal["unique", "cached"] = "unique"
    """unique: a block of its own for each operation. cached: one block that all operations read."""
    keys: Annotated[int, Field(ge=1, le=256)] = 1
    """Number of keys, 1 to 256, which the operations use in turns."""
    check: Literal["last", "after", "during"] = "last"
    """The outputs that are compared with those of the kernel's software. last: the last one. after: all, after the
    measured time. during: all, within it.
    """


class Bus(AtThroughput):
    """Bytes that a gateway moves over its memory bus per frame: Ethernet, security engine, and (estimated) CPU."""

    keys_are: ClassVar[str] = "a key of a bus test"
    of_rfc2544: ClassVar[bool] = False  # the standard has none

    trial: TrialDuration = 1.0
    """Length of the trial."""
    misses_per_us: Annotated[float, Field(ge=0, le=1000, strict=False)] = 10.0
    """Assumed cache misses per microsecond of busy CPU, of 32 bytes each; no cache is emulated."""


# The clocks and lengths of the published table.
_CLOCKS_MHZ = (33, 50, 66, 83, 100, 133, 166, 333)
_BITS: tuple[Literal[512, 1024, 2048], ...] = (512, 1024, 2048)


class PublicKeyUnit(Strict):
    """Public-key operations by the engine's public-key unit at several clocks, and by the kernel's software."""

    keys_are: ClassVar[str] = "a key of a public_key_unit test"

    operations: Annotated[int, Field(ge=1, le=1000)] = 4
    """Number of operations that are timed together, one after the other."""
    clocks_mhz: list[Annotated[int, Field(ge=1, le=1000)]] = Field(
        default_factory=lambda: [*_CLOCKS_MHZ], min_length=1, json_schema_extra={"default": [*_CLOCKS_MHZ]}
    )
    """Clocks of the engine in MHz, each in a board of its own; the profile's own clock is always measured too."""
    sizes: list[Literal[512, 1024, 2048]] = Field(
        default_factory=lambda: [*_BITS], min_length=1, json_schema_extra={"default": [*_BITS]}
    )
    """Lengths of the RSA modulus, bits; the exponent is as long as the modulus, or 3 bits."""
    software: bool = True
    """Measure RSA, ECDH and ECDSA by the kernel's software too."""
