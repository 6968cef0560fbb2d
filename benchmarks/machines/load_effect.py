# SPDX-License-Identifier: Apache-2.0
"""Computes by how much a load changed the figures of the demo, from several runs with it and several quiet ones.

Two quiet runs differ by up to 16 % in one figure, since each boot of the gateways has another cost per frame and
neighbours make the CPUs slow for minutes. So one run says little; the means of several runs say by how much figures
are higher under a load, within an interval.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from espbench.comparison.deciding import statistics
from espbench.comparison.deciding.statistics import Prior, Reading, Term
from espbench.comparison.sorting.model import Estimate

FEWEST_RUNS = statistics.FEWEST_REPEATS  # of each kind; fewer have no scatter worth the name


def mean_effect(quiet: Sequence[pd.DataFrame], loaded: Sequence[pd.DataFrame]) -> Estimate | None:
    """Return the ratio loaded / quiet over all results that are OK in every run, with its 95 % interval.

    Each run counts as one sample, the mean of its logarithms: what slows a whole run down is one disturbance, not
    eighteen. None if there are too few runs, or no such result.
    """
    logs = _logs([*quiet, *loaded]).dropna(axis="columns")
    if min(len(quiet), len(loaded)) < FEWEST_RUNS or logs.empty:
        return None
    means = logs.mean(axis="columns")
    terms = [_term(-means[: len(quiet)]), _term(means[len(quiet) :])]
    return _ratio(terms, [Prior(), Prior()], 1 - statistics.CONFIDENCE)


def effects(quiet: Sequence[pd.DataFrame], loaded: Sequence[pd.DataFrame]) -> dict[str, Estimate]:
    """Return the ratio loaded / quiet of each result with enough runs of each kind in which it is OK.

    The intervals hold together with 95 %: each errs with 5 % divided by the number of results (Bonferroni). The scatter
    of the other results counts, as in a comparison; results of two loss goals share a search.
    """
    logs, n = _logs([*quiet, *loaded]), len(quiet)
    arms = {str(name): (_term(-column[:n]), _term(column[n:])) for name, column in logs.items()}
    arms = {name: both for name, both in arms.items() if min(len(t.readings) for t in both) >= FEWEST_RUNS}
    priors = [statistics.prior(terms, len(arms) // 2) for terms in zip(*arms.values(), strict=True)]
    alpha = (1 - statistics.CONFIDENCE) / max(1, len(arms))
    return {name: _ratio(both, priors, alpha) for name, both in arms.items()}


def _logs(runs: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the natural logarithms of the throughputs that are OK: a row for each run, a column for each result."""
    rows = [np.log(run["throughput_fps"].where(run["status"] == "OK")) for run in runs]
    return pd.DataFrame(rows).reset_index(drop=True)


def _term(logs: pd.Series) -> Term:
    return Term(tuple(Reading(log, log, log) for log in logs.dropna()))


def _ratio(terms: Sequence[Term], priors: Sequence[Prior], alpha: float) -> Estimate:
    return statistics.ratio(statistics.interval(terms, priors, alpha), min(len(t.readings) for t in terms))
