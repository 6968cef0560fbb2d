# SPDX-License-Identifier: Apache-2.0
"""A daemon's files laid over a gateway's root: there they are installed, on the host they are not.

A gateway has a mount namespace of its own (netns) or a kernel of its own (uml); overlays over its /usr,
/etc and /var take what the daemon writes, and a fresh /run its sockets and secrets. All of it is memory
and goes with the gateway.
"""

from __future__ import annotations

import re
import shlex

from espbench.errors import EspbenchError, MachineLacks, UsageError
from espbench.platforms.base import Gateway
from espbench.stacks.daemons.builds import Build

# /run first: the uppers and works of the overlays live on it, and an overlay cannot be an upper. All layers
# are bound before anything is laid: what is laid over /var would hide a prefix below it, and one overlay
# more under the prefix may be one too many for the kernel. (Bound, since an overlay's options end at colons.)
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
    """Put a build where the gateway finds it; what the daemon writes goes to memory, nothing to the host."""
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
    """Raise UsageError for a build that another machine's gateway cannot have at the path it was made for."""
    if not build.image:
        raise UsageError(
            f"prefix: expected an image (a folder with usr/) for gateways on other machines, got {build.folder}, "
            "which works at its own path only; configure the build with --prefix=/usr, then `make install "
            "DESTDIR=…` makes one"
        )


def _need_libraries(gateway: Gateway, build: Build, remedy: str) -> None:
    """Raise MachineLacks if the gateway has not the libraries that a build made or fetched here needs."""
    for name, path in build.programs.items():
        # This is what ldd(1) does; not every machine has it.
        loaded = gateway.run(["env", "LD_TRACE_LOADED_OBJECTS=1", path])
        lacking = re.findall(r"(\S+) => not found|version `(\S+)' not found", loaded.out + loaded.err)
        if loaded.rc or lacking:
            words = ", ".join(dict.fromkeys(lib or version for lib, version in lacking)) or loaded.err.strip()
            raise MachineLacks(
                f"gateway {gateway.side}: {name} of {build.name} cannot run there: that machine lacks {words}",
                remedy,
            )


def _lines(build: Build, place: str) -> list[str]:
    """Return the lines that lay an image's usr, etc and var, or a prefix, /etc and /var, over the gateway's."""
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
