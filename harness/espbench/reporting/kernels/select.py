# SPDX-License-Identifier: Apache-2.0
"""Chooses from a run's results those that one chart or table shows."""

from __future__ import annotations

from collections.abc import Sequence

from espbench.results.kernels import KernelResult

PAPERS = ("gcc", "O2")
"""The compilation of the claims: the option is the paper's default, and the baseline of its figures 6 and 7."""


def usual_compiler(results: Sequence[KernelResult]) -> tuple[str, str]:
    """Return the compiler and option of the figures that compare something else: gcc -O2 if it was measured.

    Without it, they are the first compiler and its highest option.
    """
    compilations = {(r.compiler, r.option) for r in results}
    if PAPERS in compilations:
        return PAPERS
    first = results[0].compiler
    return first, max(option for compiler, option in compilations if compiler == first)


def as_stated(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return the results with memories that were not made faster, and with their usual compiler."""
    stated = [r for r in results if not (r.faster_dram or r.faster_sram)]
    return [r for r in stated if (r.compiler, r.option) == usual_compiler(stated)]


def single(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return those of one thread of one engine, `as_stated`."""
    return as_stated([r for r in results if (r.engines, r.threads) == (1, 1)])


def least_level(results: Sequence[KernelResult]) -> list[KernelResult]:
    """Return the results of `single` at the lowest level of optimisation measured: 0, unless the plan leaves it out."""
    chosen = single(results)
    lowest = min((r.level for r in chosen), default=0)
    return [r for r in chosen if r.level == lowest]


def duts(results: Sequence[KernelResult]) -> list[str]:
    """Return the processors, in the plan's order."""
    return list(dict.fromkeys(r.dut for r in results))
