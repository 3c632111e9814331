"""ncnn's fusion rules, read off what pnnx writes: the `.param` is the list of layers that will run.

BatchNorm disappears into the weights before it. ReLU, LeakyReLU, Clip, Sigmoid and Mish run inside
Convolution, ConvolutionDepthWise and InnerProduct. HardSwish, SiLU and GELU do not, nor does a residual sum with
the activation behind it. Global pooling gives a vector, so that the Flatten behind it is gone.
"""

from __future__ import annotations

from autotailor.ir.feature import FusionRules

PRODUCERS = ("Conv", "Gemm")
ACTIVATIONS = ("Relu", "LeakyRelu", "Clip", "Sigmoid", "Mish")

NCNN_FUSION = FusionRules(
    name="ncnn",
    folds=frozenset((producer, "BatchNormalization") for producer in PRODUCERS),
    fuses=frozenset((producer, activation) for producer in PRODUCERS for activation in ACTIVATIONS)
    | frozenset({("GlobalAveragePool", "Flatten")}),
    free=frozenset({"Identity", "Dropout"}),
)
