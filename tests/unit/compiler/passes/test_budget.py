"""Constants that a file makes out of nothing: their size is known before they are computed."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import onnx_ir as ir
import pytest

import autotailor
from autotailor.compiler.passes import budget
from autotailor.compiler.passes.budget import Budget, needed_bytes
from autotailor.ir.errors import GraphError
from onnx_text import model_of

MILLION = 10**6
LIMIT = 8 << 30  # bytes of addresses: a compiler that allocates what a hostile file asks for does not get it


def classifier(*lines: str) -> onnx.ModelProto:
    """A classifier, as ONNX text, with some nodes that write ``big``, which its logits depend on."""
    text = f"""
        <ir_version: 8, opset_import: ["" : 18]>
        hostile (float[1, 3, 32, 32] x) => (float[1, 4] y)
        <float[4, 3, 3, 3] weight = {{{", ".join(["0.5"] * 108)}}}>
        {{
            {" ".join(lines)}
            least = ReduceMin <keepdims = 0> (big)
            maps = Conv (x, weight)
            pooled = GlobalAveragePool (maps)
            flat = Flatten (pooled)
            y = Add (flat, least)
        }}
    """
    return onnx.parser.parse_model(text)


HOSTILE = {
    "ConstantOfShape": [
        f"shape = Constant <value_ints: ints = [{MILLION}, {MILLION}]> ()", "big = ConstantOfShape (shape)",
    ],
    "Expand": [
        "one = Constant <value_floats: floats = [1.0]> ()",
        f"shape = Constant <value_ints: ints = [{MILLION}, {MILLION}]> ()",
        "big = Expand (one, shape)",
    ],
    "Tile": [
        "two = Constant <value_floats: floats = [1.0, 2.0]> ()",
        f"repeats = Constant <value_ints: ints = [{MILLION * 1000}]> ()",
        "big = Tile (two, repeats)",
    ],
    "Range": [
        "zero = Constant <value_int: int = 0> ()", "one = Constant <value_int: int = 1> ()",
        f"last = Constant <value_int: int = {MILLION * 10000}> ()",
        "numbers = Range (zero, last, one)", "big = Cast <to = 1> (numbers)",
    ],
    "Resize": [
        "shape = Constant <value_ints: ints = [1, 1, 4, 4]> ()", "small = ConstantOfShape (shape)",
        "scales = Constant <value_floats: floats = [1.0, 1.0, 5000.0, 5000.0]> ()",
        "big = Resize (small, , scales)",
    ],
    "Add": [
        "shape = Constant <value_ints: ints = [1000000]> ()", "row = ConstantOfShape (shape)",
        "axis = Constant <value_ints: ints = [1]> ()", "column = Unsqueeze (row, axis)", "big = Add (row, column)",
    ],
    "Pad": [
        "two = Constant <value_floats: floats = [1.0, 2.0]> ()",
        f"pads = Constant <value_ints: ints = [{MILLION * 10000}, 0]> ()", "big = Pad (two, pads)",
    ],
    "AveragePool": [
        "shape = Constant <value_ints: ints = [1, 1, 4, 4]> ()", "small = ConstantOfShape (shape)",
        "big = AveragePool <kernel_shape = [3, 3], strides = [900000, 900000], pads = [0, 0, 900000, 900000]> (small)",
    ],
}  # fmt: skip


COMPILE_EACH = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({LIMIT}, {LIMIT}))
import autotailor
for path in sys.argv[1:]:
    try:
        autotailor.compile(path)
        print("compiled")
    except BaseException as error:
        print(type(error).__name__, error)
"""


def test_a_constant_of_terabytes_is_refused_by_the_name_of_its_node(tmp_path: Path) -> None:
    for kind, lines in HOSTILE.items():
        onnx.save(classifier(*lines), tmp_path / f"{kind}.onnx")
    paths = [str(tmp_path / f"{kind}.onnx") for kind in HOSTILE]
    done = subprocess.run([sys.executable, "-c", COMPILE_EACH, *paths], capture_output=True, text=True, timeout=300)
    said = done.stdout.splitlines()
    assert len(said) == len(HOSTILE), done.stderr
    for kind, line in zip(HOSTILE, said, strict=True):
        assert re.match(rf"GraphError node \S+: {kind} would make a constant that takes \S+ GiB", line), line


def test_many_constants_share_one_budget() -> None:
    lines = ["shape = Constant <value_ints: ints = [120000000]> ()"]
    lines += [f"c{i} = ConstantOfShape (shape)" for i in range(8)]
    with pytest.raises(GraphError, match=r"ConstantOfShape would make .* 0\.4 GiB to compute, and 0\.1 GiB are left"):
        autotailor.compile(classifier(*lines, "big = Concat <axis = 0> (c0, c1, c2, c3, c4, c5, c6, c7)"))


def test_what_a_file_makes_of_its_own_weights_is_folded() -> None:
    net = autotailor.compile(
        classifier(
            "shape = Constant <value_ints: ints = [2, 3]> ()", "zeros = ConstantOfShape (shape)",
            "one = Constant <value_floats: floats = [1.0]> ()", "ones = Add (zeros, one)",
            "places = NonZero (ones)", "numbers = Cast <to = 1> (places)", "big = Transpose <perm = [1, 0]> (numbers)",
        )
    )  # fmt: skip
    assert [node.kind for node in net.graph.nodes] == ["Conv", "GlobalAveragePool", "Flatten", "Add"]
    assert any(np.array_equal(weight, 0) for weight in net.graph.weights.values())


FLOATS = 4  # bytes of a number of single precision
BYTES = {
    "as its shape says": ("y = Expand (w, sizes)", {"w": [1.0], "sizes": [10, 20]}, 200 * FLOATS),
    "all of its outputs": ("y, z = Split <num_outputs = 2> (w)", {"w": [1.0] * 6}, 6 * FLOATS),
    "words as pointers": ("y = Identity (w)", {"w": np.array(["a", "b"], object)}, 2 * 8),
    "as its values say, at most": ("y = NonZero (w)", {"w": np.ones((3, 5), np.float32)}, 8 * 15 * 2),
    "coordinates of Resize": (
        "y = Resize (w, , , sizes)", {"w": np.ones((1, 1, 2, 2), np.float32), "sizes": [1, 1, 4, 4]}, 16 * FLOATS * 64,
    ),
    "a copy of each window": (
        "y = MaxPool <kernel_shape = [2, 3]> (w)", {"w": np.ones((1, 1, 4, 4), np.float32)}, 3 * 2 * FLOATS * 6,
    ),
    "a copy of each window of a convolution": (
        "y = Conv (w, k)",
        {"w": np.ones((1, 1, 4, 4), np.float32), "k": np.ones((2, 1, 3, 3), np.float32)}, 2 * 4 * FLOATS * 9,
    ),
    "the padded input": (
        "y = MaxPool <kernel_shape = [1, 1], strides = [9, 9], pads = [0, 1, 2, 3]> (w)",
        {"w": np.ones((1, 2, 4, 4), np.float32)}, 2 * FLOATS + 8 * 2 * (4 + 2) * (4 + 4),
    ),
    "nobody knows: memory beside the result": (
        "y = MaxUnpool <kernel_shape = [2, 2]> (w, i)",
        {"w": np.ones((1, 1, 2, 2), np.float32), "i": np.zeros((1, 1, 2, 2), np.int64)}, None,
    ),
    "nobody knows: ONNX refuses it": ("y = MatMul (w, w)", {"w": np.ones((2, 3), np.float32)}, None),
    "nobody knows: a shape of too many numbers": ("y = Expand (w, sizes)", {"w": [1.0], "sizes": [1] * 1025}, None),
}  # fmt: skip


@pytest.mark.parametrize("case", BYTES)
def test_computing_a_constant_takes_so_many_bytes(case: str) -> None:
    body, weights, expected = BYTES[case]
    model = ir.from_proto(model_of(body, weights))
    assert needed_bytes(model.graph[0], model.graph.opset_imports) == expected


def test_a_file_may_compute_eight_times_what_it_stores(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and constants both count as stored; a node that is asked for again is not counted again."""
    monkeypatch.setattr(budget, "OUT_OF_NOTHING", 0)
    body = "c = Constant <value = float[3] {1.0, 2.0, 3.0}> ()  y = Expand (w, sizes)"
    model = ir.from_proto(model_of(body, {"w": [1.0], "sizes": [1]}))
    stored, made = FLOATS + 8 + 3 * FLOATS, FLOATS
    limit, node = Budget(model), model.graph[1]
    for number in range(8 * stored // made):
        node.outputs[0].name = f"y{number}"
        assert limit.allows(node)
        assert limit.allows(node)
    node.outputs[0].name = "one more"
    with pytest.raises(GraphError, match="Expand would make a constant"):
        limit.allows(node)


def test_what_nobody_can_tell_the_size_of_is_left_alone() -> None:
    model = ir.from_proto(model_of("y = MatMul (w, w)", {"w": np.ones((2, 3), np.float32)}))
    assert not Budget(model).allows(model.graph[0])
