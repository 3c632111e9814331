"""Which SubNets to evaluate before anything is known of the whole: a D-optimal set, spread over the cost.

For a Gaussian model, the determinant of the information grows by the factor 1 + variance / noise with each SubNet. So
the greedy D-optimal set takes the SubNet whose prediction has the largest variance, given those that were taken (a
pivoted Cholesky decomposition of the prior covariance). ``BANDS`` bands of the cost take turns, so that no part of the
front stays without evaluations.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from autotailor.ir.propagation import RESOLUTION
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import IntArray, SubNet, canonical, largest, smallest
from autotailor.ir.space.variable import Modification, Space
from autotailor.prediction.evidence import MISFIT, TYPICAL
from autotailor.prediction.functions import Group

POOL = 5_000
BANDS = 8


def ends(space: Space) -> list[SubNet]:
    """The largest and the smallest SubNet at each resolution."""
    sides = [largest(space), smallest(space)]
    if RESOLUTION not in space.positions:
        return sides
    choices = space[RESOLUTION].choices
    return list(dict.fromkeys(end.transform(Modification(RESOLUTION, c)) for end in sides for c in choices))


def pool(space: Space, random: np.random.Generator, size: int = POOL) -> IntArray:
    """Distinct SubNets from small to large ``[at most size, variables]``, canonical.

    Independent draws of all variables would hardly ever give a SubNet near the smallest or the largest. Therefore a
    random share of each SubNet's variables stands at the choice of the largest or of the smallest SubNet.
    """
    shape = (size, len(space))
    small = random.random(shape) < random.random((size, 1))
    sides = np.where(small, smallest(space).to_array(), largest(space).to_array())
    drawn = random.integers(0, [len(v.choices) for v in space], shape)
    kept = random.random(shape) < random.random((size, 1))
    return np.unique(canonical(space, np.where(kept, sides, drawn)), axis=0)


def d_optimal(
    space: Space, groups: Sequence[Group], cost: Metric, known: IntArray, count: int, random: np.random.Generator
) -> list[SubNet]:
    """SubNets whose evaluation tells most about the weights of functions.

    Args:
        space: of the SuperNet.
        groups: of functions, with typical prior variances.
        cost: over which the SubNets are spread: MACs or latency.
        known: choice indices of SubNets that are evaluated anyway ``[m, variables]``.
        count: number of SubNets; fewer where the space has no more.
        random: draws the SubNets to choose from.
    """
    offered = pool(space, random)
    taken = {row.tobytes() for row in known}
    offered = offered[[row.tobytes() not in taken for row in offered]]
    rows = np.concatenate([known, offered])
    scales = [np.full(len(group.functions), np.sqrt(TYPICAL[group.name])) for group in groups]
    scaled = np.concatenate([group.columns(space, rows) for group in groups], axis=1) * np.concatenate(scales)
    variance, factors = np.square(scaled).sum(axis=1), np.zeros((len(rows), 0))
    for row in range(len(known)):
        variance, factors = _given(row, scaled, variance, factors)
    order = np.argsort(cost.predict(offered), kind="stable") + len(known)
    bands = np.array_split(order, min(BANDS, count)) if count else []
    chosen: list[int] = []
    while len(chosen) < min(count, len(offered)):
        band = bands[len(chosen) % len(bands)]
        left = band[~np.isin(band, chosen)]
        if not len(left):  # the space is so small that a band is used up
            left = order[~np.isin(order, chosen)]
        row = int(left[np.argmax(variance[left])])
        chosen.append(row)
        variance, factors = _given(row, scaled, variance, factors)
    return [SubNet.from_array(space, rows[row]) for row in chosen]


def _given(row: int, scaled: FloatArray, variance: FloatArray, factors: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Variances of all rows, and factors of the covariance, after one more row was evaluated."""
    covariance = scaled @ scaled[row] - factors @ factors[row]
    factor = covariance / np.sqrt(covariance[row] + TYPICAL[MISFIT])
    return np.maximum(variance - np.square(factor), 0.0), np.column_stack([factors, factor])
