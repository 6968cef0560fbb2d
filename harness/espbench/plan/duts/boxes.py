# SPDX-License-Identifier: Apache-2.0
"""`boxes:` and `ports:` of a DUT profile with platform: remote: how real gateways are reached and wired."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import Field, PlainValidator

from espbench.plan.keys.ports import Interface
from espbench.plan.keys.values import TrialDuration, text
from espbench.plan.reading.reader import KeyPath, Problem, Strict, shown
from espbench.plan.reading.units import Expected

_HOST, _USER = r"[A-Za-z0-9_][A-Za-z0-9._:%-]*", r"[A-Za-z0-9_][A-Za-z0-9._-]*"
_PLATFORM = (("platform",),)


def _host(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_HOST, value):
        raise Expected("a host name or an IP address", "the box's address on the management network")
    return value


def _user(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(_USER, value):
        raise Expected("a user name", "root, or another with user id 0: ports are configured there")
    return value


class Labgrid(Strict):
    """A box's power switch and serial console, as a labgrid environment file defines them."""

    keys_are: ClassVar[str] = "a key of labgrid"

    config: Annotated[str, Field(min_length=1)]
    """labgrid's environment file."""
    target: Annotated[str, Field(min_length=1)] = "main"
    """The target of this box in that file, with a driver for its power, its console, or both."""
    back_within: TrialDuration = 300.0
    """The longest time after a power cycle until the box can be reached by ssh again."""


class Box(Strict):
    """One gateway's box."""

    keys_are: ClassVar[str] = "a key of a box"

    host: Annotated[str, PlainValidator(_host), text(f"^{_HOST}$", "192.0.2.10")]
    """Name or address on the management network."""
    user: Annotated[str, PlainValidator(_user), text(f"^{_USER}$", "root")] = "root"
    """The user who logs in; must have user id 0."""
    port: Annotated[int, Field(ge=1, le=65535)] = 22
    """TCP port of its sshd."""
    identity: Annotated[str, Field(min_length=1)] | None = None
    """File of the private key. Default: the keys ssh tries by itself, or ssh-agent."""
    known_hosts: Annotated[str, Field(min_length=1)] | None = None
    """File with the box's host key. Default: ssh's own."""
    python: Annotated[str, Field(min_length=1)] = "python3"
    """The box's Python, 3.9 or newer."""
    lan: Interface
    """Its interface towards the tester (cleartext)."""
    wan: Interface
    """Its interface towards the other box (ESP)."""
    i_own_this_box: bool = False
    """It may be taken out of service (RFC 6815): ports with addresses and boxes with SAs are accepted."""
    labgrid: Labgrid | None = None
    """Its power switch and serial console. Default: none, so that it cannot be switched off."""


class Boxes(Strict):
    """Both gateways."""

    keys_are: ClassVar[str] = "a gateway (home or office)"

    home: Box
    """The gateway on the west side."""
    office: Box
    """The gateway on the east side."""


class TesterPort(Strict):
    """A network port of this machine."""

    keys_are: ClassVar[str] = "a key of a port"

    interface: Interface
    """The interface; it must be up."""
    netns: Annotated[str, Field(min_length=1)] | None = None
    """Network namespace of the interface: a name of `ip netns` or a path. Default: the initial one."""


class TesterPorts(Strict):
    """The tester's two ports."""

    keys_are: ClassVar[str] = "a port (west or east)"

    west: TesterPort
    """Wired to Home's lan."""
    east: TesterPort
    """Wired to Office's lan."""


def box_problems(boxes: Boxes | None, ports: TesterPorts | None, *, owned: bool) -> Iterator[Problem]:
    """Find keys that a profile with platform: remote lacks, and keys that exclude each other."""
    for key, given in (("boxes", boxes), ("ports", ports)):
        if given is None:
            remedy = "dut-profiles/remote-example.yaml shows it line by line"
            yield Problem((), f"{key}: with platform: remote", "none", remedy, involves=_PLATFORM)
    if boxes is not None:
        for side, box in (("home", boxes.home), ("office", boxes.office)):
            yield from _paths_without_a_home(side, box)
            if box.lan == box.wan:
                remedy = "cleartext and ESP each have a port of their own"
                yield Problem(("boxes", side, "wan"), "another interface than lan", shown(box.wan), remedy)
        if (boxes.home.host, boxes.home.port) == (boxes.office.host, boxes.office.port):
            remedy = "two gateways on one box would share its CPUs and its name"
            yield Problem(
                ("boxes", "office", "host"), "another box than home's", shown(boxes.office.host), remedy
            )
    if ports is not None:
        if ports.west == ports.east:
            remedy = "frames go out of one port and come back at the other"
            yield Problem(
                ("ports", "east", "interface"),
                "another interface than west's",
                shown(ports.east.interface),
                remedy,
            )
        for name, port in (("west", ports.west), ("east", ports.east)):
            if port.netns is None and not owned:
                yield Problem(
                    ("ports", name, "interface"),
                    "an interface in a network namespace (netns: …)",
                    f"{shown(port.interface)} of the initial namespace",
                    "if this network carries nothing but the test (RFC 6815), add i_own_this_network: true",
                    involves=(("i_own_this_network",), ("ports", name, "netns")),
                )


def _paths_without_a_home(side: str, box: Box) -> Iterator[Problem]:
    """Find paths that begin with the home of a user whom this machine does not know."""
    paths: list[tuple[KeyPath, str | None]] = [
        (("identity",), box.identity),
        (("known_hosts",), box.known_hosts),
    ]
    if box.labgrid is not None:
        paths.append((("labgrid", "config"), box.labgrid.config))
    for key, path in paths:
        try:
            Path(path or "").expanduser()
        except (RuntimeError, ValueError):  # ValueError: the name has a NUL
            remedy = "write ~/ for your own home, or an absolute path"
            expected = "a path, which may begin with the home of a user of this machine"
            yield Problem(("boxes", side, *key), expected, shown(path), remedy)


def with_files_beside(boxes: Boxes, folder: Path) -> Boxes:
    """Return the boxes with absolute paths of keys and labgrid's files. Relative paths start at the profile; ~ is
    the home.
    """

    def beside(box: Box) -> Box:
        paths = {"identity": box.identity, "known_hosts": box.known_hosts}
        moved: dict[str, Any] = {
            key: str(_absolute(path, folder)) for key, path in paths.items() if path is not None
        }
        if box.labgrid is not None:
            config = str(_absolute(box.labgrid.config, folder))
            moved["labgrid"] = box.labgrid.model_copy(update={"config": config})
        return box.model_copy(update=moved)

    return boxes.model_copy(update={"home": beside(boxes.home), "office": beside(boxes.office)})


def _absolute(path: str, folder: Path) -> Path:
    expanded = Path(path).expanduser()
    return expanded if expanded.is_absolute() else (folder / expanded).absolute()
