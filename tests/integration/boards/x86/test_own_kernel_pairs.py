# SPDX-License-Identifier: Apache-2.0
"""A kernel, modules and a processor of the user's choice in x86-64 guests: they run, and what they cost is found."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from espbench.paths import data_dir
from espbench.platforms.base import SIDES
from espbench.platforms.virtual.parts import packages, recipe
from espbench.platforms.virtual.parts.tools import Runner
from espbench.this_machine.registry import Registry
from support.plans import pair_plan, write_plan
from support.virtual.own_module import TURN, headers, spinning
from support.virtual.virtual_runs import Measured, build, frames, measured

pytestmark = [
    pytest.mark.virtual_time,
    pytest.mark.boards,
    pytest.mark.slow,
    pytest.mark.needs("gcc", "make"),
]

# The first stands for a module that costs nothing: the other executes 10,000 instructions more.
TURNS = (1, 5001)
# Each frame finds an idle gateway: at a higher load what it costs beside the module depends on the time that takes.
FPS = 5_000


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Measured:
    """All guests at one load; those with a module that spins only if apt can fetch what builds it."""
    build("x86")
    folder = tmp_path_factory.mktemp("own")
    duts = ["virt-x86", debians_own(folder), profile(folder, "plain-processor", cpu="Opteron_G1")]
    with contextlib.suppress(pytest.skip.Exception):
        duts += spinning_duts(folder)
    return measure(folder, duts)


def debians_own(folder: Path) -> str:
    """Make a profile that names the bzImage and the release's folder of Debian's package."""
    image = recipe.used_packages()["linux-amd64"]
    with Registry("own kernel") as registry:
        packages.unpack(image, folder / "debian", Runner(registry, folder / "log", lambda line: None))
    release = image.name.removeprefix("linux-image-")
    keys = f"kernel: debian/boot/vmlinuz-{release}\nmodules: debian/lib/modules/{release}"
    return profile(folder, "mine", keys)


def spinning_duts(folder: Path) -> list[str]:
    """Make a profile for each number of turns; skip if apt cannot fetch the kernel's headers."""
    of_kernel = headers(folder)
    modules = {turns: spinning(of_kernel, folder / f"module-{turns}", turns) for turns in TURNS}
    return [
        profile(folder, f"spin-{turns}", f"modules: {module.relative_to(folder)}")
        for turns, module in modules.items()
    ]


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


def of_dut(run: Measured, dut: str) -> list[dict[str, Any]]:
    return [trial for trial in run.of("xfrm") if f"-{dut}-xfrm-" in trial["case"]]


def cost(run: Measured, dut: str) -> dict[str, float]:
    """Instructions per frame of each gateway in the final trial; an instruction takes a nanosecond."""
    (final,) = [trial for trial in of_dut(run, dut) if trial["phase"] == "final"]
    assert (final["intended_fps"], final["lost"], final["validity"]) == (FPS, 0, "VALID")
    return {side: read["cpu_ns"] / read["frames"] for side, read in final["gateways"].items()}


def emulation(run: Measured, dut: str) -> dict[str, Any]:
    """Return what the Security Context says of the guests of one DUT with ESP."""
    manifest = json.loads((run.directory / "manifest.json").read_text())
    (case,) = [entry["case"] for entry in manifest["cases"] if f"-{dut}-xfrm-" in entry["case"]]
    told: dict[str, Any] = manifest["contexts"][manifest["context_of_case"][case]]["emulation"]
    return told


def test_what_an_own_module_spins_for_each_packet_is_found(run: Measured) -> None:
    """Both gateways cost that much more, and the Security Context says which module they had."""
    names = [f"spin-{turns}" for turns in TURNS]
    if not of_dut(run, names[0]):
        pytest.skip("apt cannot fetch the headers of the guests' kernel")
    least, most = (cost(run, name) for name in names)
    expected = pytest.approx(TURN * (TURNS[1] - TURNS[0]), rel=0.01)
    assert {side: most[side] - least[side] for side in SIDES} == dict.fromkeys(SIDES, expected)
    modules = [emulation(run, name)["modules"]["home"] for name in names]
    assert all(re.fullmatch(r"spin\.ko sha256 [0-9a-f]{16}", text) for text in modules)
    assert len(set(modules)) == len(TURNS)


def test_debians_kernel_as_an_own_one_measures_what_debians_does(run: Measured) -> None:
    """The bzImage and the release's folder of Debian's package: the same frames to the last instruction."""
    usual, mine = of_dut(run, "virt-x86"), of_dut(run, "mine")
    assert usual
    assert frames(usual) == frames(mine)
    release = recipe.used_packages()["linux-amd64"].name.removeprefix("linux-image-")
    assert emulation(run, "mine")["kernel"]["home"].startswith(f"{release}, vmlinuz-{release} sha256 ")


def test_a_processor_without_instructions_for_aes_encrypts_all_the_same(run: Measured) -> None:
    """It does so in C, for several times the instructions; modules for AES instructions are passed over."""
    with_aes, without = cost(run, "virt-x86"), cost(run, "plain-processor")
    for side in SIDES:
        assert without[side] > 1.5 * with_aes[side], side
    assert all(trial["proof"]["proven"] for trial in of_dut(run, "plain-processor"))
