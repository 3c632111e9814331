"""Attention from propagation alone: heads, value channels, tokens, and embeddings that follow the image."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import autotailor
import networks
from autotailor.ir.errors import SpaceError


@pytest.fixture(scope="module")
def net() -> autotailor.SuperNet:
    space = networks.SPACES["transformer"]
    return autotailor.compile(networks.make("transformer"), space, name="transformer", resolution=32)


def test_nothing_is_static_and_every_kind_of_variable_is_there(net: autotailor.SuperNet) -> None:
    assert not net.static_parts
    assert {v.kind for v in net.space} == {"resolution", "depth", "width", "heads", "v_scale", "expand_ratio"}


def test_shapes_follow_heads_values_and_resolution(net: autotailor.SuperNet) -> None:
    subnet = autotailor.SubNet.from_assignment(
        net.space, {"resolution": 24, "block1.heads": 2, "block1.v_scale": 1.5, "block1.expand_ratio": 2}
    )
    shapes = set(net.shapes(subnet).values())
    assert (1, 2, 10, 10) in shapes  # scores: 3 x 3 patches and the token
    assert (1, 2, 10, 12) in shapes  # context: 12 value channels
    assert (1, 10, 2 * (8 + 8 + 12)) in shapes  # the fused projection
    assert (1, 10, 48) in shapes


def test_position_embeddings_are_interpolated_around_the_token(net: autotailor.SuperNet) -> None:
    original = networks.make("transformer").positions.detach()
    subnet = autotailor.SubNet.from_assignment(net.space, {"resolution": 16})
    sliced = [w for w in net.slice(subnet).weights.values() if w.shape == (1, 5, 24)]
    grid = original[:, 1:].reshape(1, 4, 4, 24).permute(0, 3, 1, 2)
    expected = F.interpolate(grid, size=(2, 2), mode="bicubic", antialias=True, align_corners=False)
    expected = torch.cat([original[:, :1], expected.flatten(2).transpose(1, 2)], 1)
    assert len(sliced) == 1
    torch.testing.assert_close(torch.from_numpy(sliced[0]), expected, atol=1e-5, rtol=1e-5)


def test_gradients_reach_embeddings_of_a_smaller_image(net: autotailor.SuperNet) -> None:
    module = net.module()
    module.activate(autotailor.SubNet.from_assignment(net.space, {"resolution": 16}))
    module(torch.randn(2, 3, 16, 16)).square().mean().backward()
    positions = next(p for p in module.parameters() if p.shape == (1, 17, 24))
    assert positions.grad is not None
    assert bool((positions.grad.abs().sum(-1) > 0).all())


@pytest.mark.parametrize("training", [False, True])
def test_batches_pass_through_reshapes(net: autotailor.SuperNet, training: bool) -> None:
    x = torch.randn(3, 3, 24, 24)
    subnet = autotailor.SubNet.from_assignment(net.space, {"resolution": 24, "block2.heads": 1, "stage1.depth": 1})
    module = net.module().train(training).activate(subnet)
    with torch.no_grad():
        alone = torch.cat([net.build(subnet)(image[None]) for image in x])
        torch.testing.assert_close(module(x), alone, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(net.build(subnet)(x), alone, atol=1e-5, rtol=1e-4)


def test_more_heads_than_the_weights_hold_are_refused() -> None:
    space = {"blocks": {"TransformerBlock": {"heads": [4, 8]}}}
    with pytest.raises(SpaceError, match="holds weights for heads 4 at most"):
        autotailor.compile(networks.make("transformer"), space, resolution=32)


def test_a_shuffled_half_stays_static_and_exact() -> None:
    net = autotailor.compile(networks.make("shuffled"), name="shuffled", resolution=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), networks.make("shuffled")(x), atol=1e-5, rtol=1e-4)
