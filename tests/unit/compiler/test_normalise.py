"""Every form in which a file may state a network ends in one; what cannot be brought into it is refused."""

import io
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
import torch
from onnx import TensorProto, helper

import autotailor
import networks
from autotailor.compiler.normalise import LARGEST, normalise
from autotailor.ir.errors import GraphError
from onnx_text import HEAD, KERNEL, kinds, model_of
from reference import Array, assert_same, run, run_passed

rng = np.random.default_rng(0)
STEM = "c = Conv (x, kernel)"


def weights(*shape: int) -> Array:
    return rng.standard_normal(shape).astype(np.float32)


WEIGHTS = {"kernel": KERNEL, "fc": weights(5, 4)}


def exported(network: torch.nn.Module, opset: int, dynamo: bool = False, **options: Any) -> onnx.ModelProto:
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            network, (torch.zeros(1, 3, 32, 32),), None if dynamo else buffer, dynamo=dynamo, opset_version=opset,
            verbose=False, **options,
        )  # fmt: skip
    return program.model_proto if dynamo else onnx.load_from_string(buffer.getvalue())


@pytest.mark.parametrize("name", sorted(networks.NETWORKS))
@pytest.mark.parametrize("opset", [11, 20])
def test_files_of_the_classic_exporter_give_the_space_of_the_module(name: str, opset: int) -> None:
    model = exported(networks.make(name), opset, do_constant_folding=False)
    net = assert_same(model, space=networks.SPACES[name])
    assert not net.static_parts
    plain = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    assert net.space == plain.space
    kinds, plain_kinds = ([n.kind for n in each.graph.nodes] for each in (net, plain))
    if name != "transformer":  # whose LayerNormalization and Gelu are decomposed at some opsets
        assert kinds == plain_kinds


def test_files_of_the_dynamo_exporter_give_the_space_of_the_module() -> None:
    name = "mobilenet"
    net = assert_same(exported(networks.make(name), 20, dynamo=True, optimize=False), space=networks.SPACES[name])
    plain = autotailor.compile(networks.make(name), networks.SPACES[name], resolution=32)
    assert net.space == plain.space


def test_a_symbolic_image_size_wants_a_resolution() -> None:
    model = exported(
        networks.make("mobilenet"), 17, dynamic_axes={"x": {0: "n", 2: "h", 3: "w"}}, input_names=["x"]
    )  # fmt: skip
    with pytest.raises(GraphError, match="dynamic axes"):
        autotailor.compile(model)
    net = assert_same(model, resolution=48)
    assert net.input_shape == (1, 3, 48, 48)


def test_a_file_of_a_fixed_size_keeps_it() -> None:
    with pytest.raises(GraphError, match="fixed to images of shape"):
        autotailor.compile(exported(networks.make("mobilenet"), 17), resolution=64)


@pytest.mark.parametrize("opset", [11, 12, 13, 15, 17, 18, 20, 22])
def test_operators_that_changed_between_opsets_mean_the_same(opset: int) -> None:
    squeeze = "Squeeze (p, axes)" if opset >= 13 else "Squeeze <axes = [2, 3]> (p)"
    mean = "ReduceMean (d, axes)" if opset >= 18 else "ReduceMean <axes = [2, 3]> (d)"
    drop = "Dropout (k, ratio)" if opset >= 12 else "Dropout <ratio = 0.3> (k)"
    body = f"""
        a = Conv <auto_pad = "SAME_UPPER", strides = [2, 2]> (x, w)
        k = Clip (a, low, high)
        d = {drop}
        p = {mean}
        s = {squeeze}
        z = Gemm (s, fc)
        y = Softmax <axis = 1> (z)
    """
    constants = {"w": weights(6, 3, 3, 3), "low": -1.0, "high": 1.0, "fc": weights(6, 4), "ratio": 0.3, "axes": [2, 3]}
    net = assert_same(model_of(body, constants, opset=opset))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Clip", "GlobalAveragePool", "Squeeze", "Gemm", "Softmax"]


def test_weights_that_pass_through_operators_are_folded() -> None:
    body = f"""
        w_t = Transpose <perm = [3, 2, 0, 1]> (w_hwio)
        w = Identity (w_t)
        shape = Constant <value_ints = [4]> ()
        b64 = Reshape (b_matrix, shape)
        b = Cast <to = 1> (b64)
        g1, g2 = Split <num_outputs = 2> (gains)
        gain = Unsqueeze (g2, axes)
        c = Conv (x, w, b)
        t = Mul (c, gain)
        {HEAD}
    """
    constants = {
        "w_hwio": weights(3, 3, 3, 4), "b_matrix": weights(2, 2).astype(np.float64), "gains": weights(8),
        "axes": [0, 2, 3], "fc": weights(5, 4),
    }  # fmt: skip
    net = assert_same(model_of(body, constants))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Mul", "GlobalAveragePool", "Flatten", "Gemm"]


def test_shape_arithmetic_folds_once_the_batch_is_one() -> None:
    body = """
        c = Conv (x, kernel)
        s = Shape (c)
        n = Gather <axis = 0> (s, zero)
        n1 = Unsqueeze (n, first)
        target = Concat <axis = 0> (n1, rest)
        r = Reshape (c, target)
        y = Gemm (r, fc)
    """
    constants = {"kernel": KERNEL, "zero": np.array(0), "first": [0], "rest": [-1], "fc": weights(4 * 36, 5)}
    net = assert_same(model_of(body, constants, shape=("n", 3, 8, 8)))
    assert [n.kind for n in net.graph.nodes] == ["Conv", "Reshape", "Gemm"]


def renamed(model: onnx.ModelProto, names: dict[str, str]) -> onnx.ModelProto:
    """The model with other names of tensors."""
    for node in model.graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
    for tensor in model.graph.initializer:
        tensor.name = names.get(tensor.name, tensor.name)
    return model


def test_names_of_other_frameworks_are_taken() -> None:
    """Slashes, colons, no node names or the same one twice, tensors called input and output, weights as inputs."""
    body = f"c = Conv (x, kernel)  r = Relu (c)  t = Conv (r, w)  {HEAD}"
    model = renamed(
        model_of(body, {**WEIGHTS, "w": weights(4, 4, 1, 1)}),
        {"kernel": "output", "c": "model/conv:0", "r": "input", "w": "model/w:0"},
    )
    model.graph.input.append(helper.make_tensor_value_info("output", TensorProto.FLOAT, (4, 3, 3, 3)))
    net = assert_same(model)
    for proto in model.graph.node[:2]:
        proto.name = "block/conv"  # onnxruntime refuses what ONNX allows
    again = autotailor.compile(model)
    assert len({n.name for n in again.graph.nodes}) == len(again.graph.nodes)
    assert [n.outputs for n in again.graph.nodes] == [n.outputs for n in net.graph.nodes]


def test_exported_subnets_of_such_names_load(tmp_path: Path) -> None:
    model = renamed(model_of(f"{STEM}  t = Relu (c)  {HEAD}", WEIGHTS), {"kernel": "output", "c": "input"})
    net = autotailor.compile(model)
    net.export_onnx(net.largest(), tmp_path / "m.onnx")
    image = weights(1, 3, 8, 8)
    np.testing.assert_allclose(run(onnx.load(tmp_path / "m.onnx"), image), run(model, image), rtol=1e-4, atol=1e-5)


def test_functions_are_inlined() -> None:
    function = '<domain: "own", opset_import: ["" : 20]> ConvRelu (a, w) => (b) { c = Conv (a, w)  b = Relu (c) }'
    body = f"h = own.ConvRelu (x, kernel)  t = own.ConvRelu (h, v)  {HEAD}"
    net = assert_same(model_of(body, {**WEIGHTS, "v": weights(4, 4, 1, 1)}, functions=function))
    assert [n.kind for n in net.graph.nodes][:4] == ["Conv", "Relu", "Conv", "Relu"]


@pytest.mark.parametrize("kind", [np.float16, np.float64])
def test_other_precisions_become_single(kind: type) -> None:
    number = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    body = f"{STEM}  s = Cast <to = 1> (c)  r = Relu (s)  t = Cast <to = NUMBER> (r)  {HEAD}"
    stored = {name: value.astype(kind) for name, value in WEIGHTS.items()}
    name = TensorProto.DataType.Name(number).lower()
    net = autotailor.compile(model_of(body.replace("NUMBER", str(number)), stored, kind=name))
    assert [n.kind for n in net.graph.nodes][:2] == ["Conv", "Relu"]
    assert {w.dtype for w in net.graph.weights.values()} == {np.dtype(np.float32)}
    single = model_of(body.replace("NUMBER", "1"), {name: value.astype(np.float32) for name, value in stored.items()})
    image = weights(1, 3, 8, 8)
    with torch.no_grad():
        found = net.build(net.largest())(torch.from_numpy(image)).numpy()
    np.testing.assert_allclose(found, run(single, image), rtol=1e-4, atol=1e-5)


def test_sums_reductions_and_views_have_one_form() -> None:
    body = """
        a = Conv (x, kernel)
        b = Conv (x, v)
        s = Sum (a, b, a)
        m = Max (s)
        r = Reshape (m, same)
        left, right = Split <axis = 1, num_outputs = 2> (r)
        k = Concat <axis = 1> (right, left)
        p = ReduceMean <keepdims = 1> (k, axes)
        q = Squeeze (p)
        f = Unsqueeze (q, zero)
        y = Gemm (f, fc)
    """
    constants = {
        "kernel": KERNEL, "v": weights(4, 3, 3, 3), "same": [1, 4, 6, 6], "axes": [2, 3], "zero": [0],
        "fc": weights(4, 5),
    }  # fmt: skip
    model = model_of(body, constants)
    passed = normalise(ir.from_proto(model))
    assert kinds(passed) == [
        "Conv", "Conv", "Add", "Add", "Split", "Concat", "ReduceMean", "Squeeze", "Unsqueeze", "Gemm"
    ]  # fmt: skip
    run_passed(model, passed)


def test_operators_are_read_in_the_form_of_opset_17() -> None:
    body = f"{STEM}  p = ReduceL2 <keepdims = 0> (c, axes)  y = Gemm <transB = 1> (p, fc)"
    net = assert_same(model_of(body, {**WEIGHTS, "axes": [2, 3]}))
    assert net.graph.nodes[1].get("axes") == (2, 3)


@pytest.mark.parametrize("opset", [18, 20])
def test_a_group_normalization_has_the_shape_of_its_input(opset: int) -> None:
    """Which ONNX's inference does not say before opset 21, and what stands behind it needs."""
    body = f"{STEM}  g = GroupNormalization <num_groups = 2> (c, gain, gain)  t = Relu (g)  {HEAD}"
    passed = normalise(ir.from_proto(model_of(body, {**WEIGHTS, "gain": [1.0, 2.0]}, opset=opset)))
    assert all(node.outputs[0].shape is not None for node in passed.graph)
    assert tuple(passed.graph[1].outputs[0].shape) == (1, 4, 6, 6)  # type: ignore[arg-type]


def branching(condition: str) -> str:
    """Nodes from the map ``c`` to ``t``, of which a condition chooses one."""
    branches = "<then_branch = a () => (p) { p = Relu (c) }, else_branch = b () => (q) { q = Sigmoid (c) }>"
    return f"{STEM}  m = ReduceMax <keepdims = 0> (c)  o = Greater (m, half)  t = If ({condition}) {branches}  {HEAD}"


def test_a_branch_on_a_constant_is_followed() -> None:
    net = assert_same(model_of(branching("yes"), {**WEIGHTS, "yes": True, "half": 0.5}))
    assert [n.kind for n in net.graph.nodes][:2] == ["Conv", "Relu"]


REFUSED = {
    "a branch on the image": (branching("o"), "If branches on values of the image; export the network traced"),
    "an operator of somebody's own": (f"{STEM}  t = other.Foo (c)  {HEAD}", "other.Foo is of a custom domain"),
    "a quantised network": (
        f"{STEM}  q, s, z = DynamicQuantizeLinear (c)  t = DequantizeLinear (q, s, z)  {HEAD}",
        "give the float network",
    ),
    "quantised operators of ONNX Runtime": (f"{STEM}  t = other.QLinearAdd (c)  {HEAD}", "give the float network"),
    "random numbers": (
        f"{STEM}  n = RandomNormalLike (c)  t = Add (c, n)  {HEAD}", "RandomNormalLike draws random numbers",
    ),
    "a shape that the image says": (f"{STEM}  z = NonZero (c)  y = Cast <to = 1> (z)", "its shapes cannot be inferred"),
    "a shape of ONNX's own reason": (f"{STEM}  y = Reshape (c, seven)", "cannot be inferred"),
    "an empty map": (f"{STEM}  t = Slice (c, zero, zero, two)  {HEAD}", r"tensor t of shape \[1,4,0,6\] is empty"),
    "a map of too many numbers": (
        f"t = Conv <pads = [9000, 9000, 9000, 9000]> (x, kernel)  {HEAD}", f"has more than {LARGEST} numbers",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_normalised_is_refused_with_the_remedy(case: str) -> None:
    body, message = REFUSED[case]
    constants = {**WEIGHTS, "half": 0.5, "seven": [7, -1], "zero": [0], "two": [2]}
    with pytest.raises(GraphError, match=message):
        normalise(ir.from_proto(model_of(body, constants)))
