"""Fusion rules that tests of fused operators and of metrics share."""

from autotailor.ir.fusion.rules import FusionRules

CONV_RULES = FusionRules(
    "conv",
    folds=frozenset({("Conv", "BatchNormalization")}),
    fuses=frozenset({("Conv", "Relu"), ("Conv", "Clip")}),
    free=frozenset({"Flatten"}),
)
"""Normalisations fold into convolutions, which run activations; flattening is free."""
