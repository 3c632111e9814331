"""ONNX Runtime's fusion rules on processors, read off what its optimizer writes (``optimized_model_filepath``).

BatchNorm disappears into the convolution before it. A residual sum runs inside Conv, and behind it an activation,
as it does inside Gemm. GELU and x sigmoid(x) become kernels of their own, a product and its bias a Gemm.
"""

from __future__ import annotations

from autotailor.ir.fusion.rules import FusionRules
from autotailor.profiling.runtimes.patterns import BIASED_MATMUL, GELU, SWISH

CONV_ACTIVATIONS = ("Relu", "Clip", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "LeakyRelu")
GEMM_ACTIVATIONS = ("Relu", "Sigmoid", "Tanh", "LeakyRelu")

ONNXRUNTIME_FUSION = FusionRules(
    name="onnxruntime",
    folds=frozenset({("Conv", "BatchNormalization")}),
    fuses=frozenset(("Conv", activation) for activation in CONV_ACTIVATIONS)
    | frozenset(("Gemm", activation) for activation in GEMM_ACTIVATIONS),
    free=frozenset({"Identity", "Dropout"}),
    patterns=(*GELU, SWISH, BIASED_MATMUL),
    sums=frozenset({"Conv"}),
)
