"""Small operators of many kinds, as features that runtimes measure."""

from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes

IMAGE, NARROW, TOKENS = (1, 32, 8, 8), (1, 32, 1, 1), (1, 9, 32)
WINDOW = {"kernel_shape": (3, 3), "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1), "group": 1}


def conv(inputs: int, outputs: int, activation: str = "", **attributes: object) -> OperatorFeature:
    values = {**WINDOW, **attributes}
    weights = ((outputs, inputs // values["group"], *values["kernel_shape"]), (outputs,))
    side = 8 // values["strides"][0]
    followers = (Follower(activation),) if activation else ()
    shapes = ((1, inputs, 8, 8),), ((1, outputs, side, side),)
    return OperatorFeature("Conv", *shapes, weights, freeze_attributes(values), followers)


FEATURES = {
    "stem": conv(3, 16, "Relu", strides=(2, 2)),
    "chained convolution": conv(32, 32, "Relu"),
    "convolution": conv(32, 48, "HardSwish"),
    "narrow convolution": conv(8, 8),
    "convolution without blocks": conv(6, 10, "Sigmoid"),
    "unaligned channels": conv(34, 33),
    "depthwise": conv(32, 32, "Clip", group=32),
    "grouped": conv(32, 64, group=2, kernel_shape=(1, 1), pads=(0, 0, 0, 0)),
    "max pool": OperatorFeature(
        "MaxPool", (IMAGE,), ((1, 32, 4, 4),), (), (("kernel_shape", (2, 2)), ("strides", (2, 2)))
    ),
    "global pool": OperatorFeature("GlobalAveragePool", (IMAGE,), (NARROW,)),
    "mean": OperatorFeature("ReduceMean", (IMAGE,), (NARROW,), (), (("axes", (2, 3)), ("keepdims", 1))),
    "add": OperatorFeature("Add", (IMAGE, IMAGE), (IMAGE,)),
    "gate": OperatorFeature("Mul", (IMAGE, NARROW), (IMAGE,)),
    "gemm": OperatorFeature("Gemm", ((1, 32),), ((1, 10),), ((10, 32), (10,)), (("transB", 1),)),
    "matmul": OperatorFeature("MatMul", (TOKENS,), ((1, 9, 8),), ((32, 8),)),
    "attention": OperatorFeature("MatMul", ((1, 2, 9, 4), (1, 2, 4, 9)), ((1, 2, 9, 9),)),
    "softmax": OperatorFeature("Softmax", (TOKENS,), (TOKENS,), (), (("axis", -1),)),
    "layer norm": OperatorFeature("LayerNormalization", (TOKENS,), (TOKENS,), ((32,), (32,)), (("axis", -1),)),
    "batch norm": OperatorFeature("BatchNormalization", (IMAGE,), (IMAGE,), ((32,),) * 4),
    "relu": OperatorFeature("Relu", (IMAGE,), (IMAGE,)),
    "clip": OperatorFeature("Clip", (IMAGE,), (IMAGE,), (), (("max", 6.0), ("min", 0.0))),
    "transpose": OperatorFeature("Transpose", (IMAGE,), ((1, 8, 8, 32),), (), (("perm", (0, 2, 3, 1)),)),
    "reshape": OperatorFeature("Reshape", (IMAGE,), ((1, 32, 64),)),
    "split": OperatorFeature("Split", (TOKENS,), ((1, 9, 8), (1, 9, 24)), (), (("axis", 2),)),
    "concat": OperatorFeature("Concat", (IMAGE, IMAGE), ((1, 64, 8, 8),), (), (("axis", 1),)),
    "slice": OperatorFeature("Slice", (TOKENS,), ((1, 4, 32),), (), (("axes", (1,)), ("ends", (4,)), ("starts", (0,)))),
    "residual": OperatorFeature(
        "Conv",
        (IMAGE, (1, 48, 8, 8)),
        ((1, 48, 8, 8),),
        ((48, 32, 3, 3), (48,)),
        freeze_attributes(WINDOW),
        (Follower("Add"), Follower("Relu")),
    ),
    "swish": OperatorFeature("Swish", (IMAGE,), (IMAGE,)),
    "gelu": OperatorFeature("Gelu", (TOKENS,), (TOKENS,), (), (("approximate", "none"),)),
    "biased matmul": OperatorFeature("MatMul", (TOKENS,), ((1, 9, 8),), ((32, 8), (8,))),
}
