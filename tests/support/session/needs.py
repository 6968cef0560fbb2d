# SPDX-License-Identifier: Apache-2.0
"""Skips a test if this machine lacks something that its markers name, and says what is missing.

    @pytest.mark.root                     root's rights
    @pytest.mark.uml                      User-Mode Linux gateways
    @pytest.mark.boards                   the emulated boards, built
    @pytest.mark.browser                  Chromium
    @pytest.mark.needs("nftables", …)     Debian packages (names of scripts/packages.txt), or others of NEEDS

Each need is checked once in a session. With --nothing-missing, which `make test` sets, a test fails if something is
missing that `make test` installs or builds; otherwise a test could be skipped unnoticed.
"""

from __future__ import annotations

import functools
import os
import shutil
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

import pytest

from espbench.generators import native
from espbench.npcrypt import machine
from espbench.platforms.uml import uml_kernel
from espbench.platforms.virtual.parts.kits import E500_KIT
from support.headless import find_browser

ROOT = Path(__file__).parents[3]
OPTION = "--nothing-missing"
MARKERS = ("root", "uml", "boards", "browser")  # each stands for the need with the same name


class Lack(NamedTuple):
    """Something that is missing. reason: what it is, and the remedy. is_installed: the set-up should install it."""

    reason: str
    is_installed: bool


def _root() -> Lack | None:
    return None if os.geteuid() == 0 else Lack("needs root: run pytest as root", False)


def _uml() -> Lack | None:
    missing = [need for need in uml_kernel.readiness() if not need.ready]
    reason = "; ".join(f"{need.missing}: {need.install}" for need in missing)
    of_the_host = {need.name for need in missing} <= {"root", "tun"}
    return Lack(f"needs User-Mode Linux: {reason}", not of_the_host) if missing else None


def _boards() -> Lack | None:
    lack = Lack("needs the emulated boards: run `espbench build e500` (4 minutes)", True)
    return None if E500_KIT.find() else lack


def _browser() -> Lack | None:
    return None if find_browser() else Lack("needs chromium: apt-get install chromium", True)


def _generator() -> Lack | None:
    return None if native.readiness().ready else Lack("needs the traffic generator: make setup", True)


def _ixp() -> Lack | None:
    return None if machine.readiness().ready else Lack("needs the network processor: make setup", True)


def _tun() -> Lack | None:
    return None if Path("/dev/net/tun").exists() else Lack("needs TUN devices: modprobe tun", False)


def _autogroup() -> Lack | None:
    there = Path("/proc/self/autogroup").exists()
    return None if there else Lack("needs a kernel with CONFIG_SCHED_AUTOGROUP", False)


def _command() -> Lack | None:
    there = Path(sys.executable).with_name("espbench").exists()
    return None if there else Lack("needs the command espbench: make setup", True)


def _distributed() -> Lack | None:
    there = find_spec("distributed")
    return None if there else Lack("needs Dask distributed: pip install espbench[cluster]", True)


def _jumpavg() -> Lack | None:
    return None if find_spec("jumpavg") else Lack("needs jumpavg: make setup", True)


def _prometheus() -> Lack | None:
    return None if find_spec("prometheus_client") else Lack("needs prometheus-client: make setup", True)


def _labgrid() -> Lack | None:
    return None if find_spec("labgrid") else Lack("needs labgrid: pip install espbench[lab]", True)


def _variable(name: str, meaning: str) -> Callable[[], Lack | None]:
    return lambda: None if os.environ.get(name) else Lack(f"needs {name}: set it to {meaning}", False)


def _package(name: str, witness: str) -> Callable[[], Lack | None]:
    def look() -> Lack | None:
        path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
        there = Path(witness).exists() if witness.startswith("/") else shutil.which(witness, path=path)
        return None if there else Lack(f"needs {name}: apt-get install {name}", True)

    return look


def _packages() -> dict[str, Callable[[], Lack | None]]:
    """Return the checks of the packages that the set-up installs; a file or program shows that a package is there."""
    lines = (line.split() for line in (ROOT / "scripts" / "packages.txt").read_text().splitlines())
    return {words[0]: _package(*words) for words in lines if len(words) == 2}


NEEDS: dict[str, Callable[[], Lack | None]] = _packages() | {
    "root": _root,
    "uml": _uml,
    "boards": _boards,
    "browser": _browser,
    "generator": _generator,
    "ixp": _ixp,
    "command": _command,
    "distributed": _distributed,
    "jumpavg": _jumpavg,
    "labgrid": _labgrid,
    "prometheus-client": _prometheus,
    "tun": _tun,
    "autogroup": _autogroup,
    "TREX_DIR": _variable("TREX_DIR", "the folder of a TRex"),
    "ESPBENCH_XFRMI_PROFILE": _variable(
        "ESPBENCH_XFRMI_PROFILE",
        "a DUT profile whose kernels have CONFIG_XFRM_INTERFACE (docs/stacks.md says how to build one)",
    ),
}


@functools.cache
def lack_of(name: str) -> Lack | None:
    """Check one need; return None if it is met."""
    return NEEDS[name]()


def named_by(item: pytest.Item) -> list[str]:
    """Return the needs that a test's markers name."""
    names = [name for name in MARKERS if item.get_closest_marker(name)]
    for marker in item.iter_markers("needs"):
        unknown = [name for name in marker.args if name not in NEEDS]
        if unknown or not marker.args:
            raise pytest.UsageError(
                f"{item.nodeid}: needs() names {unknown or 'nothing'}; it knows {sorted(NEEDS)}"
            )
        names += marker.args
    return names


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that `make test` uses."""
    parser.addoption(
        OPTION,
        action="store_true",
        help="fail where something is missing that `make test` installs or builds",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip or fail a test with unmet needs before its fixtures are made."""
    lacks = [lack for name in named_by(item) if (lack := lack_of(name))]
    if not lacks:
        return
    reason = "; ".join(lack.reason for lack in lacks)
    if item.config.getoption(OPTION) and any(lack.is_installed for lack in lacks):
        pytest.fail(f"{reason} ({OPTION}: `make test` should have seen to it)", pytrace=False)
    pytest.skip(reason)
