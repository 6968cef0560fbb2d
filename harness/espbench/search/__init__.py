# SPDX-License-Identifier: Apache-2.0
"""The throughput searches. They are pure: no clock, no input or output, and no knowledge of packets.

`throughput` bisects and `mlr` uses MLRsearch. Both decide from the records of trials alone: `goals` judges these
records and `evidence` sums them up. May import nothing of espbench but its words.
"""

from __future__ import annotations

from espbench.search.arguments import SearchSpec
from espbench.search.evidence import TrialRequest
from espbench.search.goals import Judgement, Observation, frames_needed, judge
from espbench.search.mlr import MlrSearch
from espbench.search.results import GoalResult
from espbench.search.throughput import ThroughputSearch

__all__ = [
    "GoalResult",
    "Judgement",
    "MlrSearch",
    "Observation",
    "SearchSpec",
    "ThroughputSearch",
    "TrialRequest",
    "frames_needed",
    "judge",
]
