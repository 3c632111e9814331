"""How well the predictor of accuracy knows its own error: from ``accuracy_validation.csv`` and ``summary.csv``.

The exported SubNets are what a run promises. Each was predicted before it was polished, and is evaluated on the test
set with the weights that it was predicted for.
"""

import math

import numpy as np
import pandas as pd

from autotailor.ir.space.link import LOGIT, points_of_log_odds
from autotailor.statistics import coverage, kendall_tau_by_chance, kendall_tau_ceiling, kendall_tau_error

NAN = float("nan")
FEWEST = 4
"""Measured SubNets below which nothing is said about a predictor."""
MOST = 99.9
"""Percent: log-odds of larger accuracies, and of as small ones, are those of this limit."""
SHARE = 0.8
"""Of SubNets that 80 % intervals are to cover."""

MISSED, FAR = 2.0, 3.0
"""Standard errors by which an accuracy is off its prediction: where it is missed, and where that breaks the promise."""
KEPT = 0.9
"""Share of the exported SubNets that are not to be missed."""


def broken(summary: pd.DataFrame) -> list[str]:
    """Names of the exported SubNets whose accuracy was missed, where the promise is broken; else none.

    It is broken where one SubNet is ``FAR`` off, or where several are missed, more than one in ten. A run exports few
    SubNets: one of them is missed by chance in every fifth run.

    Args:
        summary: ``summary.csv`` with its rows indexed by name.
    """
    columns = [
        "accuracy_predicted",
        "accuracy_predicted_standard_error",
        "accuracy_inherited",
        "accuracy_standard_error",
    ]
    table = summary[columns].astype(float).dropna()
    predicted, expected, measured, noise = table.to_numpy().T
    off = np.abs(predicted - measured) / np.hypot(expected, noise)
    missed = off > MISSED
    is_broken = (off > FAR).any() or (missed.sum() > 1 and missed.mean() > 1.0 - KEPT)
    return [str(name) for name in table.index[missed]] if is_broken else []


def _enough(table: pd.DataFrame, *columns: str) -> bool:
    return len(table) >= FEWEST and not table[list(columns)].isna().any(axis=None)


def tau_error(table: pd.DataFrame) -> float:
    """Standard error of Kendall's tau over draws of SubNets."""
    if not _enough(table, "predicted", "measured"):
        return NAN
    return kendall_tau_error(table["predicted"], table["measured"])


def tau_by_chance(table: pd.DataFrame) -> float:
    """What Kendall's tau of as many unrelated numbers scatters by."""
    return kendall_tau_by_chance(len(table)) if _enough(table) else NAN


def tau_ceiling(table: pd.DataFrame) -> float:
    """Kendall's tau that a perfect prediction would have against these measurements."""
    if not _enough(table, "measured", "own_standard_error"):
        return NAN
    return kendall_tau_ceiling(table["measured"], table["own_standard_error"])


def covered(table: pd.DataFrame) -> float:
    """Share of SubNets within their 80 % intervals, up to a shift that all have in common.

    Intervals and the shift are those of log-odds, in which the noise of images moves all SubNets alike.
    """
    if not _enough(table, "predicted", "measured", "predicted_standard_error", "own_standard_error"):
        return NAN
    predicted, measured = (table[name].clip(100.0 - MOST, MOST).to_numpy() for name in ("predicted", "measured"))
    errors = table["predicted_standard_error"].to_numpy() / points_of_log_odds(predicted)
    noise = table["own_standard_error"].to_numpy() / points_of_log_odds(measured)
    return coverage(LOGIT.linear(predicted) - LOGIT.linear(measured), np.hypot(errors, noise))


def covered_error(table: pd.DataFrame) -> float:
    """Standard error of the share of as many SubNets that right intervals would cover."""
    return math.sqrt(SHARE * (1.0 - SHARE) / len(table)) if _enough(table) else NAN
