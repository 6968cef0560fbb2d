# SPDX-License-Identifier: Apache-2.0
"""`compare: {at: …}`: the loads at which two arms are compared, the number of trials, and the number of new
gateways.

The docstring under each key is also its description in the JSON Schema that editors use.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import Field, ValidationInfo, field_validator, model_validator

from espbench.plan.keys.values import ShareOfThroughput, TrialDuration
from espbench.plan.reading.reader import Strict
from espbench.plan.reading.units import Expected

# Fewer rounds cannot distinguish a difference between two configurations from one between two boots.
LEAST_ROUNDS = 3


class FixedLoads(Strict):
    """Compare two configurations at fixed loads, with short alternating trials."""

    keys_are: ClassVar[str] = "a key of compare: at"

    loads: Annotated[list[ShareOfThroughput], Field(min_length=1, max_length=10)] = Field(
        default_factory=lambda: [0.5, 0.9], json_schema_extra={"default": ["50%", "90%"]}
    )
    """The loads at which CPU per frame and loss are compared, as shares of the slower one's throughput."""
    rounds: Annotated[int, Field(ge=LEAST_ROUNDS, le=100)] = 6
    """Times that the gateways of both are built again; the pairs are spread over these rounds."""
    pairs: Annotated[int, Field(ge=2 * LEAST_ROUNDS, le=10_000)] = 12
    """Pairs of trials at each load, in the order A B B A; a multiple of twice `rounds`, which is the default."""
    trial: TrialDuration = 0.5
    """Length of a trial."""

    @model_validator(mode="before")
    @classmethod
    def _as_many_as_the_rounds_need(cls, value: Any) -> Any:
        if isinstance(value, dict) and "pairs" not in value and isinstance(value.get("rounds"), int):
            return value | {"pairs": max(2 * LEAST_ROUNDS, 2 * value["rounds"])}
        return value

    @field_validator("pairs")
    @classmethod
    def _whole_blocks(cls, pairs: int, info: ValidationInfo) -> int:
        rounds = info.data.get("rounds", 0)
        if rounds and pairs % (2 * rounds):
            right = 2 * rounds * max(1, round(pairs / (2 * rounds)))
            raise Expected(f"a multiple of twice the rounds, of {2 * rounds}", f"write pairs: {right}")
        return pairs

    @property
    def blocks(self) -> int:
        """The number of blocks A B B A at each load in a round."""
        return self.pairs // (2 * self.rounds)
