# SPDX-License-Identifier: Apache-2.0
"""`make campaign`: espbench is disturbed in every way we know of, thousands of times, and each outcome is checked.

Boxes of known truth, remote boxes and the truth DUT are those of the tests.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
