"""Uniform scaling, and random weights for a graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer
from torch import nn

import autotailor
import networks
from autotailor.ir.errors import SpaceError
from autotailor.ir.execution.modules.graph import GraphModule
from autotailor.ir.execution.uniform import initialise, scale_uniformly
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


def test_convolutions_follow_the_seed_and_batch_norm_starts_at_one() -> None:
    graph = autotailor.compile(networks.make("resnet"), resolution=32).graph
    first, again, other = (initialise(graph, seed).weights for seed in (0, 0, 1))
    convolution = next(node.inputs[1] for node in graph.nodes if node.kind == "Conv")
    assert np.array_equal(first[convolution], again[convolution])
    assert not np.array_equal(first[convolution], other[convolution])
    gain, shift, mean, variance = next(n.inputs[1:] for n in graph.nodes if n.kind == "BatchNormalization")
    assert [np.unique(first[name]).tolist() for name in (gain, shift, mean, variance)] == [[1.0], [0.0], [0.0], [1.0]]


@pytest.fixture(scope="module")
def transformer() -> autotailor.SuperNet:
    torch.manual_seed(0)
    network = VisionTransformer(img_size=16, patch_size=4, num_classes=5, embed_dim=16, depth=1, num_heads=2)
    return autotailor.compile(network.eval(), resolution=16)


def test_products_of_activations_have_nothing_to_draw(transformer: autotailor.SuperNet) -> None:
    graph = initialise(transformer.graph, 0)
    products = [node for node in graph.nodes if node.kind == "MatMul"]
    assert any(not set(node.inputs) & set(graph.weights) for node in products)
    drawn = next(name for node in products for name in node.inputs[1:] if name in graph.weights)
    assert not np.array_equal(graph.weights[drawn], transformer.graph.weights[drawn])
    assert torch.isfinite(GraphModule(graph).eval()(torch.zeros(1, 3, 16, 16))).all()


def test_biases_of_linear_layers_of_tokens_start_at_zero(transformer: autotailor.SuperNet) -> None:
    trained = {name: np.ones_like(weight) for name, weight in transformer.graph.weights.items()}
    graph = initialise(transformer.graph.with_weights(trained), 0)
    linear = {node.outputs[0] for node in graph.nodes if node.kind == "MatMul" and node.inputs[1] in graph.weights}
    sums = [node.inputs for node in graph.nodes if node.kind == "Add" and linear & set(node.inputs)]
    biases = [graph.weights[name] for names in sums for name in names if name in graph.weights]
    assert len(biases) == 4
    assert not any(bias.any() for bias in biases)


def test_transposed_convolutions_are_drawn_by_their_fan_out() -> None:
    up = nn.ConvTranspose2d(16, 64, 4, 2, 1)
    network = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1), nn.ReLU(), up, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    graph = autotailor.compile(network.eval(), resolution=16).graph
    _, weight, bias = next(node.inputs for node in graph.nodes if node.kind == "ConvTranspose")
    drawn = initialise(graph, 0).weights
    assert drawn[weight].std() == pytest.approx(np.sqrt(2 / (64 * 4 * 4)), rel=0.05)
    assert not drawn[bias].any()
