"""A detector that suppresses its own boxes is refused with its raw heads, and is compiled when cut there."""

import numpy as np
import onnx_ir as ir
import pytest

from autotailor.compiler.passes.suppression import check_suppression
from autotailor.compiler.sources.outputs import keep_output
from autotailor.ir.errors import GraphError
from onnx_text import model_of

GRAPH = """
    r = Relu (x)
    a = Conv (r, wa)
    b = Conv (r, wb)
    at = Reshape (a, boxed)
    bt = Reshape (b, scored)
    bs = Sigmoid (bt)
    y = NonMaxSuppression (at, bs)
"""
WEIGHTS = {
    "wa": np.ones((4, 3, 1, 1), np.float32),
    "wb": np.ones((2, 3, 1, 1), np.float32),
    "boxed": [1, -1, 4],
    "scored": [1, 2, -1],
}


def model() -> ir.Model:
    return ir.from_proto(model_of(GRAPH, WEIGHTS, outputs="int64[m, 3] y"))


def test_the_reason_and_the_raw_heads_are_said() -> None:
    with pytest.raises(GraphError, match=r"NonMaxSuppression.*depends on the picture.*such as \[a, b\],.*data\.decode"):
        check_suppression(model())


def test_a_graph_is_cut_at_tensors_within_it_in_the_order_of_their_names() -> None:
    cut = model()
    keep_output(cut, ["b", "at"])
    check_suppression(cut)
    assert [value.name for value in cut.graph.outputs] == ["b", "at"]
    assert [node.op_type for node in cut.graph] == ["Relu", "Conv", "Conv", "Reshape"]
    assert all(value.dtype == ir.DataType.FLOAT for value in cut.graph.outputs)
