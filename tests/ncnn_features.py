"""Operators whose ncnn layers are written by hand, in addition to those of ``features.py``, for tests of ncnn."""

from autotailor.ir.feature import OperatorFeature, freeze_attributes

IMAGE, TOKENS, VOLUME = (1, 8, 6, 7), (1, 5, 8), (1, 2, 8, 6, 7)
LINEAR = {"mode": "linear", "nearest_mode": "floor"}
END = 2**31 - 1


def feature(
    kind: str, inputs: tuple[int, ...], outputs: tuple[int, ...], *weights: tuple[int, ...], **attributes: object
) -> OperatorFeature:
    return OperatorFeature(kind, (inputs,), (outputs,), weights, freeze_attributes(attributes))


def pads(*amounts: int, shape: tuple[int, ...] = IMAGE, mode: str = "constant") -> OperatorFeature:
    rank = len(shape)
    grown = tuple(size + amounts[axis] + amounts[axis + rank] for axis, size in enumerate(shape))
    return feature("Pad", shape, grown, pads=amounts, mode=mode)


def resized(height: int, width: int, **attributes: object) -> OperatorFeature:
    return feature("Resize", IMAGE, (1, 8, height, width), **attributes)


def pooled(kind: str, height: int, width: int, **attributes: object) -> OperatorFeature:
    values = {"kernel_shape": (2, 2), "strides": (2, 2), "pads": (0, 0, 0, 0), **attributes}
    return feature(kind, IMAGE, (1, 8, height, width), **values)


CASES = {
    "largest of windows": pooled("MaxPool", 3, 4, kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
    "largest of windows, rounded up": pooled("MaxPool", 3, 4, ceil_mode=1),
    "largest of windows, a pad behind": pooled("MaxPool", 3, 3, kernel_shape=(3, 3), pads=(0, 0, 1, 1)),
    "largest of windows, a pad in front": pooled("MaxPool", 3, 4, kernel_shape=(3, 3), pads=(1, 2, 0, 1)),
    "means": pooled("AveragePool", 3, 4, kernel_shape=(3, 3), pads=(1, 1, 1, 1)),
    "means that count pads": pooled("AveragePool", 3, 4, kernel_shape=(3, 3), pads=(1, 1, 1, 1), count_include_pad=1),
    "means that count a pad behind": pooled("AveragePool", 3, 4, pads=(0, 0, 0, 1), count_include_pad=1),
    "means, rounded up": pooled("AveragePool", 3, 4, ceil_mode=1),
    "means of whole windows": pooled(
        "AveragePool", 3, 7, strides=(2, 1), kernel_shape=(2, 1), ceil_mode=1, count_include_pad=1
    ),
    "layer norm": feature("LayerNormalization", TOKENS, TOKENS, (8,), (8,), axis=-1, epsilon=1e-5),
    "layer norm of pixels": feature("LayerNormalization", IMAGE, IMAGE, (6, 7), (6, 7), axis=2, epsilon=1e-5),
    "pad, zeros": pads(0, 0, 1, 2, 0, 0, 0, 3),
    "pad, reflection": pads(0, 0, 1, 2, 0, 0, 2, 1, mode="reflect"),
    "pad, edges": pads(0, 0, 1, 0, 0, 0, 2, 1, mode="edge"),
    "pad, tokens": pads(0, 1, 0, 0, 1, 0, shape=TOKENS),
    "slice, last channels": feature("Slice", IMAGE, (1, 3, 6, 7), starts=(-3,), ends=(END,), axes=(1,), steps=(1,)),
    "slice, image": feature("Slice", IMAGE, (1, 8, 4, 5), starts=(1, 0), ends=(5, 5), axes=(2, 3), steps=(1, 1)),
    "slice, everything": feature("Slice", IMAGE, IMAGE, starts=(0,), ends=(END,), axes=(1,), steps=(1,)),
    "sum over one axis": feature("ReduceSum", IMAGE, (1, 1, 6, 7), axes=(1,), keepdims=1),
    "sum that drops an axis": feature("ReduceSum", VOLUME, (1, 8, 6, 7), axes=(1,), keepdims=0),
    "sum over the image": feature("ReduceSum", IMAGE, (1, 8), axes=(2, 3), keepdims=0),
    "mean": feature("ReduceMean", IMAGE, (1, 8, 1, 1), axes=(2, 3), keepdims=1),
    "mean over everything": feature("ReduceMean", TOKENS, (1, 1, 1), axes=(1, 2), keepdims=1),
    "norm": feature("ReduceL2", IMAGE, (1, 8, 1, 1), axes=(2, 3), keepdims=1),
    "norm of tokens": feature("ReduceL2", TOKENS, (1, 5, 1), axes=(-1,), keepdims=1),
    "absolute sum": feature("ReduceL1", TOKENS, (1, 1, 8), axes=(1,), keepdims=1),
    "squared sum": feature("ReduceSumSquare", IMAGE, (1, 1, 6, 7), axes=(1,), keepdims=1),
    "maximum": feature("ReduceMax", IMAGE, (1, 8, 6), axes=(3,), keepdims=0),
    "minimum": feature("ReduceMin", IMAGE, (1, 8, 1, 7), axes=(2,), keepdims=1),
    "product": feature("ReduceProd", IMAGE, (1, 8, 6, 1), axes=(3,), keepdims=1),
    "log of sum of exponentials": feature("ReduceLogSumExp", IMAGE, (1, 1, 6, 7), axes=(1,), keepdims=1),
    "nearest, twice": resized(
        12, 14, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    ),
    "nearest, any size": resized(
        9, 5, mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"
    ),
    "nearest, half pixel": resized(
        12, 21, mode="nearest", nearest_mode="round_prefer_floor", coordinate_transformation_mode="half_pixel"
    ),
    "linear, larger": resized(12, 14, **LINEAR, coordinate_transformation_mode="half_pixel"),
    "linear, smaller": resized(4, 5, **LINEAR, coordinate_transformation_mode="pytorch_half_pixel"),
    "linear, corners": resized(9, 11, **LINEAR, coordinate_transformation_mode="align_corners"),
    "cubic": resized(12, 14, mode="cubic", nearest_mode="floor", coordinate_transformation_mode="half_pixel"),
    "depth to space, CRD": feature("DepthToSpace", IMAGE, (1, 2, 12, 14), blocksize=2, mode="CRD"),
    "depth to space, DCR": feature("DepthToSpace", IMAGE, (1, 2, 12, 14), blocksize=2, mode="DCR"),
    "instance norm": feature("InstanceNormalization", IMAGE, IMAGE, (8,), (8,), epsilon=1e-5),
    "group norm": feature("GroupNormalization", IMAGE, IMAGE, (8,), (8,), num_groups=2, epsilon=1e-5),
    "power": feature("Pow", IMAGE, IMAGE, (8, 1, 1)),
    "constant of the innermost axis": feature("Mul", IMAGE, IMAGE, (7,)),
    "constant of the tokens' features": feature("Add", TOKENS, TOKENS, (8,)),
    "constant of two axes": feature("Add", IMAGE, IMAGE, (6, 7)),
    "activations of unlike rank": OperatorFeature("Mul", (IMAGE, (1, 6, 7)), (IMAGE,)),
    "minimum of two": OperatorFeature("Min", (IMAGE, IMAGE), (IMAGE,)),
    "log of sum": feature("ReduceLogSum", IMAGE, (1, 1, 6, 7), axes=(1,), keepdims=1),
    "maximum of two": OperatorFeature("Max", (IMAGE, IMAGE), (IMAGE,)),
    "slopes": feature("PRelu", IMAGE, IMAGE, (8, 1, 1)),
    "elu": feature("Elu", IMAGE, IMAGE, alpha=0.7),
    "selu": feature("Selu", IMAGE, IMAGE),
    **{kind: feature(kind, IMAGE, IMAGE) for kind in ("Abs", "Neg", "Sqrt", "Exp", "Log", "Reciprocal", "Erf")},
    **{kind: feature(kind, IMAGE, IMAGE) for kind in ("Floor", "Ceil", "Sin", "Cos", "Tan", "Round", "Softplus")},
    "global maximum": feature("GlobalMaxPool", IMAGE, (1, 8, 1, 1)),
}
