"""Operator rules: each kind, alone, in PyTorch against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from autotailor.compiler.parser import parse
from autotailor.ir.execution.executor import GraphModule
from autotailor.ir.execution.onnx_writer import to_onnx
from autotailor.ir.feature import OperatorFeature
from autotailor.ir.operators.rule import rules
from autotailor.ir.propagation import propagate

X = (1, 8, 9, 9)
RNG = np.random.default_rng(0)


def weight(*shape: int, low: float = -1.0) -> np.ndarray:
    return RNG.uniform(low, 1.0, shape).astype(np.float32)


def ints(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


CASES: dict[str, tuple[str, list[np.ndarray], dict[str, object]]] = {
    "conv": ("Conv", [weight(6, 8, 3, 3), weight(6)], {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    "conv-uneven-pads": ("Conv", [weight(6, 8, 3, 3)], {"pads": [0, 1, 2, 1]}),
    "conv-dilated": ("Conv", [weight(6, 8, 3, 3)], {"dilations": [2, 2]}),
    "conv-grouped": ("Conv", [weight(4, 4, 3, 3)], {"group": 2}),
    "conv-depthwise": ("Conv", [weight(8, 1, 3, 3)], {"group": 8}),
    "batchnorm": ("BatchNormalization", [weight(8), weight(8), weight(8), weight(8, low=0.5)], {"epsilon": 1e-3}),
    "maxpool": ("MaxPool", [], {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "maxpool-ceil": ("MaxPool", [], {"kernel_shape": [2, 2], "strides": [2, 2], "ceil_mode": 1}),
    "avgpool": ("AveragePool", [], {"kernel_shape": [2, 2], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    "avgpool-include": ("AveragePool", [], {"kernel_shape": [3, 3], "pads": [1, 0, 1, 0], "count_include_pad": 1}),
    "global-average": ("GlobalAveragePool", [], {}),
    "global-max": ("GlobalMaxPool", [], {}),
    "reduce-mean": ("ReduceMean", [], {"axes": [2, 3], "keepdims": 0}),
    "reduce-sum": ("ReduceSum", [ints(2, 3)], {}),
    "clip": ("Clip", [np.float32(-0.5), np.float32(0.5)], {}),
    "leaky": ("LeakyRelu", [], {"alpha": 0.2}),
    "elu": ("Elu", [], {}),
    "hard-sigmoid": ("HardSigmoid", [], {"alpha": 1 / 6}),
    "add-constant": ("Add", [weight(8, 1, 1)], {}),
    "mul-scalar": ("Mul", [np.float32(0.5)], {}),
    "flatten": ("Flatten", [], {"axis": 1}),
    "reshape": ("Reshape", [ints(0, -1)], {}),
    "unsqueeze": ("Unsqueeze", [ints(2)], {}),
    "dropout": ("Dropout", [], {}),
    "atan": ("Atan", [], {}),  # no rule: static, through onnx2torch
    "mean-variance": ("MeanVarianceNormalization", [], {"axes": [0, 2, 3]}),
    "trilu": ("Trilu", [], {"upper": 0}),  # a rule that is always static
    **{kind.lower(): (kind, [], {}) for kind in ("Relu", "Sigmoid", "Tanh", "HardSwish", "Erf", "Exp", "Abs", "Neg")},
}


def model_of(kind: str, weights: list[np.ndarray], attributes: dict[str, object]) -> onnx.ModelProto:
    """The operator, then whatever makes a row of logits."""
    names = [f"w{i}" for i in range(len(weights))]
    nodes = [helper.make_node(kind, ["x", *names], ["y"], "subject", **attributes)]
    if kind not in ("Flatten", "Reshape"):
        nodes.append(helper.make_node("Flatten", ["y"], ["z"], "tail"))
    graph = helper.make_graph(
        nodes,
        "case",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, X)],
        [helper.make_tensor_value_info("z" if len(nodes) > 1 else "y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(np.asarray(w), n) for n, w in zip(names, weights, strict=True)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return onnx.shape_inference.infer_shapes(model, strict_mode=True, data_prop=True)


@pytest.mark.parametrize("case", sorted(CASES))
def test_torch_and_written_onnx_agree_with_onnxruntime(case: str) -> None:
    model = model_of(*CASES[case])
    x = weight(*X)
    expected = onnxruntime.InferenceSession(model.SerializeToString()).run(None, {"x": x})[0]
    graph = parse(model, case)
    with torch.no_grad():
        torch_result = GraphModule(graph).eval()(torch.from_numpy(x)).numpy()
    written = onnxruntime.InferenceSession(to_onnx(graph).SerializeToString()).run(None, {"input": x})[0]
    np.testing.assert_allclose(torch_result, expected, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(written, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("case", sorted(CASES))
def test_deduced_meta_shapes_agree_with_shape_inference(case: str) -> None:
    graph = parse(model_of(*CASES[case]), case)
    propagation = propagate(graph)
    for name, shape in graph.shapes.items():
        assert tuple(d.meta for d in propagation.dimensions[name]) == shape
    static = {part.kind for part in propagation.static}
    assert static == ({"Atan", "Trilu"} & {CASES[case][0]})


def test_computed_weights_count_like_constant_ones() -> None:
    x, w, y = (1, 8, 9, 9), (6, 4, 3, 3), (1, 6, 7, 7)
    rule = rules.find("Conv")
    assert rule is not None
    computed = OperatorFeature("Conv", (x, w), (y,), ((6,),))
    assert rule.macs(computed) == rule.macs(OperatorFeature("Conv", (x,), (y,), (w, (6,)))) == 6 * 4 * 9 * 49


def test_every_rule_names_distinct_kinds() -> None:
    assert len(rules.kinds) == len(set(rules.kinds)) > 30
