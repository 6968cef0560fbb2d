# SPDX-License-Identifier: Apache-2.0
"""A daemon's files laid over a gateway's root: there they are installed, on the host they are not.

A gateway has a mount namespace of its own (netns) or a kernel of its own (uml); overlays over its /usr,
/etc and /var take what the daemon writes, and a fresh /run its sockets and secrets. All of it is memory
and goes with the gateway.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path

from espbench.errors import MachineLacks
from espbench.platforms.base import Gateway

# /run first: the uppers and works of the overlays live on it, and an overlay cannot be an upper.
_SCRIPT = """\
set -e
mount -t tmpfs -o mode=0755 espbench /run
mkdir -p /run/espbench/layers /run/lock
lay() {{ # the layer (a bind mount, since an overlay's options end at colons), what it is laid over
    mkdir -p "/run/espbench/layers/$3" "/run/espbench/upper/$3" "/run/espbench/work/$3"
    mount --bind "$1" "/run/espbench/layers/$3"
    lower="/run/espbench/layers/$3"
    [ "$1" = "$2" ] || lower="$lower:$2"
    mount -t overlay -o "lowerdir=$lower,upperdir=/run/espbench/upper/$3,workdir=/run/espbench/work/$3" \\
        espbench "$2"
}}
{lines}
"""
_LAID = ("usr", "etc", "var")


@dataclass(frozen=True)
class DaemonFiles:
    """Where a daemon's programs are inside the gateway: at their usual places, or under a prefix."""

    prefix: str = ""  # of the user's own build, such as /opt/strongswan; empty: the usual places

    def program(self, place: str) -> str:
        """The path of a program inside the gateway; place is its usual one below /usr: `sbin/swanctl`."""
        return f"{self.prefix or '/usr'}/{place}"


def lay_packages(gateway: Gateway, folder: Path) -> None:
    """Lay a folder that looks like a root (usr/, etc/, var/) over the gateway's own."""
    lines = [
        f"lay {shlex.quote(str(folder / part))} /{part} {part}"
        if (folder / part).is_dir()
        else f"lay /{part} /{part} {part}"
        for part in _LAID
    ]
    _run(gateway, lines)


def lay_prefix(gateway: Gateway, prefix: Path) -> None:
    """Make an install prefix writable for the gateway alone, and /etc and /var likewise."""
    lines = [f"lay /{part} /{part} {part}" for part in ("etc", "var")]
    lines.append(f"lay {shlex.quote(str(prefix))} {shlex.quote(str(prefix))} prefix")
    _run(gateway, lines)


def _run(gateway: Gateway, lines: list[str]) -> None:
    done = gateway.run(["sh", "-c", _SCRIPT.format(lines="\n".join(lines))])
    if done.rc:
        raise MachineLacks(
            f"gateway {gateway.side}: cannot lay the daemon's files over its root: {done.err.strip()}",
            "use a kernel with CONFIG_OVERLAY_FS, and a root that is not already two overlays deep",
        )
