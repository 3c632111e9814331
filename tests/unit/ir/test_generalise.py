"""Attributes that hold for every batch and every size, against running the images one by one."""

from collections.abc import Callable

import numpy as np
import pytest
import torch

from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.generalise import generalise
from autotailor.ir.graph import Graph
from onnx_text import HEAD
from text_graphs import graph_of

LAST = 2**63 - 1
GRAPHS: dict[str, Callable[[], Graph]] = {
    "reshape": lambda: graph_of(
        "r = Reshape (x, rows)  b = Transpose <perm = [0, 2, 1]> (r)  m = MatMul (b, w)"
        f"  c = Transpose <perm = [0, 2, 1]> (m)  t = Reshape (c, image)  {HEAD}",
        rows=[1, 3, 64], w=(3, 4), image=[1, 4, 8, 8], fc=(5, 4),
    ),
    "slice": lambda: graph_of(
        f"a = Conv (x, k)  t = Slice (a, starts, ends, axes)  {HEAD}",
        k=(6, 3, 1, 1), starts=[2, 0], ends=[6, LAST], axes=[1, 2], fc=(5, 4),
    ),
    "split": lambda: graph_of(
        f"a = Conv (x, k)  l, r = Split <axis = 1, num_outputs = 2> (a)  t = Mul (l, r)  {HEAD}",
        k=(8, 3, 1, 1), fc=(5, 4),
    ),
    "gather": lambda: graph_of(
        f"a = Conv (x, k)  t = Gather <axis = -3> (a, indices)  {HEAD}",
        k=(8, 3, 1, 1), indices=[-1, 0, -8, 3], fc=(5, 4),
    ),
    "expand": lambda: graph_of(
        f"a = Conv (x, k)  m = GlobalMaxPool (a)  t = Expand (m, image)  {HEAD}",
        k=(4, 3, 1, 1), image=[1, 4, 3, 3], fc=(5, 4),
    ),
}  # fmt: skip


def run(graph: Graph, images: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return GraphModule(graph).eval()(images)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_batch_is_its_images_one_by_one(name: str) -> None:
    graph = GRAPHS[name]()
    images = torch.from_numpy(np.random.default_rng(1).normal(size=(3, 3, 8, 8)).astype(np.float32))
    alone = torch.cat([run(generalise(graph), image[None]) for image in images])
    torch.testing.assert_close(run(generalise(graph), images), alone)


@pytest.mark.parametrize("name", GRAPHS)
def test_a_second_run_changes_nothing(name: str) -> None:
    once = generalise(GRAPHS[name]())
    assert generalise(once).nodes == once.nodes


def test_bounds_at_the_end_of_an_axis_are_counted_from_there() -> None:
    node = next(node for node in generalise(GRAPHS["slice"]()).nodes if node.kind == "Slice")
    assert dict(zip(node.get("axes"), node.get("starts"), strict=True))[1] == -4
    assert min(node.get("ends")) > 8
