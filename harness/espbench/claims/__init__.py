# SPDX-License-Identifier: Apache-2.0
"""Compares what documents claim about devices with what runs measured on the same devices, emulated.

`model` defines a claim as data, `measures` computes our value for each kind of quantity, and `judge` compares the two.
Only DUT profiles that come with espbench are read. May import `catalogue`, `results`, `plan`, `plan.reading` and
`plan.resolved`.
"""

from espbench.claims.judge import Judged, judge_all
from espbench.claims.model import Claim, claims
from espbench.claims.points import Points

__all__ = ["Claim", "Judged", "Points", "claims", "judge_all"]
