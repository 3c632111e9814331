"""Each operator between two layers whose widths change: deduced shapes, and numbers of all forms of a SubNet."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from acceptance import checks
from atoms import every_atom
from autotailor.ir.errors import GraphError
from autotailor.ir.propagation import RESOLUTION

Case = tuple[str, list[Any], dict[str, Any]]
CHANNELS, SIDE = 12, 12
RNG = np.random.default_rng(0)


def weight(*shape: int, low: float = -1.0) -> np.ndarray:
    return RNG.uniform(low, 1.0, shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def floats(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


NONE = None  # an absent input
C = CHANNELS
SPATIAL: dict[str, Case] = {
    "conv-grouped": ("Conv", [weight(8, 3, 3, 3), weight(8)], {"group": 4, "pads": [1, 1, 1, 1]}),
    "conv-depthwise": ("Conv", [weight(C, 1, 3, 3), weight(C)], {"group": C, "dilations": [2, 2]}),
    "conv-multiplied": ("Conv", [weight(2 * C, 1, 3, 3)], {"group": C, "strides": [2, 2]}),
    "conv-transpose": (
        "ConvTranspose", [weight(C, 8, 3, 3), weight(8)],
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1]},
    ),
    "conv-transpose-uneven": ("ConvTranspose", [weight(C, 8, 2, 3)], {"strides": [2, 3], "pads": [0, 1, 1, 0]}),
    "conv-transpose-grouped": ("ConvTranspose", [weight(C, 2, 2, 2), weight(8)], {"group": 4, "dilations": [2, 2]}),
    "conv-transpose-depthwise": ("ConvTranspose", [weight(C, 1, 2, 2), weight(C)], {"group": C, "strides": [2, 2]}),
    "batchnorm": ("BatchNormalization", [weight(C), weight(C), weight(C), weight(C, low=0.5)], {}),
    "instance-norm": ("InstanceNormalization", [weight(C), weight(C)], {"epsilon": 1e-3}),
    "group-norm": ("GroupNormalization", [weight(C), weight(C)], {"num_groups": 3}),
    "group-norm-one": ("GroupNormalization", [weight(C), weight(C)], {"num_groups": 1, "epsilon": 1e-3}),
    "group-norm-each": ("GroupNormalization", [weight(C), weight(C)], {"num_groups": C, "epsilon": 1e-3}),
    "layer-norm-all": ("LayerNormalization", [weight(C, SIDE, SIDE), weight(C, SIDE, SIDE)], {"axis": 1}),
    "lrn": ("LRN", [], {"size": 5, "alpha": 0.3, "beta": 0.6, "bias": 1.5}),
    "lp-norm": ("LpNormalization", [], {"axis": 1, "p": 2}),
    "lp-norm-one": ("LpNormalization", [], {"axis": 1, "p": 1}),
    "softmax": ("Softmax", [], {"axis": 1}),
    "log-softmax": ("LogSoftmax", [], {"axis": -1}),
    "prelu": ("PRelu", [weight(C, 1, 1)], {}),
    "prelu-one": ("PRelu", [weight(1)], {}),
    "pow": ("Pow", [floats(2)], {}),
    "max": ("Max", [weight(C, 1, 1), weight(1)], {}),
    "min": ("Min", [weight(1, C, 1, 1)], {}),
    "sum": ("Sum", [weight(C, 1, 1), weight(1)], {}),
    "mean": ("Mean", [weight(C, 1, 1), weight(1)], {}),
    "maxpool-dilated": ("MaxPool", [], {"kernel_shape": [3, 3], "dilations": [2, 2]}),
    "maxpool-uneven": ("MaxPool", [], {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 0, 1]}),
    "maxpool-ceil": ("MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "maxpool-ceil-pads": (
        "MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    "maxpool-ceil-behind": (
        "MaxPool", [], {"kernel_shape": [3, 3], "strides": [3, 3], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
    "avgpool": ("AveragePool", [], {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}),
    "avgpool-uneven": ("AveragePool", [], {"kernel_shape": [2, 2], "pads": [0, 0, 1, 1]}),
    "avgpool-include": (
        "AveragePool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 0, 1, 0], "count_include_pad": 1},
    ),
    "avgpool-ceil": ("AveragePool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    "avgpool-ceil-uneven": (
        "AveragePool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [0, 1, 1, 0], "ceil_mode": 1},
    ),
    "avgpool-dilated": ("AveragePool", [], {"kernel_shape": [2, 2], "dilations": [2, 3], "pads": [1, 1, 1, 1]}),
    "lp-pool": ("LpPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "p": 3}),
    "global-lp-pool": ("GlobalLpPool", [], {"p": 3}),
    "pad": ("Pad", [ints(0, 0, 1, 0, 0, 0, 2, 3), np.float32(0.5)], {}),
    "pad-reflect": ("Pad", [ints(0, 0, 1, 1, 0, 0, 1, 1)], {"mode": "reflect"}),
    "pad-edge": ("Pad", [ints(0, 0, 0, 1, 0, 0, 2, 0)], {"mode": "edge"}),
    "pad-channels": ("Pad", [ints(0, 2, 0, 0, 0, 3, 0, 0)], {}),
    "pad-axes": ("Pad", [ints(1, 2, 3, 4), NONE, ints(2, -1)], {}),
    "pad-wrap": ("Pad", [ints(0, 0, 1, 1, 0, 0, 1, 1)], {"mode": "wrap"}),
    "crop": ("Pad", [ints(0, 0, -1, 0, 0, 0, 0, -1)], {}),
    "resize-nearest": ("Resize", [NONE, floats(1, 1, 2, 2)], {"mode": "nearest", "nearest_mode": "floor"}),
    "resize-asymmetric": (
        "Resize", [NONE, floats(1, 1, 2, 3)],
        {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    "resize-ceil": ("Resize", [NONE, floats(1, 1, 1.5, 1.5)], {"mode": "nearest", "nearest_mode": "ceil"}),
    "resize-linear": ("Resize", [NONE, floats(1, 1, 2, 2)], {"mode": "linear"}),
    "resize-half": (
        "Resize", [NONE, floats(1, 1, 0.5, 0.5)],
        {"mode": "linear", "coordinate_transformation_mode": "pytorch_half_pixel"},
    ),
    "resize-corners": (
        "Resize", [NONE, floats(1, 1, 2, 2)],
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
    ),
    "resize-cubic": ("Resize", [NONE, floats(1, 1, 1.5, 2)], {"mode": "cubic"}),
    "resize-cubic-outside": (
        "Resize", [NONE, floats(1, 1, 2, 2)], {"mode": "cubic", "cubic_coeff_a": -0.5, "exclude_outside": 1},
    ),
    "resize-filtered": (
        "Resize", [NONE, floats(1, 1, 0.5, 1 / 3)], {"mode": "linear", "antialias": 1, "exclude_outside": 1},
    ),
    "resize-filtered-edges": ("Resize", [NONE, floats(1, 1, 0.5, 1.5)], {"mode": "linear", "antialias": 1}),
    "resize-cubic-filtered": ("Resize", [NONE, floats(1, 1, 0.5, 0.25)], {"mode": "cubic", "antialias": 1}),
    "resize-sizes": ("Resize", [NONE, NONE, ints(1, C, 2 * SIDE, 2 * SIDE)], {"mode": "linear"}),
    "resize-to-fixed": ("Resize", [NONE, NONE, ints(1, C, 7, 7)], {"mode": "linear"}),
    "resize-axes": ("Resize", [NONE, floats(2, 2)], {"mode": "linear", "axes": [2, 3]}),
    "resize-sizes-alone": ("Resize", [floats(), floats(), ints(1, C, 6, 6)], {"mode": "linear"}),
    "depth-to-space": ("DepthToSpace", [], {"blocksize": 2, "mode": "DCR"}),
    "depth-to-space-crd": ("DepthToSpace", [], {"blocksize": 2, "mode": "CRD"}),
    "space-to-depth": ("SpaceToDepth", [], {"blocksize": 3}),
    "expand": ("Expand", [ints(1, C, SIDE, SIDE)], {}),
    "tile": ("Tile", [ints(1, 2, 1, 1)], {}),
    "cast": ("Cast", [], {"to": TensorProto.FLOAT}),
    "clip-low": ("Clip", [floats(-0.5)[0]], {}),
    "clip-high": ("Clip", [NONE, floats(0.5)[0]], {}),
    "hard-sigmoid": ("HardSigmoid", [], {"alpha": 0.3}),
    "gelu": ("Gelu", [], {}),
    "gelu-tanh": ("Gelu", [], {"approximate": "tanh"}),
    "mish": ("Mish", [], {}),
    "selu": ("Selu", [], {}),
    "celu": ("Celu", [], {"alpha": 2.0}),
    "shrink": ("Shrink", [], {"lambd": 0.3, "bias": 0.1}),
    "thresholded": ("ThresholdedRelu", [], {"alpha": 0.3}),
    "cumsum-static": ("CumSum", [np.int64(1)], {}),
    **{k.lower(): (k, [], {"axes": [1], "keepdims": 1}) for k in ("ReduceMean", "ReduceL1", "ReduceMax", "ReduceProd")},
    **{k.lower(): (k, [], {"axes": [-1], "keepdims": 1}) for k in ("ReduceMin", "ReduceSumSquare", "ReduceLogSumExp")},
    **{k.lower(): (k, [], {}) for k in ("Softsign", "HardSwish", "Sign", "Floor", "Ceil", "Sin", "Cos", "Softplus")},
}  # fmt: skip
MATRIX: dict[str, Case] = {
    "layer-norm": ("LayerNormalization", [weight(C), weight(C)], {"epsilon": 1e-3}),
    "layer-norm-no-shift": ("LayerNormalization", [weight(C)], {}),
    "softmax-row": ("Softmax", [], {}),
    "gemm-alpha": ("Gemm", [weight(7, C), weight(7)], {"transB": 1, "alpha": 0.5, "beta": 2.0}),
    "matmul": ("MatMul", [weight(C, 7)], {}),
    "reduce-l2": ("ReduceL2", [], {"axes": [1], "keepdims": 1}),
    "l1": ("LpNormalization", [], {"axis": -1, "p": 1}),
}
OPSETS = {
    "GroupNormalization": 21,
    "Gelu": 20,
    "Mish": 18,
    "pad-axes": 18,
    "resize-axes": 18,
    "resize-filtered": 18,
    "resize-filtered-edges": 18,
    "resize-cubic-filtered": 18,
    "pad-wrap": 19,
    "avgpool-dilated": 19,
}


RIGID = {"cumsum-static"}  # operators that leave nothing to change
ONE_IMAGE_SIZE = {*RIGID, "layer-norm-all", "resize-to-fixed"}


def model_of(name: str, case: Case, flat: bool) -> onnx.ModelProto:
    """Conv - operator - (pooling) - Gemm, everything random; ``flat`` pools before the operator."""
    kind, inputs, attributes = case
    names = [f"w{i}" if value is not None else "" for i, value in enumerate(inputs)]
    constants = {n: np.asarray(v) for n, v in zip(names, inputs, strict=True) if n}
    constants |= {"first": weight(CHANNELS, 3, 1, 1), "shift": weight(CHANNELS)}
    subject = helper.make_node(kind, ["b" if flat else "a", *names], ["y"], "subject", **attributes)
    pool = [helper.make_node("GlobalAveragePool", ["a" if flat else "y"], ["p"], "pool"),
            helper.make_node("Flatten", ["p"], ["b" if flat else "f"], "flatten")]  # fmt: skip
    nodes = [helper.make_node("Conv", ["x", "first", "shift"], ["a"], "first")]
    nodes += [*pool, subject] if flat else [subject, *pool]
    nodes.append(helper.make_node("Gemm", ["y" if flat else "f", "last"], ["z"], "last"))
    opset = OPSETS.get(kind, OPSETS.get(name, 17))
    width = _width(nodes[:-1], constants, opset, "y" if flat else "f")
    return _model(nodes, {**constants, "last": weight(width, 5)}, opset, "z", (1, 5))


def _width(nodes: list[onnx.NodeProto], constants: dict[str, np.ndarray], opset: int, output: str) -> int:
    """What the operator leaves, by onnxruntime."""
    model = _model(nodes, constants, opset, output)
    return checks.run_onnx(model, weight(1, 3, SIDE, SIDE))[output].shape[-1]


def _model(
    nodes: list[onnx.NodeProto],
    constants: dict[str, np.ndarray],
    opset: int,
    output: str,
    shape: tuple[int, ...] | None = None,
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes, "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, SIDE, SIDE))],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )  # fmt: skip
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8 if opset < 19 else 10)


@pytest.mark.parametrize("name", sorted({**SPATIAL, **MATRIX}))
def test_all_forms_agree_when_everything_shrinks_on_its_own(name: str) -> None:
    case = {**SPATIAL, **MATRIX}[name]
    model = model_of(name, case, name in MATRIX)
    net = every_atom(model, smallest_image=6)
    assert checks.check_largest(net, model)[0] < checks.TOLERANCE
    variables = {v.name for v in net.space}
    assert bool(variables - {RESOLUTION}) == (name not in RIGID)
    assert (RESOLUTION in variables) == (name not in ONE_IMAGE_SIZE)
    module = net.module()
    rng = random.Random(0)
    for subnet in [net.smallest(), *(net.sample(rng) for _ in range(4))]:
        check = checks.check_subnet(net, module, subnet)
        assert check.passed, (subnet.to_json(), check)


def test_windows_behind_the_image_are_refused() -> None:
    pool = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}
    with pytest.raises(GraphError, match="subject: its last window starts behind the image"):
        every_atom(_odd(model_of("behind", ("MaxPool", [], pool), False)), smallest_image=6)


def _odd(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model for images of odd side."""
    for axis in model.graph.input[0].type.tensor_type.shape.dim[2:]:
        axis.dim_value = SIDE + 1
    return model
