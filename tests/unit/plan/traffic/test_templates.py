# SPDX-License-Identifier: Apache-2.0
"""Scapy expressions as templates: what they render to, and that nothing else is ever evaluated."""

from __future__ import annotations

import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether
from scapy.packet import Packet

from espbench.plan.traffic.headers import Header, header_of
from espbench.plan.traffic.templates import BadTemplate, rendered
from espbench_scapy.render import Refused
from espbench_scapy.render import rendered as render


@pytest.mark.usefixtures("scapy_here")
@pytest.mark.parametrize(
    ("expression", "length", "tags"),
    [
        ("Ether()/IP()/UDP()", 42, ""),
        ("Ether()/IP(tos=46<<2)/UDP(sport=5060, dport=5060)", 42, ""),
        ("Ether()/Dot1Q(vlan=7)/IP(tos=46<<2)/UDP(sport=5060,dport=5060)", 46, "81000007"),
        ("Ether()/Dot1AD(vlan=5)/Dot1Q(vlan=7, prio=3)/IPv6(tc=0x10|2, fl=77)/UDP()", 70, "88a8000581006007"),
        ("Ether()/IP()/TCP(dport=443, flags='PA', options=[('MSS', 1460), ('NOP', None), ('WScale', 7)])", 62, ""),
        ("Ether()/IP(options=[IPOption_Router_Alert()])/UDP()", 46, ""),
        ("Ether()/IPv6()/TCP(window=8192-1)", 74, ""),
    ],
)  # fmt: skip
def test_a_template_is_its_headers_bytes(expression: str, length: int, tags: str) -> None:
    """It is as long as its layers, has its tags in their place, and zeros where the generator writes."""
    header = rendered(expression)
    assert (len(header.data), header.tags.hex()) == (length, tags)
    assert header_of(header.data) == header
    packet = dissected(header)
    transport = packet[TCP] if TCP in packet else packet[UDP]
    assert transport.chksum == 0
    if IP in packet:
        assert (packet[IP].src, packet[IP].ttl, packet[IP].len, packet[IP].chksum) == ("0.0.0.0", 0, 0, 0)
    else:
        assert (packet[IPv6].src, packet[IPv6].dst, packet[IPv6].hlim) == ("::", "::", 0)


def dissected(header: Header) -> Packet:
    """Return the packet as Scapy reads it, which reads nothing behind an IPv6 header of length zero."""
    data = bytearray(header.data)
    if header.ip_version == 6:
        assert data[header.ip + 4 : header.ip + 6] == b"\0\0"
        data[header.ip + 4 : header.ip + 6] = (len(data) - header.ip - 40).to_bytes(2, "big")
    return Ether(bytes(data))


def test_what_a_template_says_stands_in_its_bytes() -> None:
    """Tags, traffic class, flow label, ports, flags; ports left out are those of RFC 2544 C.2.6.4."""
    packet = dissected(rendered("Ether()/Dot1AD(vlan=5)/Dot1Q(vlan=7, prio=3)/IPv6(tc=18, fl=77)/UDP()"))
    assert (packet[Dot1AD].vlan, packet[Dot1Q].vlan, packet[Dot1Q].prio) == (5, 7, 3)
    assert (packet[IPv6].tc, packet[IPv6].fl) == (18, 77)
    assert (packet[UDP].sport, packet[UDP].dport) == (49184, 7)
    packet = Ether(rendered("Ether()/IP(tos=46<<2)/TCP(sport=1, flags='SE')").data)
    assert (packet[IP].tos, packet[TCP].sport, packet[TCP].dport, packet[TCP].flags) == (184, 1, 7, "SE")


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os').system('touch /tmp/pwned')",
        "Ether()/IP()/UDP().__class__",
        "(lambda: Ether())()/IP()/UDP()",
        "Ether()/IP(tos=open('/etc/passwd'))/UDP()",
        "Ether()/IP(tos=[x for x in (1,)])/UDP()",
        "Ether()/IP(tos=(1).__class__)/UDP()",
        "Ether()/IP(tos=f'{1}')/UDP()",
        "Ether()/IP(**{'tos': 1})/UDP()",
        "Ether(b'abc')/IP()/UDP()",
        "Ether()/IP()/UDP()/Raw(b'x')",
        "Ether()/IP(tos=1<<(1<<60))/UDP()",
        "Ether()/IP(tos=(1<<120)+(1<<128)<<128)/UDP()",
        "Ether()/IP(tos=RandByte())/UDP()",
        "eval('1')",
        "Ether",
        "Ether() if 1 else 2",
        "Ether()*IP()",
        "",
        "Ether()/IP(",
        "Ether()/" * 100 + "UDP()",
        "(" * 900 + "Ether()" + ")" * 900,
        "x" * 3000,
    ],
)
def test_whatever_is_no_layer_field_or_literal_is_refused(expression: str) -> None:
    """The refusal has a message, and the expression is not run."""
    with pytest.raises(Refused, match=r"^expected "):
        render(expression)


def test_a_refusal_comes_through_the_process_that_is_asked() -> None:
    """The refusal keeps its three parts."""
    with pytest.raises(BadTemplate) as bad:
        rendered("Ether()/IP(ttl=2)/UDP()")
    assert (bad.value.expected, bad.value.got) == ("no ttl in IP(): the generator writes it", "ttl=2")


@pytest.mark.usefixtures("scapy_here")
@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("Ether()/IP(dst='192.0.2.1')/UDP()",
         "expected no dst in IP(): the generator writes it, got dst='192.0.2.1'; remove it"),
        ("Ether()/IP(ttl=1)/UDP()", "expected no ttl in IP(): the generator writes it, got ttl=1; remove it"),
        ("Ether()/IP(toss=1)/UDP()", "expected fields that IP() has, with values they take, got IP(toss=1): toss"),
        ("Ether()/IP(tos=300)/UDP()", "expected values that fit their fields, got Ether/IP/UDP: "),
        ("IP()/UDP()", "expected Ether(), up to two Dot1Q() or Dot1AD(), IP() or IPv6(), UDP() or TCP(), joined by "
         "/, got IP/UDP; espbench's payload follows UDP or TCP"),
        ("Ether()/IP()/IP()/UDP()", "got Ether/IP/IP/UDP; "),
        ("Ether()/Dot1Q()/Dot1Q()/Dot1Q()/IP()/UDP()", "got Ether/Dot1Q/Dot1Q/Dot1Q/IP/UDP; "),
        ("Ether()/IP()/UDP(5060)", "expected fields by name in UDP(), got 5060; write UDP(field=value)"),
        ("Ether()/IP()/UDP(sport=x)", "expected a number, text, bytes, a list or a tuple of them, got x; "),
        ("Ether()/IP(/UDP()", "expected a Scapy expression, got "),
    ],
)  # fmt: skip
def test_a_refusal_says_what_is_allowed(expression: str, message: str) -> None:
    """A refusal says what was expected, what came and what to do; espbench's own message says the same."""
    with pytest.raises(Refused) as refusal:
        render(expression)
    assert message in str(refusal.value)
    with pytest.raises(BadTemplate) as bad:
        rendered(expression)
    assert f"expected {bad.value.expected}, got {bad.value.got}; {bad.value.remedy}" == str(refusal.value)
