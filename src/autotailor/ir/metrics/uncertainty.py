"""Standard error of a predicted latency, from the standard errors of the LUT.

A SubNet that runs an operator k times adds the same row of the LUT k times. If the row is wrong, it is wrong k times in
the same direction, so that its error counts k times and not sqrt(k) times. The rows themselves are measured
independently of each other. With the count k_o and the standard error e_o of each distinct operator o,

    e = sqrt( sum_o (k_o e_o)^2 ).

The standard error says how well the operators are known. How well a sum of operators stands for a network, only the
rule ``validate`` can tell.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.fusion.places import Place
from autotailor.ir.space.derived import entries
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray
from autotailor.ir.space.variable import Space

ROWS = 512
"""SubNets whose operators are counted at once: the table of counts stays within some megabytes."""


@dataclass(frozen=True, eq=False)
class LatencyError:
    """Standard error of predicted latencies over one space, in ms; used like a ``Metric``, but no sum of terms.

    Attributes:
        space: the variables.
        places: every fused operator of the network.
        standard_errors: feature id to the standard error of its latency, ms.
    """

    space: Space
    places: Sequence[Place]
    standard_errors: Mapping[str, float]
    name: str = "latency_standard_error"
    unit: str = "ms"

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error of the latency for each row of choice indices ``[n, variables]``: ``[n]``, in ms."""
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        parts = [self._errors(array[start : start + ROWS]) for start in range(0, len(array), ROWS)]
        return np.concatenate([np.zeros(0), *parts])

    def _errors(self, array: IntArray) -> FloatArray:
        weighted = self._counts(array) * np.array([self.standard_errors[id_] for id_ in self._columns])
        return np.asarray(np.sqrt(np.square(weighted).sum(axis=1)), dtype=np.float64)

    def _counts(self, array: IntArray) -> FloatArray:
        """How often each SubNet runs each distinct operator: ``[n, operators]``."""
        counts = np.zeros((len(array), len(self._columns)))
        rows = np.arange(len(array))
        for place in self.places:
            columns = np.array([self._columns[feature.id] for feature in place.operators])
            numbers = place.index[entries(place.variables, place.derived, self.space, array)]
            opened = 1.0 if place.gate is None else place.gate.is_open(self.space.positions, array).astype(np.float64)
            counts[rows, columns[numbers]] += opened
        return counts

    @cached_property
    def _columns(self) -> dict[str, int]:
        """Feature id to its column in the table of counts."""
        ids = dict.fromkeys(feature.id for place in self.places for feature in place.operators)
        return {id_: column for column, id_ in enumerate(ids)}
