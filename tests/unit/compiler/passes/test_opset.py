"""Opsets: 7 to 23 are read, all before 20 become 20, and a Resize of before 11 keeps its way of counting pixels."""

import numpy as np
import onnx
import pytest

from autotailor.compiler.passes.opset import check_opset, upgrade
from autotailor.ir.errors import GraphError
from onnx_text import kinds, model_of, read
from reference import run_passed

WHOLE = "float[1, 3, 12, 12] y"
SCALES = {"scales": np.array([1, 1, 1.5, 1.5], np.float32)}


@pytest.mark.parametrize("opset", [7, 11, 19, 20, 23])
def test_opsets_7_to_23_are_read(opset: int) -> None:
    assert check_opset(read(model_of("y = Relu (x)", opset=opset))) == opset


@pytest.mark.parametrize("opset", [1, 6, 24])
def test_older_and_newer_opsets_are_refused(opset: int) -> None:
    with pytest.raises(GraphError, match=f"graph g: it uses opset {opset}; .* export it with opset_version=20"):
        check_opset(read(model_of("y = Relu (x)", opset=opset)))


def test_a_model_without_onnxs_own_operators_is_refused() -> None:
    model = read(model_of("y = Relu (x)"))
    del model.graph.opset_imports[""]
    with pytest.raises(GraphError, match="it uses no opset"):
        check_opset(model)


@pytest.mark.parametrize("opset", [7, 11, 17, 19])
def test_what_is_older_becomes_opset_20(opset: int) -> None:
    model = model_of("r = Relu (x)  y = GlobalAveragePool (r)", opset=opset, outputs="float[1, 3, 1, 1] y")
    passed = read(model)
    upgrade(passed)
    assert passed.graph.opset_imports[""] == 20
    run_passed(model, passed)


@pytest.mark.parametrize("opset", [20, 21, 23])
def test_opset_20_and_newer_stay(opset: int) -> None:
    passed = read(model_of("y = Relu (x)", opset=opset))
    upgrade(passed)
    assert passed.graph.opset_imports[""] == opset


def test_axes_that_were_attributes_become_inputs() -> None:
    model = model_of("y = ReduceMean <axes = [2, 3]> (x)", opset=11, outputs="float[1, 3, 1, 1] y")
    passed = read(model)
    upgrade(passed)
    last = passed.graph[-1]
    assert "axes" not in last.attributes
    assert len(last.inputs) == 2
    run_passed(model, passed)


@pytest.mark.parametrize(("opset", "kind"), [(9, "Upsample"), (10, "Resize")])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_a_resize_of_before_11_counts_pixels_from_their_corners(opset: int, kind: str, mode: str) -> None:
    passed = read(model_of(f'y = {kind} <mode = "{mode}"> (x, scales)', SCALES, opset=opset, outputs=WHOLE))
    upgrade(passed)
    assert kinds(passed)[-1] == "Resize"
    found = passed.graph[-1].attributes
    assert found["coordinate_transformation_mode"].as_string() == "asymmetric"
    assert found["nearest_mode"].as_string() == "floor"
    assert found["mode"].as_string() == mode
    corners = f'Resize <mode = "{mode}", coordinate_transformation_mode = "asymmetric", nearest_mode = "floor">'
    run_passed(model_of(f"y = {corners} (x, , scales)", SCALES, outputs=WHOLE), passed)


def test_a_resize_of_a_branch_counts_them_so_too() -> None:
    branches = "<then_branch = t () => (p) { p = Resize (x, scales) }, else_branch = e () => (q) { q = Relu (x) }>"
    passed = read(
        model_of(f"m = ReduceMax <keepdims = 0> (x)  c = Cast <to = 9> (m)  y = If (c) {branches}", SCALES, opset=10)
    )
    upgrade(passed)
    resize = next(node for node in passed.graph.all_nodes() if node.op_type == "Resize")
    assert resize.attributes["coordinate_transformation_mode"].as_string() == "asymmetric"


def test_a_resize_since_11_keeps_its_own() -> None:
    model = model_of("y = Resize (x, , scales)", SCALES, opset=13, outputs=WHOLE)
    passed = read(model)
    upgrade(passed)
    assert "coordinate_transformation_mode" not in passed.graph[-1].attributes
    run_passed(model, passed)


def test_what_onnx_cannot_convert_is_refused_with_the_opsets() -> None:
    model: onnx.ModelProto = model_of("y = Foo (x)", opset=11)
    with pytest.raises(GraphError, match=r"graph g: it cannot be converted from opset 11 to 20: .*opset_version=20"):
        upgrade(read(model))
