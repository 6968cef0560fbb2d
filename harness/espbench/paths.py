# SPDX-License-Identifier: Apache-2.0
"""Finds espbench's own data files and programs, in the clone or in an installed wheel, and its cache folder.

espbench's own YAML files are read by libyaml, which is ten times as fast as PyYAML's own reader; `plan.reading` reads
those of users.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any, Literal

import yaml

from espbench.errors import EspbenchError

DataKind = Literal[
    "topologies", "dut-profiles", "reports", "traffic", "emulator", "network_processor", "plans"
]
# The folder of each kind in a clone; in a wheel all are in `_data`, under the names of the kinds (pyproject.toml).
IN_CLONE: dict[DataKind, str] = {
    "topologies": "topologies",
    "dut-profiles": "dut-profiles",
    "reports": "reports",
    "traffic": "traffic/profiles",
    "emulator": "harness/emulator",
    "network_processor": "harness/network_processor",
    "plans": "plans",
}

_PACKAGE = Path(__file__).resolve().parent
_CLONE = _PACKAGE.parents[1]


def clone_root() -> Path | None:
    """Return the root of the clone from which espbench runs; None for an installed wheel."""
    in_clone = (_CLONE / "pyproject.toml").is_file() and _PACKAGE.parent.name == "harness"
    return _CLONE if in_clone else None


def data_dir(kind: DataKind) -> Path:
    """Return the folder of one kind of data; EspbenchError if the installation is incomplete."""
    clone = clone_root()
    directory = clone / IN_CLONE[kind] if clone else _PACKAGE / "_data" / kind
    if not directory.is_dir():
        raise EspbenchError(
            f"{directory}: expected espbench's {kind}, got no such folder; install espbench again"
        )
    return directory


def data_names(kind: DataKind) -> list[str]:
    """Return the names of the YAML files of one kind, sorted, without suffix."""
    return sorted(file.stem for file in data_dir(kind).glob("*.yaml"))


def own_yaml(path: Path) -> Any:
    """Read one of espbench's own YAML files; OSError if it cannot be read, YAMLError if it is no YAML."""
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)


def program(name: str, variable: str) -> Path:
    """Return the path of one of espbench's own compiled programs.

    It is the first of: the environment variable's, the clone's or the wheel's, the one in PATH. FileNotFoundError if
    there is none; `how_to_build` says what to do then.
    """
    clone = clone_root()
    candidates = [
        os.environ.get(variable),
        clone / "traffic" / "target" / "release" / name if clone else _PACKAGE / "_data" / "bin" / name,
        shutil.which(name),
    ]
    for candidate in candidates:
        if candidate and os.access(candidate, os.X_OK):
            return Path(candidate)
    raise FileNotFoundError(name)


def how_to_build() -> str:
    """Return what a user must do to get the programs that `program` looks for."""
    return "make setup" if clone_root() else "install espbench again, from a wheel for this kind of processor"


def cache_dir() -> Path:
    """Return the folder for files that espbench fetched or built: `espbench` in XDG_CACHE_HOME, or in ~/.cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "espbench"
