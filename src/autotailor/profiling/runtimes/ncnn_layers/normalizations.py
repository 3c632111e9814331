"""Normalisations that are not folded into the weights of what stands before them."""

from __future__ import annotations

import math

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.runtimes.ncnn_layers.layer import Layer, alone, writes

EPSILON = 1e-5


@writes("LayerNormalization")
def layer_norm(feature: OperatorFeature) -> Layer:
    """Over the last axes, with gain and shift."""
    alone(feature)
    shape = feature.inputs[0]
    size = math.prod(shape[int(feature.attribute("axis", -1)) % len(shape) :])
    epsilon = float(feature.attribute("epsilon", EPSILON))
    return Layer("LayerNorm", ((0, size), (1, epsilon), (2, int(bool(feature.weights)))), in_place=True)


@writes("BatchNormalization")
def batch_norm(feature: OperatorFeature) -> Layer:
    """With constant statistics, where nothing before it takes it into its weights."""
    alone(feature)
    epsilon = float(feature.attribute("epsilon", EPSILON))
    return Layer("BatchNorm", ((0, feature.inputs[0][1]), (1, epsilon)), in_place=True)
