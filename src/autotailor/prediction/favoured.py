"""SubNets that training favours: their accuracy is not what their choices let expect.

Most strategies train the smallest SubNet far more often than any other. The accuracies of the smallest SubNets at each
resolution are then far from what a sum of terms over their choices says, mostly above. A model that takes that for an
effect of the choices predicts all other SubNets worse. Therefore the smallest SubNets have a misfit of their own. The
largest SubNet is favoured as well; targets are relative to it.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet, smallest
from autotailor.ir.space.variable import Modification, Space

VARIANCE = 0.1
"""Variance of the misfit that favoured SubNets have beside that of all SubNets, in squared log-odds."""


def favoured(space: Space) -> list[SubNet]:
    """The smallest SubNet at each resolution."""
    small = smallest(space)
    if RESOLUTION not in space.positions:
        return [small]
    return list(dict.fromkeys(small.transform(Modification(RESOLUTION, c)) for c in space[RESOLUTION].choices))


def extra_misfit(space: Space, subnets: npt.ArrayLike) -> FloatArray:
    """Variance of each SubNet's misfit beside that of all SubNets, for choice indices ``[n, variables]``: ``[n]``."""
    rows = np.array(subnets, dtype=np.int64, ndmin=2)
    known = np.array([subnet.to_array() for subnet in favoured(space)])
    return np.asarray(VARIANCE * (rows[:, None, :] == known[None]).all(axis=2).any(axis=1))
