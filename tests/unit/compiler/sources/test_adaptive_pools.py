"""Adaptive average pooling to any size: networks with a fixed head on images that they were not made for."""

from __future__ import annotations

import pytest
import torch
import torchvision
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import autotailor
from acceptance import checks
from autotailor.compiler.sources.adaptive_pools import AdaptivePools


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.tuples(*[st.integers(1, 12)] * 2), st.tuples(*[st.integers(1, 9) | st.none()] * 2))
def test_products_with_matrices_are_adaptive_pooling(sizes: tuple[int, int], wanted: tuple[int | None, ...]) -> None:
    x = torch.randn(2, 3, *sizes, dtype=torch.float64)
    pool = nn.AdaptiveAvgPool2d(wanted)
    expected = pool(x)
    with AdaptivePools():
        found = pool(x)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("side", [16, 32, 48])
def test_a_head_for_maps_of_three_pixels_takes_other_maps(side: int) -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 8, 1), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 1), nn.ReLU(),
        nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.Linear(72, 5),
    ).eval()  # fmt: skip
    net = autotailor.compile(network, resolution=side)
    assert not net.static_parts
    checks.check_every_shape(net, 20)
    x = torch.randn(2, 3, side, side)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), rtol=1e-4, atol=1e-4)
        assert net.build(net.smallest())(x).shape == (2, 5)


@pytest.mark.sweep
def test_alexnet_of_torchvision_takes_small_images() -> None:
    network = torchvision.models.alexnet(num_classes=5).eval()
    net = autotailor.compile(network, resolution=64)
    x = torch.randn(2, 3, 64, 64)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), rtol=1e-3, atol=1e-5)
    assert {"width", "kernel_size"} <= {variable.kind for variable in net.space}
