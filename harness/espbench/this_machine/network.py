# SPDX-License-Identifier: Apache-2.0
"""Makes network namespaces on this machine, and interfaces and settings in them, with pyroute2.

A network namespace belongs to a thread, so each step runs in a short-lived thread that has entered the namespace: no
program is started, and nothing is forked (a controller with threads cannot safely run code between fork and exec).
A namespace is given by its name, as `ip netns` lists it, or by the path of its file. Functions raise EspbenchError with
the kernel's reason unless they say otherwise. pyroute2 is loaded by the first step that needs it, since loading takes
0.15 s and most commands make no network.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from fnmatch import fnmatch
from pathlib import Path
from typing import Any, TypeVar

from espbench.errors import EspbenchError

NETNS_DIR = Path("/run/netns")
CLONE_NEWNS, CLONE_NEWNET = 0x20000, 0x40000000  # linux/sched.h
MS_REC, MS_PRIVATE = 1 << 14, 1 << 18  # linux/mount.h
IFF_UP, IFF_NOARP, IFF_MULTICAST = 0x1, 0x80, 0x1000  # linux/if.h
IFF_TAP = 2  # linux/if_tun.h
# The kernel's names for ethtool(8)'s tso, gso and gro; newer kernels have several features for tso.
FEATURES = {"tso": "tx-tcp*-segmentation", "gso": "tx-generic-segmentation", "gro": "rx-gro"}
_libc = ctypes.CDLL(None, use_errno=True)
T = TypeVar("T")


def in_netns(netns: str | Path | None, work: Callable[[], T]) -> T:
    """Run `work` in a network namespace and return its value; netns: the namespace's file (None: this process' own).

    Raise OSError if the namespace cannot be entered, and any exception that `work` raises.
    """
    if netns is None:
        return work()

    def entered() -> T:
        file = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(_libc.setns(file, CLONE_NEWNET), f"entering the network namespace {netns}")
        finally:
            os.close(file)
        return work()

    return _in_thread(entered)


def make_netns(name: str) -> None:
    """Make a named network namespace, as `ip netns add` does; raise EspbenchError if that fails."""
    from pyroute2 import netns  # noqa: PLC0415

    def make() -> None:
        _check(_libc.unshare(CLONE_NEWNET), "unshare(CLONE_NEWNET)")
        netns.attach(str(NETNS_DIR / name), threading.get_native_id())

    with _reported_as(f"cannot make the network namespace {name}"):
        _in_thread(make)


def remove_netns(name: str) -> None:
    """Remove a named network namespace, or an incomplete one; it is not an error if there is none."""
    from pyroute2 import netns  # noqa: PLC0415

    if (NETNS_DIR / name).exists():
        with _reported_as(f"cannot remove the network namespace {name}"):
            netns.remove(str(NETNS_DIR / name))


def make_veth(netns: str, name: str, peer_netns: str, peer: str, mtu: int) -> None:
    """Make a veth pair, with one interface in each of two namespaces; both interfaces are down."""

    def make(network: Any) -> None:
        there = os.open(NETNS_DIR / peer_netns, os.O_RDONLY | os.O_CLOEXEC)
        try:
            end = {"ifname": peer, "mtu": mtu, "net_ns_fd": there}
            network.link("add", ifname=name, kind="veth", mtu=mtu, peer=end)
        finally:
            os.close(there)

    by_netlink(netns, make, f"cannot join {name} in {netns} to {peer} in {peer_netns}")


def make_tap(netns: str, name: str) -> None:
    """Make a persistent tap interface whose frames carry a virtio header; it is down."""
    by_netlink(
        netns,
        lambda network: network.link("add", ifname=name, kind="tun", tun_type=IFF_TAP, tun_vnet_hdr=1),
        f"cannot make the tap {name} in {netns}",
    )


def make_bridge(netns: str, name: str, ports: Collection[str], mtu: int) -> None:
    """Make a bridge of interfaces that sends no frames of its own and forwards at once; it is down."""

    def make(network: Any) -> None:
        network.link(
            "add", ifname=name, kind="bridge", mtu=mtu,
            br_stp_state=0, br_forward_delay=0, br_mcast_snooping=0,
        )  # fmt: skip
        (index,) = network.link_lookup(ifname=name)
        for port in ports:
            network.link("set", ifname=port, master=index)

    by_netlink(netns, make, f"cannot make the bridge {name} of {', '.join(ports)} in {netns}")


def set_link(
    netns: str,
    name: str,
    *,
    up: bool | None = None,
    arp: bool | None = None,
    multicast: bool | None = None,
    mtu: int | None = None,
    queue: int | None = None,
) -> None:
    """Change settings of an interface; None leaves a setting as it is. queue: length of the transmit queue, frames."""
    wanted = {IFF_UP: up, IFF_NOARP: None if arp is None else not arp, IFF_MULTICAST: multicast}
    settings = {
        "flags": sum(flag for flag, on in wanted.items() if on),
        "change": sum(flag for flag, on in wanted.items() if on is not None),
    }
    if mtu is not None:
        settings["mtu"] = mtu
    if queue is not None:
        settings["txqlen"] = queue
    by_netlink(
        netns, lambda network: network.link("set", ifname=name, **settings), f"cannot set {name} in {netns}"
    )


def remove_link(netns: str | None, name: str) -> None:
    """Remove an interface of a namespace (None: that of this process), if both exist."""

    def remove(network: Any) -> None:
        for index in network.link_lookup(ifname=name):
            network.link("del", index=index)

    if netns is None or (NETNS_DIR / netns).exists():
        by_netlink(netns, remove, f"cannot remove the interface {name}")


def set_features(netns: str, name: str, **wanted: bool) -> None:
    """Switch features of an interface on or off; wanted: a key of FEATURES → on."""
    from pyroute2.ethtool.ioctl import IoctlEthtool  # noqa: PLC0415

    def switch() -> None:
        device = IoctlEthtool(name)
        try:
            features = device.get_features()
            for feature, on in wanted.items():
                for kernels, _, available, *_ in features:
                    if available and fnmatch(kernels, FEATURES[feature]):
                        features.set_value(kernels, on)
            device.set_features(features)
        finally:
            device.close()

    with _reported_as(f"cannot switch features of {name} in {netns}: {wanted}"):
        in_netns(NETNS_DIR / netns, switch)


def thread_napi(netns: str, name: str) -> None:
    """Let dedicated kernel threads process the frames that an interface receives (threaded NAPI)."""

    def switch() -> None:
        # Every kernel that supports it has a file in sysfs for it. /sys shows the interfaces of the network namespace
        # in which it was mounted, so the thread mounts its own /sys, which nobody else sees and which ends with it.
        _check(_libc.unshare(CLONE_NEWNS), "unshare(CLONE_NEWNS)")
        _check(_libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "mount --make-rprivate /")
        _check(_libc.mount(b"sysfs", b"/sys", b"sysfs", 0, None), "mount -t sysfs /sys")
        Path("/sys/class/net", name, "threaded").write_text("1")

    with _reported_as(f"cannot give the NAPI of {name} in {netns} a thread"):
        in_netns(NETNS_DIR / netns, switch)


def ipv6_is_here() -> bool:
    """Return whether the running kernel has IPv6 (not with ipv6.disable=1)."""
    return Path("/proc/sys/net/ipv6").is_dir()


def write_sysctls(netns: str, settings: Mapping[str, str]) -> None:
    """Write files below /proc/sys for a namespace; settings: path below /proc/sys → value."""

    def write() -> None:
        for path, value in settings.items():
            Path("/proc/sys", path).write_text(value)

    with _reported_as(f"cannot set {', '.join(settings)} in {netns}"):
        in_netns(NETNS_DIR / netns, write)


def by_netlink(netns: str | None, work: Callable[[Any], T], failure: str) -> T:
    """Run `work` with an IPRoute of pyroute2 in a namespace (None: that of this process), and return its value.

    Raise EspbenchError with `failure` and the kernel's reason.
    """
    from pyroute2 import IPRoute  # noqa: PLC0415

    def connected() -> T:
        with IPRoute() as network:
            return work(network)

    with _reported_as(failure):
        return in_netns(None if netns is None else NETNS_DIR / netns, connected)


@contextmanager
def _reported_as(failure: str) -> Iterator[None]:
    """Turn errors of the kernel and of pyroute2 into an EspbenchError with `failure` and the reason."""
    from pyroute2.ethtool.ioctl import NoSuchDevice, NotSupportedError  # noqa: PLC0415
    from pyroute2.netlink.exceptions import NetlinkError  # noqa: PLC0415

    try:
        yield
    except (NoSuchDevice, NotSupportedError) as error:
        raise EspbenchError(f"{failure}: {type(error).__name__}") from error
    except NetlinkError as error:
        raise EspbenchError(f"{failure}: {os.strerror(error.code)}") from error
    except OSError as error:
        raise EspbenchError(f"{failure}: {error.strerror or error}") from error


def _in_thread(work: Callable[[], T]) -> T:
    """Run `work` in a new thread, so that a namespace it enters is left when the thread ends; return its value."""
    done: list[T] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            done.append(work())
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=run, name="in a network namespace")
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return done[0]


def _check(result: int, what: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
