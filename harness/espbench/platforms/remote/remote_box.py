# SPDX-License-Identifier: Apache-2.0
"""Runs on a remote box: moves its two ports into a network namespace, starts the agent there, and restores the ports.

remote_gateway.py sends this program over SSH, with the texts of the launcher and the agent; it is one file and needs
only the standard library. It passes lines between the controller and the agent. Everything that the agent configures is
in this namespace and in its own mount and PID namespaces, and disappears with the agent. When the controller closes the
connection, dies, or sends nothing for some time, the program gives the ports back in their former state. Until then
this state is in a file: if the program itself is killed, the kernel returns the ports without configuration, and the
next run of the program restores them.
"""

from __future__ import annotations

import base64
import contextlib
import ctypes
import json
import os
import platform
import re
import select
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NEEDS_PYTHON = (3, 9)
READ_ONLY_SINCE = (5, 12)  # mount_setattr(2); before, the agent's mount namespace is private but writable
CLONE_NEWNET = 0x40000000
OTHER_WAIT_S = 40.0  # longer than the silence after which a helper without a connection gives its ports back
BACK_WAIT_S = 30.0  # the longest time until the kernel has removed the namespace of a helper that was killed
IPV6 = Path(
    "/proc/sys/net/ipv6"
)  # missing without IPv6; the agent makes every gateway a router for IPv4 and IPv6
# Files in these folders disappear at a reboot, as the ports' state does.
STATE_PLACES = ("/run", "/var/run", "/tmp")
STATE = "espbench-box/ports.json"
ENDING = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGALRM)
# The link itself reports these flags; they cannot be set.
PASSING_FLAGS = {"LOWER_UP", "NO-CARRIER", "DORMANT", "RUNNING"}

libc = ctypes.CDLL(None, use_errno=True)


class Ended(Exception):
    """A signal arrived, or the controller was silent for too long: the ports must be given back."""


def say(text: str) -> None:
    """Write one line to stderr, which ssh transfers to the controller if it still exists."""
    with contextlib.suppress(OSError):
        print(f"espbench: {text}", file=sys.stderr, flush=True)


def refuse(text: str) -> NoReturn:
    """Report why the box cannot be used, and exit."""
    say(text)
    sys.exit(3)


def system(result: int, what: str) -> None:
    """Raise OSError if a libc call failed."""
    if result < 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"{what}: {os.strerror(errno)}")


def ip(*arguments: str, stdin: bytes = b"", netns: int | None = None, keep: int | None = None) -> bytes:
    """Return the output of the program ip, run in another network namespace if given; raise RuntimeError if it
    fails.
    """

    def enter() -> None:
        system(libc.setns(netns, CLONE_NEWNET), "setns")

    with os.fdopen(in_memory("stdin", stdin), "rb") as given:  # `route restore` reads its stdin three times
        done = subprocess.run(
            ["ip", *arguments],
            stdin=given,
            capture_output=True,
            check=False,
            preexec_fn=enter if netns is not None else None,
            pass_fds=() if keep is None else (keep,),
        )
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(arguments)}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout


@dataclass(frozen=True)
class Port:
    """The state of a port: its link with addresses, routes and neighbours as in the JSON of ip(8), and its sysctls.

    saved has (the command that restores it, the output of `ip addr save` or `ip route save`), in order.
    """

    name: str
    link: dict[str, Any]
    routes: list[dict[str, Any]]
    neighbours: list[dict[str, Any]]
    sysctls: dict[Path, str]
    saved: list[tuple[list[str], bytes]]

    @staticmethod
    def look(name: str) -> Port:
        """Return the present state of a port."""
        link = json.loads(ip("-j", "addr", "show", "dev", name))[0]
        saved = [(["addr", "restore"], ip("addr", "save", "dev", name))] if link["addr_info"] else []
        routes = []
        for family in ("-4", "-6"):
            of_family = json.loads(ip(family, "-j", "route", "show", "table", "all", "dev", name) or b"[]")
            # The kernel makes the routes of the table local together with the addresses.
            of_family = [route for route in of_family if route.get("table") != "local"]
            for table in sorted({str(route.get("table", "main")) for route in of_family}):
                text = ip(family, "route", "save", "table", table, "dev", name)
                saved.append(([family, "route", "restore"], text))
            routes += of_family
        neighbours = json.loads(ip("-j", "neigh", "show", "dev", name, "nud", "permanent") or b"[]")
        return Port(name, link, routes, neighbours, sysctls_of(name), saved)

    def restore(self) -> None:
        """Restore this state of the port, which must be in its original namespace and down."""
        flags, link = self.link["flags"], ["link", "set", "dev", self.name]
        arp, multicast = ("off" if "NOARP" in flags else "on"), ("on" if "MULTICAST" in flags else "off")
        own = ["address", self.link["address"], "txqueuelen", str(self.link.get("txqlen", 1000))]
        ip(*link, *own, "mtu", str(self.link["mtu"]), "arp", arp, "multicast", multicast)
        for _ in range(2):  # twice, because some sysctls reset others
            for path, text in self.sysctls.items():
                if read(path) != text:
                    with contextlib.suppress(OSError):
                        path.write_text(text)
        up = "UP" in flags
        for command, data in self.saved:
            if "route" in command and up:
                ip(*link, "up")
                up = False
            ip(*command, stdin=data)
        if up:
            ip(*link, "up")
        for entry in self.neighbours:
            ends = [entry["dst"], "lladdr", entry["lladdr"], "dev", self.name]
            ip("neigh", "replace", *ends, "nud", "permanent")

    def to_json(self) -> dict[str, Any]:
        """Return the state for the file that remains if this process is killed."""
        return {
            "name": self.name,
            "link": self.link,
            "routes": self.routes,
            "neighbours": self.neighbours,
            "sysctls": {str(path): text for path, text in self.sysctls.items()},
            "saved": [[command, base64.b64encode(data).decode()] for command, data in self.saved],
        }

    @staticmethod
    def from_json(plain: dict[str, Any]) -> Port:
        """Return the state that `to_json` returned."""
        sysctls = {Path(path): text for path, text in plain["sysctls"].items()}
        saved = [(command, base64.b64decode(data)) for command, data in plain["saved"]]
        return Port(plain["name"], plain["link"], plain["routes"], plain["neighbours"], sysctls, saved)

    def addresses(self, *, of_link: bool = False) -> list[str]:
        """Return the port's addresses with prefix length; of_link: also those that are valid on the link only."""
        listed = [a for a in self.link["addr_info"] if of_link or a["scope"] != "link"]
        return sorted(f"{a['local']}/{a['prefixlen']}" for a in listed)

    def shown(self) -> dict[str, list[str]]:
        """Return the values that must be equal before and after, without those that the kernel makes or lets expire."""
        return {
            "flags": sorted(set(self.link["flags"]) - PASSING_FLAGS),
            "link": [f"{key} {self.link.get(key)}" for key in ("mtu", "address", "txqlen")],
            "addresses": self.addresses(),
            "routes": sorted(words for route in self.routes if (words := words_of(route))),
            "permanent neighbours": sorted(f"{n['dst']} {n.get('lladdr')}" for n in self.neighbours),
            "sysctls": [f"{path} {text.strip()}" for path, text in self.sysctls.items()],
        }


def words_of(route: dict[str, Any]) -> str:
    """Return a route as text; empty for routes that the kernel makes itself, and for those that expire."""
    if str(route["dst"]).startswith(("fe80:", "ff00:")) or "expires" in route:
        return ""
    words = [f"{key} {value}" for key, value in route.items() if key not in ("dst", "flags", "linkdown")]
    flags = [flag for flag in route.get("flags", []) if flag != "linkdown"]
    return " ".join([str(route["dst"]), *words, *flags])


def sysctls_of(name: str) -> dict[Path, str]:
    """Return the sysctls of one interface; the kernel loses them when the interface changes its namespace."""
    kinds = ("ipv4/conf", "ipv4/neigh", "ipv6/conf", "ipv6/neigh")
    folders = [Path(f"/proc/sys/net/{kind}/{name}") for kind in kinds]
    values = {file: read(file) for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())}
    return {file: text for file, text in values.items() if text is not None}


def read(path: Path) -> str | None:
    """Return the text of a file in /proc; None if it cannot be read."""
    try:
        return path.read_text()
    except OSError:
        return None


def problem_with(port: Port) -> str:
    """Return why a port must not be used, whoever owns the box; empty if it may be used."""
    uppers = [entry.name[6:] for entry in Path(f"/sys/class/net/{port.name}").glob("upper_*")]
    if "LOOPBACK" in port.link["flags"]:
        return "expected a network port, got the loopback"
    if "master" in port.link:
        return f"expected a port of its own, it belongs to {port.link['master']}; take it out of that first"
    if uppers:
        return f"expected a port nothing is built on, {', '.join(uppers)} stands on it; remove that first"
    here = ssh_arrives()
    if here & {port.name, *(address.partition("/")[0] for address in port.addresses(of_link=True))}:
        return "this ssh connection arrives on it and would be cut; use another port, or another way in"
    if lost := cannot_return(port.name):
        return (
            f"expected a port without multipath routes and nexthop objects, which cannot be given back, it has "
            f"{', '.join(lost[:3])}{f' and {len(lost) - 3} more' if lost[3:] else ''}; remove that first, or use "
            "another port"
        )
    return ""


def sign_of_service(port: Port) -> str:
    """Return why a port seems to be in service, so that only the owner of the box may use it; empty otherwise."""
    if held := port.addresses():
        return (
            f"expected a port without addresses, it has {', '.join(held)}; if this box may be taken out of service "
            "for the test (RFC 6815), write i_own_this_box: true: it gets them back afterwards"
        )
    return ""


def cannot_return(name: str) -> list[str]:
    """Return the multipath routes and the nexthop objects that use a port, which cannot be saved and restored."""
    found = []
    for family in ("-4", "-6"):
        # `dev NAME` would leave out the multipath routes.
        for route in json.loads(ip(family, "-j", "route", "show", "table", "all") or b"[]"):
            if name in [hop.get("dev") for hop in route.get("nexthops", [])]:
                found.append(f"multipath route {route['dst']}")
            elif route.get("dev") == name and "nhid" in route:
                found.append(f"route {route['dst']} by nexthop object {route['nhid']}")
    with contextlib.suppress(RuntimeError):  # an old ip(8) or kernel knows no such objects
        hops = json.loads(ip("-j", "nexthop", "show") or b"[]")
        found += [f"nexthop object {hop['id']}" for hop in hops if hop.get("dev") == name]
    return found


def ssh_arrives() -> set[str]:
    """Return the box's address of the SSH connection, and the interface of its answers; empty without SSH."""
    ends = os.environ.get("SSH_CONNECTION", "").split()
    if len(ends) != 4:
        return set()
    client, own = (end.partition("%")[0] for end in (ends[0], ends[2]))
    try:
        return {own, *(route["dev"] for route in json.loads(ip("-j", "route", "get", client)))}
    except RuntimeError:  # a link-local address has no route without its interface
        return {own}


def examine(spec: dict[str, Any]) -> list[Port]:
    """Return both ports in their present state; exit with a message if the box lacks something or is in use."""
    if sys.version_info < NEEDS_PYTHON:
        needed = ".".join(map(str, NEEDS_PYTHON))
        refuse(f"expected Python {needed} or newer, got {platform.python_version()}")
    if os.geteuid():
        refuse("expected to be root on the box, since ports are configured; log in as root")
    if shutil.which("ip") is None:
        refuse("expected ip(8) on the box, got none; apt-get install iproute2")
    if not IPV6.is_dir():
        refuse(
            "expected IPv6 in the box's kernel, got none; boot it without ipv6.disable=1 or with a kernel that has "
            "CONFIG_IPV6; if IPv6 is a module: modprobe ipv6"
        )
    ports = []
    for role in ("lan", "wan"):
        name = spec[role]
        if not Path(f"/sys/class/net/{name}").exists():
            there = ", ".join(sorted(entry.name for entry in Path("/sys/class/net").iterdir()))
            refuse(f"{role}: expected a network interface of the box, got {name}; there are: {there}")
        port = Port.look(name)
        if why := problem_with(port) or ("" if spec["mine"] else sign_of_service(port)):
            refuse(f"{role}: {name}: {why}")
        ports.append(port)
    held = sum(line.startswith(b"src ") for line in ip("xfrm", "state").splitlines())
    if held and not spec["mine"]:
        refuse(
            f"the box already has {held} SAs: it seems to be in service; if it may be taken out of it for the "
            "test (RFC 6815), write i_own_this_box: true: its own SAs stay as they are"
        )
    return ports


def facts(ports: list[Port]) -> dict[str, Any]:
    """Return the facts about the box that the controller needs before a run."""
    return {
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpus": os.cpu_count(),
        "virtual": " hypervisor" in (read(Path("/proc/cpuinfo")) or ""),
        "macs": [port.link["address"] for port in ports],
        "boot": (read(Path("/proc/sys/kernel/random/boot_id")) or "").strip(),
    }


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """Let only one espbench use the box at a time.

    The lock is the name of an abstract socket, which the kernel frees when the process ends. Wait for a process that is
    still giving its ports back.
    """
    with socket.socket(socket.AF_UNIX) as mine:
        deadline = time.monotonic() + OTHER_WAIT_S
        while True:
            try:
                mine.bind("\0espbench-box")
                break
            except OSError:
                if time.monotonic() > deadline:
                    refuse("another espbench uses this box")
                time.sleep(0.1)
        yield


def state_file() -> Path:
    """Return the path of the state file, which may not exist. Raise RuntimeError if other users could have
    written it.
    """
    for place in STATE_PLACES:
        if os.access(place, os.W_OK):
            file = Path(place) / STATE
            if os.path.lexists(file.parent):
                status = file.parent.lstat()
                if (
                    not stat.S_ISDIR(status.st_mode)
                    or status.st_uid != os.geteuid()
                    or status.st_mode & 0o077
                ):
                    raise RuntimeError(
                        f"{file.parent}: expected a directory of root's alone, got one that others may have made; "
                        "look what is in it, and remove it"
                    )
            return file
    raise RuntimeError(
        f"expected {' or '.join(STATE_PLACES)} that can be written, to keep there what the ports were"
    )


def remember(ports: list[Port]) -> None:
    """Save the state of the ports before they are moved, by a rename, so that the file is always complete."""
    file = state_file()
    file.parent.mkdir(mode=0o700, exist_ok=True)
    fresh = file.with_suffix(".new")
    fresh.touch(mode=0o600)  # a sysctl may be a secret: IPv6's stable_secret
    fresh.write_text(json.dumps([port.to_json() for port in ports]))
    fresh.replace(file)


def forget() -> None:
    """Delete the saved state, which may be missing or incomplete, because the ports have been restored."""
    file = state_file()
    for path in (file, file.with_suffix(".new")):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):
        file.parent.rmdir()


def mend() -> None:
    """Restore ports that a killed helper had moved; exit with a message if that fails."""
    file = state_file()
    if not file.exists():
        return
    failures = []
    for port in [Port.from_json(plain) for plain in json.loads(file.read_text())]:
        deadline = time.monotonic() + BACK_WAIT_S
        while not Path(f"/sys/class/net/{port.name}").exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        try:
            port.restore()
            # Only lost entries are a failure: new entries were added by others since then.
            changed = differences(port.shown(), Port.look(port.name).shown())
            failures += [f"{port.name}: {change}" for change in changed if change.lost]
        except (RuntimeError, OSError) as error:
            failures.append(f"{port.name}: {error}")
    if failures:
        refuse(
            f"an espbench that was killed had taken ports of this box, and they are not what they were: "
            f"{'; '.join(failures)}; set that right, and remove {file}, where it is written"
        )
    say("gave back the ports that an espbench which was killed had taken")
    forget()


def namespaces() -> tuple[int, int]:
    """Return descriptors of the own network namespace and of a new one, which exists as long as its descriptor."""
    own = os.open("/proc/self/ns/net", os.O_RDONLY)
    system(libc.unshare(CLONE_NEWNET), "a new network namespace")
    new = os.open("/proc/self/ns/net", os.O_RDONLY)
    system(libc.setns(own, CLONE_NEWNET), "setns")
    return own, new


def holds(netns: int, name: str) -> bool:
    """Return whether an interface is in a network namespace."""
    return any(link["ifname"] == name for link in json.loads(ip("-j", "link", "show", netns=netns)))


def move(name: str, source: int | None, target: int) -> None:
    """Move an interface from one network namespace (None: the own one) to another."""
    os.set_inheritable(target, True)
    ip("link", "set", "dev", name, "netns", f"/proc/self/fd/{target}", netns=source, keep=target)


def start(spec: dict[str, Any], netns: int) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the agent through the launcher, as in every gateway, and return it with its socket.

    Neither program is written to a disk.
    """
    ours, theirs = socket.socketpair()
    end = str(theirs.fileno())
    texts = {name: in_memory(name, spec[name].encode()) for name in ("launcher", "agent")}
    release = tuple(int(part) for part in re.findall(r"\d+", platform.release())[:2])
    launch = {
        "parent": os.getpid(),
        "netns": f"/proc/self/fd/{netns}",
        "cpus": [],
        "nice": 0,
        "own_pids": True,
        "read_only": release >= READ_ONLY_SINCE,
        # /tmp is for the files of daemons that the controller copies.
        "mounts": [["sysfs", "/sys", ""], ["proc", "/proc", ""], ["tmpfs", "/tmp", "mode=1777"]],
        "argv": [sys.executable, "-I", "-S", f"/proc/self/fd/{texts['agent']}", "--fd", end, end],
    }
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", f"/proc/self/fd/{texts['launcher']}", json.dumps(launch)],
        stdin=subprocess.DEVNULL,
        stdout=sys.stderr,
        pass_fds=(netns, theirs.fileno(), *texts.values()),
        start_new_session=True,
    )
    theirs.close()
    for descriptor in texts.values():
        os.close(descriptor)
    return process, ours


def in_memory(name: str, data: bytes) -> int:
    """Return the descriptor of a file in memory with this content."""
    descriptor = os.memfd_create(name)
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def relay(agent: socket.socket, silence_s: int) -> None:
    """Pass bytes in both directions until one side ends. NUL bytes are the controller's heartbeats."""
    waiting = select.poll()
    waiting.register(0, select.POLLIN)
    waiting.register(agent, select.POLLIN)
    signal.alarm(silence_s)
    while True:
        for descriptor, _ in waiting.poll():
            data = os.read(0, 1 << 16) if descriptor == 0 else agent.recv(1 << 16)
            if not data:
                return
            if descriptor == 0:
                signal.alarm(silence_s)
                agent.sendall(data.replace(b"\0", b""))
                continue
            while data:
                data = data[os.write(1, data) :]


def give_back(ports: list[Port], before: list[dict[str, list[str]]], netns: int, own: int) -> list[str]:
    """Move every port back and restore its state; return the failures. Leave a port alone that is as it was."""
    failures = []
    for port, was in zip(ports, before):  # noqa: B905 (Python 3.9 has no strict)
        try:
            if holds(netns, port.name):
                move(port.name, netns, own)
            elif Port.look(port.name).shown() == was:
                continue  # it did not leave
            port.restore()
            now = Port.look(port.name).shown()
            failures += [f"{port.name}: {change}" for change in differences(was, now)]
        except (RuntimeError, OSError) as error:
            failures.append(f"{port.name}: {error}")
    return failures


@dataclass(frozen=True)
class Difference:
    """Entries of one kind (routes, flags …) that a port has lost, or has in addition."""

    kind: str
    lost: bool
    entries: list[str]

    def __str__(self) -> str:
        return f"{self.kind}: {'lost' if self.lost else 'has got'} {', '.join(self.entries)}"


def differences(was: dict[str, list[str]], now: dict[str, list[str]]) -> list[Difference]:
    """Return the entries that a port lost, and those that it has in addition."""
    changes = []
    for kind in was:
        for lost, one, other in ((True, was, now), (False, now, was)):
            if here := [entry for entry in one[kind] if entry not in other[kind]]:
                changes.append(Difference(kind, lost, here))
    return changes


def on_signal(number: int, frame: object) -> NoReturn:
    raise Ended("the controller is silent" if number == signal.SIGALRM else signal.Signals(number).name)


def hold(handler: Callable[[int, Any], None] | signal.Handlers) -> None:
    """Set the handler of the signals that end this process."""
    for number in ENDING:
        signal.signal(number, handler)


def main(spec: dict[str, Any]) -> NoReturn:
    """Examine the box; with `take`, connect the agent to the controller until the connection ends."""
    os.environ["PATH"] = SEARCH_PATH
    hold(on_signal)
    with alone():
        try:
            mend()
            if spec["only_mend"]:
                sys.exit(0)
            ports = examine(spec)
            before = [port.shown() for port in ports]
        except RuntimeError as error:
            refuse(str(error))
        except Ended:
            sys.exit(1)
        if not spec["take"]:
            print(json.dumps(facts(ports)), flush=True)
            sys.exit(0)
        sys.exit(serve(spec, ports, before))


def serve(spec: dict[str, Any], ports: list[Port], before: list[dict[str, list[str]]]) -> int:
    """Move the ports, pass lines between controller and agent, restore the ports, and return the exit status.

    It is 1 if the ports are not as they were, 3 for another failure.
    """
    failures: list[str] = []
    undone: list[str] = []
    try:
        own, netns = namespaces()
    except OSError as error:
        refuse(f"{error}; espbench needs a kernel with CONFIG_NET_NS on the box")
    process = None
    try:
        remember(ports)
        for port in ports:
            move(port.name, None, netns)
        process, agent = start(spec, netns)
        relay(agent, spec["silence_s"])
    except Ended as end:
        say(f"{end}: giving the ports back")
    except BrokenPipeError:
        pass
    except (RuntimeError, OSError) as error:
        failures.append(str(error))
    finally:
        signal.alarm(0)
        hold(signal.SIG_IGN)
        if process is not None:
            process.kill()  # its descendants end with it
            process.wait()
        undone = give_back(ports, before, netns, own)
        if not undone:  # otherwise the next helper tries it again
            forget()
    failures += undone
    for failure in failures:
        say(failure)
    return 1 if undone else 3 if failures else 0
