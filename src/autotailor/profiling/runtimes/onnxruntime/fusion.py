"""ONNX Runtime's fusion rules on processors, found in the models that its optimizer writes.

(The session option ``optimized_model_filepath`` makes it write them.) BatchNorm is folded into the convolution before
it. Conv runs a residual sum and a following activation, Gemm runs a following activation. GELU and x sigmoid(x) become
one kernel each; a product and its bias become a Gemm.
"""

from autotailor.ir.execution.patterns import BIASED_MATMUL, GELU, SWISH
from autotailor.ir.fusion.rules import FusionRules

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
