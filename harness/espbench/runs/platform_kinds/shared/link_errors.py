# SPDX-License-Identifier: Apache-2.0
"""Gives platforms the errors of links that a plan asks for, in the form that they take."""

from __future__ import annotations

from espbench.plan.keys import links as link_keys
from espbench.platforms.link_errors import Errors, LinkErrors


def errors_of(links: link_keys.Links | None) -> Errors:
    """Return the plan's errors of links; none if the plan has no `links`."""
    if links is None:
        return Errors()
    return Errors({name: _link_errors(of) for name, of in links.by_name.items()}, links.seed)


def _link_errors(of: link_keys.LinkErrors) -> LinkErrors:
    late = of.reordering
    return LinkErrors(
        loss=of.loss,
        bit_errors=of.bit_errors,
        delay_ns=of.delay or 0,
        late=late.share if late else 0.0,
        late_ns=late.by if late else 0,
        said=str(of),
    )
