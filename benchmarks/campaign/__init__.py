# SPDX-License-Identifier: Apache-2.0
"""`make campaign` disturbs espbench in every way we know, thousands of times, and checks each outcome.

Its boxes of known rate, its remote boxes and the truth DUT are those of the tests (tests/support).
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
