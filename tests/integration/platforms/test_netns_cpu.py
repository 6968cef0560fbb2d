# SPDX-License-Identifier: Apache-2.0
"""Each gateway's CPU figure in namespaces is its own: work laid upon one shows there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.errors import EspbenchError
from espbench.generators.native import NativeGenerator
from espbench.measure.inputs.actions import Action
from espbench.measure.inputs.setup import Request, Setup, TrialBroken, Waits
from espbench.measure.inputs.traffic import Traffic
from espbench.measure.record import OfCase
from espbench.measure.trial import measure
from espbench.platforms import placement
from espbench.platforms.base import SIDES, Side
from espbench.platforms.netns import NetnsPlatform
from espbench.terms import GATEWAY_SPEED, Trial
from espbench.this_machine import irq_time
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY

pytestmark = pytest.mark.root

CPUS = sorted(os.sched_getaffinity(0))
ATTEMPTS = 3
RULES = 4000  # some 5 ns each: several times what forwarding itself costs
FPS = 4000  # a gateway's ring (256 frames) outlasts a stall of its CPU of 60 ms


@pytest.fixture(scope="module")
def setup(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setup]:
    """Two routers, and a generator at their outer ports."""
    logs = tmp_path_factory.mktemp("logs")
    with Registry("t" + secrets.token_hex(3)) as registry:
        placed = placement.choose()
        placement.pin_controller(placed)
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).build(registry, logs, placed)
        generator = NativeGenerator(registry, logs / "generator.log")
        generator.open(list(bed.ports.values()), CPUS)
        yield Setup(bed, generator, None, {name: port.next_hop_mac or "" for name, port in bed.ports.items()})
    os.sched_setaffinity(0, CPUS)


def one_trial(setup: Setup) -> Trial:
    return measure(
        setup,
        Traffic(((64, 1),), 4, "one-way"),
        Request(FPS, 0.5, "search"),
        OfCase("test", 0, 0.01),
        Waits(learning_s=0.05, residue_s=0.3, settle_s=0.0),
    )


def test_the_speed_of_the_gateways_cpus_is_in_each_record(setup: Setup) -> None:
    """Without it no trial would ever be void for a slow CPU, and nobody would notice."""
    placed = setup.bed.placement.cpus
    if set(placed["home"]) & set(placed["tester tx"]):
        pytest.skip("needs a CPU for the gateways alone")
    speed = one_trial(setup).host[GATEWAY_SPEED]
    assert 0 < speed <= 100


def us_per_frame(setup: Setup) -> dict[Side, float]:
    """Both gateways' CPU time for a frame, the least of some trials: a busy host makes it more, never less."""
    costs: dict[Side, list[float]] = {side: [] for side in SIDES}
    for _ in range(ATTEMPTS):
        trial = one_trial(setup)
        assert trial.rx_frames > 0.9 * FPS * 0.5
        for side in SIDES:
            costs[side].append(trial.gateways[side].cpu_us_per_frame or 0.0)
    return {side: min(values) for side, values in costs.items()}


def burden(setup: Setup, side: Side, folder: Path) -> None:
    """Every frame that this gateway forwards is compared with many addresses in vain."""
    rules = "\n".join(f"  ip saddr 203.0.113.{n % 255} drop" for n in range(RULES))
    chain = f"chain forward {{\n  type filter hook forward priority 0;\n{rules}\n }}"
    file = folder / "burden.nft"
    file.write_text(f"table ip burden {{\n {chain}\n}}\n")
    done = setup.bed.gateways[side].run(["nft", "-f", str(file)])
    assert done.rc == 0, done.err


def relieve(setup: Setup, side: Side) -> None:
    assert setup.bed.gateways[side].run(["nft", "delete table ip burden"]).rc == 0


@pytest.mark.slow
def test_work_laid_upon_a_gateway_shows_in_its_own_figure(setup: Setup, tmp_path: Path) -> None:
    """Neither forwards in the other's thread, nor in the sender's.

    The other's figure may rise as well: being woken is a part of it, and depends on who shares the CPU.
    """
    alone = us_per_frame(setup)
    for side in SIDES:
        burden(setup, side, tmp_path)
        laden = us_per_frame(setup)
        relieve(setup, side)
        assert laden[side] - alone[side] > 5, (side, alone, laden)
    assert min(alone.values()) > 0


def test_a_kernel_that_books_softirqs_to_nobody_gives_no_figure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """CONFIG_IRQ_TIME_ACCOUNTING=y: what gro_cells decrypt is in no thread's account, so neither gateway has one."""
    why = "the kernel's configuration has CONFIG_IRQ_TIME_ACCOUNTING=y"
    monkeypatch.setattr(irq_time, "left_out", lambda: why)
    with Registry("t" + secrets.token_hex(3)) as registry:
        bed = NetnsPlatform(GATEWAY_TO_GATEWAY).build(registry, tmp_path, placement.choose())
        assert [bed.gateways[side].cpu_ns() for side in SIDES] == [None, None]
        assert bed.facts["CPU time of the gateways"] == f"not told: {why}"


def test_a_trial_in_which_a_port_went_down_and_up_is_void(setup: Setup) -> None:
    """The kernel makes another thread then; the new one is pinned and counted from the next trial on.

    The last test with these gateways: Home has lost its route to the tester.
    """
    home = setup.bed.gateways["home"]

    def flap() -> dict[str, Any]:
        home.ip([f"link set dev {home.lan} down", f"link set dev {home.lan} up"])
        return {}

    before = home.cpu_ns() or 0
    with pytest.raises(TrialBroken, match="its NAPI thread was replaced"):
        measure(
            setup,
            Traffic(((64, 1),), 4, "one-way"),
            Request(1000, 0.5, "search"),
            OfCase("test", 0, 0.01),
            Waits(learning_s=0.05, residue_s=0.1, settle_s=0.0),
            actions=[Action("flap", 0.2, flap)],
        )
    assert (home.cpu_ns() or 0) >= before
    home.ip([f"link set dev {home.lan} down"])
    for _ in range(2):
        with pytest.raises(EspbenchError, match="is not up again"):
            home.cpu_ns()
