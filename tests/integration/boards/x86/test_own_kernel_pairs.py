# SPDX-License-Identifier: Apache-2.0
"""A kernel, modules and a processor of the user's choice in x86-64 guests: they run, and what they cost is found."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import data_dir
from espbench.platforms.virtual.parts import packages, recipe
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry
from support.plans import pair_plan, write_plan
from support.virtual.own_module import TURN, headers, spinning
from support.virtual.virtual_runs import Measured, build, frames, measured

pytestmark = [pytest.mark.virtual_time, pytest.mark.boards, pytest.mark.slow]

# The first stands for a module that costs nothing: the others execute 100 and 10,000 instructions more.
TURNS = (1, 51, 5001)
# Each frame finds an idle gateway: at a higher load what it costs beside the module depends on the time that takes.
FPS = 5_000


@pytest.fixture(scope="module", autouse=True)
def built() -> None:
    """Build the guests in the user's cache; the first test that needs them does it."""
    build("x86")


def profile(folder: Path, name: str, more: str = "", cpu: str = "Haswell-noTSX") -> str:
    """A profile of that name beside the plan, as the plan names it."""
    text = (data_dir("dut-profiles") / "virt-x86.yaml").read_text()
    assert "cpu: Haswell-noTSX" in text
    text = text.replace("cpu: Haswell-noTSX", f"cpu: {cpu}")
    (folder / f"{name}.yaml").write_text(
        re.sub("^name: .*", f"name: {name}\n{more}", text, count=1, flags=re.MULTILINE)
    )
    return f"./{name}.yaml"


def measure(folder: Path, duts: list[str]) -> Measured:
    """Measure the boards at one load."""
    throughput = {
        "loss_goals": [0], "minimum": f"{FPS // 2}fps", "maximum": f"{FPS}fps", "trial": "20ms", "final_trial": "100ms",
        "warm_up": "10ms", "resolution": "20%",
    }  # fmt: skip
    plan = pair_plan(
        "virt-x86",
        throughput=throughput,
        name="own",
        stacks=["xfrm"],
        suites=["aes128gcm16"],
        frame_sizes=[512],
    )
    return measured(write_plan(folder, plan | {"dut": duts}), folder / "runs")


def cost(run: Measured, dut: str) -> dict[str, float]:
    """Instructions per frame of each gateway in the final trial; an instruction takes a nanosecond."""
    (final,) = [t for t in run.of("xfrm") if t["phase"] == "final" and f"-{dut}-" in t["case"]]
    assert (final["intended_fps"], final["lost"], final["validity"]) == (FPS, 0, "VALID")
    return {side: read["cpu_ns"] / read["frames"] for side, read in final["gateways"].items()}


@pytest.mark.needs("gcc", "make")
def test_what_an_own_module_spins_for_each_packet_is_found(tmp_path: Path) -> None:
    """Both gateways cost that much more, and the Security Context says which module they had."""
    of_kernel = headers(tmp_path)
    names = {turns: f"spin-{turns}" for turns in TURNS}
    duts = []
    for turns, name in names.items():
        module = spinning(of_kernel, tmp_path / f"module-{turns}", turns)
        duts.append(profile(tmp_path, name, f"modules: {module.relative_to(tmp_path)}"))
    run = measure(tmp_path, duts)
    costs = {turns: cost(run, name) for turns, name in names.items()}
    found = {
        (side, TURN * (turns - TURNS[0])): costs[turns][side] - costs[TURNS[0]][side]
        for turns in TURNS[1:]
        for side in ("home", "office")
    }
    assert found == {key: pytest.approx(key[1], rel=0.01) for key in found}
    contexts: dict[str, Any] = json.loads((run.directory / "manifest.json").read_text())["contexts"]
    modules = [context["emulation"]["modules"]["home"] for context in contexts.values()]
    assert all(re.fullmatch(r"spin\.ko sha256 [0-9a-f]{16}", text) for text in modules)
    assert len(set(modules)) == len(TURNS)


def test_debians_kernel_as_an_own_one_measures_what_debians_does(tmp_path: Path) -> None:
    """The bzImage and the release's folder of Debian's package: the same frames to the last instruction."""
    image = recipe.used_packages()["linux-amd64"]
    with Registry("own kernel") as registry:
        packages.unpack(image, tmp_path / "root", Runner(registry, tmp_path / "log", lambda line: None))
    release = image.name.removeprefix("linux-image-")
    mine = profile(
        tmp_path, "mine", f"kernel: root/boot/vmlinuz-{release}\nmodules: root/lib/modules/{release}"
    )
    run = measure(tmp_path, ["virt-x86", mine])
    cases = [[t for t in run.of("xfrm") if f"-{dut}-" in t["case"]] for dut in ("virt-x86", "mine")]
    assert cases[0]
    assert frames(cases[0]) == frames(cases[1])
    contexts = json.loads((run.directory / "manifest.json").read_text())["contexts"]
    (kernel,) = [
        context["emulation"]["kernel"] for context in contexts.values() if "kernel" in context["emulation"]
    ][:1]
    assert kernel["home"].startswith(f"{release}, vmlinuz-{release} sha256 ")


def test_a_processor_without_instructions_for_aes_encrypts_all_the_same(tmp_path: Path) -> None:
    """It does so in C, for several times the instructions; modules for AES instructions are passed over."""
    plain = profile(tmp_path, "plain-processor", cpu="Opteron_G1")
    run = measure(tmp_path, ["virt-x86", plain])
    with_aes, without = cost(run, "virt-x86"), cost(run, "plain-processor")
    for side in ("home", "office"):
        assert without[side] > 1.5 * with_aes[side], side
    (final,) = [t for t in run.of("xfrm") if t["phase"] == "final" and "-plain-processor-" in t["case"]]
    assert final["proof"]["proven"]
