# SPDX-License-Identifier: Apache-2.0
"""Puts the manual page and the programs that cargo built into the wheel, and says in its name which machines run these
(scripts/dist.sh).
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelPrograms(BuildHookInterface):  # type: ignore[type-arg,misc]
    """Acts when hatchling builds a wheel. Without the variables the wheel has neither programs nor a manual page."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """ESPBENCH_PROGRAMS: their folder; ESPBENCH_PLATFORM: the wheel's platform tag (PEP 425).

        ESPBENCH_MAN_PAGE: the file of the page; pip puts it below the environment's share/man, where pipx finds it.
        """
        if version != "editable" and (page := os.environ.get("ESPBENCH_MAN_PAGE")):
            build_data["shared_data"][page] = "share/man/man1/espbench.1"
        folder, platform = os.environ.get("ESPBENCH_PROGRAMS"), os.environ.get("ESPBENCH_PLATFORM")
        if version == "editable" or not folder or not platform:
            return
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{platform}"
        for program in sorted(Path(folder).iterdir()):
            build_data["force_include"][str(program)] = f"espbench/_data/bin/{program.name}"
