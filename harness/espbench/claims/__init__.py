# SPDX-License-Identifier: Apache-2.0
"""What documents claim of devices, held against what runs measured on the same devices, emulated."""

from espbench.claims.judge import Judged, judge_all
from espbench.claims.model import Claim, claims
from espbench.claims.points import Points

__all__ = ["Claim", "Judged", "Points", "claims", "judge_all"]
