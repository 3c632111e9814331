"""Static operators in the form of opset 17: which are rewritten, and which stay as they are."""

import numpy as np
import onnx
import onnx.version_converter
import onnx_ir as ir
import pytest

from autotailor.compiler.passes.lowering import lower
from onnx_text import kinds, model_of, read
from reference import run_passed

MAP = "float[n, c, h, w] y"


def test_an_input_that_was_an_attribute_at_opset_17_is_one_again() -> None:
    model = model_of("y = DFT <inverse = 1> (x, , axis)", {"axis": np.int64(2)}, shape=(1, 3, 8, 2), outputs=MAP)
    passed = read(model)
    lower(passed)
    node = passed.graph[0]
    assert node.attributes["axis"].as_int() == 2
    assert node.attributes["inverse"].as_int() == 1
    assert [value for value in node.inputs if value is not None] == [passed.graph.inputs[0]]
    passed.graph.opset_imports[""] = 17
    run_passed(model, passed)


SCATTERED = {"i": np.zeros((1, 1, 1, 1), np.int64), "u": np.full((1, 1, 1, 1), 7, np.float32)}
STAYS = {
    "an operator with a rule": ("y = ReduceMean (x, axes)", {"axes": np.array([2, 3])}),
    "an operator that is older than opset 17": ("y = Mod <fmod = 1> (x, two)", {"two": np.float32(2)}),
    "an operator whose types alone have changed": ("q = IsInf (x)  y = Where (q, u, x)", SCATTERED),
    "an operator that opset 17 lacks": ("y = CenterCropPad <axes = [2, 3]> (x, s)", {"s": np.array([4, 4])}),
    "an operator without a way back": ('y = ScatterElements <reduction = "max"> (x, i, u)', SCATTERED),
}


@pytest.mark.parametrize("case", STAYS)
def test_it_stays_as_it_is(case: str) -> None:
    body, weights = STAYS[case]
    model = model_of(body, weights, outputs=MAP)
    passed = read(model)
    before = ir.to_proto(passed.graph[0])
    lower(passed)
    assert ir.to_proto(passed.graph[0]) == before
    run_passed(model, passed)


@pytest.mark.parametrize(
    "instead", ["t = Neg (x)  y = Relu (t)", "y = DFT <axis = 2> (elsewhere)"], ids=["two nodes", "an unknown input"]
)
def test_a_conversion_that_is_no_single_node_of_the_same_inputs_is_not_taken(
    instead: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    converted: onnx.ModelProto = model_of(instead, opset=17)
    monkeypatch.setattr(onnx.version_converter, "convert_version", lambda model, opset: converted)
    passed = read(model_of("y = DFT (x, , axis)", {"axis": np.int64(2)}, shape=(1, 3, 8, 2)))
    lower(passed)
    assert kinds(passed) == ["DFT"]
    assert not passed.graph[0].attributes
    assert len(passed.graph[0].inputs) == 3
