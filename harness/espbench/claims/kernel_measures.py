# SPDX-License-Identifier: Apache-2.0
"""Answers the claims of NPCryptBench from the results of cipher kernels on processors and a board; pure functions.

Unless a function says otherwise, it uses results at level 0, of one thread of one engine, compiled by the usual
compiler at -O2, with memories as stated. All results are of the usual data, 2,048 bytes for each thread.

The paper could not compile SHA-1 for the IXP1200 (its footnote 2). So figures of the IXP1200, and comparisons with it,
leave SHA-1 out, although our compiler can.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import mean
from typing import Any, Literal

from espbench.claims.our_value import OurValue, lacking, ranged, statement
from espbench.plan import load_profile
from espbench.results.kernels import KernelResult

GENERATIONS = ("ixp1200", "ixp2400", "ixp2800")
OLDER, NEWER = "clang-14", "clang-19"  # two versions of one compiler
WORKSTATION = "mpc8548e"  # stands for the paper's workstation: a general-purpose processor
KERNELS = ("aes", "des", "rc5", "rc6", "blowfish", "idea", "rc4", "seal", "md5", "sha1")
HASHES, STREAMS = ("md5", "sha1"), ("rc4", "seal")
BLOCKS = ("aes", "des", "rc5", "rc6", "blowfish", "idea")
CIPHERS = (*BLOCKS, *STREAMS)
NOT_COMPILED = {"ixp1200": ("sha1",)}
"""Processor → kernels that the paper could not compile for it."""
USUAL = "gcc"
USUAL_DATA = 2048  # bytes for each thread
FASTER = (0.165, 0.335)  # figure 9: increase of the clocks of DRAM and SRAM
_NEW = "ixp2800"
# The paper proposes these; no such processors exist.
_LONG_QUEUES, _LARGE_LOCAL = "ixp2800-long-queues", "ixp2800-large-local"
_FAST_ENGINES, _SHORT_LATENCY = "ixp2800-fast-engines", "ixp2800-short-latency"
_COMPUTING = ("des", "idea")  # which computing limits, by the paper
_WITH_TABLES = ("aes", "blowfish")  # four tables of a kilobyte, of which two fit in the local memory
_NEAR_LINEAR = 7.0  # least gain by 8 engines
_FLAT = 1.1  # greatest gain by twice the engines
_NEARLY_DOUBLED = 1.8
_LINEAR = 1.9  # gain by twice the threads
_BUSY = 0.95  # least share of an engine's time
_FULL_GAIN = 2.3  # least gain by a clock that is 2.33 times as high
_HELPED = 1.1  # least gain by four threads that counts as one
_SLOWER = 0.98  # greatest share of another speed that counts as slower
_FASTER = 1.02  # and least one that counts as faster
_REMARKABLY = 1.5  # least gain that counts as remarkable
_RARELY = 10.0  # percentage of the time that is no longer rarely
_STALLED_LESS = 1.0  # percentage points of an engine's time that count as less


class Lacking(Exception):
    """A configuration was not measured; the message names it."""


@dataclass(frozen=True)
class Kernels:
    """The results of runs, in the order of their starts, from which the measures select.

    processors: DUT → `processor` of its profile, as the runs recorded it.
    """

    results: Sequence[KernelResult]
    processors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def one(
        self, dut: str, kernel: str, level: int = 0, *, engines: int = 1, threads: int = 1,
        compiler: str = USUAL, option: str = "O2", faster: bool = False,
    ) -> KernelResult:  # fmt: skip
        """Return the result of a configuration with the usual data, of several the last; raise Lacking without one.

        faster: with the faster memories of figure 9, else with those stated.
        """
        dram, sram = FASTER if faster else (0.0, 0.0)
        wanted = (dut, kernel, level, compiler, option, engines, threads, dram, sram, USUAL_DATA)
        for r in reversed(self.results):
            if r.key == wanted:
                return r
        memory = f", DRAM faster by {100 * dram:g} % and SRAM by {100 * sram:g} %" if faster else ""
        how = f"level {level}, {compiler} -{option}, {engines} × {threads}, {USUAL_DATA:,} B each{memory}"
        raise Lacking(f"{dut}: {kernel}, {how}")

    def stated(self, dut: str) -> Mapping[str, Any]:
        """Return the figures that the vendor states for a processor (`processor: stated:`), as the run had them.

        If no run recorded them, today's profile is used. Then nothing was measured on this processor, or only by runs
        of a version that did not record all keys.
        """
        if dut in self.processors:
            stated: Mapping[str, Any] = self.processors[dut]["stated"]
            return stated
        processor = load_profile(dut).processor
        assert processor is not None
        return processor.stated.model_dump(mode="json")

    def all(self, dut: str, *others: str) -> dict[str, KernelResult]:
        """Return the result at level 0, on one thread, of each kernel that the paper has on this processor.

        others: processors that it is compared with, which must have the kernel, too.
        """
        return {kernel: self.one(dut, kernel) for kernel in kernels_of(dut, *others)}


def kernels_of(*duts: str) -> tuple[str, ...]:
    """Return the kernels that the paper has on all of these processors."""
    return tuple(n for n in KERNELS if not any(n in NOT_COMPILED.get(dut, ()) for dut in duts))


def answer(
    what: str,
    dut: str,
    results: Sequence[KernelResult],
    processors: Mapping[str, Mapping[str, Any]] | None = None,
) -> OurValue:
    """Return our value for a claim about kernels.

    what: a key of MEASURES. dut: the processor; measures over all generations do not use it.
    """
    try:
        return MEASURES[what](Kernels(results, processors or {}), dut)
    except Lacking as lack:
        return lacking(str(lack))


def _listed(values: dict[str, float], pattern: str = "{:.0f}") -> str:
    return ", ".join(f"{name} {pattern.format(value)}" for name, value in values.items())


def _names(kernels: Sequence[str]) -> str:
    return ", ".join(kernels) or "none"


def _is_set(
    kernels: Sequence[str], expected: Sequence[str], values: dict[str, float], pattern: str
) -> OurValue:
    """Return whether exactly the expected kernels have a property."""
    return statement(
        (), f"{_names(kernels)}; {_listed(values, pattern)}", holds=set(kernels) == set(expected)
    )


def _over_generations(figure: Callable[[Kernels, str], float], k: Kernels, pattern: str) -> OurValue:
    values = {dut: figure(k, dut) for dut in GENERATIONS}
    return ranged([*values.values()], text=_listed(values, pattern))


def _mean_share(results: dict[str, KernelResult], part: Callable[[KernelResult], float]) -> float:
    return 100 * mean(part(r) for r in results.values())


def _mix_share(*kinds: str) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of the mean share, over the kernels, of these kinds among the executed instructions, %."""

    def measure(k: Kernels, dut: str) -> OurValue:
        shares = {n: 100 * _run_share(r, *kinds) for n, r in k.all(dut).items()}
        return ranged([mean(shares.values())], text=_listed(shares, "{:.1f}"))

    return measure


def _run_share(r: KernelResult, *kinds: str) -> float:
    return sum(r.run[kind] for kind in kinds) / sum(r.run.values())


# -- section IV ---------------------------------------------------------------------------------


def _latency_growth(k: Kernels, dut: str) -> OurValue:
    read = {d: k.stated(d)["dram"]["read"] for d in (GENERATIONS[0], dut)}
    return ranged(
        [100 * read[dut] / read[GENERATIONS[0]]], text=_listed({d: float(v) for d, v in read.items()})
    )


def _latency_over_half(k: Kernels, dut: str) -> OurValue:
    """Return whether each latency grows by over half from the first generation to either later one."""
    latencies = {d: _latencies(k, d) for d in GENERATIONS}
    first = latencies[GENERATIONS[0]]
    growth = {
        f"{d} {each}": 100 * (cycles / first[each] - 1)
        for d in GENERATIONS[1:]
        for each, cycles in latencies[d].items()
    }
    return statement((), _listed(growth, "{:+.0f} %"), holds=min(growth.values()) > 50)


def _latency_magnitudes(k: Kernels, dut: str) -> OurValue:
    """Return whether all latencies of shared memory are one or two magnitudes above the one cycle of arithmetic."""
    cycles = {f"{d} {each}": n for d in GENERATIONS for each, n in _latencies(k, d).items()}
    text = f"{min(cycles.values()):.0f} to {max(cycles.values()):.0f} cycles"
    return statement((), text, holds=all(10 <= n < 1000 for n in cycles.values()))


def _latencies(k: Kernels, dut: str) -> dict[str, float]:
    stated = k.stated(dut)
    memories = {"DRAM": stated["dram"], "SRAM": stated["sram"], "scratch": stated["scratch"]}
    return {f"{memory} {way}": float(of[way]) for memory, of in memories.items() for way in ("read", "write")}


# Table IV, bytes: in the fastest memory (local memory, or scratch if there is none), and in the next one.
_TABLE_IV: dict[str, dict[str, tuple[int, int]]] = {
    "ixp1200": {
        "aes": (176, 5120), "des": (2176, 0), "rc5": (136, 0), "rc6": (176, 0), "blowfish": (72, 4096),
        "idea": (208, 0), "rc4": (0, 1024), "md5": (0, 0), "sha1": (0, 0),
    },
    "ixp2800": {
        "aes": (176, 5120), "des": (2176, 0), "rc5": (136, 0), "rc6": (176, 0), "blowfish": (72, 4096),
        "idea": (208, 0), "rc4": (1024, 0), "md5": (0, 0), "sha1": (0, 0),
    },
}  # fmt: skip


def _storage(k: Kernels, dut: str) -> OurValue:
    """Return whether the storage of each kernel is as in table IV, except SEAL's, for which it has only a bound."""
    memories = ("scratch", "sram") if dut == GENERATIONS[0] else ("local", "scratch")
    ours = {n: tuple(k.one(dut, n).storage[m] for m in memories) for n in _TABLE_IV[dut]}
    text = ", ".join(f"{n} {first} + {second}" for n, (first, second) in ours.items())
    return statement((), text, holds=ours == _TABLE_IV[dut])


def _second_memory(k: Kernels, dut: str) -> OurValue:
    """Return the number of ciphers with control data in the second fastest memory of the generation."""
    memory = "sram" if dut == GENERATIONS[0] else "scratch"
    sizes = {n: float(k.one(dut, n).storage[memory]) for n in CIPHERS}
    return ranged([float(sum(size > 0 for size in sizes.values()))], text=_listed(sizes))


def _localised(k: Kernels, dut: str) -> OurValue:
    results = k.all(dut)
    far = {n: float(r.memories["scratch"].reads + r.memories["sram"].reads) for n, r in results.items()}
    local = [n for n in CIPHERS if not far[n]]
    return _is_set(local, ("des", "rc5", "rc6", "idea", "rc4"), {n: far[n] for n in CIPHERS}, "{:.0f}")


def _small_ciphers(k: Kernels, dut: str) -> OurValue:
    sizes = {n: float(k.one(dut, n).instructions) for n in CIPHERS}
    small = [n for n, size in sizes.items() if size < 250]
    return statement((), _listed(sizes), holds=len(small) > len(CIPHERS) / 2)


def _des_longest(k: Kernels, dut: str) -> OurValue:
    sizes = {n: float(k.one(dut, n).instructions) for n in CIPHERS}
    return statement((), _listed(sizes), holds=max(sizes, key=lambda n: sizes[n]) == "des")


def _hashes_longer(k: Kernels, dut: str) -> OurValue:
    sizes = {n: float(r.instructions) for n, r in k.all(dut).items()}
    holds = min(sizes[n] for n in HASHES if n in sizes) > max(sizes[n] for n in CIPHERS)
    return statement((), _listed(sizes), holds=holds)


def _code_shrinks(k: Kernels, dut: str) -> OurValue:
    ratios = {
        n: k.one(_NEW, n).instructions / k.one(GENERATIONS[0], n).instructions
        for n in kernels_of(*GENERATIONS)
        if n != "blowfish"
    }
    return statement((), _listed(ratios, "{:.2f}"), holds=max(ratios.values()) < 1)


def _mean_code(k: Kernels, dut: str) -> OurValue:
    sizes = {n: float(r.instructions) for n, r in k.all(dut).items()}
    return ranged([mean(sizes.values())], text=_listed(sizes))


def _most_memory_and_immediate(k: Kernels, dut: str) -> OurValue:
    shares = _memory_and_immediate(k.all(dut))
    return ranged([max(shares.values())], text=_listed(shares, "{:.1f}"))


def _memory_and_immediate(results: dict[str, KernelResult]) -> dict[str, float]:
    return {n: 100 * _run_share(r, "load", "store", "immediate") for n, r in results.items()}


def _memory_and_immediate_of(
    kernel: str, extreme: Literal["most", "least"]
) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of one kernel's share, %, which is no agreement if another has most, or least."""

    def measure(k: Kernels, dut: str) -> OurValue:
        shares = _memory_and_immediate(k.all(dut))
        found = (max if extreme == "most" else min)(shares, key=lambda n: shares[n])
        ours = ranged([shares[kernel]], text=_listed(shares, "{:.1f}"))
        if shares[kernel] == shares[found]:
            return ours
        return replace(ours, holds=False, text=f"not {kernel} but {found} has {extreme}; {ours.text}")

    return measure


def _more_computing(k: Kernels, dut: str) -> OurValue:
    """Return whether arithmetic is above 60 % and branches are below 10 %, the shares of other suites in table V."""
    results = k.all(dut)
    alu = 100 * mean(_run_share(r, "simple", "complex", "local") for r in results.values())
    branches = 100 * mean(_run_share(r, "branch", "jump") for r in results.values())
    return statement(
        (), f"arithmetic {alu:.1f} %, branches {branches:.1f} %", holds=alu > 60 and branches < 10
    )


# -- section V ----------------------------------------------------------------------------------


def _fastest_to_slowest(k: Kernels, dut: str) -> OurValue:
    ratios = {}
    for d in GENERATIONS:
        mbps = {n: r.mbps for n, r in k.all(d).items()}
        ratios[f"{d}: md5 to {min(mbps, key=lambda n: mbps[n])}"] = mbps["md5"] / min(mbps.values())
    return ranged([*ratios.values()], text=_listed(ratios, "{:.1f}"))


def _slowest(kernel: str, *also: str) -> Callable[[Kernels, str], OurValue]:
    """Return a measure that says whether these kernels are the slowest, in any order."""

    def measure(k: Kernels, dut: str) -> OurValue:
        mbps = {n: r.mbps for n, r in k.all(dut).items()}
        order = sorted(mbps, key=lambda n: mbps[n])
        wanted = {kernel, *also}
        return statement(
            (), _listed({n: mbps[n] for n in order}, "{:.4g}"), holds={*order[: len(wanted)]} == wanted
        )

    return measure


def _fastest_is_md5(k: Kernels, dut: str) -> OurValue:
    best = {
        d: max(rates := {n: r.mbps for n, r in k.all(d).items()}, key=lambda n: rates[n]) for d in GENERATIONS
    }
    return statement((), ", ".join(f"{d}: {n}" for d, n in best.items()), holds={*best.values()} == {"md5"})


def _hashes_to_ciphers(k: Kernels, dut: str) -> OurValue:
    ratios = {}
    for d in GENERATIONS:
        mbps = {n: r.mbps for n, r in k.all(d).items()}
        ratios[d] = min(mbps[n] for n in HASHES if n in mbps) / max(mbps[n] for n in CIPHERS)
    return ranged([*ratios.values()], text=_listed(ratios, "{:.2f}"))


def _streams_to_blocks(k: Kernels, dut: str) -> OurValue:
    ratios = {
        d: min(k.one(d, n).mbps for n in STREAMS) / max(k.one(d, n).mbps for n in BLOCKS) for d in GENERATIONS
    }
    return statement((), _listed(ratios, "{:.2f}"), holds=min(ratios.values()) > 1)


def _des_more_yet_faster(k: Kernels, dut: str) -> OurValue:
    three = {n: k.one(dut, n) for n in ("des", "aes", "blowfish")}
    des = three["des"]
    holds = all(
        des.instructions_per_byte > r.instructions_per_byte and des.mbps > r.mbps
        for n, r in three.items()
        if n != "des"
    )
    text = ", ".join(f"{n} {r.instructions_per_byte:.0f} a byte, {r.mbps:.3g} Mbps" for n, r in three.items())
    return statement((), text, holds=holds)


def _aes_ahead(k: Kernels, dut: str) -> OurValue:
    """Return whether AES is ahead of RC6, Blowfish and IDEA on a general-purpose processor."""
    mbps = {n: k.one(WORKSTATION, n).mbps for n in ("aes", "rc6", "blowfish", "idea")}
    text = f"{WORKSTATION}: {_listed(mbps, '{:.4g}')} Mbps"
    return statement((), text, holds=mbps["aes"] == max(mbps.values()))


def _tables_behind(k: Kernels, dut: str) -> OurValue:
    """Return whether the block ciphers with tables in shared memory are the slowest block ciphers on the IXP2X00."""
    texts, holds = [], True
    for d in GENERATIONS[1:]:
        results = {n: k.one(d, n) for n in BLOCKS}
        far = {n for n, r in results.items() if r.storage["scratch"] + r.storage["sram"]}
        order = sorted(results, key=lambda n: results[n].mbps)
        holds = holds and 0 < len(far) < len(results) and set(order[: len(far)]) == far
        texts.append(f"{d}: {', '.join(f'{n} {results[n].mbps:.3g}' for n in order)} Mbps")
    return statement((), "; ".join(texts), holds=holds)


def _gain_of_the_clock(k: Kernels, dut: str) -> OurValue:
    gains = {n: k.one(_NEW, n).mbps / k.one(GENERATIONS[1], n).mbps for n in KERNELS}
    return _is_set([n for n, gain in gains.items() if gain >= _FULL_GAIN], ("seal",), gains, "{:.2f}")


def _most_executing(k: Kernels, dut: str) -> OurValue:
    shares = {f"{d} {n}": 100 * r.executing for d in GENERATIONS for n, r in k.all(d).items()}
    order = sorted(shares, key=lambda name: -shares[name])
    return ranged([shares[order[0]]], text=_listed({name: shares[name] for name in order[:6]}))


def _mean_idle(k: Kernels, dut: str) -> OurValue:
    return _over_generations(lambda k, d: _mean_share(k.all(d), lambda r: r.waiting), k, "{:.1f} %")


def _idles_most(k: Kernels, dut: str) -> OurValue:
    idle = {d: _mean_share(k.all(d, *GENERATIONS), lambda r: r.waiting) for d in GENERATIONS}
    return statement((), _listed(idle, "{:.1f} %"), holds=max(idle, key=lambda d: idle[d]) == _NEW)


def _idle_over_half(k: Kernels, dut: str) -> OurValue:
    idle = {n: 100 * r.waiting for n, r in k.all(dut).items()}
    expected = ("aes", "rc4", "rc5", "rc6", "blowfish", "seal")
    return _is_set([n for n in idle if idle[n] > 50], expected, idle, "{:.0f} %")


def _rarely_aborted(k: Kernels, dut: str) -> OurValue:
    aborted = {d: _mean_share(k.all(d, *GENERATIONS), lambda r: r.aborted) for d in GENERATIONS}
    later = max(aborted[d] for d in GENERATIONS[1:])
    holds = later < min(_RARELY, aborted[GENERATIONS[0]])
    return statement((), _listed(aborted, "{:.1f} %"), holds=holds)


def _idle_rises(older: str, newer: str) -> Callable[[Kernels, str], dict[str, float]]:
    return lambda k, dut: {
        n: 100 * (k.one(newer, n).waiting - k.one(older, n).waiting) for n in kernels_of(older, newer)
    }


def _six_idle_more(k: Kernels, dut: str) -> OurValue:
    counts = {}
    for d in GENERATIONS[1:]:
        rises = _idle_rises(GENERATIONS[0], d)(k, dut)
        counts[d] = float(sum(rise > 0 for rise in rises.values()))
    return ranged([*counts.values()], text=_listed(counts))


def _all_idle_more(k: Kernels, dut: str) -> OurValue:
    rises = _idle_rises(GENERATIONS[1], GENERATIONS[2])(k, dut)
    return statement((), _listed(rises, "{:+.1f}"), holds=min(rises.values()) > 0)


def _branch_time(k: Kernels, dut: str) -> OurValue:
    shares = {n: 100 * k.one(GENERATIONS[0], n).time_share("branch", "jump") for n in ("rc6", "idea")}
    return ranged([*shares.values()], text=_listed(shares, "{:.1f}"))


def _other_branch_time(k: Kernels, dut: str) -> OurValue:
    shares = {
        f"{d} {n}": 100 * k.one(d, n).time_share("branch", "jump")
        for d in (GENERATIONS[0], _NEW)
        for n in kernels_of(d)
        if n not in ("rc6", "idea")
    }
    order = sorted(shares, key=lambda name: -shares[name])
    return ranged([shares[order[0]]], text=_listed({name: shares[name] for name in order[:5]}, "{:.1f}"))


def _immediate_code(k: Kernels, dut: str) -> OurValue:
    values = {
        d: _mean_share(k.all(d), lambda r: (r.code["immediate"] + r.code["other"]) / r.instructions)
        for d in (GENERATIONS[0], _NEW)
    }
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _immediate_time(k: Kernels, dut: str) -> OurValue:
    values = {
        d: _mean_share(k.all(d), lambda r: r.time_share("immediate", "other")) for d in (GENERATIONS[0], _NEW)
    }
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _memory_time(k: Kernels, dut: str) -> OurValue:
    values = {d: _mean_share(k.all(d), lambda r: r.memory_time) for d in (GENERATIONS[0], _NEW)}
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _memory_rise(k: Kernels, dut: str) -> OurValue:
    """Return the ratio of the memory instructions' mean share of time to their mean share of executed instructions."""
    values = {}
    for d in (GENERATIONS[0], _NEW):
        results = k.all(d)
        executed = _mean_share(results, lambda r: _run_share(r, "load", "store"))
        values[d] = _mean_share(results, lambda r: r.memory_time) / executed
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _memory_time_of_hashes(k: Kernels, dut: str) -> OurValue:
    values = {n: 100 * r.memory_time for n, r in k.all(dut).items() if n in HASHES}
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _unused(k: Kernels, dut: str) -> OurValue:
    values = {n: 100 * (1 - k.one(dut, n).executing) for n in ("aes", "blowfish", "seal")}
    return ranged([*values.values()], text=_listed(values, "{:.1f}"))


def _less_alu_than_memory(k: Kernels, dut: str) -> OurValue:
    pairs = {}
    for d in (GENERATIONS[0], _NEW):
        results = k.all(d)
        pairs[d] = (
            _mean_share(results, lambda r: r.time_share("simple", "complex", "local")),
            _mean_share(results, lambda r: r.memory_time),
        )
    text = ", ".join(f"{d}: {alu:.0f} % against {memory:.0f} %" for d, (alu, memory) in pairs.items())
    return statement((), text, holds=all(alu < memory for alu, memory in pairs.values()))


# -- section VI ---------------------------------------------------------------------------------


def _unoptimised_slower(k: Kernels, dut: str) -> OurValue:
    slower = {
        n: 100 * (1 - k.one(_NEW, n, option="O0").mbps / k.one(_NEW, n, option="O2").mbps) for n in KERNELS
    }
    return ranged([mean(slower.values())], text=_listed(slower))


def _unoptimised_longer(k: Kernels, dut: str) -> OurValue:
    longer = {
        n: 100 * (k.one(_NEW, n, option="O0").instructions / k.one(_NEW, n, option="O1").instructions - 1)
        for n in KERNELS
    }
    return ranged([mean(longer.values())], text=_listed(longer))


def _compilers_alike(older: str, newer: str) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of the ratios of speed and of code size between two compilers: the range over all kernels."""

    def measure(k: Kernels, dut: str) -> OurValue:
        ratios: dict[str, float] = {}
        for option in ("O1", "O2"):
            for n in KERNELS:
                new, old = (k.one(_NEW, n, compiler=compiler, option=option) for compiler in (newer, older))
                ratios[f"{n}'s speed at {option}"] = new.mbps / old.mbps
                ratios[f"{n}'s size at {option}"] = new.instructions / old.instructions
        order = sorted(ratios, key=lambda name: ratios[name])
        return ranged(
            [*ratios.values()], text=_listed({n: ratios[n] for n in order[:3] + order[-3:]}, "{:.2f}")
        )

    return measure


def _unrolling_lengthens(older: str, newer: str) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of the mean ratio of the code size by the newer compiler to that by the older one, at -O2."""

    def measure(k: Kernels, dut: str) -> OurValue:
        ratios = {
            n: k.one(_NEW, n, compiler=newer).instructions / k.one(_NEW, n, compiler=older).instructions
            for n in KERNELS
        }
        return ranged([mean(ratios.values())], text=_listed(ratios, "{:.2f}"))

    return measure


def _unrolling_slows(older: str, newer: str) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of whether Blowfish is longer and slower by the newer compiler than by the older one, at -O2."""

    def measure(k: Kernels, dut: str) -> OurValue:
        new, old = (k.one(_NEW, "blowfish", compiler=compiler) for compiler in (newer, older))
        text = f"{new.instructions} instructions at {new.mbps:.4g} Mbps against {old.instructions} at {old.mbps:.4g}"
        holds = new.instructions > old.instructions and new.mbps <= _SLOWER * old.mbps
        return statement((), text, holds=holds)

    return measure


def _by_hand(k: Kernels, dut: str) -> OurValue:
    gains = {n: 100 * (k.one(_NEW, n, 2).mbps / k.one(_NEW, n).mbps - 1) for n in KERNELS}
    return ranged([mean(gains.values())], text=_listed(gains, "{:+.0f}"))


def _by_hand_remarkably(k: Kernels, dut: str) -> OurValue:
    """Return whether optimisation by hand up to level 2 makes more than half of the kernels remarkably faster."""
    gains = {n: k.one(_NEW, n, 2).mbps / k.one(_NEW, n).mbps for n in KERNELS}
    remarkable = [n for n in KERNELS if gains[n] >= _REMARKABLY]
    text = f"{len(remarkable)} of {len(KERNELS)}: {_listed(gains, '{:.2f}')}"
    return statement((), text, holds=len(remarkable) > len(KERNELS) / 2)


def _by_hand_against_compiler(k: Kernels, dut: str) -> OurValue:
    hand = mean(k.one(_NEW, n, 2).mbps / k.one(_NEW, n).mbps for n in KERNELS)
    compiler = mean(k.one(_NEW, n).mbps / k.one(_NEW, n, option="O0").mbps for n in KERNELS)
    return statement((), f"by hand × {hand:.2f}, by the compiler × {compiler:.2f}", holds=hand > compiler)


def _scaled(
    k: Kernels, engines: tuple[int, int], threads: tuple[int, int], level: int = 2
) -> dict[str, float]:
    """Return each kernel's throughput with the second numbers of engines and threads, relative to the first."""
    return {
        n: k.one(_NEW, n, level, engines=engines[1], threads=threads[1]).mbps
        / k.one(_NEW, n, level, engines=engines[0], threads=threads[0]).mbps
        for n in KERNELS
    }


def _saturation_of_threads(k: Kernels, dut: str) -> OurValue:
    gains = _scaled(k, (1, 1), (4, 8))
    return statement((), _listed(gains, "{:.2f}"), holds=max(gains.values()) < _LINEAR)


def _idle_with_four_threads(k: Kernels, dut: str) -> OurValue:
    idle = {n: 100 * k.one(_NEW, n, 2, threads=4).waiting for n in KERNELS}
    return ranged([max(idle.values())], text=_listed(idle))


def _busy_gain_nothing(k: Kernels, dut: str) -> OurValue:
    """Return whether kernels that keep an engine busy with one thread gain nothing from eight threads."""
    busy = [n for n in KERNELS if 1 - k.one(_NEW, n, 2).waiting >= _BUSY]
    gains = {n: gain for n, gain in _scaled(k, (1, 1), (1, 8)).items() if n in busy}
    if not busy:
        return statement((), "no kernel keeps an engine busy", holds=False)
    return statement((), _listed(gains, "{:.2f}"), holds=max(gains.values()) <= 1 / _BUSY)


def _threads_help(k: Kernels, dut: str) -> OurValue:
    """Return whether AES, Blowfish and SEAL gain from four threads, on one engine and on two."""
    gains = {
        f"{n} on {'one engine' if engines == 1 else 'two'}": gain
        for engines in (1, 2)
        for n, gain in _scaled(k, (engines, engines), (1, 4)).items()
        if n in ("aes", "blowfish", "seal")
    }
    return statement((), _listed(gains, "{:.2f}"), holds=min(gains.values()) >= _HELPED)


def _two_engines(k: Kernels, dut: str) -> OurValue:
    gains = _scaled(k, (1, 2), (8, 8))
    return statement((), _listed(gains, "{:.2f}"), holds=min(gains.values()) >= _NEARLY_DOUBLED)


def _near_linear(k: Kernels, dut: str) -> OurValue:
    gains = _scaled(k, (1, 8), (8, 8))
    return _is_set([n for n in KERNELS if gains[n] >= _NEAR_LINEAR], ("des", "idea", "sha1"), gains, "{:.2f}")


def _flat_beyond_four(k: Kernels, dut: str) -> OurValue:
    gains = _scaled(k, (4, 8), (8, 8))
    holds = all(gains[n] <= _FLAT for n in ("aes", "rc5"))
    return statement((), _listed(gains, "{:.2f}"), holds=holds)


def _level_3_gains(k: Kernels) -> dict[str, float]:
    return {
        n: 100
        * (k.one(_NEW, n, 3, engines=8, threads=8).mbps / k.one(_NEW, n, 2, engines=8, threads=8).mbps - 1)
        for n in KERNELS
    }


def _faster_gains(k: Kernels) -> dict[str, float]:
    return {
        n: 100
        * (
            k.one(_NEW, n, 2, engines=8, threads=8, faster=True).mbps
            / k.one(_NEW, n, 2, engines=8, threads=8).mbps
            - 1
        )
        for n in KERNELS
    }


def _level_3(k: Kernels, dut: str) -> OurValue:
    gains = _level_3_gains(k)
    return ranged([mean(gains.values())], text=_listed(gains, "{:+.0f}"))


def _faster_memory(k: Kernels, dut: str) -> OurValue:
    gains = _faster_gains(k)
    return ranged([mean(gains.values())], text=_listed(gains, "{:+.0f}"))


def _level_3_more(k: Kernels, dut: str) -> OurValue:
    bursts, memory = mean(_level_3_gains(k).values()), mean(_faster_gains(k).values())
    return statement((), f"{bursts:+.1f} % against {memory:+.1f} %", holds=bursts > memory)


def _hashes_gain_nothing(k: Kernels, dut: str) -> OurValue:
    gains = {n: gain for n, gain in _level_3_gains(k).items() if n in HASHES}
    return statement((), _listed(gains, "{:+.1f}"), holds=all(abs(gain) < 1 for gain in gains.values()))


def _rivest_gains_most(k: Kernels, dut: str) -> OurValue:
    gains = _level_3_gains(k)
    top = sorted(gains, key=lambda n: -gains[n])[:3]
    return _is_set(top, ("rc4", "rc5", "rc6"), gains, "{:+.0f}")


def _little_for_computing(k: Kernels, dut: str) -> OurValue:
    gains = {n: _level_3_gains(k)[n] for n in ("des", "idea")}
    return ranged([*gains.values()], text=_listed(gains, "{:+.1f}"))


def _longer_queues(k: Kernels, dut: str) -> OurValue:
    """Return whether engines stand for less of their time in some kernel with longer queues, and for more in none."""
    usual, longer = (
        {n: 100 * k.one(processor, n, 2, engines=8, threads=8).stalled for n in KERNELS}
        for processor in (_NEW, _LONG_QUEUES)
    )
    falls = {n: usual[n] - longer[n] for n in KERNELS}
    holds = max(falls.values()) > _STALLED_LESS and min(falls.values()) >= -_STALLED_LESS
    text = ", ".join(f"{n} {usual[n]:.0f} → {longer[n]:.0f} %" for n in KERNELS)
    return statement((), text, holds=holds)


def _gains_of(k: Kernels, proposed: str, engines: int = 8, threads: int = 8) -> dict[str, float]:
    """Return the throughput of each kernel at level 2 on a proposed processor, relative to the IXP2800 as it is."""
    return {
        n: k.one(proposed, n, 2, engines=engines, threads=threads).mbps
        / k.one(_NEW, n, 2, engines=engines, threads=threads).mbps
        for n in KERNELS
    }


def _faster(proposed: str, kernels: Sequence[str]) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of whether each of these kernels is faster on a proposed processor, with eight engines."""

    def measure(k: Kernels, dut: str) -> OurValue:
        gains = _gains_of(k, proposed)
        return statement((), _listed(gains, "{:.2f}"), holds=all(gains[n] >= _FASTER for n in kernels))

    return measure


def _shorter_latency(engines: int, threads: int) -> Callable[[Kernels, str], OurValue]:
    """Return a measure of whether shorter latencies make the kernels faster on average."""

    def measure(k: Kernels, dut: str) -> OurValue:
        gains = _gains_of(k, _SHORT_LATENCY, engines, threads)
        average = mean(gains.values())
        return statement((), f"mean {average:.2f}; {_listed(gains, '{:.2f}')}", holds=average >= _FASTER)

    return measure


MEASURES: dict[str, Callable[[Kernels, str], OurValue]] = {
    "latency growth": _latency_growth,
    "latency over half": _latency_over_half,
    "latency magnitudes": _latency_magnitudes,
    "second memory": _second_memory,
    "localised ciphers": _localised,
    "storage": _storage,
    "small ciphers": _small_ciphers,
    "des longest": _des_longest,
    "hashes longer": _hashes_longer,
    "code shrinks": _code_shrinks,
    "mean code": _mean_code,
    # An engine accesses local memory as an operand of arithmetic; the instructions that RV32 needs for that count here.
    "simple mix": _mix_share("simple", "local"),
    "complex mix": _mix_share("complex"),
    "branch mix": _mix_share("branch", "jump"),
    "jump mix": _mix_share("jump"),
    "conditional mix": _mix_share("branch"),
    "other mix": _mix_share("other"),
    "load mix": _mix_share("load"),
    "store mix": _mix_share("store"),
    "immediate mix": _mix_share("immediate"),
    "memory and immediate mix": _mix_share("load", "store", "immediate"),
    "most memory and immediate": _most_memory_and_immediate,
    "aes has most memory and immediate": _memory_and_immediate_of("aes", "most"),
    "md5 has least memory and immediate": _memory_and_immediate_of("md5", "least"),
    "more computing": _more_computing,
    "fastest to slowest": _fastest_to_slowest,
    "fastest": _fastest_is_md5,
    "rc6 slowest": _slowest("rc6"),
    "rc6 and idea slowest": _slowest("rc6", "idea"),
    "aes slowest": _slowest("aes"),
    "hashes to ciphers": _hashes_to_ciphers,
    "streams to blocks": _streams_to_blocks,
    "des more yet faster": _des_more_yet_faster,
    "tables behind": _tables_behind,
    "aes ahead on a computer": _aes_ahead,
    "gain of the clock": _gain_of_the_clock,
    "most executing": _most_executing,
    "mean idle": _mean_idle,
    "idles most": _idles_most,
    "idle over half": _idle_over_half,
    "rarely aborted": _rarely_aborted,
    "idle rises from 1200": _six_idle_more,
    "idle rises to 2800": _all_idle_more,
    "branch time": _branch_time,
    "other branch time": _other_branch_time,
    "immediate code": _immediate_code,
    "immediate time": _immediate_time,
    "memory time": _memory_time,
    "memory rise": _memory_rise,
    "memory time of hashes": _memory_time_of_hashes,
    "unused": _unused,
    "less alu than memory": _less_alu_than_memory,
    "unoptimised slower": _unoptimised_slower,
    "unoptimised longer": _unoptimised_longer,
    # Clang unrolls loops at -O2, so it stands for a newer compiler than GCC.
    "compilers alike": _compilers_alike(USUAL, "clang"),
    "unrolling lengthens": _unrolling_lengthens(USUAL, "clang"),
    "unrolling slows": _unrolling_slows(USUAL, "clang"),
    "versions alike": _compilers_alike(OLDER, NEWER),
    "newer lengthens": _unrolling_lengthens(OLDER, NEWER),
    "newer slows": _unrolling_slows(OLDER, NEWER),
    "by hand": _by_hand,
    "by hand, most": _by_hand_remarkably,
    "by hand against compiler": _by_hand_against_compiler,
    "saturation of threads": _saturation_of_threads,
    "idle with four threads": _idle_with_four_threads,
    "busy gain nothing": _busy_gain_nothing,
    "threads help": _threads_help,
    "two engines": _two_engines,
    "near linear": _near_linear,
    "flat beyond four": _flat_beyond_four,
    "level 3": _level_3,
    "faster memory": _faster_memory,
    "level 3 against faster memory": _level_3_more,
    "hashes gain nothing": _hashes_gain_nothing,
    "rc4, rc5, rc6 gain most": _rivest_gains_most,
    "little for des and idea": _little_for_computing,
    "longer queues": _longer_queues,
    "larger local memory": _faster(_LARGE_LOCAL, _WITH_TABLES),
    "faster engines": _faster(_FAST_ENGINES, _COMPUTING),
    "shorter latency": _shorter_latency(1, 1),
    "shorter latency, many threads": _shorter_latency(8, 8),
}
