"""ncnn's fusion rules, found in the ``.param`` files that pnnx writes, which list the layers that will run.

BatchNorm is folded into the weights of the operator before it. ReLU, LeakyReLU, Clip, Sigmoid and Mish run inside
Convolution, ConvolutionDepthWise and InnerProduct; HardSwish, SiLU and GELU do not. A residual sum and the activation
behind it stay two layers. Global pooling returns a vector, so that a Flatten behind it disappears.

``PATTERNS`` lists groups of ONNX operators that pnnx writes as one layer.
"""

from autotailor.ir.execution.patterns import BIASED_MATMUL, GELU, SWISH
from autotailor.ir.fusion.rules import FusionRules
from autotailor.ir.pattern import Pattern

PRODUCERS = ("Conv", "Gemm")
ACTIVATIONS = ("Relu", "LeakyRelu", "Clip", "Sigmoid", "Mish")

PATTERNS = (
    *GELU,
    SWISH,
    Pattern(
        "Attention",
        "MatMul(Softmax(MatMul(Mul(q, SCALE), Mul(Transpose(k, perm=(0, 1, 3, 2)), KEYSCALE)), axis=-1), v)",
        scalars=("SCALE", "KEYSCALE"),
        ranks=(("q", (4,)), ("v", (4,))),
    ),
    Pattern(
        "GroupNormalization",
        "Add(Mul(Reshape(InstanceNormalization("
        "Reshape(x, shape=(_, num_groups, _)), ONES, ZEROS, epsilon=epsilon)), GAIN), SHIFT)",
    ),
    Pattern("Square", "Pow(x, 2.0)"),
    Pattern("ChannelShuffle", "Reshape(Transpose(Reshape(x, shape=(_, group, _, _, _)), perm=(0, 2, 1, 3, 4)))"),
    BIASED_MATMUL,
    *(Pattern("TransposedMatMul", f"MatMul(x, Transpose(y, perm={perm}))") for perm in ((0, 1, 3, 2), (0, 2, 1))),
)
"""Where two patterns overlap, the earlier one holds."""

NCNN_FUSION = FusionRules(
    name="ncnn",
    folds=frozenset((producer, "BatchNormalization") for producer in PRODUCERS),
    fuses=frozenset((producer, activation) for producer in PRODUCERS for activation in ACTIVATIONS)
    | frozenset(
        {
            ("GlobalAveragePool", "Flatten"),
            ("GlobalMaxPool", "Flatten"),
            ("GlobalAveragePool", "Transpose"),
            ("Transpose", "Flatten"),
        }
    ),
    free=frozenset({"Identity", "Dropout"}),
    patterns=PATTERNS,
)
