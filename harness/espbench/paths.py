# SPDX-License-Identifier: Apache-2.0
"""Where espbench's own data files are, in the clone or inside an installed wheel, and where it keeps what it made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from espbench.errors import EspbenchError

DataKind = Literal["topologies", "dut-profiles", "reports", "traffic", "emulator", "network_processor"]
# Where each kind is in a clone; in a wheel all are in `_data`, under their names (pyproject.toml).
IN_CLONE: dict[DataKind, str] = {
    "topologies": "topologies",
    "dut-profiles": "dut-profiles",
    "reports": "reports",
    "traffic": "traffic/profiles",
    "emulator": "harness/emulator",
    "network_processor": "harness/network_processor",
}

_PACKAGE = Path(__file__).resolve().parent
_CLONE = _PACKAGE.parents[1]


def clone_root() -> Path | None:
    """The clone espbench runs from; None for an installed wheel."""
    in_clone = (_CLONE / "pyproject.toml").is_file() and _PACKAGE.parent.name == "harness"
    return _CLONE if in_clone else None


def data_dir(kind: DataKind) -> Path:
    """The folder of one kind of data; EspbenchError if the installation is incomplete."""
    clone = clone_root()
    directory = clone / IN_CLONE[kind] if clone else _PACKAGE / "_data" / kind
    if not directory.is_dir():
        raise EspbenchError(
            f"{directory}: expected espbench's {kind}, got no such folder; install espbench again"
        )
    return directory


def data_names(kind: DataKind) -> list[str]:
    """The names of the YAML files of one kind, sorted, without suffix."""
    return sorted(file.stem for file in data_dir(kind).glob("*.yaml"))


def cache_dir() -> Path:
    """Where espbench keeps what it fetched or built: XDG_CACHE_HOME, or ~/.cache, with espbench under it."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "espbench"
