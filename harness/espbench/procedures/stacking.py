# SPDX-License-Identifier: Apache-2.0
"""From a plan's choice of stack to that stack on a test bed: its files fetched, laid over, its keys made."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from espbench.errors import UsageError
from espbench.plan import Case
from espbench.plan.stack_choice import StackChoice
from espbench.platforms.base import SIDES, Gateway, Side, Testbed
from espbench.stacks import credentials, layers, packages
from espbench.stacks.base import Stack, StackOptions, Tunnel
from espbench.stacks.daemon import Credentials, Daemon, End, IkeOptions
from espbench.stacks.ike import IkeStack
from espbench.stacks.libreswan import Libreswan
from espbench.stacks.names import STACKS
from espbench.stacks.plain import Plain
from espbench.stacks.strongswan import StrongSwan
from espbench.stacks.suites import Suite, suites
from espbench.stacks.user_space import UserSpaceStack
from espbench.stacks.xfrm import Xfrm
from espbench.stacks.xfrm_devices import XFRM_IF_ID

OnNote = Callable[[str], None]


def daemons_of(choice: StackChoice) -> list[str]:
    """The daemons whose files a stack needs; none where nothing negotiates."""
    return list(dict.fromkeys(daemon for side in SIDES if (daemon := STACKS[_name(choice, side)].daemon)))


def kernel_esp(choice: StackChoice) -> bool:
    """Whether the kernel's ESP carries its traffic."""
    return any(STACKS[_name(choice, side)].kernel_esp for side in SIDES)


def on_bed(bed: Testbed, tunnel: Tunnel, case: Case, plan_path: Path | None, on_note: OnNote) -> Stack:
    """The case's stack on this bed, not yet blocking or established; relative prefixes start at plan_path."""
    choice = case.stack
    if choice.kind == "plain":
        return Plain(bed, tunnel)
    suite = suites()[case.suite]
    options = options_of(choice)
    if not daemons_of(choice):
        return Xfrm(bed, tunnel, suite, options)
    ike = ike_options_of(choice)
    made = credentials.make(ike.auth)
    prefix = choice.prefix_beside(plan_path)
    charons: dict[Side, StrongSwan] = {}
    daemons: dict[Side, Daemon] = {}
    for side in SIDES:
        gateway, name = bed.gateways[side], _name(choice, side)
        end = end_of(side, tunnel, suite, ike, made[side])
        files = install(gateway, STACKS[name].daemon, choice.version, prefix, on_note)
        if name == "strongswan-libipsec":
            charons[side] = StrongSwan(gateway, end, files, user_space=True)
        else:
            daemons[side] = (StrongSwan if name == "strongswan" else Libreswan)(gateway, end, files)
    if charons:
        return UserSpaceStack(choice.shown, bed, tunnel, suite, options, ike, charons)
    return IkeStack(choice.shown, bed, tunnel, suite, options, ike, daemons)


def _name(choice: StackChoice, side: Side) -> str:
    return choice.stack or getattr(choice, side)


def options_of(choice: StackChoice) -> StackOptions:
    """The plan's keys as the kernel's part of a stack takes them."""
    return StackOptions(
        mode=choice.mode,
        replay_window=choice.replay_window,
        esn=choice.esn,
        tunnels=choice.tunnels,
        udp_encapsulation=choice.udp_encapsulation,
        df=choice.df,
        interface=choice.interface,
    )


def ike_options_of(choice: StackChoice) -> IkeOptions:
    """The plan's keys as a daemon takes them."""
    return IkeOptions(
        ike=choice.ike,
        auth=choice.auth,
        replay_window=choice.replay_window,
        esn=choice.esn,
        udp_encapsulation=choice.udp_encapsulation,
        df=choice.df,
        lifetime_s=choice.lifetime,
        ike_lifetime_s=choice.ike_lifetime,
        interface_id=XFRM_IF_ID if choice.interface else 0,
    )


def end_of(side: Side, tunnel: Tunnel, suite: Suite, ike: IkeOptions, made: Credentials) -> End:
    """One gateway's view of the tunnels."""
    home = side == "home"
    return End(
        own=tunnel.home if home else tunnel.office,
        peer=tunnel.office if home else tunnel.home,
        own_id=side,
        peer_id="office" if home else "home",
        tunnels=tuple((west, east) if home else (east, west) for west, east in tunnel.pairs),
        suite=suite,
        options=ike,
        credentials=made,
        initiates=home,
    )


def install(
    gateway: Gateway, daemon: str, version: str | None, prefix: Path | None, on_note: OnNote
) -> layers.DaemonFiles:
    """Put a daemon's files where the gateway finds them; nothing of the host changes."""
    if prefix is None:
        layers.lay_packages(gateway, packages.unpacked(daemon, version, on_note))
        return layers.DaemonFiles()
    if (prefix / "usr").is_dir():
        layers.lay_packages(gateway, prefix)
        return layers.DaemonFiles()
    if not (prefix / "sbin").is_dir():
        raise UsageError(
            f"prefix: expected an install prefix (with sbin/) or a DESTDIR image (with usr/), got {prefix}; "
            "give the folder that `make install` filled"
        )
    layers.lay_prefix(gateway, prefix)
    return layers.DaemonFiles(str(prefix))
