# SPDX-License-Identifier: Apache-2.0
"""The logs of charon and pluto say when SAs were begun, established and rekeyed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from espbench.stacks.daemons.sa_events import SaEvent, Span, What, set_ups, spans
from espbench.stacks.libreswan import libreswan_events
from espbench.stacks.strongswan import strongswan_events

# A tunnel, a second child under its IKE SA, then both kinds of rekeying; and the peer's rekeying, which is not ours.
CHARON = """\
1795289130.010 05[IKE] <gateways|1> initiating IKE_SA gateways[1] to 192.0.2.2
1795289130.017 08[IKE] <gateways|1> establishing CHILD_SA tunnel0{1}
1795289130.026 09[IKE] <gateways|1> IKE_SA gateways[1] established between 192.0.2.1[home]...192.0.2.2[office]
1795289130.028 09[IKE] <gateways|1> CHILD_SA tunnel0{1} established with SPIs c1_i c2_o and TS 198.18.0.0/17 === 198.19.0.0/17
1795289130.100 14[IKE] <gateways|1> establishing CHILD_SA tunnel1{2}
1795289130.106 08[IKE] <gateways|1> CHILD_SA tunnel1{2} established with SPIs c3_i c4_o and TS 198.18.128.0/17 === 198.19.128.0/17
1795289133.376 16[CFG] vici rekey CHILD_SA 'tunnel0'
1795289133.376 16[IKE] <gateways|1> establishing CHILD_SA tunnel0{3} reqid 1
1795289133.391 14[IKE] <gateways|1> inbound CHILD_SA tunnel0{3} established with SPIs c5_i c6_o and TS 198.18.0.0/17 === 198.19.0.0/17
1795289133.392 14[IKE] <gateways|1> outbound CHILD_SA tunnel0{3} established with SPIs c5_i c6_o and TS 198.18.0.0/17 === 198.19.0.0/17
1795289134.680 15[IKE] <gateways|1> initiating IKE_SA gateways[2] to 192.0.2.2
1795289134.686 10[IKE] <gateways|1> IKE_SA gateways[2] rekeyed between 192.0.2.1[home]...192.0.2.2[office]
1795289135.000 10[IKE] <gateways|2> inbound CHILD_SA tunnel1{4} established with SPIs c7_i c8_o and TS 198.18.128.0/17 === 198.19.128.0/17
1795289135.010 10[IKE] <gateways|2> outbound CHILD_SA tunnel1{4} established with SPIs c7_i c8_o and TS 198.18.128.0/17 === 198.19.128.0/17
"""  # noqa: E501
PLUTO = """\
Nov 21 19:14:52.824274: "t0" #1: initiating IKEv2 connection
Nov 21 19:14:52.835456: "t0" #1: sent IKE_AUTH request {cipher=AES_CBC_128}
Nov 21 19:14:52.840274: "t0" #1: initiator established IKE SA; authenticated peer using authby=secret
Nov 21 19:14:52.842274: "t0" #2: initiator established Child SA using #1; IPsec tunnel [198.18.0.0-198.18.127.255:0]
Nov 21 19:14:52.900000: "t1" #3: initiating Child SA using IKE SA #1
Nov 21 19:14:52.906000: "t1" #3: initiator established Child SA using #1; IPsec tunnel [198.18.128.0-198.18.255.255:0]
Nov 21 19:14:54.093000: "t0" #4: initiating rekey to replace IKE SA #1
Nov 21 19:14:54.099000: "t0" #4: initiator rekeyed IKE SA #1 {cipher=AES_CBC_128}
Nov 21 19:14:57.429000: "t0" #5: initiating rekey to replace Child SA #2
Nov 21 19:14:57.431152: "t0" #5: sent CREATE_CHILD_SA request to rekey IPsec SA
Nov 21 19:14:57.445000: "t0" #5: initiator rekeyed Child SA #2 using #4; IPsec tunnel [198.18.0.0-198.18.127.255:0]
"""


@pytest.mark.parametrize(
    ("events", "tunnel_ms"),
    [([*strongswan_events.events(CHARON)], (16, 18)), ([*libreswan_events.events(PLUTO)], (16, 18))],
    ids=["charon", "pluto"],
)
def test_each_kind_of_negotiation_is_told_apart(events: list[SaEvent], tunnel_ms: tuple[int, int]) -> None:
    """The first CHILD SA has no exchange of its own; what the peer rekeyed is not this daemon's work."""

    def ms(parts: list[Span]) -> list[int]:
        return [round(1e3 * part.seconds) for part in parts]

    assert [tuple(ms([*both])) for both in set_ups(events)] == [tunnel_ms]
    assert ms(spans(events, 2, "established")) == [6]
    assert ms(spans(events, 1, "rekeyed")) == [6]
    assert ms(spans(events, 2, "rekeyed")) == [16]


def test_a_negotiation_that_never_ended_is_none() -> None:
    """One that the peer made begin again, for instance with a cookie, counts from its first beginning."""
    begun = [SaEvent(at, 1, "begun", "1", "1") for at in (1.0, 2.0)]
    assert set_ups(begun) == []
    assert spans(begun, 1, "established") == []
    ended = [*begun, SaEvent(2.5, 1, "established", "1", "1")]
    assert spans(ended, 1, "established") == [Span(1.0, 2.5)]
    with_child = [*ended, SaEvent(2.6, 2, "established", "c", "1")]
    assert set_ups(with_child) == [(Span(1.0, 2.5), Span(1.0, 2.6))]


def test_the_next_negotiation_of_a_name_begins_anew() -> None:
    """Its own first message counts, not that of the one before."""
    steps: list[tuple[float, What]] = [
        (1.0, "begun"), (2.0, "established"), (5.0, "begun"), (6.0, "begun"), (7.0, "rekeyed"),
    ]  # fmt: skip
    assert spans([SaEvent(at, 1, what, "1", "1") for at, what in steps], 1, "rekeyed") == [Span(5.0, 7.0)]


def test_a_log_over_the_new_year() -> None:
    """Pluto writes no year."""
    log = PLUTO.splitlines()[0].replace("Nov 21 19:14:52", "Dec 31 23:59:59")
    log += "\n" + PLUTO.splitlines()[2].replace("Nov 21 19:14:52", "Jan  1 00:00:00")
    (span,) = spans(libreswan_events.events(log), 1, "established")
    assert round(span.seconds, 6) == 1.016


@given(st.lists(st.tuples(st.integers(1, 3), st.booleans()), max_size=12))
def test_spans_never_run_backwards_or_pair_strangers(steps: list[tuple[int, bool]]) -> None:
    """Lines may come in any order."""
    events = [
        SaEvent(float(n), 1, "begun" if begun else "established", str(sa), str(sa))
        for n, (sa, begun) in enumerate(steps)
    ]
    listed = spans(events, 1, "established")
    assert all(span.seconds > 0 for span in listed)
    by_time = {event.at_s: event.sa for event in events}
    assert all(by_time[span.begun_s] == by_time[span.done_s] for span in listed)
