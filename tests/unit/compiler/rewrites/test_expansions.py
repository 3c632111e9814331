"""Expands that spell out sizes are left out where the operator behind them broadcasts."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import autotailor


class Gated(nn.Module):
    def __init__(self, needed: bool) -> None:
        super().__init__()
        self.needed = needed
        self.stem, self.gate, self.head = nn.Conv2d(3, 8, 3, 2), nn.Conv2d(8, 8, 1), nn.Linear(8, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x)
        gate = self.gate(x.mean((2, 3), keepdim=True)).sigmoid().expand(-1, -1, *x.shape[2:])
        x = gate.square() * gate if self.needed else x * gate
        return self.head(x.amax((2, 3)))


@pytest.mark.parametrize("needed", [False, True])
def test_only_needless_expands_go(needed: bool) -> None:
    torch.manual_seed(0)
    network = Gated(needed).eval()
    net = autotailor.compile(network, resolution=32)
    assert ("Expand" in {node.kind for node in net.graph.nodes}) == needed
    assert "resolution" in net.space.positions
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x))
