"""Pooling windows as large as the map: the network equals the original, and smaller images are pooled whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

import autotailor
from autotailor.compiler.rewrites.global_pools import with_global_pools
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node
from reference import assert_same, model_of

SIDE, MAP = 32, 8
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def pooled(kind: str, **attributes: Any) -> onnx.ModelProto:
    """A strided convolution to a map of 8x8 pixels, one pooling, and a classifier."""
    rng = np.random.default_rng(0)
    return model_of(
        [
            helper.make_node("Conv", ["x", "stem"], ["t"], pads=[1, 1, 1, 1], strides=[4, 4]),
            helper.make_node(kind, ["t"], ["p"], **attributes),
            helper.make_node("Flatten", ["p"], ["f"]),
            helper.make_node("Gemm", ["f", "head"], ["y"], transB=1),
        ],
        {
            "stem": rng.standard_normal((16, 3, 3, 3)).astype(np.float32),
            "head": rng.standard_normal((5, 16)).astype(np.float32),
        },
        shape=(1, 3, SIDE, SIDE),
    )


WHOLE: dict[str, tuple[str, dict[str, Any]]] = {
    "average": ("AveragePool", {"kernel_shape": [8, 8]}),
    "average, strided": ("AveragePool", {"kernel_shape": [8, 8], "strides": [3, 3]}),
    "average, padded": ("AveragePool", {"kernel_shape": [10, 10], "pads": [1, 1, 1, 1]}),
    "average, padded, pads counted": (
        "AveragePool", {"kernel_shape": [10, 9], "pads": [1, 0, 1, 1], "count_include_pad": 1},
    ),
    "average, overhanging, pads counted": (
        "AveragePool",
        {"kernel_shape": [10, 10], "pads": [1, 1, 0, 0], "strides": [9, 9], "ceil_mode": 1, "count_include_pad": 1},
    ),
    "maximum": ("MaxPool", {"kernel_shape": [8, 8], "strides": [8, 8]}),
    "maximum, padded": ("MaxPool", {"kernel_shape": [9, 9], "pads": [0, 0, 1, 1], "strides": [2, 2]}),
    "norm": ("LpPool", {"kernel_shape": [8, 8], "p": 3}),
    "same": ("AveragePool", {"kernel_shape": [8, 8], "strides": [8, 8], "auto_pad": "SAME_UPPER"}),
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_a_window_over_the_whole_map_pools_smaller_maps_whole(case: str) -> None:
    kind, attributes = WHOLE[case]
    net = assert_same(pooled(kind, **attributes), space={"resolution": [16]})
    assert kind not in {node.kind for node in net.graph.nodes}
    smallest = net.smallest()
    shapes = net.shapes(smallest)
    assert [shapes[name] for name in ("t", "p")] == [(1, 16, 4, 4), (1, 16, 1, 1)]
    plain = autotailor.compile(pooled("Global" + kind, **{k: v for k, v in attributes.items() if k == "p"}))
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, whole = (n.build(n.smallest() if n is net else n.largest())(x) for n in (net, plain))
    factor = float((found * whole).sum() / whole.square().sum())
    torch.testing.assert_close(found, factor * whole, rtol=1e-4, atol=1e-4)
    assert ("pads counted" in case) == (abs(factor - 1) > 1e-3)


PARTIAL: dict[str, tuple[str, dict[str, Any]]] = {
    "smaller than the map": ("AveragePool", {"kernel_shape": [7, 7], "strides": [2, 2]}),
    "several windows": ("AveragePool", {"kernel_shape": [9, 9], "pads": [1, 1, 1, 1]}),
    "dilated": ("MaxPool", {"kernel_shape": [4, 4], "dilations": [2, 2], "strides": [2, 2]}),
    "dilated over the whole map": ("MaxPool", {"kernel_shape": [2, 2], "dilations": [7, 7]}),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_other_windows_stay_what_they_are(case: str) -> None:
    kind, attributes = PARTIAL[case]
    model = pooled(kind, **attributes)
    if case == "several windows":
        model.graph.initializer[1].CopyFrom(numpy_helper.from_array(np.ones((5, 64), dtype=np.float32), "head"))
    net = assert_same(model)
    assert kind in {node.kind for node in net.graph.nodes}


def test_indices_of_a_whole_map_are_no_global_pooling() -> None:
    pool = Node("pool", "MaxPool", ("x",), ("y", "indices"), freeze_attributes({"kernel_shape": (8, 8)}))
    shapes = {"x": (1, 3, 8, 8), "y": (1, 3, 1, 1), "indices": (1, 3, 1, 1)}
    graph = Graph("g", (pool,), "x", "y", shapes, {})
    assert with_global_pools(graph).nodes == (pool,)
    alone = replace(graph, nodes=(replace(pool, outputs=("y",)),))
    assert [node.kind for node in with_global_pools(alone).nodes] == ["GlobalMaxPool"]


@pytest.mark.parametrize("name", ["light_resnet50", "light_inception_v1", "light_inception_v2", "light_shufflenet"])
def test_the_networks_of_the_onnx_wheel_take_smaller_images(name: str) -> None:
    net = autotailor.compile(LIGHT / f"{name}.onnx")
    assert len(net.space["resolution"].choices) > 1
    assert net.shapes(net.smallest())[net.graph.output] == (1, 1000)
