# SPDX-License-Identifier: Apache-2.0
"""Chooses from a run's results those that one chart or table shows."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.results.kernels import KernelResult


def usual_compiler(results: Sequence[KernelResult]) -> tuple[str, str]:
    """Return the compiler and option of most results; figures that do not name a compiler are of this one."""
    compilations = [(r.compiler, r.option) for r in results]
    return max(dict.fromkeys(compilations), key=compilations.count)


def as_stated(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return the results with the usual compiler and with memories that were not made faster."""
    usual = usual_compiler(results)
    return [r for r in results if not (r.faster_dram or r.faster_sram) and (r.compiler, r.option) == usual]


def single(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return the results of `as_stated` that are of one thread of one engine."""
    return [r for r in as_stated(results) if (r.engines, r.threads) == (1, 1)]


def least_level(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return the results of `single` at the lowest level of optimisation measured: 0, unless the plan leaves it out."""
    chosen = single(results)
    lowest = min((r.level for r in chosen), default=0)
    return [r for r in chosen if r.level == lowest]


def duts(results: Sequence[KernelResult]) -> list[str]:
    """Return the processors, in the plan's order."""
    return list(dict.fromkeys(r.dut for r in results))
