"""What a SubNet takes of each weight of an elastic graph: slices, or what the moments say in closed form."""

import numpy as np

from autotailor.ir.dimensions.dimension import Dimension, Sizes
from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.weight_plan import Mixture, Part, Taps, WeightPlan, plan_weight
from autotailor.ir.moments import Moments, Reader


def plan_active(elastic: ElasticGraph, name: str, sizes: Sizes) -> WeightPlan:
    """What a SubNet takes of a weight.

    Args:
        elastic: the graph that has the weight.
        name: of the weight.
        sizes: the active size of each atom.
    """
    axes = elastic.propagation.dimensions[name]
    plan = plan_weight(axes, sizes)
    moments, reader = elastic.moments, elastic.readers.get(name)
    if moments is None or reader is None:
        return plan
    part = _solved(moments, reader, axes, sizes)
    if part is None:
        return plan
    if isinstance(part, Taps):
        return (*plan[:2], part, None)
    return (*plan[: reader.axis], part, *plan[reader.axis + 1 :])


def _solved(moments: Moments, reader: Reader, axes: tuple[Dimension, ...], sizes: Sizes) -> Part | None:
    """The part of the axis along which a weight reads; None where it reads everything, or its moments are not known."""
    if reader.depthwise is not None:
        side, active = axes[2].meta, axes[2].size(sizes)
        if active == side or reader.weight not in moments.taps:
            return None
        row = axes[2].indices(sizes, {})
        kept = (row[:, None] * side + row).reshape(-1)
        return Taps(moments.tap_mixtures(reader.weight, kept))
    axis = axes[reader.axis]
    kept = axis.indices(sizes, {})
    if len(kept) == axis.meta or not len(kept) or reader.tensor not in moments.channels:
        return None
    return Mixture(moments.mixture(reader.tensor, np.asarray(kept)))
