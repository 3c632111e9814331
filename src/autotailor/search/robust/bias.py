"""The bias of predicted latencies: a line over the logarithm of the prediction, learnt from measured SubNets.

With x the logarithm of the predicted and y that of the measured latency, the measured SubNets teach

    y = x + a + b (x - m) + e,    e ~ N(0, s² / w),    b ~ N(0, s²),    s² ~ scaled inverse chi²(1, TYPICAL²),

where m is the weighted mean of x, a has a flat prior, and w = 1 / (1 + (f / (2 TYPICAL))²) makes a SubNet whose rounds
disagree by the noise floor f count for less. The bias a + b (x - m) depends on the latency, because an effect that a
sum of operators leaves out need not grow as the sum does; one prior SubNet shrinks the slope b. This is the conjugate
linear regression (Gelman et al., Bayesian Data Analysis, 3rd edition, section 14.2): with weighted residuals r, rows n
and slope b', s² has 1 + n - 1 = n degrees of freedom and the estimate

    s'² = (TYPICAL² + sum w r² + b'²) / n,

and the next SubNet's y in the same session is Student-t with n degrees of freedom around x + a' + b' (x - m), with the
variance s'² (1 + h). h is the largest leverage within the measured latencies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from autotailor.ir.space.metric import FloatArray

TYPICAL = 0.025
"""Usual spread of log measured over predicted latency: 95 % of SubNets within 5 %, as ``validate.promise`` says."""
STEEPEST = 0.5
"""Largest slope of the bias, either way. Beyond it the table is wrong, and the quantile would rise too slowly."""


@dataclass(frozen=True)
class Bias:
    """What predicted latencies are off by, as a logarithm.

    Attributes:
        offset: mean of log measured over predicted latency at ``centre``.
        slope: what the bias grows by where the latency grows by the factor e.
        centre: logarithm of a latency in ms.
        spread: standard deviation of log measured over predicted latency around the bias, leverage included.
        degrees: of freedom.
    """

    offset: float
    slope: float
    centre: float
    spread: float
    degrees: float


def learn(predicted: FloatArray, measured: FloatArray, disagreement: FloatArray) -> Bias:
    """The bias that SubNets teach.

    Args:
        predicted: latencies ``[n]`` in ms, one at least.
        measured: latencies ``[n]`` in ms.
        disagreement: what two rounds of each SubNet are relatively off from each other, ``[n]``.
    """
    weight = 1 / (1 + (disagreement / (2 * TYPICAL)) ** 2)
    logs, found = np.log(predicted), np.log(measured / predicted)
    centre, offset = (float(np.average(values, weights=weight)) for values in (logs, found))
    away = logs - centre
    precision = float(weight @ away**2) + 1.0
    slope = float(np.clip(weight @ (away * found) / precision, -STEEPEST, STEEPEST))
    residual = found - offset - slope * away
    variance = (TYPICAL**2 + float(weight @ residual**2) + slope**2) / len(predicted)
    leverage = 1 / float(weight.sum()) + float(np.max(away**2)) / precision
    return Bias(offset, slope, centre, math.sqrt(variance * (1 + leverage)), float(len(predicted)))
