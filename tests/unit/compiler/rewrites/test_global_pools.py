"""Pooling windows as large as the map: the network equals the original, and smaller images are pooled whole."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch

import autotailor
from autotailor.compiler.rewrites.global_pools import with_global_pools
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Graph, Node
from autotailor.profiling.runtimes.ncnn.claims import blob_shapes
from autotailor.profiling.runtimes.ncnn.pnnx import run_pnnx
from onnx_text import model_of
from reference import assert_reads, assert_same

SIDE = 32
LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"


def pooled(pool: str, channels: int = 16, axes: Sequence[int] = ()) -> onnx.ModelProto:
    """A strided convolution to a map of 8x8 pixels, one pooling over its axes, and a classifier of so many numbers."""
    rng = np.random.default_rng(0)
    weights = {
        "stem": rng.standard_normal((16, 3, 3, 3)).astype(np.float32),
        "head": rng.standard_normal((5, channels)).astype(np.float32),
    }
    if axes:
        weights["axes"] = np.array(axes, dtype=np.int64)
    reads = "t, axes" if axes else "t"
    body = f"t = Conv <pads = [1, 1, 1, 1], strides = [4, 4]> (x, stem)  p = {pool} ({reads})"
    return model_of(f"{body}  f = Flatten (p)  y = Gemm <transB = 1> (f, head)", weights, shape=(1, 3, SIDE, SIDE))


WHOLE = {
    "average": "AveragePool <kernel_shape = [8, 8]>",
    "average, strided": "AveragePool <kernel_shape = [8, 8], strides = [3, 3]>",
    "average, padded": "AveragePool <kernel_shape = [10, 10], pads = [1, 1, 1, 1]>",
    "average, padded, pads counted":
        "AveragePool <kernel_shape = [10, 9], pads = [1, 0, 1, 1], count_include_pad = 1>",
    "average, overhanging, pads counted":
        "AveragePool <kernel_shape = [10, 10], pads = [1, 1, 0, 0], strides = [9, 9], ceil_mode = 1, "
        "count_include_pad = 1>",
    "maximum": "MaxPool <kernel_shape = [8, 8], strides = [8, 8]>",
    "maximum, padded": "MaxPool <kernel_shape = [9, 9], pads = [0, 0, 1, 1], strides = [2, 2]>",
    "norm": "LpPool <kernel_shape = [8, 8], p = 3>",
    "same": 'AveragePool <kernel_shape = [8, 8], strides = [8, 8], auto_pad = "SAME_UPPER">',
}  # fmt: skip


@pytest.mark.parametrize("case", WHOLE)
def test_a_window_over_the_whole_map_pools_smaller_maps_whole(case: str) -> None:
    kind = WHOLE[case].split()[0]
    net = assert_same(pooled(WHOLE[case]), space={"resolution": [16]})
    assert kind not in {node.kind for node in net.graph.nodes}
    smallest = net.smallest()
    shapes = net.shapes(smallest)
    assert [shapes[name] for name in ("t", "p")] == [(1, 16, 4, 4), (1, 16, 1, 1)]
    plain = autotailor.compile(pooled(f"Global{kind} {'<p = 3>' if case == 'norm' else ''}"))
    x = torch.randn(2, 3, 16, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        found, whole = (n.build(n.smallest() if n is net else n.largest())(x) for n in (net, plain))
    factor = float((found * whole).sum() / whole.square().sum())
    torch.testing.assert_close(found, factor * whole, rtol=1e-4, atol=1e-4)
    assert ("pads counted" in case) == (abs(factor - 1) > 1e-3)


PARTIAL = {
    "a window smaller than the map": ("AveragePool <kernel_shape = [7, 7], strides = [2, 2]>", 1),
    "several windows": ("AveragePool <kernel_shape = [9, 9], pads = [1, 1, 1, 1]>", 4),
    "a window over one axis alone": ("AveragePool <kernel_shape = [8, 1]>", 8),
    "a dilated window": ("MaxPool <kernel_shape = [4, 4], dilations = [2, 2], strides = [2, 2]>", 1),
    "a dilated window that leaves pixels out": (
        "MaxPool <kernel_shape = [8, 8], dilations = [2, 2], pads = [0, 0, 7, 7]>",
        1,
    ),
    "a dilated window over the whole map": ("MaxPool <kernel_shape = [2, 2], dilations = [7, 7]>", 1),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_it_stays_what_it_is(case: str) -> None:
    text, pixels = PARTIAL[case]
    graph = assert_reads(pooled(text, 16 * pixels))
    assert text.split()[0] in {node.kind for node in graph.nodes}


def test_a_window_over_a_map_of_one_pixel_stays_what_it_is() -> None:
    model = pooled("MaxPool <kernel_shape = [1, 1]>")
    model.graph.node[0].attribute[1].ints[:] = [32, 32]
    assert "MaxPool" in {node.kind for node in assert_reads(model).nodes}


def test_indices_of_a_whole_map_are_no_global_pooling() -> None:
    pool = Node("pool", "MaxPool", ("x",), ("y", "indices"), freeze_attributes({"kernel_shape": (8, 8)}))
    shapes = {"x": (1, 3, 8, 8), "y": (1, 3, 1, 1), "indices": (1, 3, 1, 1)}
    graph = Graph("g", (pool,), "x", ("y",), shapes, {})
    assert with_global_pools(graph).nodes == (pool,)
    alone = replace(graph, nodes=(replace(pool, outputs=("y",)),))
    assert [node.kind for node in with_global_pools(alone).nodes] == ["GlobalMaxPool"]


@pytest.mark.parametrize("name", ["light_resnet50", "light_inception_v1", "light_inception_v2", "light_shufflenet"])
def test_the_networks_of_the_onnx_wheel_take_smaller_images(name: str) -> None:
    net = autotailor.compile(LIGHT / f"{name}.onnx")
    assert len(net.space["resolution"].choices) > 1
    assert net.shapes(net.smallest())[net.graph.output] == (1, 1000)


@pytest.mark.parametrize(
    ("reduction", "pooling"), [("ReduceMax", "GlobalMaxPool"), ("ReduceMean", "GlobalAveragePool")]
)
@pytest.mark.parametrize("keepdims", [0, 1])
def test_a_reduction_over_all_pixels_is_global_pooling_that_ncnn_runs(
    keepdims: int, reduction: str, pooling: str, tmp_path: Path
) -> None:
    model = pooled(f"{reduction} <keepdims = {keepdims}>", axes=(-1, 2))
    net = assert_same(model, space={"resolution": [16]})
    assert pooling in {node.kind for node in net.graph.nodes}
    assert reduction not in {node.kind for node in net.graph.nodes}
    net.export_onnx(net.smallest(), tmp_path / "small.onnx")
    param = tmp_path / "small.param"
    run_pnnx(tmp_path / "small.onnx", param, tmp_path / "small.bin")
    assert blob_shapes(param, (3, 16, 16))["out0"] == (5,)


def test_a_maximum_over_one_axis_stays() -> None:
    net = assert_same(pooled("ReduceMax <keepdims = 1>", channels=128, axes=(3,)))
    assert "ReduceMax" in {node.kind for node in net.graph.nodes}
