"""Random weights for a graph."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from timm.models.vision_transformer import VisionTransformer

import autotailor
import networks
from autotailor.finetuning.initialisation import initialise
from autotailor.ir.execution.modules.graph import GraphModule


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
