# SPDX-License-Identifier: Apache-2.0
"""The counters of a test bed before and after a trial, and their changes in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from espbench.errors import GatewayFailed
from espbench.platforms.base import LinkCounters, Side, Testbed
from espbench.stacks.base import SaCounters, Stack
from espbench.terms import Reason

# A box with traffic of its own is never at rest. After this many looks its counters are taken as they are.
AT_REST_LOOKS, AT_REST_WAIT_S = 10, 0.05
# Counters that do not prove encryption are read again: a gateway that was kept from its CPU may count late.
_READ_AGAIN, _LATE_COUNTERS_S = 2, 0.2


@dataclass(frozen=True)
class GatewayCounters:
    """The counters of one gateway: its SAs and its two links."""

    sas: SaCounters
    lan: LinkCounters
    wan: LinkCounters


Counters = dict[Side, GatewayCounters]


def read(bed: Testbed, stack: Stack | None) -> Counters:
    """Return every gateway's counters now; empty if there is no gateway. GatewayFailed if an interface is gone."""
    counters: Counters = {}
    for side, gateway in bed.gateways.items():
        links = gateway.link_counters()
        if gone := [name for name in (gateway.lan, gateway.wan) if name not in links]:
            raise GatewayFailed(
                f"gateway {side}: expected the interfaces {gateway.lan} and {gateway.wan}, {gone[0]} is gone; "
                f"there are {', '.join(sorted(links)) or 'none'}"
            )
        sas = stack.counters(side) if stack else SaCounters()
        counters[side] = GatewayCounters(sas, links[gateway.lan], links[gateway.wan])
    return counters


def read_at_rest(bed: Testbed, stack: Stack | None, sleep: Callable[[float], None]) -> Counters:
    """Return every gateway's counters once they stop changing; after AT_REST_LOOKS, as they are."""
    return read_until_rest(bed, stack, sleep)[0]


def read_until_rest(
    bed: Testbed, stack: Stack | None, sleep: Callable[[float], None]
) -> tuple[Counters, bool]:
    """Return every gateway's counters, and whether they had stopped changing when they were read.

    A gateway's links are read before its SAs. A late frame that passes in between has been encrypted before the trial
    and leaves during the trial: it would look like cleartext.
    """
    counters = read(bed, stack)
    for _ in range(AT_REST_LOOKS):
        again = read(bed, stack)
        if again == counters:
            return counters, True
        sleep(AT_REST_WAIT_S)
        counters = again
    return counters, False


def read_again(
    bed: Testbed,
    stack: Stack | None,
    before: Counters,
    after: Counters,
    problems: Callable[[Counters], list[Reason]],
    sleep: Callable[[float], None],
) -> Counters:
    """Return the counters `after`. If their changes since `before` show problems, read them again: one may have been
    late.
    """
    for _ in range(_READ_AGAIN):
        if not problems(moved(before, after)):
            break
        sleep(max(_LATE_COUNTERS_S, bed.counters_late_s))
        after = read(bed, stack)
    return after


def moved(before: Counters, after: Counters) -> Counters:
    """Return the counters after minus those before, field by field. Its SPIs are those that were added or removed."""
    return {side: _moved(before[side], after[side]) for side in after}


def rekeyed(delta: Counters) -> list[str]:
    """Return the gateways whose SAs were replaced meanwhile; the counts of the old SAs are lost."""
    return [side for side, c in delta.items() if c.sas.spis]


def vanished(counters: Counters, expected: int) -> list[str]:
    """Return a text for each gateway with fewer SAs than its tunnels need. Frame loss there does not mean that it is
    too slow.
    """
    return [
        f"{side} holds {len(c.sas.spis)} of {expected} SAs"
        for side, c in counters.items()
        if len(c.sas.spis) < expected
    ]


def backwards(delta: Counters) -> list[str]:
    """Return the names of the counters that decreased, because a link was reset or a gateway restarted."""
    names = []
    for side, c in delta.items():
        for part, fields in (("lan", vars(c.lan)), ("wan", vars(c.wan)), ("SA", vars(c.sas))):
            names += [f"{side} {part} {n}" for n, v in fields.items() if isinstance(v, int) and v < 0]
    return names


def _moved(a: GatewayCounters, b: GatewayCounters) -> GatewayCounters:
    errors = {n: v - a.sas.errors.get(n, 0) for n, v in b.sas.errors.items()}
    sas = SaCounters(
        b.sas.encrypted - a.sas.encrypted,
        b.sas.decrypted - a.sas.decrypted,
        {n: v for n, v in errors.items() if v},
        spis=a.sas.spis ^ b.sas.spis,
        own_datagrams=b.sas.own_datagrams - a.sas.own_datagrams,
    )
    return GatewayCounters(sas, _links(a.lan, b.lan), _links(a.wan, b.wan))


def _links(a: LinkCounters, b: LinkCounters) -> LinkCounters:
    return LinkCounters(**{name: getattr(b, name) - getattr(a, name) for name in vars(a)})
