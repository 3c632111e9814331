"""Constants that a file makes out of nothing: their size is known before they are computed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

import autotailor
from autotailor.ir.errors import GraphError

MILLION = 10**6
LIMIT = 8 << 30  # bytes of addresses: a compiler that allocates what a hostile file asks for does not get it


def model(*lines: str) -> onnx.ModelProto:
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
        onnx.save(model(*lines), tmp_path / f"{kind}.onnx")
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
        autotailor.compile(model(*lines, "big = Concat <axis = 0> (c0, c1, c2, c3, c4, c5, c6, c7)"))


def test_what_a_file_makes_of_its_own_weights_is_folded() -> None:
    net = autotailor.compile(
        model(
            "shape = Constant <value_ints: ints = [2, 3]> ()", "zeros = ConstantOfShape (shape)",
            "one = Constant <value_floats: floats = [1.0]> ()", "ones = Add (zeros, one)",
            "places = NonZero (ones)", "numbers = Cast <to = 1> (places)", "big = Transpose <perm = [1, 0]> (numbers)",
        )
    )  # fmt: skip
    assert [node.kind for node in net.graph.nodes] == ["Conv", "GlobalAveragePool", "Flatten", "Add"]
    assert any(np.array_equal(weight, 0) for weight in net.graph.weights.values())


@pytest.mark.parametrize("depth", [3, 20])
def test_functions_that_would_become_too_many_nodes_are_refused(depth: int) -> None:
    small = model("big = Constant <value_floats: floats = [1.0]> ()")
    names = [f"f{i}" for i in range(depth)]
    for i, name in enumerate(names):
        kind, domain = ("Relu", "") if i == 0 else (names[i - 1], "own")
        calls = [helper.make_node(kind, [f"t{k}"], [f"t{k + 1}"], domain=domain) for k in range(10)]
        imports = [helper.make_opsetid("", 18), helper.make_opsetid("own", 1)]
        small.functions.append(helper.make_function("own", name, ["t0"], ["t10"], calls, imports))
    small.opset_import.append(helper.make_opsetid("own", 1))
    small.graph.node.append(helper.make_node(names[-1], ["logits"], ["y"], domain="own"))
    small.graph.node[-2].output[0] = "logits"
    if depth == 3:
        assert sum(node.kind == "Relu" for node in autotailor.compile(small).graph.nodes) == 1000
        return
    with pytest.raises(GraphError, match=r"would become 1e\+20 nodes"):
        autotailor.compile(small)
