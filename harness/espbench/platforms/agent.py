# SPDX-License-Identifier: Apache-2.0
"""The agent: a program inside a gateway that executes the controller's requests; it needs only the standard library.

It runs as `python3 -I -S agent.py` in a network namespace, a User-Mode Linux guest or a host reached by SSH. So it is
one file and imports no other module of espbench. Requests and answers are JSON, one object a line:

    {"id": 1, "op": "exec", "argv": ["ip", "link"], "stdin": "", "timeout_s": 30}
    {"id": 1, "ok": true, "rc": 0, "out": "…", "err": ""}
    {"id": 2, "ok": false, "error": "…", "errno": 2}

Payloads (stdin, netlink messages, files) may contain keys, so the agent never logs them.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import ctypes
import errno
import json
import os
import platform
import resource
import signal
import socket
import struct
import subprocess
import sys
import termios
import time
import tty
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG = 1
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

NLMSG_HEADER = struct.Struct("=IHHII")  # length, type, flags, sequence, port (linux/netlink.h)
NLMSG_ERROR = 2
NLMSG_DONE = 3
NLM_F_REQUEST = 0x01
NLM_F_ACK = 0x04
NLM_F_DUMP_INTR = 0x10
NLM_F_CAPPED = 0x100
NLM_F_ACK_TLVS = 0x200
NLMSGERR_ATTR_MSG = 1
SOL_NETLINK = 270
NETLINK_CAP_ACK = 10
NETLINK_EXT_ACK = 11
REPLY_BUFFER = 1 << 20
DUMP_ATTEMPTS = 5
NETLINK_TIMEOUT_S = 10.0


class Refused(Exception):
    """A request that cannot be executed; errno is that of the system call that failed, if there was one."""

    def __init__(self, what: str, errno: int | None = None) -> None:
        super().__init__(what)
        self.errno = errno


def field(request: dict[str, Any], name: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
    """Return the value of a request's field; raise Refused, with the field's name, if its type is wrong."""
    value = request.get(name, default)
    if not isinstance(value, kind):
        raise Refused(f"field {name!r} is missing or of type {type(value).__name__}")
    return value


def strings(request: dict[str, Any], name: str) -> list[str]:
    """Return a field that must be a list of strings."""
    values = field(request, name, list)
    if not all(isinstance(value, str) for value in values):
        raise Refused(f"field {name!r} must hold strings only")
    return list(values)


def do_ping(request: dict[str, Any]) -> dict[str, Any]:
    """Answer, as a sign of life."""
    return {"uptime_s": time.clock_gettime(time.CLOCK_BOOTTIME)}


def do_exec(request: dict[str, Any]) -> dict[str, Any]:
    """Run a command and wait for its end, but not for a daemon that it started, which keeps running."""
    argv = strings(request, "argv")
    text = field(request, "stdin", str, "")
    timeout_s = field(request, "timeout_s", (int, float), 30.0)
    if not argv:
        raise Refused("field 'argv' is empty")
    # Memory files are used instead of pipes: a daemon that keeps its output open would keep a pipe open too. And no
    # data reach a disk.
    with contextlib.ExitStack() as files:
        stdin, out, err = (
            files.enter_context(os.fdopen(os.memfd_create(name), "w+b")) for name in ("stdin", "out", "err")
        )
        stdin.write(text.encode())
        stdin.seek(0)
        try:
            process = subprocess.Popen(argv, stdin=stdin, stdout=out, stderr=err, start_new_session=True)
        except OSError as error:
            raise Refused(f"cannot run {argv[0]}: {error.strerror}", error.errno) from error
        try:
            rc = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            raise Refused(f"{argv[0]} did not end within {timeout_s:g} s", errno.ETIMEDOUT) from None
        texts = []
        for file in (out, err):
            file.seek(0)
            texts.append(file.read().decode(errors="replace"))
    return {"rc": rc, "out": texts[0], "err": texts[1]}


def do_read(request: dict[str, Any]) -> dict[str, Any]:
    """Return the texts of files by path; null for a file that does not exist."""
    texts: dict[str, str | None] = {}
    for path in strings(request, "paths"):
        try:
            texts[path] = Path(path).read_bytes().decode(errors="replace")
        except (FileNotFoundError, NotADirectoryError):
            texts[path] = None
        except OSError as error:
            raise Refused(f"cannot read {path}: {error.strerror}", error.errno) from error
    return {"texts": texts}


def do_write(request: dict[str, Any]) -> dict[str, Any]:
    """Write a whole file (a sysctl, a configuration). Only its owner may read a new file, which may contain keys."""
    path = field(request, "path", str)
    text = field(request, "text", str)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode())
    except OSError as error:
        raise Refused(f"cannot write {path}: {error.strerror}", error.errno) from error
    return {}


def do_counters(request: dict[str, Any]) -> dict[str, Any]:
    """Return the interface counters of /proc/net/dev, frames, by interface."""
    links = {}
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, numbers = line.partition(":")
        value = [int(number) for number in numbers.split()]
        links[name.strip()] = {
            "rx_packets": value[1],
            "rx_errors": value[2],
            "rx_dropped": value[3],
            "tx_packets": value[9],
            "tx_errors": value[10],
            "tx_dropped": value[11],
        }
    return {"links": links}


def do_netlink(request: dict[str, Any]) -> dict[str, Any]:
    """Send each message, wait for its ACK or the end of its dump, and return the replies."""
    protocol = field(request, "protocol", int)
    try:
        messages = [base64.b64decode(text, validate=True) for text in strings(request, "messages")]
    except ValueError:
        raise Refused("field 'messages' is not base64") from None
    for message in messages:
        if len(message) < NLMSG_HEADER.size:
            raise Refused("a netlink message is shorter than its header")
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as connection:
        connection.settimeout(NETLINK_TIMEOUT_S)
        connection.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        # This option keeps the request, which may have keys, out of the ACK.
        connection.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        connection.bind((0, 0))
        replies = [
            [base64.b64encode(reply).decode() for reply in converse(connection, number, message)]
            for number, message in enumerate(messages, start=1)
        ]
    return {"replies": replies}


def converse(connection: socket.socket, sequence: int, message: bytes) -> list[bytes]:
    """Send one netlink message, and return its replies without its ACK; repeat a dump that was interrupted."""
    _, kind, flags, _, _ = NLMSG_HEADER.unpack_from(message)
    for attempt in range(DUMP_ATTEMPTS):
        number = sequence * DUMP_ATTEMPTS + attempt
        header = NLMSG_HEADER.pack(len(message), kind, flags | NLM_F_REQUEST | NLM_F_ACK, number, 0)
        connection.send(header + message[NLMSG_HEADER.size :])
        replies, interrupted = collect(connection, number, f"message {sequence}")
        if not interrupted:
            return replies
    raise Refused("the kernel's tables changed during every attempt to dump them")


def collect(connection: socket.socket, number: int, what: str) -> tuple[list[bytes], bool]:
    """Receive all replies to one request, and say whether a dump was interrupted; Refused on a negative ACK."""
    replies: list[bytes] = []
    interrupted = False
    while True:
        try:
            datagram = connection.recv(REPLY_BUFFER)
        except TimeoutError:
            raise Refused(f"the kernel did not answer {what}") from None
        offset = 0
        while offset + NLMSG_HEADER.size <= len(datagram):
            length, kind, flags, sequence, _ = NLMSG_HEADER.unpack_from(datagram, offset)
            if length < NLMSG_HEADER.size:
                raise Refused(f"the kernel's answer to {what} is malformed")
            reply = datagram[offset : offset + length]
            offset += (length + 3) & ~3
            if sequence != number:
                continue
            interrupted = interrupted or bool(flags & NLM_F_DUMP_INTR)
            if kind not in (NLMSG_ERROR, NLMSG_DONE):
                replies.append(reply)
                continue
            code = struct.unpack_from("=i", reply, NLMSG_HEADER.size)[0] if length >= 20 else 0
            if code < 0:
                raise Refused(explain(reply, flags, what, -code), -code)
            return replies, interrupted


def explain(reply: bytes, flags: int, what: str, errno: int) -> str:
    """Return a negative ACK as text: errno, and the kernel's own message if there is one."""
    remark = ""
    if flags & NLM_F_ACK_TLVS:
        # The reply has an int error, then the request (only its header if capped), then attributes.
        offset = NLMSG_HEADER.size + 4
        (echoed,) = struct.unpack_from("=I", reply, offset)
        offset += NLMSG_HEADER.size if flags & NLM_F_CAPPED else (echoed + 3) & ~3
        while offset + 4 <= len(reply):
            length, kind = struct.unpack_from("=HH", reply, offset)
            if kind == NLMSGERR_ATTR_MSG:
                remark = ": " + reply[offset + 4 : offset + length].rstrip(b"\0").decode(errors="replace")
            offset += max(4, (length + 3) & ~3)
    return f"{what}: {os.strerror(errno)}{remark}"


ENCAPSULATION: dict[tuple[int, int], socket.socket] = {}
UDP_ENCAP = 100  # linux/udp.h
UDP_ENCAP_ESPINUDP = 2


def do_udp_encap(request: dict[str, Any]) -> dict[str, Any]:
    """Let the kernel extract ESP from the datagrams to this port (RFC 3948), as long as the agent runs.

    The kernel does this only for sockets with a certain option. An IKE daemon has such a socket, static SAs do not.
    """
    port = field(request, "port", int)
    for family in (socket.AF_INET, socket.AF_INET6):
        if (family, port) in ENCAPSULATION:
            continue
        made = socket.socket(family, socket.SOCK_DGRAM)
        try:
            if family == socket.AF_INET6:
                made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            made.bind(("", port))
            made.setsockopt(socket.IPPROTO_UDP, UDP_ENCAP, UDP_ENCAP_ESPINUDP)
        except OSError as error:
            made.close()
            version = 4 if family == socket.AF_INET else 6
            raise Refused(
                f"ESP in UDP over IPv{version}, port {port}: {error.strerror}", error.errno
            ) from error
        ENCAPSULATION[family, port] = made
    return {}


PARTS: list[str] = []


def do_part(request: dict[str, Any]) -> dict[str, Any]:
    """Store a piece of a long, compressed request; the answer to the last piece is the answer to the whole request."""
    if field(request, "first", bool):
        PARTS.clear()  # there may be pieces of a request that was never completed
    PARTS.append(field(request, "text", str))
    if not field(request, "last", bool):
        return {}
    whole = "".join(PARTS)
    PARTS.clear()
    return answer(zlib.decompress(base64.b64decode(whole)))


OPERATIONS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "part": do_part,
    "ping": do_ping,
    "exec": do_exec,
    "read": do_read,
    "write": do_write,
    "counters": do_counters,
    "netlink": do_netlink,
    "udp_encap": do_udp_encap,
}


def answer(line: bytes) -> dict[str, Any]:
    """Return the reply to one line; every error becomes an error reply."""
    number = None
    try:
        request = json.loads(line)
        if not isinstance(request, dict):
            raise Refused("a request is a JSON object")
        number = request.get("id")
        operation = OPERATIONS.get(str(request.get("op")))
        if operation is None:
            raise Refused(f"unknown op {request.get('op')!r}; known: {', '.join(OPERATIONS)}")
        return {"id": number, "ok": True, **operation(request)}
    except Refused as error:
        return {"id": number, "ok": False, "error": str(error), "errno": error.errno}
    except OSError as error:
        return {"id": number, "ok": False, "error": str(error), "errno": error.errno}
    except json.JSONDecodeError as error:  # its text has a position, not the line
        return {"id": number, "ok": False, "error": f"not JSON: {error.msg}", "errno": None}
    except Exception as error:  # no request may end the agent; only the type is sent: the text may have keys
        return {"id": number, "ok": False, "error": f"agent: {type(error).__name__}", "errno": None}


def send(fd: int, reply: dict[str, Any]) -> None:
    """Write one reply as one line of ASCII, however long."""
    data = memoryview(json.dumps(reply).encode() + b"\n")
    while data:
        data = data[os.write(fd, data) :]


def serve(fd_in: int, fd_out: int) -> None:
    """Send a greeting, then answer each line until the other side closes the connection."""
    send(fd_out, {"id": 0, "ok": True, "kernel": platform.release(), "pid": os.getpid(), **do_ping({})})
    waiting: list[bytes] = []
    while chunk := os.read(fd_in, 1 << 16):
        *complete, rest = chunk.split(b"\n")
        for line in complete:
            send(fd_out, answer(b"".join([*waiting, line])))
            waiting.clear()
        if rest:
            waiting.append(rest)


def main() -> int:
    """Open the connection to the controller and serve it; the process ends with its parent."""
    parser = argparse.ArgumentParser(description="espbench's agent inside a gateway")
    parser.add_argument("--fd", type=int, nargs=2, default=(0, 1), help="read requests here, answer there")
    parser.add_argument("--tty", help="a serial line instead")
    options = parser.parse_args()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a daemon's core would hold keys
    os.environ["PATH"] = SEARCH_PATH
    fd_in, fd_out = options.fd
    if options.tty:
        fd_in = fd_out = os.open(options.tty, os.O_RDWR | os.O_NOCTTY)
        tty.setraw(fd_in, termios.TCSANOW)
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        serve(fd_in, fd_out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
