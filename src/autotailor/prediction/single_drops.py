"""How the functions that are made of single drops change where the drops do.

The sum of single drops is a function of the model, and the drops are evaluations themselves. So the noise of a single
modification's evaluation moves predictions twice: as an observation, and through the function.
"""

from __future__ import annotations

import numpy as np

from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, largest
from autotailor.ir.space.variable import Space
from autotailor.prediction.functions import DROPS, DROPS_BY_RESOLUTION, Group, contrasts


def by_targets(group: Group, space: Space, subnets: IntArray, evaluated: IntArray) -> FloatArray:
    """Derivative of a group's columns by the numbers of evaluated SubNets.

    In canonical form a variable that has another choice than its default is there, so that no gate is asked.

    Args:
        group: of functions.
        space: of the SubNets.
        subnets: choice indices ``[n, variables]``, canonical.
        evaluated: choice indices ``[m, variables]``, canonical.

    Returns:
        ``[functions, n, m]``; no functions for a group that is not made of single drops.
    """
    if group.name not in (DROPS, DROPS_BY_RESOLUTION):
        return np.zeros((0, len(subnets), len(evaluated)))
    differs = evaluated != largest(space).to_array()
    single = np.flatnonzero(differs.sum(axis=1) == 1)
    columns = differs[single].argmax(axis=1)
    found = np.zeros((len(group.functions), len(subnets), len(evaluated)))
    for number, function in enumerate(group.functions):
        summed = np.zeros(len(space), dtype=np.bool_)
        summed[[space.positions[term.variables[-1]] for term in function]] = True
        has = (subnets[:, columns] == evaluated[single, columns]) & summed[columns]
        found[number][:, single] = has * _factor(group, number, space, subnets)[:, None]
    return found


def _factor(group: Group, number: int, space: Space, subnets: IntArray) -> FloatArray:
    """What a function multiplies the drops of each SubNet by ``[n]``."""
    if group.name == DROPS:
        return np.ones(len(subnets))
    contrast = contrasts(len(space[RESOLUTION].choices))[number]
    return np.asarray(contrast[subnets[:, space.positions[RESOLUTION]]])
