"""How many copies of an operator its replica network holds."""

import math

from autotailor.ir.feature import OperatorFeature

TARGET_US = 150.0
"""Microseconds that a long run should last: far above the cost of a call, and short enough for many repeats."""
MOST_COPIES = 12
MEMORY_MB = 192.0


def estimated_us(feature: OperatorFeature) -> float:
    """A guess of the latency in microseconds, only for planning the number of copies and repeats."""
    outputs = math.prod(feature.outputs[0])
    moved = sum(math.prod(s) for s in (*feature.inputs, *feature.outputs, *feature.weights))
    products = outputs * math.prod(feature.weights[0][1:]) if feature.kind == "Conv" else 0
    return 1.0 + products / 30e3 + moved / 4e3


def copies(feature: OperatorFeature, weight_mb: float) -> tuple[int, int]:
    """Number of replicas in the short and in the long run; ``weight_mb`` is the memory of one copy's weights in MiB."""
    fitting = round(TARGET_US / estimated_us(feature))
    bounded = min(MOST_COPIES, int(MEMORY_MB / max(weight_mb, 1e-6)))
    return 1, 1 + max(2, min(fitting, bounded))
