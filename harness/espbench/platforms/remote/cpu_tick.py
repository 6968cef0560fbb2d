# SPDX-License-Identifier: Apache-2.0
"""Says how accurate the CPU figure of a box is: its kernel samples the time of its CPUs at a tick.

At each tick (CONFIG_HZ times a second on each CPU) Linux books the whole time since the last one to what runs then. So
the figure is a count of samples, and has the error of such a count.
"""

from __future__ import annotations

import math
import re

# A box executes this; it prints nothing if the configuration of its kernel cannot be read.
READ_HZ = [
    "sh",
    "-c",
    "(zcat /proc/config.gz || cat /boot/config-$(uname -r)) 2>/dev/null | grep ^CONFIG_HZ=",
]
ASSUMED_HZ = 100  # the lowest one, so that no figure is said to be more accurate than it is
_Z = 1.96  # 95 % of a normal distribution are within as many standard deviations
_SHARE, _TRIAL_S = 0.3, 2.0


def sampling_error(share: float, duration_s: float, hz: int) -> float:
    """Return half of the 95 % interval of the share of its time that a CPU was busy, in shares of this CPU.

    share: 0 to 1. hz: ticks per second.
    """
    return _Z * math.sqrt(share * (1 - share) / (hz * duration_s))


def accuracy(config: str) -> str:
    """Return a text about the accuracy of a box's CPU figure; config: the output of READ_HZ."""
    known = re.search(r"^CONFIG_HZ=(\d+)$", config, re.MULTILINE)
    hz = int(known[1]) if known else ASSUMED_HZ
    error = sampling_error(_SHARE, _TRIAL_S, hz)
    return (
        f"its kernel samples it at a tick ({hz} Hz{'' if known else ' assumed'}): in a trial of {_TRIAL_S:g} s, the "
        f"figure of a CPU that is busy for {100 * _SHARE:.0f} % is accurate to ±{100 * error:.0f} % of this CPU"
    )
