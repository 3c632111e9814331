"""Fully convolutional classifiers: logits with axes of one behind the classes."""

from __future__ import annotations

import torch
from torch import nn

import autotailor


def test_logits_with_axes_of_one_become_rows() -> None:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(3, 16, 3, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 5, 1), nn.AdaptiveAvgPool2d(1)
    ).eval()
    net = autotailor.compile(network, resolution=32)
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x).flatten(1))
    assert net.num_classes == 5
    assert net.shapes(net.smallest())[net.graph.output] == (1, 5)
