# SPDX-License-Identifier: Apache-2.0
"""A UML gateway needs a kernel and programs; a minimal Debian root lacks more than the kernel."""

from __future__ import annotations

import shutil

import pytest

from espbench.platforms.uml import uml_kernel
from espbench.platforms.uml.uml_guest import INIT


@pytest.mark.parametrize("program", ["mount", "modprobe", "ip"])
def test_a_program_that_is_missing_is_named_with_its_package(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    """The guest's root is the host's, so what its init calls must be here."""
    which = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, path=None: None if name == program else which(name, path=path)
    )
    lacking = {need.name: need.install for need in uml_kernel.readiness() if not need.ready}
    packages = {"mount": "mount", "modprobe": "kmod", "ip": "iproute2"}
    assert lacking[program] == f"apt-get install {packages[program]}"


def test_the_guest_mounts_the_hosts_files_as_every_mount_does_it() -> None:
    """mount(8) of util-linux 2.41 cannot pass a bare path; without one it is /, in each kernel."""
    options = [line.split() for line in INIT.splitlines() if "-t hostfs" in line]
    assert [line[:6] for line in options] == [["mount", "-t", "hostfs", "-o", "ro", "none"]]
