"""Half and double precision become single precision, wherever a file may state a type."""

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import numpy_helper

from autotailor.compiler.passes.precision import OTHER, to_float32
from onnx_text import model_of, read

KINDS = {"float16": np.float16, "bfloat16": ml_dtypes.bfloat16, "double": np.float64}
BRANCH = "<then_branch = t () => (p) { p = Mul (x, w) }, else_branch = e () => (q) { q = Relu (x) }>"


def types(model: ir.Model) -> set[ir.DataType | None]:
    """Every type that values, weights and attributes of a model state."""
    found = {value.dtype for value in model.graph.inputs}
    for graph in model.graphs():
        found |= {w.dtype for w in graph.initializers.values()}
        found |= {w.const_value.dtype for w in graph.initializers.values() if w.const_value is not None}
    for node in model.graph.all_nodes():
        found |= {value.dtype for value in node.outputs if value.dtype is not None}
        for attribute in node.attributes.values():
            if attribute.type == ir.AttributeType.TENSOR:
                found.add(attribute.as_tensor().dtype)
            if attribute.name in ("to", "dtype"):
                found.add(ir.DataType(attribute.as_int()))
    return found


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "body",
    {
        "image": "y = Relu (x)",
        "weight": "y = Mul (x, w)",
        "constant": "c = Constant <value = float {2.0}> ()  y = Mul (x, c)",
        "cast": "i = Cast <to = 6> (x)  y = Cast <to = NUMBER> (i)",
        "type of made numbers": "m = Flatten (x)  y = EyeLike <dtype = NUMBER> (m)",
        "weight of a branch": f"y = If (yes) {BRANCH}",
    }.values(),
    ids=["image", "weight", "constant", "cast", "type of made numbers", "weight of a branch"],
)
def test_every_place_of_a_type_becomes_single(kind: str, body: str) -> None:
    number = int(onnx.TensorProto.DataType.Value(kind.upper()))
    text = body.replace("KIND", kind).replace("NUMBER", str(number))
    weight = np.array([1.5], KINDS[kind])
    proto = model_of(text, {"w": weight, "yes": True}, kind=kind)
    for node in proto.graph.node:
        for attribute in node.attribute:
            if attribute.name == "value":
                attribute.t.CopyFrom(numpy_helper.from_array(weight))
    model = read(proto)
    assert types(model) & OTHER
    to_float32(model)
    assert not types(model) & OTHER
    assert model.graph.initializers["w"].const_value.numpy().tolist() == [1.5]  # type: ignore[union-attr]


def test_integers_and_booleans_stay_what_they_are() -> None:
    model = read(model_of("i = Cast <to = 7> (x)  b = Cast <to = 9> (i)  y = Where (b, x, w)", {"w": 1.0, "n": [3]}))
    to_float32(model)
    assert [node.attributes["to"].as_int() for node in list(model.graph)[:2]] == [ir.DataType.INT64, ir.DataType.BOOL]
    assert types(model) == {ir.DataType.FLOAT, ir.DataType.INT64, ir.DataType.BOOL}


def test_a_weight_inside_a_branch_becomes_single() -> None:
    proto = model_of(f"y = If (yes) {BRANCH}", {"yes": True}, kind="double")
    branch = proto.graph.node[0].attribute[0].g
    branch.initializer.append(numpy_helper.from_array(np.array([1.5]), "w"))
    model = ir.from_proto(proto)
    assert types(model) & OTHER
    to_float32(model)
    assert not types(model) & OTHER


def test_a_number_that_single_precision_has_not_is_rounded() -> None:
    model = read(model_of("y = Mul (x, w)", {"w": np.array([0.1], np.float64)}, kind="double"))
    to_float32(model)
    weight = model.graph.initializers["w"].const_value
    assert weight is not None
    assert weight.numpy().dtype == np.float32
    assert weight.numpy()[0] == np.float32(0.1)
