# SPDX-License-Identifier: Apache-2.0
"""Says which IKE daemons died in a trial: the kernel goes on with their SAs, so that no frame tells it."""

from __future__ import annotations

from espbench.measure.inputs.setup import Setup
from espbench.stacks.daemons.ike import IkeStack


def dead(setup: Setup) -> list[str]:
    """Return a sentence for each daemon of the pair that does not run any more."""
    return setup.stack.dead() if isinstance(setup.stack, IkeStack) else []
