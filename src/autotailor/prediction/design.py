"""Which SubNets to evaluate before anything is known of the whole: a D-optimal choice among random SubNets.

For a Gaussian model, the determinant of the information grows by the factor 1 + variance / noise with each SubNet. So
the greedy D-optimal set takes the SubNet whose prediction has the largest variance, given those that were taken (a
pivoted Cholesky decomposition of the prior covariance). ``BANDS`` bands of the cost take turns, so that no part of the
front stays without evaluations.

The choice is among few random SubNets, ``DRAWN`` for each that is taken. A stronger selection consists of extreme
SubNets only: they tell more where the model is right, but where it is not, they lead it astray, and since they resemble
each other, it then underestimates its own misfit.
"""

from collections.abc import Collection, Sequence

import numpy as np

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.ir.space.variable import Space
from autotailor.prediction.evidence import MISFIT, TYPICAL
from autotailor.prediction.functions import Group

DRAWN = 4
BANDS = 8


def offer(space: Space, count: int, left_out: Collection[SubNet], random: np.random.Generator) -> list[SubNet]:
    """Random SubNets among which ``count`` may be chosen: distinct, uniform over the space.

    Args:
        space: of the SuperNet.
        count: number of SubNets that will be chosen.
        left_out: SubNets that are not offered: they are evaluated anyway, or a prediction is judged by them.
        random: of the draws.
    """
    drawn = sample_distinct(space, DRAWN * count + len(left_out), random)
    return [subnet for subnet in drawn if subnet not in left_out][: DRAWN * count]


def d_optimal(
    groups: Sequence[Group], cost: Metric, evaluated: Sequence[SubNet], offered: Sequence[SubNet], count: int
) -> list[SubNet]:
    """SubNets whose evaluation tells most about the weights of functions.

    Args:
        groups: of functions, with typical prior variances.
        cost: over which the SubNets are spread: MACs or latency.
        evaluated: SubNets that are evaluated anyway.
        offered: SubNets to choose from, without known ones.
        count: number of SubNets; all where no more are offered.
    """
    if not offered or not count:
        return []
    space, rows = cost.space, stack([*evaluated, *offered])
    scales = [np.full(len(group.functions), np.sqrt(TYPICAL[group.name])) for group in groups]
    scaled = np.concatenate([group.columns(space, rows) for group in groups], axis=1) * np.concatenate(scales)
    variance, factors = np.square(scaled).sum(axis=1), np.zeros((len(rows), 0))
    for row in range(len(evaluated)):
        variance, factors = _given(row, scaled, variance, factors)
    order = np.argsort(cost.predict(rows[len(evaluated) :]), kind="stable") + len(evaluated)
    bands = np.array_split(order, min(BANDS, count))
    chosen: list[int] = []
    while len(chosen) < min(count, len(offered)):
        band = bands[len(chosen) % len(bands)]
        left = band[~np.isin(band, chosen)]
        if not len(left):  # the space is so small that a band is used up
            left = order[~np.isin(order, chosen)]
        row = int(left[np.argmax(variance[left])])
        chosen.append(row)
        variance, factors = _given(row, scaled, variance, factors)
    return [offered[row - len(evaluated)] for row in chosen]


def _given(row: int, scaled: FloatArray, variance: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances of all rows, and factors of the covariance, after one more row was evaluated."""
    covariance = scaled @ scaled[row] - factors @ factors[row]
    factor = covariance / np.sqrt(covariance[row] + TYPICAL[MISFIT])
    return np.maximum(variance - np.square(factor), 0.0), np.column_stack([factors, factor])
