"""Gains and shifts behind convolutions become part of them."""

import numpy as np
import pytest
import torch
from torch import nn
from torchvision.ops import FrozenBatchNorm2d

import autotailor
from autotailor.compiler.rewrites.frozen_norms import with_folded_norms
from autotailor.ir.execution.batch_norm import placeholders
from autotailor.ir.execution.modules.graph import GraphModule
from text_graphs import graph_of

VECTOR = np.linspace(-1, 2, 4).astype(np.float32).reshape(1, 4, 1, 1)


def test_the_graph_computes_the_same_with_fewer_operators() -> None:
    body = "a = Conv (x, w, b)  g = Mul (gain, a)  s = Add (g, shift)  y = Relu (s)"
    graph = graph_of(body, w=(4, 3, 3, 3), b=(4,), gain=VECTOR, shift=VECTOR[0] + 3)
    found, behind = with_folded_norms(graph)
    assert [node.kind for node in found.nodes] == ["Conv", "Relu"]
    assert behind == {"s"}
    image = torch.randn(2, 3, 8, 8)
    torch.testing.assert_close(GraphModule(found).eval()(image), GraphModule(graph).eval()(image))


@pytest.mark.parametrize(
    "body",
    [
        "a = Conv (x, w)  g = Mul (a, gain)  r = Relu (a)  s = Add (g, shift)  y = Add (s, r)",
        "a = Conv (x, w)  g = Mul (a, gain)  r = Relu (g)  y = Add (r, shift)",
        "a = Conv (x, w)  g = Mul (a, a)  y = Add (g, shift)",
        "a = Conv (x, w)  b = Conv (x, w)  g = Mul (a, gain)  s = Add (g, shift)  y = Add (s, b)",
    ],
    ids=["map read elsewhere", "no sum", "no constant", "weight read elsewhere"],
)
def test_what_is_no_frozen_norm_stays(body: str) -> None:
    graph = graph_of(body, w=(4, 3, 1, 1), gain=VECTOR, shift=VECTOR)
    found, behind = with_folded_norms(graph)
    assert found.nodes == graph.nodes
    assert not behind


def test_numbers_for_each_column_are_no_norm() -> None:
    graph = graph_of("a = Conv (x, w)  g = Mul (a, gain)  y = Add (g, gain)", w=(8, 3, 1, 1), gain=(1, 1, 1, 8))
    assert with_folded_norms(graph)[0].nodes == graph.nodes


def test_a_norm_of_torchvision_is_put_back_as_one_that_can_be_calibrated() -> None:
    norm = FrozenBatchNorm2d(8)
    norm.running_mean.uniform_(-1, 1)
    norm.running_var.uniform_(0.5, 2)
    head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    network = nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), norm, nn.ReLU(), *head).eval()
    net = autotailor.compile(network, resolution=16)
    assert len(placeholders(net.graph)) == 1
    assert "Mul" not in {node.kind for node in net.graph.nodes}
    image = torch.randn(2, 3, 16, 16)
    torch.testing.assert_close(net.build(net.largest())(image), network(image))
