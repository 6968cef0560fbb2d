# SPDX-License-Identifier: Apache-2.0
"""Puts the stack that a plan names onto a test bed: lays its files over the root of gateways, and makes its keys."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from espbench.catalogue.stack_names import STACKS
from espbench.catalogue.suites import Suite, suites
from espbench.plan import Case
from espbench.plan.keys.stack_choice import StackChoice
from espbench.platforms.base import SIDES, Gateway, Side, Testbed
from espbench.runs.platform_kinds.shared import stack_files
from espbench.runs.platform_kinds.shared.platform import OnNote
from espbench.stacks.base import Stack, Tunnel
from espbench.stacks.daemons import builds, credentials, layers
from espbench.stacks.daemons.builds import Build
from espbench.stacks.daemons.daemon import Credentials, Daemon, End, IkeOptions
from espbench.stacks.daemons.ike import IkeStack
from espbench.stacks.lean_esp import LeanEsp
from espbench.stacks.libreswan.pluto import Libreswan
from espbench.stacks.plain import Plain
from espbench.stacks.strongswan.charon import StrongSwan
from espbench.stacks.strongswan.user_space import UserSpaceStack
from espbench.stacks.xfrm import Xfrm

# Every stack of the catalogue is in one of these tables, by its name. `plain` has no SAs.
STATIC: dict[str, type[Xfrm | LeanEsp]] = {"null": Xfrm, "xfrm": Xfrm, "lean-esp": LeanEsp}
# One end of the stacks whose ESP is the kernel's.
DAEMONS: dict[str, Callable[[Gateway, End, Build], Daemon]] = {
    "strongswan": StrongSwan,
    "libreswan": Libreswan,
}
# One end of the stacks whose daemon also has the ESP.
USER_SPACE: dict[str, Callable[[Gateway, End, Build], StrongSwan]] = {
    "strongswan-libipsec": partial(StrongSwan, user_space=True),
}


def on_bed(bed: Testbed, tunnel: Tunnel, case: Case, plan_path: Path | None, on_note: OnNote) -> Stack:
    """Return the case's stack on this bed, not yet blocking or established."""
    choice = case.stack
    if choice.kind == "plain":
        return Plain(bed, tunnel, bare=choice.policies == "none")
    suite = suites()[case.suite]
    options = options_of(choice)
    if bed.virtual_time:
        held = {daemon: builds.held(bed.held[daemon]) for daemon in choice.daemons}
    else:
        held = stack_files.builds_of(choice, plan_path, on_note)
    if not held:
        return STATIC[choice.kind](bed, tunnel, suite, options)
    made = credentials.make(options.auth, bed.chance if bed.virtual_time else None, options.certificate)
    charons: dict[Side, StrongSwan] = {}
    daemons: dict[Side, Daemon] = {}
    for side in SIDES:
        gateway, name = bed.gateways[side], _name(choice, side)
        build = held[STACKS[name].daemon]
        layers.lay(gateway, build)
        end = end_of(side, tunnel, suite, options, made[side])
        if name in USER_SPACE:
            charons[side] = USER_SPACE[name](gateway, end, build)
        else:
            daemons[side] = DAEMONS[name](gateway, end, build)
    if charons:
        return UserSpaceStack(choice.shown, bed, tunnel, suite, options, charons)
    return IkeStack(choice.shown, bed, tunnel, suite, options, daemons)


def _name(choice: StackChoice, side: Side) -> str:
    return choice.stack or getattr(choice, side)


def options_of(choice: StackChoice) -> IkeOptions:
    """Return the plan's keys in the form that stacks and daemons take."""
    return IkeOptions(
        mode=choice.mode,
        replay_window=choice.replay_window,
        esn=choice.esn,
        tunnels=choice.tunnels,
        udp_encapsulation=choice.in_udp,
        df=choice.df,
        interface=choice.interface,
        ike=choice.ike,
        auth=choice.auth,
        certificate=choice.certificate,
        lifetime_s=choice.lifetime,
        lifetime_bytes=choice.lifetime_bytes,
        idle_s=choice.idle_timeout,
        ike_lifetime_s=choice.ike_lifetime,
    )


def end_of(side: Side, tunnel: Tunnel, suite: Suite, options: IkeOptions, made: Credentials) -> End:
    """Return one gateway's view of the tunnels."""
    home = side == "home"
    return End(
        own=tunnel.home if home else tunnel.office,
        peer=tunnel.office if home else tunnel.home,
        own_id=side,
        peer_id="office" if home else "home",
        tunnels=tuple((west, east) if home else (east, west) for west, east in tunnel.pairs),
        suite=suite,
        options=options,
        credentials=made,
        initiates=home,
    )
