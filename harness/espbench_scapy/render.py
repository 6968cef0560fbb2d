# SPDX-License-Identifier: GPL-2.0-only
"""Turns Scapy expressions of traffic profiles into header bytes.

    python -m espbench_scapy.render < question.json > answer.json

The question: {"expressions": ["Ether()/IP(tos=184)/UDP(sport=5060, dport=5060)"]}. The answer has an entry for each
expression: {"headers": [{"bytes": base64} or {"expected", "got", "remedy"}]}. Nothing is ever given to Python's eval:
the syntax tree of the expression is walked, and everything but layers, fields and literals is refused.
"""

from __future__ import annotations

import ast
import base64
import json
import logging
import operator
import sys
import warnings
from collections.abc import Callable
from typing import Any, NoReturn

logging.getLogger("scapy.runtime").setLevel(logging.ERROR)
warnings.filterwarnings("ignore")

from scapy.layers import inet  # noqa: E402
from scapy.layers.inet import IP, TCP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.l2 import Dot1AD, Dot1Q, Ether  # noqa: E402
from scapy.packet import NoPayload, Packet  # noqa: E402

LONGEST = 2000
LAYERS: dict[str, type[Packet]] = {
    "Ether": Ether, "Dot1Q": Dot1Q, "Dot1AD": Dot1AD, "IP": IP, "IPv6": IPv6, "UDP": UDP, "TCP": TCP,
}  # fmt: skip
OPTIONS = {name: getattr(inet, name) for name in dir(inet) if name.startswith("IPOption_")}
ORDER = "Ether(), up to two Dot1Q() or Dot1AD(), IP() or IPv6(), UDP() or TCP(), joined by /"
# The generator writes these fields into every frame, so a template cannot set them.
WRITTEN = {
    "Ether": {"dst", "src", "type"},
    "Dot1Q": {"type"},
    "Dot1AD": {"type"},
    "IP": {"version", "ihl", "len", "id", "flags", "frag", "ttl", "proto", "chksum", "src", "dst"},
    "IPv6": {"version", "plen", "nh", "hlim", "src", "dst"},
    "UDP": {"len", "chksum"},
    "TCP": {"dataofs", "chksum"},
}
# These ports of RFC 2544 C.2.6.4 are used for expressions without ports.
SOURCE_PORT, DESTINATION_PORT = 49184, 7
_ARITHMETIC: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.LShift: operator.lshift, ast.RShift: operator.rshift, ast.BitOr: operator.or_,
    ast.BitAnd: operator.and_, ast.Add: operator.add, ast.Sub: operator.sub,
}  # fmt: skip
_LARGEST = 1 << 128


class Refused(Exception):
    """An expression is not a valid template."""

    def __init__(self, expected: str, got: str, remedy: str) -> None:
        super().__init__(f"expected {expected}, got {got}; {remedy}")
        self.message = {"expected": expected, "got": got, "remedy": remedy}


def rendered(expression: str) -> bytes:
    """Return the header bytes from Ethernet to the end of UDP or TCP; raise Refused."""
    if len(expression) > LONGEST:
        raise Refused(f"a template of at most {LONGEST} characters", f"{len(expression)}", "shorten it")
    try:
        tree = ast.parse(expression.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        where = f" at character {error.offset}" if isinstance(error, SyntaxError) and error.offset else ""
        said = error.msg if isinstance(error, SyntaxError) else str(error)
        raise Refused("a Scapy expression", f"{said}{where}", f"write {ORDER}") from None
    try:
        packet = _layers(tree.body)
    except RecursionError:
        raise Refused("a Scapy expression", "one nested too deeply", f"write {ORDER}") from None
    return _built(packet)


def _layers(node: ast.expr) -> Packet:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return _layers(node.left) / _layers(node.right)
    return _called(node, LAYERS)


def _called(node: ast.expr, known: dict[str, type[Packet]]) -> Packet:
    """Return the packet of a constructor with fields by name, such as IP(tos=46<<2)."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        _refuse(node, f"layers ({', '.join(LAYERS)}) joined by /", f"write {ORDER}")
    name = node.func.id
    if name not in known:
        _refuse(node.func, f"one of {', '.join(known)}", f"write {ORDER}")
    if node.args:
        _refuse(node.args[0], f"fields by name in {name}()", f"write {name}(field=value)")
    fields = {}
    for keyword in node.keywords:
        if keyword.arg is None:
            _refuse(keyword.value, f"fields by name in {name}()", f"write {name}(field=value)")
        if keyword.arg in WRITTEN.get(name, ()):
            raise Refused(
                f"no {keyword.arg} in {name}(): the generator writes it",
                f"{keyword.arg}={ast.unparse(keyword.value)}",
                "remove it (docs/traffic.md says what a template sets)",
            )
        fields[keyword.arg] = _literal(keyword.value)
    try:
        return known[name](**fields)
    except Exception as error:  # Scapy passes on all exceptions of its fields
        wrong = f"{ast.unparse(node)}: {error}"
        raise Refused(f"fields that {name}() has, with values they take", wrong, "see Scapy's ls()") from None


def _literal(node: ast.expr) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | str | bytes | None):
        return node.value
    if isinstance(node, ast.List | ast.Tuple):
        return (list if isinstance(node, ast.List) else tuple)(_literal(item) for item in node.elts)
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_number(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _ARITHMETIC:
        left, right = _number(node.left), _number(node.right)
        if isinstance(node.op, ast.LShift | ast.RShift) and not 0 <= right <= 128:
            _refuse(node, "a shift by 0 to 128", "write the number itself")
        return _ARITHMETIC[type(node.op)](left, right)
    if isinstance(node, ast.Call):
        return _called(node, OPTIONS)
    return _refuse(
        node, "a number, text, bytes, a list or a tuple of them", "a template holds no other values"
    )


def _number(node: ast.expr) -> int:
    value = _literal(node)
    if not isinstance(value, int) or abs(value) >= _LARGEST:
        _refuse(node, "a whole number", "arithmetic is for numbers such as 46<<2")
    return value


def _refuse(node: ast.expr, expected: str, remedy: str) -> NoReturn:
    text = ast.unparse(node)
    raise Refused(expected, text if len(text) <= 60 else text[:57] + "…", remedy)


def _built(packet: Packet) -> bytes:
    """Return the bytes of a packet; raise Refused unless the generator can fill its layers.

    With zero addresses, Scapy looks up no routes and no neighbours.
    """
    parts: list[Packet] = []
    while not isinstance(packet, NoPayload):
        parts.append(packet)
        packet = packet.payload
    names = [type(part).__name__ for part in parts]
    tags = [name for name in names if name in ("Dot1Q", "Dot1AD")]
    fits = (
        names == ["Ether", *tags, *names[-2:]]
        and len(tags) <= 2
        and names[-2] in ("IP", "IPv6")
        and names[-1] in ("UDP", "TCP")
    )
    if not fits:
        raise Refused(ORDER, "/".join(names), "espbench's payload follows UDP or TCP")
    transport = parts[-1]
    transport.fields.setdefault("sport", SOURCE_PORT)
    transport.fields.setdefault("dport", DESTINATION_PORT)
    parts[0].fields |= {"src": "00:00:00:00:00:00", "dst": "00:00:00:00:00:00"}
    nowhere = "0.0.0.0" if names[-2] == "IP" else "::"
    parts[-2].fields |= {"src": nowhere, "dst": nowhere}
    try:
        return bytes(parts[0])
    except Exception as error:  # Scapy passes on all exceptions of its fields
        wrong = f"{'/'.join(names)}: {error}"
        raise Refused("values that fit their fields", wrong, "see Scapy's ls()") from None


def answer(question: dict[str, Any]) -> dict[str, Any]:
    """Return the answer to a question: the bytes of every expression, or why there are none."""
    headers: list[dict[str, str]] = []
    for expression in question["expressions"]:
        try:
            headers.append({"bytes": base64.b64encode(rendered(expression)).decode()})
        except Refused as refusal:
            headers.append(refusal.message)
    return {"headers": headers}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
