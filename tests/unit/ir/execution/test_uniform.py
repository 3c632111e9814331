"""Uniform scaling."""

from __future__ import annotations

import pytest
import torch

import autotailor
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.uniform import scale_uniformly
from autotailor.ir.graph import Graph


def num_parameters(graph: Graph) -> int:
    """Number of weights that a graph holds, in scalars."""
    return sum(weight.size for weight in graph.weights.values())


def test_scaled_networks_run_and_shrink(any_net: autotailor.SuperNet) -> None:
    sizes = [num_parameters(scale_uniformly(any_net.graph, width, 4)) for width in (0.25, 0.5, 0.75, 1.0)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == num_parameters(any_net.graph)
    assert sizes[1] < sizes[-1] / 2
    with torch.no_grad():
        logits = GraphModule(scale_uniformly(any_net.graph, 0.5, 4)).eval()(torch.randn(2, 3, 32, 32))
    assert logits.shape == (2, 5)


def test_half_width_halves_every_channel(resnet_net: autotailor.SuperNet) -> None:
    scaled = scale_uniformly(resnet_net.graph, 0.5, 4)
    for node in scaled.nodes:
        if node.kind == "Conv":
            assert scaled.weights[node.inputs[1]].shape[0] * 2 == resnet_net.graph.weights[node.inputs[1]].shape[0]


@pytest.mark.parametrize("width", [0.0, -1.0, 1.5])
def test_factors_out_of_range_are_refused(resnet_net: autotailor.SuperNet, width: float) -> None:
    with pytest.raises(SpaceError, match=r"lie in \(0, 1\]"):
        scale_uniformly(resnet_net.graph, width, 4)
