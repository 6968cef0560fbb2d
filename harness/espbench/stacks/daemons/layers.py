# SPDX-License-Identifier: Apache-2.0
"""Lays a daemon's files over a gateway's root: the daemon is installed in the gateway, but not on the host.

A gateway has its own mount namespace (netns) or its own kernel (uml). The daemon writes into overlays over /usr, /etc
and /var, and its sockets and secrets into a new /run. All of this is in memory and disappears with the gateway.
"""

from __future__ import annotations

import re
import shlex

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import Gateway
from espbench.stacks.daemons.builds import Build

# /run is mounted first: the overlays' upper and work directories are on it, and an overlay cannot be an upper
# directory. All layers are bind-mounted before any overlay is mounted, for two reasons: an overlay over /var would hide
# a prefix below /var, and the kernel limits how deep overlays can be stacked. The layers are bind-mounted at fixed
# paths because a colon in a path would separate options of an overlay.
_SCRIPT = """\
set -e
mount -t tmpfs -o mode=0755 espbench /run
mkdir -p /run/lock
bind() {{ # the layer, its name, what it will be laid over
    mkdir -p "/run/espbench/layers/$2" "/run/espbench/upper/$2" "/run/espbench/scratch/$2"
    case "$1" in # an overlay's layers must not lie in each other: what does is copied into memory
    "${{3:-/nowhere}}"/*) cp -a "$1/." "/run/espbench/layers/$2" ;;
    *) mount --bind "$1" "/run/espbench/layers/$2" ;;
    esac
}}
lay() {{ # the layer's name, what it is laid over, that again if it shows through
    lower="/run/espbench/layers/$1${{3:+:$3}}"
    mount -t overlay -o "lowerdir=$lower,upperdir=/run/espbench/upper/$1,workdir=/run/espbench/scratch/$1" \
        espbench "$2"
}}
{lines}
"""
_LAID = ("usr", "etc", "var")
_ON_BOXES = "install those libraries there (not the daemon), or give prefix: an image built for that box"
_IN_GUESTS = "build the daemon on the Debian whose libraries the guests have (harness/emulator/packages.yaml)"
_NO_OVERLAYS = re.compile(r"unknown filesystem type|No such device")
_TOO_DEEP = re.compile(r"wrong fs type|Invalid argument")


def lay(gateway: Gateway, build: Build) -> None:
    """Make a build's files visible in the gateway; files that the daemon writes go to memory, not to the host.

    Raise UsageError for a build that works at its own path only, for a gateway on another machine; MachineLacks if the
    gateway has no overlays or not the libraries; EspbenchError if a mount fails otherwise.
    """
    if build.in_root:
        if build.own:
            _need_libraries(gateway, build, _IN_GUESTS)
        return
    place = gateway.deliver(build.folder)
    if place != str(build.folder):
        refuse_elsewhere(build)
    done = gateway.run(["sh", "-c", _SCRIPT.format(lines="\n".join(_lines(build, place)))])
    if done.rc:
        what = f"gateway {gateway.side}: cannot lay {build.folder} over its root: {done.err.strip()}"
        if _NO_OVERLAYS.search(done.err):
            raise MachineLacks(what, "use a kernel with CONFIG_OVERLAY_FS")
        if _TOO_DEEP.search(done.err):
            raise MachineLacks(what, "use a root, and a place of the build, not already two overlays deep")
        raise EspbenchError(what)
    if place != str(build.folder):
        _need_libraries(gateway, build, _ON_BOXES)


def refuse_elsewhere(build: Build) -> None:
    """Raise UsageError for a build that is no image: on another machine it cannot have the path for which it
    was made.
    """
    if not build.image:
        raise UsageError(
            f"prefix: expected an image (a folder with usr/) for gateways on other machines, got {build.folder}, "
            "which works at its own path only; configure the build with --prefix=/usr, then `make install "
            "DESTDIR=…` makes one"
        )


def _need_libraries(gateway: Gateway, build: Build, remedy: str) -> None:
    """Raise MachineLacks if the gateway does not have the libraries that a build from this machine needs."""
    for name, path in build.programs.items():
        # This does the same as ldd(1), which not every machine has.
        loaded = gateway.run(["env", "LD_TRACE_LOADED_OBJECTS=1", path])
        lacking = re.findall(r"(\S+) => not found|version `(\S+)' not found", loaded.out + loaded.err)
        if loaded.rc or lacking:
            words = ", ".join(dict.fromkeys(lib or version for lib, version in lacking)) or loaded.err.strip()
            raise MachineLacks(
                f"gateway {gateway.side}: {name} of {build.name} cannot run there: that machine lacks {words}",
                remedy,
            )


def _lines(build: Build, place: str) -> list[str]:
    """Return the script's lines that lay an image's usr, etc and var, or a prefix, over the gateway's root.

    /etc and /var (with an image also /usr) get an overlay even if the build has no such folder.
    """
    own = [part for part in _LAID if build.image and (build.folder / part).is_dir()]
    parts = _LAID if build.image else _LAID[1:]
    sources = {part: f"{place}/{part}" if part in own else f"/{part}" for part in parts}
    laid = [f"lay {part} /{part}{f' /{part}' if part in own else ''}" for part in parts]
    if not build.image:
        sources["prefix"] = str(build.folder)
        laid.append(f"lay prefix {shlex.quote(str(build.folder))}")
    over = {part: f" /{part}" for part in own}
    bound = (f"bind {shlex.quote(source)} {name}{over.get(name, '')}" for name, source in sources.items())
    return [*bound, *laid]
