"""Standard errors, rank correlation, and the coverage of intervals.

Augmented copies of one base image are mostly right or wrong together. Therefore base images are independent draws, but
images are not. With n images in G groups g of a common base image, per-image values v_i and their mean m,

    SE = sqrt( G / (G - 1) * sum_g ( sum_{i in g} (v_i - m) )^2 ) / n.

For an accuracy drop, v_i is the paired difference: right before - right after on the same image.
"""

import math

import numpy as np
import numpy.typing as npt

from autotailor.ir.errors import AutoTailorError

INTERVAL = 1.2815515655446004
"""Standard errors to either side of an 80 % interval."""


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
    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if p.shape != m.shape or p.ndim != 1 or len(p) < 2 or not (np.isfinite(p).all() and np.isfinite(m).all()):
        raise StatisticsError(
            f"Kendall's tau needs two equally long lists of at least 2 finite values, "
            f"not {list(p.shape)} and {list(m.shape)}"
        )
    return _tau_b(p, m)


def _tau_b(p: npt.NDArray[np.float64], m: npt.NDArray[np.float64]) -> float:
    """Kendall's tau-b: pairs in the same order less those in the other one, over the pairs without a tie in each list.

    SciPy's function finds a p-value as well, which takes most of its time.
    """
    first, second = (np.sign(np.subtract.outer(values, values)) for values in (p, m))
    same, untied = float((first * second).sum()) / 2, [float(np.abs(each).sum()) / 2 for each in (first, second)]
    if not all(untied):
        return float("nan")
    return float(np.clip(same / np.sqrt(untied[0]) / np.sqrt(untied[1]), -1.0, 1.0))


def kendall_tau_text(tau: float) -> str:
    """``kendall_tau`` for a message."""
    return "cannot be told, because all values of one side are equal" if math.isnan(tau) else f"{tau:.3f}"


def kendall_tau_error(predicted: npt.ArrayLike, measured: npt.ArrayLike) -> float:
    """Standard error of ``kendall_tau`` over draws of what is compared (jackknife); NaN for fewer than four.

    Raises:
        StatisticsError: see ``kendall_tau``.
    """
    p, m = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    kendall_tau(p, m)
    n = len(p)
    if n < 4:
        return float("nan")
    without = np.array([kendall_tau(np.delete(p, i), np.delete(m, i)) for i in range(n)])
    return float(np.sqrt((n - 1) / n * np.square(without - without.mean()).sum()))


def kendall_tau_by_chance(count: int) -> float:
    """Standard deviation of Kendall's tau of so many pairs of unrelated numbers (Kendall, 1938); at least two."""
    return float(np.sqrt(2 * (2 * count + 5) / (9 * count * (count - 1))))


def kendall_tau_ceiling(measured: npt.ArrayLike, errors: npt.ArrayLike, draws: int = 400) -> float:
    """Kendall's tau between the true values and measurements of them: what a perfect prediction would reach.

    The scatter of measurements is that of the truth and of their noise. So the measurements, moved towards their mean
    until they scatter less by the noise, stand for the truth, and new noise is drawn around them.

    Args:
        measured: values ``[n]``.
        errors: their standard errors ``[n]``, independent of each other.
        draws: over which the mean is taken.
    """
    m, e = np.asarray(measured, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    scatter = float(np.var(m, ddof=1))
    if scatter == 0.0:
        return float("nan")
    truth = m.mean() + np.sqrt(max(0.0, 1.0 - float(np.mean(np.square(e))) / scatter)) * (m - m.mean())
    if np.ptp(truth) == 0.0:
        return 0.0
    random = np.random.default_rng(0)
    return float(np.mean([_tau_b(truth, truth + e * random.standard_normal(len(e))) for _ in range(draws)]))


def coverage(differences: npt.ArrayLike, errors: npt.ArrayLike) -> float:
    """Share of differences within their 80 % intervals, up to a shift that all have in common.

    The shift is the weighted mean of the differences, with weights w_i = 1 / e_i²; around it, difference i has the
    variance e_i² - 1 / sum w.

    Args:
        differences: ``[n]``.
        errors: their standard errors e ``[n]``; differences without an error are left out.
    """
    d, e = np.asarray(differences, dtype=np.float64), np.asarray(errors, dtype=np.float64)
    d, e = d[e > 0], e[e > 0]
    if len(d) < 2:
        return float("nan")
    weights = 1.0 / np.square(e)
    away = np.abs(d - np.average(d, weights=weights))
    return float(np.mean(away <= INTERVAL * np.sqrt(np.square(e) - 1.0 / weights.sum())))
