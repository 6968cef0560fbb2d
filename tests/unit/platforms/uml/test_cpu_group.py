# SPDX-License-Identifier: Apache-2.0
"""The kernel's figure of how long others kept the gateways from a CPU is read, and comes before a guess."""

import os
import secrets
from pathlib import Path

import pytest

from espbench.measure.validity.host import CpuTimes, HostSnapshot, Kept, compare
from espbench.platforms.uml.cpu_group import CpuGroup, read_full_ns
from espbench.this_machine.registry import Registry

SHOWN = (
    "some avg10=1.00 avg60=0.00 avg300=0.00 total=777\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=4321\n"
)


def test_full_is_read_in_microseconds() -> None:
    assert read_full_ns(SHOWN) == 4_321_000
    assert read_full_ns(SHOWN.splitlines()[0]) is None  # kernels before 5.13


def test_what_the_group_tells_goes_before_what_is_inferred() -> None:
    """The gateways waited for each other for 400 ms, others used 260 ms of idle time: nobody was starved."""
    before = HostSnapshot(0, 0, {1: CpuTimes(0, 0, 0)})
    after = HostSnapshot(10**9, 0, {1: CpuTimes(0, 0, 0)})
    by_kept = {
        kept: compare(
            before, after, gateway_cpus={1}, gateway_ns=740_000_000, gateways_waited_ns=400_000_000,
            kept=None if kept is None else Kept(kept), sender_cpus=set(), sender_ns=0,
        )["starved_pct"]
        for kept in (None, 3_000_000)
    }  # fmt: skip
    assert by_kept == {None: 25.0, 3_000_000: 0.3}


@pytest.mark.parametrize(
    ("idle_ms", "turns", "starved_pct"),
    [
        (450, 30_000, 2.78),  # 4.8 % kept, as measured with nobody else on the CPU; 20 ms of it are switches
        (0, 30_000, 4.8),  # without an idle CPU no turn begins with a wait for the switch alone
        (450, 0, 4.8),
        (450, None, 4.8),
        (450, -5, 4.8),  # threads that ended took their turns with them
        (999, 10**9, 1.8),  # so many turns did not all begin on an idle CPU
    ],
)
def test_the_wait_for_the_switch_to_a_thread_is_nobodys(
    idle_ms: int, turns: int | None, starved_pct: float
) -> None:
    before = HostSnapshot(0, 0, {1: CpuTimes(0, 0, 0)})
    after = HostSnapshot(10**9, 0, {1: CpuTimes(idle_ms * 10**6, 0, 0)})
    record = compare(
        before, after, gateway_cpus={1}, gateway_ns=400_000_000, gateways_waited_ns=160_000_000,
        kept=Kept(48_000_000, turns), sender_cpus=set(), sender_ns=0,
    )  # fmt: skip
    assert record["starved_pct"] == pytest.approx(starved_pct, abs=0.011)
    assert record["kept_pct"] == 4.8


def test_the_turns_of_two_cpus_are_not_taken_from_the_mean_of_both() -> None:
    """The kernel tells the mean over the CPUs, weighted by the time in which they are not idle."""
    before = HostSnapshot(0, 0, {1: CpuTimes(0, 0, 0), 2: CpuTimes(0, 0, 0)})
    after = HostSnapshot(10**9, 0, {1: CpuTimes(0, 0, 0), 2: CpuTimes(500_000_000, 0, 0)})
    record = compare(
        before, after, gateway_cpus={1, 2}, gateway_ns=None, gateways_waited_ns=None,
        kept=Kept(67_000_000, 60_000), sender_cpus=set(), sender_ns=0,
    )  # fmt: skip
    # 45 ms × 0.5 on the second one, which counts half as much as the first.
    assert record["starved_pct"] == pytest.approx(6.7 - 100 * 0.045 * 0.5 * 0.5 / 1.5, abs=0.01)


def test_a_group_goes_with_its_registry(tmp_path: Path) -> None:
    """The registry removes it, where this machine has such groups and lets us make them."""
    with Registry("t" + secrets.token_hex(3), tmp_path / "state") as registry:
        group = CpuGroup.make(registry, "gateways")
        if group is None:
            pytest.skip("no control groups of version 2 with cpu.pressure, or no right to make one")
        assert isinstance(group.kept_waiting_ns(), int)
        made = [Path(entry.name) for entry in registry.entries if entry.kind == "control group"]
        group.take([os.getpid()])
        assert str(os.getpid()) in (made[0] / "cgroup.procs").read_text().split()
        assert group.turns() > 0
        (made[0].parent / "cgroup.procs").write_text(str(os.getpid()))
    assert made
    assert not made[0].exists()
