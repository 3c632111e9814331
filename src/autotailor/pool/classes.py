"""The latency of a SubNet by class of operator, from the look-up table (LUT).

Load slows operators down differently: one that computes all the time suffers from a lower clock, one that waits for
memory from a neighbour that empties the caches. The LUT says what each operator takes, but not why. A roofline model
(Williams et al., 2009) with rates from the same LUT says it plainly. An operator with latency t, multiply-accumulates m
and bytes b (of what it reads and writes, weights included) has

    fixed    f = min(t, t0),       t0 = 5th percentile of the LUT's latencies: what the simplest operators take,
    the rest t - f                 counts as compute where m / R >= b / W, else as memory,

where R and W are the 95th percentiles of m / (t - t0) and b / (t - t0) over the operators of the LUT whose latency is
above 2 t0: the rates of operators that are nearly bound by arithmetic, or by memory. A convolution of many channels is
compute; a depthwise convolution, a fully connected layer of one image, a sum and a pooling are memory.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.metrics.sums import MILLION, operator_macs
from autotailor.serving.errors import PoolError

FIXED_PERCENTILE, RATE_PERCENTILE = 5.0, 95.0
LONG = 2.0
"""Latencies above so many times t0 give the rates; of shorter ones little is left after the fixed part."""
NUMBER = 4
"""Bytes of a number; only ratios of bytes matter here."""

Split = tuple[float, float, float]


@dataclass(frozen=True)
class Rates:
    """A device in the roofline model.

    Attributes:
        fixed_ms: t0.
        macs_per_ms: R; infinite where no operator of the LUT multiplies.
        bytes_per_ms: W.
    """

    fixed_ms: float
    macs_per_ms: float
    bytes_per_ms: float

    @classmethod
    def of(cls, operators: Iterable[OperatorFeature], latencies: Mapping[str, float]) -> Rates:
        """The rates that a LUT implies.

        Args:
            operators: of the LUT.
            latencies: operators' ids to milliseconds.

        Raises:
            PoolError: the LUT has no operator.
        """
        features = list(operators)
        if not features:
            raise PoolError("the table of operators is empty, so that latencies cannot be split: run rule profile")
        times = np.array([latencies[feature.id] for feature in features])
        fixed = float(np.percentile(times, FIXED_PERCENTILE))
        rest = times - fixed
        is_long = rest > (LONG - 1) * fixed
        rates = []
        for work in (np.array([macs(each) for each in features]), np.array([moved(each) for each in features])):
            chosen = is_long & (work > 0) & (rest > 0)
            rates.append(
                float(np.percentile(work[chosen] / rest[chosen], RATE_PERCENTILE)) if chosen.any() else math.inf
            )
        return cls(fixed, *rates)

    def split(self, feature: OperatorFeature, latency_ms: float) -> Split:
        """Milliseconds of an operator in the classes ``compute``, ``memory`` and ``fixed``."""
        fixed = min(latency_ms, self.fixed_ms)
        computes = macs(feature) / self.macs_per_ms >= moved(feature) / self.bytes_per_ms and macs(feature) > 0
        rest = latency_ms - fixed
        return (rest, 0.0, fixed) if computes else (0.0, rest, fixed)

    def split_all(self, features: Iterable[OperatorFeature], latencies: Mapping[str, float]) -> Split:
        """Milliseconds of the operators of a network in each class."""
        parts = [self.split(feature, latencies[feature.id]) for feature in features]
        compute, memory, fixed = (math.fsum(part) for part in zip(*parts, strict=True))
        return compute, memory, fixed


def scaled(split: Split, latency_ms: float) -> Split:
    """A split whose sum is another latency, for instance the measured one; shares stay the same."""
    total = sum(split)
    compute, memory, fixed = (part * latency_ms / total for part in split)
    return compute, memory, fixed


def macs(feature: OperatorFeature) -> float:
    """Multiply-accumulates of an operator."""
    return operator_macs(feature) * MILLION


def moved(feature: OperatorFeature) -> float:
    """Bytes that an operator reads and writes, weights included."""
    return float(NUMBER * sum(math.prod(shape) for shape in (*feature.inputs, *feature.outputs, *feature.weights)))
