"""Standard errors and rank correlation.

Augmented copies of one base image are mostly right or wrong together. Therefore base images are independent draws, but
images are not. With n images in G groups g of a common base image, per-image values v_i and their mean m,

    SE = sqrt( G / (G - 1) * sum_g ( sum_{i in g} (v_i - m) )^2 ) / n.

For an accuracy drop, v_i is the paired difference: right before - right after on the same image.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError


class StatisticsError(AutoTailorError):
    """Values cannot be compared, because their lists differ in length, are too short, or are not finite."""


def clustered_mean(values: npt.ArrayLike, groups: npt.ArrayLike) -> tuple[float, float]:
    """Mean of values ``[n]`` and its standard error, clustered by groups ``[n]``; NaN with a single group."""
    v, g = np.asarray(values, dtype=np.float64), np.asarray(groups)
    if v.ndim != 1 or v.shape != g.shape or not len(v):
        raise StatisticsError(f"expected as many groups as values, at least one: {list(v.shape)} and {list(g.shape)}")
    mean = float(v.mean())
    _, index = np.unique(g, return_inverse=True)
    sums = np.bincount(index, weights=v - mean)
    count = len(sums)
    if count < 2:
        return mean, float("nan")
    return mean, float(np.sqrt(count / (count - 1) * np.square(sums).sum()) / len(v))


def accuracy(right: npt.ArrayLike, groups: npt.ArrayLike) -> tuple[float, float]:
    """Accuracy and its standard error, percent, from per-image correctness ``[n]``."""
    mean, error = clustered_mean(right, groups)
    return 100.0 * mean, 100.0 * error


def accuracy_drop(before: npt.ArrayLike, after: npt.ArrayLike, groups: npt.ArrayLike) -> tuple[float, float]:
    """Drop in accuracy and its paired standard error, points, from correctness on the same images ``[n]``."""
    b, a = np.asarray(before, dtype=np.float64), np.asarray(after, dtype=np.float64)
    if b.shape != a.shape:
        raise StatisticsError(f"a paired comparison needs the same images: {list(b.shape)} and {list(a.shape)}")
    mean, error = clustered_mean(b - a, groups)
    return 100.0 * mean, 100.0 * error


def kendall_tau(predicted: npt.ArrayLike, measured: npt.ArrayLike) -> float:
    """Kendall's tau-b of two lists ``[n]``; NaN where one of them is constant.

    Raises:
        StatisticsError: the lists have different lengths, fewer than two values, or values that are not finite.
    """
    from scipy import stats

    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if p.shape != m.shape or p.ndim != 1 or len(p) < 2 or not (np.isfinite(p).all() and np.isfinite(m).all()):
        raise StatisticsError(
            f"Kendall's tau needs two equally long lists of at least 2 finite values, "
            f"not {list(p.shape)} and {list(m.shape)}"
        )
    result: Any = stats.kendalltau(p, m)
    return float(result.statistic)
