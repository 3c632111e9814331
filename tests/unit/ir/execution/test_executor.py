"""The module that executes a graph, and the SuperNet whose operators slice shared weights."""

from __future__ import annotations

import pytest
import torch

import autotailor
import networks


def test_gradients_reach_embeddings_of_a_smaller_image(transformer_net: autotailor.SuperNet) -> None:
    module = transformer_net.module()
    module.activate(autotailor.SubNet.from_assignment(transformer_net.space, {"resolution": 16}))
    module(torch.randn(2, 3, 16, 16)).square().mean().backward()
    positions = next(p for p in module.parameters() if p.shape == (1, 17, 24))
    assert positions.grad is not None
    assert bool((positions.grad.abs().sum(-1) > 0).all())


@pytest.mark.parametrize("training", [False, True])
def test_batches_pass_through_reshapes(transformer_net: autotailor.SuperNet, training: bool) -> None:
    x = torch.randn(3, 3, 24, 24)
    subnet = autotailor.SubNet.from_assignment(
        transformer_net.space, {"resolution": 24, "block2.heads": 1, "stage1.depth": 1}
    )
    module = transformer_net.module().train(training).activate(subnet)
    with torch.no_grad():
        alone = torch.cat([transformer_net.build(subnet)(image[None]) for image in x])
        torch.testing.assert_close(module(x), alone, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(transformer_net.build(subnet)(x), alone, atol=1e-5, rtol=1e-4)


def test_a_shuffled_half_stays_static_and_exact() -> None:
    net = autotailor.compile(networks.make("shuffled"), name="shuffled", resolution=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), networks.make("shuffled")(x), atol=1e-5, rtol=1e-4)
