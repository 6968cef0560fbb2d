# SPDX-License-Identifier: Apache-2.0
"""Makes the sections of the report of kernels; their charts and tables follow the figures and tables of the paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from espbench.reporting.kernels import charts, select
from espbench.reporting.kernels.charts import shown
from espbench.reporting.parts.chart_parts import GREY, PALETTE, Spec
from espbench.reporting.parts.table import Table
from espbench.reporting.parts.wording import NONE, count, number
from espbench.results.kernels import KINDS, KernelResult

Draw = Callable[..., Spec]
_KIND_NAMES = {
    "simple": "ALU, simple", "complex": "ALU, complex", "jump": "unconditional branch",
    "branch": "conditional branch", "immediate": "immediate", "load": "memory load", "store": "memory store",
    "local": "local memory and stack", "other": "other",
}  # fmt: skip
_KIND_HUES = dict(zip(_KIND_NAMES.values(), PALETTE, strict=True))
_TIME_HUES = {"executing": PALETTE[2], "aborted": PALETTE[1], "idle": GREY, "stalled": PALETTE[3]}
_CYCLE_HUES = {
    "ALU": PALETTE[0], "local memory and stack": PALETTE[7], "branches": PALETTE[3], "immediate": PALETTE[4],
    "other": PALETTE[5], "memory": PALETTE[1],
}  # fmt: skip


@dataclass(frozen=True)
class Chart:
    """One chart of a section; draw takes as_picture, which is True for a chart of fixed width."""

    anchor: str
    title: str
    draw: Draw


@dataclass(frozen=True)
class KernelSection:
    """One section of the report, with a table and its charts."""

    anchor: str
    title: str
    about: str
    table: Table
    charts: list[Chart] = field(default_factory=list)
    legend: dict[str, str] = field(default_factory=dict)


def sections(results: Sequence[KernelResult]) -> list[KernelSection]:
    """Return every section that the results have something for. Of boards nothing but the speed is known."""
    engines = [r for r in results if r.on_engines]
    of_all = [make(results) for make in (_throughput, _levels)] if results else []
    of_engines = (
        _storage, _static_mix, _dynamic_mix, _time, _cycles, _compilers, _scaling, _bursts, _ports,
    )  # fmt: skip
    made = [*of_all, *(make(engines) for make in of_engines if engines)]
    return [section for section in made if section is not None]


def _compiled(chosen: Sequence[KernelResult]) -> str:
    """Return the compiler and option of results that have one, as a sentence."""
    return f"Compiled by {chosen[0].compiler} -{chosen[0].option}."


def _throughput(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = select.least_level(results)
    if not chosen:
        return None
    rows = [{"kernel": shown(r.kernel), "series": r.dut, "value": r.mbps} for r in chosen]
    table = Table(
        ["Processor", "Kernel", "Mbps", "Cycles/byte", "Instructions/byte", "Instructions of code"],
        [
            [r.dut, shown(r.kernel), number(r.mbps), number(r.cycles_per_byte),
             number(r.instructions_per_byte), count(r.instructions) if r.on_engines else NONE]
            for r in chosen
        ],
        numeric=[2, 3, 4, 5],
    )  # fmt: skip
    return KernelSection(
        "kernels-throughput",
        f"Throughput at level {chosen[0].level}",
        f"One thread of one engine (figure 3 of the paper); of a board, its core alone. {_compiled(chosen)}",
        table,
        [
            Chart(
                "kernels-throughput-mbps",
                "Throughput, Mbps",
                partial(charts.grouped, rows, "Mbps (log)", log=True),
            )
        ],
        charts.hues(select.duts(chosen)),
    )


def _levels(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = select.single(results)
    levels = sorted({r.level for r in chosen})
    if len(levels) < 2:
        return None
    by = {(r.dut, r.kernel, r.level): r for r in chosen}
    panels, rows = [], []
    for dut in select.duts(chosen):
        if len({r.level for r in chosen if r.dut == dut}) < 2:
            continue
        bars = [
            {"kernel": shown(r.kernel), "series": f"level {r.level}", "value": r.mbps}
            for r in chosen
            if r.dut == dut
        ]
        draw = partial(charts.grouped, bars, "Mbps (log)", log=True)
        panels.append(Chart(f"kernels-levels-{dut}", f"{dut}: throughput, Mbps", draw))
        for kernel in dict.fromkeys(r.kernel for r in chosen):
            of = [by.get((dut, kernel, level)) for level in levels]
            first = of[0]
            gains = [f"{100 * (r.mbps / first.mbps - 1):+.0f} %" if r and first else NONE for r in of[1:]]
            rows.append([dut, shown(kernel), *(number(r.mbps) if r else NONE for r in of), *gains])
    head = ["Processor", "Kernel", *(f"Level {n}, Mbps" for n in levels), *(f"Level {n}" for n in levels[1:])]
    return KernelSection(
        "kernels-levels",
        "Optimisation by hand",
        "Each level holds those before it: 1 for any processor, 2 for this kind, 3 for many threads. One thread. "
        + _compiled(chosen),
        Table(head, rows, numeric=list(range(2, len(head)))),
        panels,
        charts.hues([f"level {n}" for n in levels]),
    )


def _storage(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = select.single(results)
    names = {"local": "Local memory", "scratch": "Scratch", "sram": "SRAM"}
    head = ["Processor", "Kernel", "Level", *(f"{name}, B" for name in names.values())]
    rows = [
        [r.dut, shown(r.kernel), str(r.level), *(count(r.storage[memory]) for memory in names)]
        for r in chosen
    ]
    if not rows:
        return None
    return KernelSection(
        "kernels-storage",
        "Control data",
        "Subkeys, tables and states in each memory (table IV); local memory is of each engine. Data are in DRAM. "
        + _compiled(chosen),
        Table(head, rows, numeric=[2, 3, 4, 5]),
    )


def _mix(
    results: Sequence[KernelResult], of: str, anchor: str, title: str, about: str
) -> KernelSection | None:
    chosen = select.least_level(results)
    if not chosen:
        return None

    def shares(r: KernelResult) -> dict[str, float]:
        counts: dict[str, int] = getattr(r, of)
        return {kind: 100 * counts[kind] / sum(counts.values()) for kind in KINDS}

    panels = []
    rows = []
    for dut in select.duts(chosen):
        of_dut = [r for r in chosen if r.dut == dut]
        bars = [
            {"kernel": shown(r.kernel), "series": _KIND_NAMES[kind], "value": share}
            for r in of_dut
            for kind, share in shares(r).items()
        ]
        draw = partial(charts.stacked, bars, "Instructions, %", _KIND_HUES)
        panels.append(Chart(f"{anchor}-{dut}", f"{dut}: instructions by kind", draw))
        rows += [[dut, shown(r.kernel), *(f"{share:.1f}" for share in shares(r).values())] for r in of_dut]
        means = [sum(shares(r)[kind] for r in of_dut) / len(of_dut) for kind in KINDS]
        rows.append([dut, "mean", *(f"{share:.1f}" for share in means)])
    head = ["Processor", "Kernel", *(f"{name}, %" for name in _KIND_NAMES.values())]
    table = Table(head, rows, numeric=list(range(2, len(head))))
    return KernelSection(anchor, title, f"{about} {_compiled(chosen)}", table, panels, _KIND_HUES)


def _static_mix(results: Sequence[KernelResult]) -> KernelSection | None:
    about = "Instructions of the program, level 0 (figure 2). Local: loads and stores that reached no shared memory."
    return _mix(results, "code", "kernels-static", "Static instruction mix", about)


def _dynamic_mix(results: Sequence[KernelResult]) -> KernelSection | None:
    about = (
        "Instructions as they were run, level 0 (table V). An engine reaches local memory as an operand of its "
        "arithmetic, RV32 needs an instruction for it: where claims speak of simple ALU, local is part of it."
    )
    return _mix(results, "run", "kernels-dynamic", "Dynamic instruction mix", about)


def _time(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = select.least_level(results)
    if not chosen:
        return None
    panels = []
    for dut in select.duts(chosen):
        bars = [
            {"kernel": shown(r.kernel), "series": part, "value": 100 * getattr(r, part)}
            for r in chosen
            if r.dut == dut
            for part in _TIME_HUES
        ]
        draw = partial(charts.stacked, bars, "Engine's time, %", _TIME_HUES)
        panels.append(Chart(f"kernels-time-{dut}", f"{dut}: what the engine did", draw))
    rows = [
        [r.dut, shown(r.kernel), *(f"{100 * getattr(r, part):.1f}" for part in _TIME_HUES)] for r in chosen
    ]
    head = ["Processor", "Kernel", *(f"{part.capitalize()}, %" for part in _TIME_HUES)]
    return KernelSection(
        "kernels-time",
        "Executing, aborted, idle",
        "One thread, level 0 (figure 4). Aborted: lost in the pipeline after a branch that was taken, or when the "
        "thread gave way. Idle: it waits for memory. Stalled: no room for another command. "
        + _compiled(chosen),
        Table(head, rows, numeric=[2, 3, 4, 5]),
        panels,
        _TIME_HUES,
    )


def _cycle_shares(r: KernelResult) -> dict[str, float]:
    return {
        "ALU": 100 * r.time_share("simple", "complex"),
        "local memory and stack": 100 * r.time_share("local"),
        "branches": 100 * r.time_share("branch", "jump"),
        "immediate": 100 * r.time_share("immediate"),
        "other": 100 * r.time_share("other"),
        "memory": 100 * r.memory_time,
    }


def _cycles(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = select.least_level(results)
    if not chosen:
        return None
    panels = []
    for dut in select.duts(chosen):
        bars = [
            {"kernel": shown(r.kernel), "series": kind, "value": share}
            for r in chosen
            if r.dut == dut
            for kind, share in _cycle_shares(r).items()
        ]
        draw = partial(charts.stacked, bars, "Time, %", _CYCLE_HUES)
        panels.append(Chart(f"kernels-cycles-{dut}", f"{dut}: time by kind of instruction", draw))
    rows = [
        [r.dut, shown(r.kernel), *(f"{share:.1f}" for share in _cycle_shares(r).values())] for r in chosen
    ]
    head = ["Processor", "Kernel", *(f"{kind[:1].upper()}{kind[1:]}, %" for kind in _CYCLE_HUES)]
    return KernelSection(
        "kernels-cycles",
        "Time by kind of instruction",
        "One thread, level 0 (figure 5). Memory: references to shared memory, waiting for them included. "
        + _compiled(chosen),
        Table(head, rows, numeric=list(range(2, len(head)))),
        panels,
        _CYCLE_HUES,
    )


def _compilers(results: Sequence[KernelResult]) -> KernelSection | None:
    plain = [r for r in results if (r.engines, r.threads) == (1, 1) and not (r.faster_dram or r.faster_sram)]
    compilations = list(dict.fromkeys((r.compiler, r.option) for r in plain))
    if len(compilations) < 2:
        return None
    usual = select.usual_compiler(plain)
    by = {(r.dut, r.kernel, r.level, r.compiler, r.option): r for r in plain}
    speeds, sizes, rows = [], [], []
    compared = [r for r in plain if all((r.dut, r.kernel, r.level, *each) in by for each in compilations)]
    for r in compared:
        base = by[r.dut, r.kernel, r.level, *usual]
        series = f"{r.compiler} -{r.option}"
        speed, size = r.mbps / base.mbps, r.instructions / base.instructions
        speeds.append({"kernel": shown(r.kernel), "series": series, "value": speed})
        sizes.append({"kernel": shown(r.kernel), "series": series, "value": size})
        rows.append(
            [
                r.dut,
                shown(r.kernel),
                str(r.level),
                series,
                number(r.mbps),
                f"{speed:.2f}",
                count(r.instructions),
                f"{size:.2f}",
            ]
        )
    if not rows:
        return None
    named = f"that of {usual[0]} -{usual[1]}"
    return KernelSection(
        "kernels-compilers",
        "Compilers",
        f"Throughput and code size, in {named} (figures 6 and 7). One thread.",
        Table(
            ["Processor", "Kernel", "Level", "Compiled by", "Mbps", "Throughput, ×", "Instructions", "Size, ×"],
            rows,
            numeric=[2, 4, 5, 6, 7],
        ),
        [
            Chart("kernels-compilers-speed", f"Throughput in {named}", partial(charts.grouped, speeds, "×", log=False)),
            Chart("kernels-compilers-size", f"Code size in {named}", partial(charts.grouped, sizes, "×", log=False)),
        ],
        charts.hues([*dict.fromkeys(f"{r.compiler} -{r.option}" for r in compared)]),
    )  # fmt: skip


def _scaling(results: Sequence[KernelResult]) -> KernelSection | None:
    stated = select.as_stated(results)
    many = {(r.dut, r.level) for r in stated if r.engines > 1 and r.threads > 1 and r.level == 2}
    chosen = [r for r in stated if (r.dut, r.level) in many]
    if not chosen:
        return None
    threads = sorted({r.threads for r in chosen})
    panels, rows = [], []
    for dut, kernel in dict.fromkeys((r.dut, r.kernel) for r in chosen):
        of = sorted(
            (r for r in chosen if (r.dut, r.kernel) == (dut, kernel)), key=lambda r: (r.threads, r.engines)
        )
        points = [
            {"series": f"{n} thread{'s' if n > 1 else ''}", "x": r.engines, "value": r.mbps}
            for n in threads
            for r in of
            if r.threads == n
        ]
        draw = partial(charts.lines, points, "engines", "Mbps")
        panels.append(Chart(f"kernels-scaling-{dut}-{kernel}", f"{dut}: {shown(kernel)}, Mbps", draw))
        rows += [
            [dut, shown(kernel), str(r.threads), str(r.engines), number(r.mbps), number(r.mbps / of[0].mbps, 3),
             f"{100 * r.executing:.0f}", f"{100 * r.memories['scratch'].busy:.0f}",
             f"{100 * r.memories['dram'].busy:.0f}"]
            for r in of
        ]  # fmt: skip
    head = [
        "Processor", "Kernel", "Threads", "Engines", "Mbps", "Of one thread, ×", "Executing, %", "Scratch busy, %",
        "DRAM busy, %",
    ]  # fmt: skip
    return KernelSection(
        "kernels-scaling",
        "Threads and engines",
        f"Level 2 (figure 8). Threads are those of each engine. {_compiled(chosen)}",
        Table(head, rows, numeric=list(range(2, len(head)))),
        panels,
        charts.hues([f"{n} thread{'s' if n > 1 else ''}" for n in threads]),
    )


def _bursts(results: Sequence[KernelResult]) -> KernelSection | None:
    usual = select.usual_compiler(results)
    by = {
        (r.dut, r.kernel, r.engines, r.threads, r.level, bool(r.faster_dram or r.faster_sram)): r
        for r in results
        if (r.compiler, r.option) == usual
    }
    bars, rows = [], []
    for (dut, kernel, engines, threads, level, faster), r in by.items():
        if level != 2 or not faster:
            continue
        at = (dut, kernel, engines, threads)
        base, bursts = by.get((*at, 2, False)), by.get((*at, 3, False))
        if base is None or bursts is None:
            continue
        gains = {
            "level 3": 100 * (bursts.mbps / base.mbps - 1),
            "faster memory": 100 * (r.mbps / base.mbps - 1),
        }
        bars += [{"kernel": shown(kernel), "series": name, "value": gain} for name, gain in gains.items()]
        rows.append(
            [dut, shown(kernel), f"{engines} × {threads}", number(base.mbps), number(bursts.mbps), number(r.mbps),
             *(f"{gain:+.1f}" for gain in gains.values())]
        )  # fmt: skip
    if not rows:
        return None
    one = next(r for r in results if r.faster_dram or r.faster_sram)
    return KernelSection(
        "kernels-bursts",
        "Bursts against faster memory",
        f"Level 3, and level 2 with memories faster by {100 * one.faster_dram:g} % (DRAM) and "
        f"{100 * one.faster_sram:g} % (SRAM), against level 2 (figure 9). Compiled by {usual[0]} -{usual[1]}.",
        Table(
            ["Processor", "Kernel", "Engines × threads", "Level 2, Mbps", "Level 3, Mbps", "Faster memory, Mbps",
             "Level 3, %", "Faster memory, %"],
            rows,
            numeric=[3, 4, 5, 6, 7],
        ),
        [Chart("kernels-bursts-gain", "More than level 2, %", partial(charts.grouped, bars, "%", log=False))],
        charts.hues(["level 3", "faster memory"]),
    )  # fmt: skip


def _ports(results: Sequence[KernelResult]) -> KernelSection | None:
    chosen = [r for r in results if r.engines * r.threads == max(x.engines * x.threads for x in results)]
    rows = [
        [r.dut, shown(r.kernel), str(r.level), r.compiler, f"-{r.option}", f"{r.engines} × {r.threads}",
         "yes" if r.faster_dram or r.faster_sram else "no", name, count(use.reads + use.writes),
         f"{100 * use.busy:.1f}", count(use.refused), number(use.waited / max(1, use.reads + use.writes), 3),
         f"{100 * r.stalled:.1f}"]
        for r in chosen
        for name, use in r.memories.items()
        if use.transfers
    ]  # fmt: skip
    head = [
        "Processor", "Kernel", "Level", "Compiler", "Option", "Engines × threads", "Faster memory", "Memory",
        "References", "Ports busy, %", "Found the queue full", "Waited, cycles each", "Engines stalled, %",
    ]  # fmt: skip
    return KernelSection(
        "kernels-ports",
        "Ports of the memories",
        "Where most threads worked at once: what congestion comes from. Each row names its compiler and option.",
        Table(head, rows, numeric=[8, 9, 10, 11, 12]),
    )
