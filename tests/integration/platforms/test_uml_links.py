# SPDX-License-Identifier: Apache-2.0
"""Links of User-Mode Linux pairs that err: what is lost is what the links say, to the frame."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from espbench.generators import native
from espbench.platforms.link_errors import Errors, LinkErrors
from espbench.platforms.uml.uml_kernel import UmlProfile
from espbench.platforms.uml.uml_platform import UmlPlatform, UmlTestbed
from espbench.this_machine.registry import Registry
from support.gateways.addresses import GATEWAY_TO_GATEWAY
from support.gateways.boxes import leftovers
from support.gateways.uml_pairs import PLACEMENT, send
from support.generators.wire import CPU, Generator, back, stream, trial
from support.plans import PINNED, pair_plan, write_plan
from support.runs import espbench

pytestmark = [pytest.mark.root, pytest.mark.needs("generator"), pytest.mark.untimed]

MILLISECOND = 1_000_000
ERRORS = Errors(
    {
        "west": LinkErrors(loss=0.05, said="loss 0.05"),
        "middle": LinkErrors(bit_errors=2e-5, delay_ns=2 * MILLISECOND, said="bit errors"),
        "east": LinkErrors(loss=0.01, late=0.02, late_ns=5 * MILLISECOND, said="late"),
    },
    seed=4,
)


def wire() -> list[str]:
    return [str(native.binary()), "wire"]


@pytest.fixture
def bed() -> Iterator[UmlTestbed]:
    """Links that err, with a wire in place of each gateway."""
    run_id = f"t{uuid.uuid4().hex[:10]}"
    with Registry(run_id) as registry:
        platform = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY, ERRORS, wire)
        made = platform.calibration_bed(registry, PLACEMENT, wire())
        yield made
        made.close()
        assert registry.entries == []
    assert leftovers(run_id) == set()


def opened(generator: Generator, bed: UmlTestbed) -> dict[str, dict[str, Any]]:
    ports = [
        {
            "name": name, "interface": port.interface, "netns": port.netns, "tx_cpus": [CPU], "rx_cpu": CPU,
            "rx_ring_mib": 16, "tx": "af_packet", "rx": "af_packet",
        }
        for name, port in bed.ports.items()
    ]  # fmt: skip
    answer = generator.ask({"cmd": "open", "watch_cpus": [CPU], "ports": ports})
    assert answer["event"] == "opened", answer
    return {port["name"]: port for port in answer["ports"]}


def measured(generator: Generator, bed: UmlTestbed, ports: Any, chance: str) -> tuple[Any, Any]:
    """Return the streams of a trial, and what the links say they did."""
    bed.begin_trial(chance)
    # One queue has room for all: nothing but the links loses a frame, however the host is.
    streams = [one(ports, burst_frames=3000, frames=[{"size": 512, "weight": 1}]) for one in (stream, back)]
    result = trial(generator, *streams, duration_s=0.6)
    bed.end_trial()
    return result["streams"], bed.link_errors()


def test_what_is_lost_is_what_the_links_say(bed: UmlTestbed) -> None:
    """To the frame, for each link; the same trial has the same errors, another one others; and without one none."""
    generator = Generator("af_packet", "af_packet")
    try:
        ports = opened(generator, bed)
        first, links = measured(generator, bed, ports, "one")
        again, same = measured(generator, bed, ports, "one")
        _, other = measured(generator, bed, ports, "another")
        silent = trial(generator, stream(ports, burst_frames=500), duration_s=0.2)["streams"]
    finally:
        generator.close()

    sent = sum(one["tx_frames"] for one in first)
    assert sent == 6000
    taken = {name: of["lost"] + of["damaged"] for name, of in links.items()}
    assert sum(one["lost"] for one in first) == sum(taken.values())
    assert min(taken.values()) > 0
    assert 0 < sum(one["reordered"] for one in first) <= links["east"]["late"]
    assert links["middle"]["lost"] == links["west"]["damaged"] == links["middle"]["late"] == 0
    assert links == same
    assert [one["lost"] for one in first] == [one["lost"] for one in again]
    assert links != other
    assert silent[0]["lost"] == 0


@pytest.mark.uml
@pytest.mark.slow
@pytest.mark.parametrize("capture", [False, True])
def test_a_pair_forwards_all_but_what_its_links_take(tmp_path: Path, capture: bool) -> None:
    """Each frame, over three links that err, and each way of joining the guests."""
    with Registry(f"t{uuid.uuid4().hex[:10]}") as registry:
        platform = UmlPlatform(UmlProfile(), GATEWAY_TO_GATEWAY, ERRORS, wire)
        pair = platform.build(registry, tmp_path, PLACEMENT, capture=capture)
        assert send(pair, 4, 500)["received"] == 500
        pair.begin_trial("a trial")
        received = send(pair, 4, 2000, 500, wait_s=10.0)["received"]
        pair.end_trial()
        taken = {name: of["lost"] + of["damaged"] for name, of in pair.link_errors().items()}
        assert min(taken.values()) > 0
        assert received == 2000 - sum(taken.values())
        assert send(pair, 4, 500)["received"] == 500
        pair.close()


LINKS = {"seed": 1, "west": {"loss": 0.01}, "middle": {"bit_errors": 5e-6, "delay": "1ms"}}


@pytest.mark.uml
@pytest.mark.slow
@pytest.mark.alone
def test_a_run_says_what_its_links_lost(tmp_path: Path) -> None:
    """All that plain forwarding and ESP lose is at the places of the links, and is what the links say.

    A capture beside it takes no frame away.
    """
    losses = {
        "frame_loss": {
            "maximum": "2000fps", "step": "50%", "trial": "300ms", "settle": "0s", "residue": "500ms",
        }
    }  # fmt: skip
    plan = pair_plan(
        "uml", links=LINKS, capture=True, stacks=["plain", "xfrm"],
        suites=["aes128gcm16"], frame_sizes=[512], tests=[losses], **PINNED,
    )  # fmt: skip
    said = espbench("run", write_plan(tmp_path, plan), "--out", tmp_path / "runs", "--no-report")
    assert (tmp_path / "runs").is_dir(), said
    [directory] = (tmp_path / "runs").iterdir()
    trials = [json.loads(line) for line in (directory / "trials.jsonl").read_text().splitlines()]
    assert len({trial["case"] for trial in trials}) == 2, said
    for one in trials:
        links = one["measured"]["links"]
        taken = {name: of["lost"] + of["damaged"] for name, of in links.items()}
        assert set(taken) == {"west", "middle"}
        assert one["lost"] == sum(taken.values()) > 0, one
        places = one["loss_at"]
        assert places == {"first port into home": taken["west"], "middle link": taken["middle"]}, one
        assert one["proof"].get("violated") is None
