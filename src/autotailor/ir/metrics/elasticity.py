"""How much of a network can change: the share of its multiply-accumulates in elastic operators."""

import math
from dataclasses import dataclass

import numpy as np

from autotailor.ir.dimensions.dimension import RESOLUTION
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import largest


@dataclass(frozen=True)
class ElasticShare:
    """Shares of the largest SubNet's multiply-accumulates, 0 to 1; a change of the resolution does not count.

    Attributes:
        resized: in operators that a width, a ratio, a kernel or a number of heads makes cheaper.
        removable: in operators that some SubNet leaves out.
        elastic: in operators of either sort.
    """

    resized: float
    removable: float
    elastic: float


def elastic_share(macs: Metric) -> ElasticShare:
    """The shares that follow from the terms of the MACs; all are zero for a network without MACs.

    An operator without a rule has no MACs, so that it adds to no share and not to the total.
    """
    values = unmodified_values(macs)
    resized = [value for term, value in zip(macs.terms, values, strict=True) if is_resized(term)]
    removable = [value for term, value in zip(macs.terms, values, strict=True) if term.gate is not None]
    either = [value for term, value in zip(macs.terms, values, strict=True) if is_elastic(term)]
    total = math.fsum(values) or 1.0
    return ElasticShare(*(math.fsum(chosen) / total for chosen in (resized, removable, either)))


def unmodified_values(metric: Metric) -> FloatArray:
    """Value of each term for the largest SubNet: ``[terms]``, in the metric's unit."""
    rows = largest(metric.space).to_array()[None]
    return np.array([float(term.values(metric.space, rows)[0]) for term in metric.terms])


def is_elastic(term: Term) -> bool:
    """Whether a SubNet can resize or leave out what the term stands for."""
    return term.gate is not None or is_resized(term)


def is_resized(term: Term) -> bool:
    """Whether the table changes along any axis but the resolution's."""
    axes = [axis for axis in range(term.table.ndim) if term.variables[axis : axis + 1] != (RESOLUTION,)]
    return any(bool(np.ptp(term.table, axis=axis).any()) for axis in axes)
