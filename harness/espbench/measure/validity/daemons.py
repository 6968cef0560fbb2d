# SPDX-License-Identifier: Apache-2.0
"""Names the IKE daemons that died in a trial. The kernel keeps using their SAs, so frame loss does not show it."""

from __future__ import annotations

from espbench.measure.inputs.setup import Setup
from espbench.stacks.daemons.ike import IkeStack


def dead(setup: Setup) -> list[str]:
    """Return a sentence for each daemon of the pair that does not run any more; empty if the stack has no daemons."""
    return setup.stack.dead() if isinstance(setup.stack, IkeStack) else []
