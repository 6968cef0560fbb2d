# SPDX-License-Identifier: Apache-2.0
"""Samples as perf writes them become costs per frame with their errors, and never pass for counted ones."""

from __future__ import annotations

import math
import random

import pytest
from rich.console import Console

from espbench.cli.profile import sampled_tables
from espbench.errors import EspbenchError, UsageError
from espbench.profile import flame, sampled_file, samples
from espbench.profile.sampled import SampledProfile, attribute, difference, half_width
from espbench.profile.symbols import KERNEL, Function

# Perf 6.1 wrote this while a gateway in user space forwarded; idle CPUs, a module and a loss are added.
TEXT = """\
charon 792/809 [001]  1950.338402:    1003009 cpu-clock:ppp: \n\
\t           98942 malloc (/usr/lib/x86_64-linux-gnu/libc.so.6)
\t            2c99 [unknown] (/usr/lib/ipsec/plugins/libstrongswan-kernel-libipsec.so)
\t      98878b4808 [unknown] ([unknown])

charon 792/809 [001]  1950.339405:    1003009 cpu-clock:ppp: \n\
\tffffffff816d8955 fput ([kernel.kallsyms])
\tffffffff8225a6c1 do_syscall_64 ([kernel.kallsyms])
\t           f82ec read (/usr/lib/x86_64-linux-gnu/libc.so.6)

napi/hl900702-2 364/364 [001]  1950.568095:    1003009 cpu-clock:ppp: \n\
\tffffffffc0a1b2c3 esp_output ([esp4])
\tffffffff8136963d handle_softirqs ([kernel.kallsyms])
\tffffffff81eba06f napi_threaded_poll ([kernel.kallsyms])

napi/hw900702-3 365/365 [001]  1950.568100:    1003009 cpu-clock:ppp: \n\
\tffffffffc0a1b2c3 bpf_prog_fd08e3ba14b261b2_receive (bpf_prog_fd08e3ba14b261b2_receive)
\tffffffff81eba06f napi_threaded_poll ([kernel.kallsyms])

swapper     0/0     [001]  1950.569000:    1003009 cpu-clock:ppp: \n\
\tffffffff8225c0a1 pv_native_safe_halt ([kernel.kallsyms])
\tffffffff813b0c11 do_idle ([kernel.kallsyms])

swapper     0/0     [001]  1950.570000:    1003009 cpu-clock:ppp: \n\
\tffffffff81eb9f65 net_rx_action ([kernel.kallsyms])
\tffffffff8136963d handle_softirqs ([kernel.kallsyms])
\tffffffff8136963d asm_common_interrupt ([kernel.kallsyms])
\tffffffff813b0c11 do_idle ([kernel.kallsyms])

My Program 77/78 [001]  1950.571000:    1003009 cpu-clock:ppp: \n\
\t           1234 std::map<int, A (*)(int)>::find(int const&) (/opt/a program (deleted))
"""
PERIOD_NS = 1003009
MS = 10**6


def profile_of(
    counts: dict[str, int], *, cpu_ns: int = 0, frames: int = 100, period: int = MS, process: str = "napi"
) -> SampledProfile:
    """Return a profile in which each function of the kernel was found so often."""
    blocks = [
        f"{process}/x-{number} 5/5 [001] 1.5: {period} cpu-clock: \n\t ff {function} ([kernel.kallsyms])\n"
        for function, count in counts.items()
        for number in range(count)
    ]
    total = period * sum(counts.values())
    return attribute("case", "home", frames, cpu_ns or total, samples.read("\n".join(blocks), "here"))


def test_each_sample_has_its_process_and_its_functions() -> None:
    read = samples.read(TEXT, "here")
    assert (read.event, read.lost, len(read.samples)) == ("cpu-clock", 0, 7)
    assert [sample.process for sample in read.samples] == [
        "charon", "charon", "napi", "napi", "swapper", "swapper", "My Program"
    ]  # fmt: skip
    last = [sample.calls[-1] for sample in read.samples]
    assert last[:4] == [
        Function("malloc", "libc.so.6"),
        Function("fput", KERNEL),
        Function("esp_output", "esp4"),
        Function("bpf_prog_fd08e3ba14b261b2_receive", "bpf"),
    ]
    assert [str(function) for function in read.samples[1].calls] == [
        "read [libc.so.6]",
        "do_syscall_64",
        "fput",
    ]


def test_a_file_or_a_function_with_blanks_is_read() -> None:
    *_, last = samples.read(TEXT, "here").samples
    assert last.calls[-1] == Function("std::map<int, A (*)(int)>::find(int const&)", "a program")
    assert last.thread == 78


def test_only_the_gateways_threads_are_its_own() -> None:
    read = samples.read(TEXT, "here", frozenset({364, 809}))
    assert {sample.process for sample in read.samples} == {"napi", "charon"}
    assert len(read.samples) == 3


def test_each_context_is_told_and_an_idle_cpu_is_no_cpu_time() -> None:
    profile = attribute("case", "home", 10, 6 * PERIOD_NS, samples.read(TEXT, "here"))
    assert profile.count == 6
    shares = {where: share.value for where, share in profile.by_where().items()}
    assert shares == pytest.approx({"user space": 2 / 6, "process": 2 / 6, "softirq": 2 / 6})
    assert not [place for place in profile.samples if place.function.name == "pv_native_safe_halt"]


def test_costs_are_shares_of_the_records_cpu_time() -> None:
    """The record's CPU time is exact; only how it is divided is sampled."""
    profile = profile_of({"cheap": 250, "dear": 750}, cpu_ns=1_100_000_000, frames=1000)
    assert profile.ns_per_frame == 1_100_000
    [dear] = [place for place in profile.samples if place.function.name == "dear"]
    share = profile.share([dear])
    assert share.value == 0.75
    assert share.error == pytest.approx(0.0268, abs=0.0002)


def test_a_sample_of_another_weight_counts_by_its_weight() -> None:
    """Perf's frequency mode begins with many samples of tiny periods, which say almost nothing."""
    text = TEXT.replace("cpu-clock:ppp", "cycles:P").replace("1003009", "1", 1)
    profile = attribute("case", "home", 10, 1, samples.read(text, "here", frozenset({809})))
    [first, second] = [profile.share([place]) for place in profile.samples]
    assert first.value == pytest.approx(0, abs=1e-5)
    assert second.value == pytest.approx(1, abs=1e-5)
    assert profile.equal == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(("share", "looks"), [(0.5, 30), (0.02, 400), (0.3, 2000)])
def test_the_interval_holds_what_it_promises(share: float, looks: int) -> None:
    """About 95 % of many samples have the truth within the interval around (Wilson's) centre."""
    chance = random.Random(15)
    inside = 0
    for _ in range(400):
        found = sum(chance.random() < share for _ in range(looks)) / looks
        centre = (found + 1.96**2 / (2 * looks)) / (1 + 1.96**2 / looks)
        inside += abs(centre - share) <= half_width(found, looks)
    assert 0.92 <= inside / 400 <= 0.99


def test_a_function_that_no_sample_found_may_have_run() -> None:
    assert 0 < half_width(0.0, 1000) < 0.003
    assert half_width(0.5, 0) == 1.0


def test_the_differences_add_up_and_chance_is_told_from_change() -> None:
    was = profile_of({"same": 500, "grew": 500})
    now = profile_of({"same": 505, "grew": 900, "new": 40})
    rows = {row.function.name: row for row in difference(was, now)}
    assert sum(row.change for row in rows.values()) == pytest.approx(now.ns_per_frame - was.ns_per_frame)
    assert [row.is_certain for row in (rows["same"], rows["grew"], rows["new"])] == [False, True, True]
    assert rows["same"].error > 0


def test_samples_that_are_not_the_records_are_refused() -> None:
    with pytest.raises(EspbenchError, match=r"samples stand for 1,000 ms .* record has 2,000 ms"):
        profile_of({"f": 1000}, cpu_ns=2000 * MS)
    assert profile_of({"f": 1000}, cpu_ns=1100 * MS).count == 1000


def test_many_lost_samples_are_refused() -> None:
    lost = "charon 792/809 [001] 1.5: PERF_RECORD_LOST lost 5\n\n"
    with pytest.raises(EspbenchError, match="perf lost 5 of its samples"):
        attribute("case", "home", 10, 6 * PERIOD_NS, samples.read(lost + TEXT, "here"))


def test_no_sample_at_work_is_refused() -> None:
    with pytest.raises(EspbenchError, match="no sample of this gateway at work"):
        attribute("case", "home", 10, MS, samples.read(TEXT, "here", {99}))


def test_a_text_that_is_none_is_refused() -> None:
    with pytest.raises(
        EspbenchError, match="here: expected a sample as perf script writes it, got 'nonsense'"
    ):
        samples.read("nonsense\n", "here")
    with pytest.raises(EspbenchError, match="samples of one event, got cycles, cpu-clock"):
        samples.read(TEXT.replace("cpu-clock", "cycles", 1), "here")


def test_the_file_is_read_as_it_was_written() -> None:
    was = profile_of({"a": 30, "b,c": 70})
    [back] = sampled_file.read(sampled_file.text_of([was]), "file")
    assert (back.samples, back.weights) == (was.samples, was.weights)
    assert [row.change for row in difference(was, back)] == [0.0, 0.0]
    assert back.equal == pytest.approx(was.equal)


def test_another_file_is_refused() -> None:
    with pytest.raises(UsageError, match="no sampled profile"):
        sampled_file.read("case,gateway\n", "file")
    text = sampled_file.text_of([profile_of({"a": 30})])
    with pytest.raises(UsageError, match="line 2"):
        sampled_file.read(
            text.replace(",process,kernel", ",nowhere", 1).replace("kernel,process", "x,y"), "file"
        )


def test_everything_that_is_shown_says_that_it_is_sampled(capsys: pytest.CaptureFixture[str]) -> None:
    was, now = profile_of({"f": 100, "g": 10}), profile_of({"f": 200, "g": 11})
    console = Console(width=200, markup=False, highlight=False)
    loads = {now.case: 40_000.0}
    sampled_tables.show([now], loads, console, 1)
    said = capsys.readouterr().out
    assert "at 40,000 frames/s: SAMPLED" in said
    assert "SAMPLED" in said
    assert "211 samples of cpu-clock" in said
    assert "interrupts are off" in said
    assert "1 others" in said
    assert "±" in said
    sampled_tables.show_differences([(was, now)], loads, console, 5)
    said = capsys.readouterr().out
    assert "at 40,000 frames/s: SAMPLED" in said
    assert "SAMPLED" in said
    assert "may be chance" in said
    assert "differs" in said
    page = flame.sampled_page("a run", [now])
    assert "<b>It is sampled</b>" in page
    assert "ns (sampled)" in page
    assert "counted one by one" not in page
    assert math.isclose(flame.tree(now)["v"], now.cpu_ns, rel_tol=1e-3)
