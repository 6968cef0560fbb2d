# SPDX-License-Identifier: Apache-2.0
"""A User-Mode Linux guest whose kernel lost its timer comes back by itself."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path

import pytest

from espbench.platforms.uml import uml_guest
from espbench.platforms.uml.beat import BEAT_S
from espbench.platforms.uml.uml_guest import UmlMachine, boot
from espbench.platforms.uml.uml_kernel import XSTATE_SHIM, UmlKernel
from espbench.this_machine.registry import Registry

pytestmark = [pytest.mark.uml, pytest.mark.untimed]

LOST_TIMER = Path(__file__).parents[2] / "support" / "gateways" / "lost_timer.c"
# Something sleeps inside at any moment: else the kernel sets its timer anew as soon as it is idle.
SLEEPER = ["sh", "-c", "python3 -I -S -c 'import time\nwhile True: time.sleep(0.003)' &"]


def test_a_kernel_that_lost_its_timer_is_woken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No timer of the guest fires for longer than a beat; afterwards what sleeps in it wakes."""
    lose = tmp_path / "lose"

    def build(private: Path) -> Path:
        library = private / "lost_timer.so"
        sources = [str(LOST_TIMER), str(XSTATE_SHIM)]
        command = ["cc", "-O2", "-Wall", "-Werror", "-shared", "-fPIC", f'-DLOST_TIMER="{lose}"']
        subprocess.run([*command, "-o", str(library), *sources], check=True)
        return library

    monkeypatch.setattr(uml_guest, "needs_xstate_shim", lambda _: True)
    monkeypatch.setattr(uml_guest, "build_xstate_shim", build)
    with Registry(f"t{tmp_path.name[-8:]}") as registry:
        guest = boot(registry, "home", UmlMachine(UmlKernel(), 128), tmp_path)
        guest.wait_ready()
        guest.channel.request("exec", argv=SLEEPER)
        lose.touch()
        threading.Timer(4 * BEAT_S, lose.unlink).start()
        time.sleep(2 * BEAT_S)
        reply = guest.channel.request("exec", within_s=120.0, argv=["sleep", "0.1"])
    assert reply["rc"] == 0
