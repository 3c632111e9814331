"""``chunk(3)`` leaves the compiler as one Split, however the exporter wrote it."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

import autotailor


class Chunked(nn.Module):
    """Attention over rows with q, k and v as chunks of channels, and a slice that overlaps them."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.project, self.head = nn.Conv2d(3, 12, 8, 8), nn.Linear(12, 36), nn.Linear(12, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.stem(x).flatten(2).transpose(1, 2)
        fused = self.project(x)
        q, k, v = (part.view(part.shape[0], -1, 3, 4).transpose(1, 2) for part in fused.chunk(3, -1))
        mixed = F.softmax(q @ k.transpose(2, 3) / 2.0, -1) @ v
        x = x + mixed.transpose(1, 2).reshape(x.shape[0], -1, 12)
        return self.head(x.mean(1)) + fused[:, 0, :5]


def test_chunks_stay_elastic_and_exact() -> None:
    torch.manual_seed(0)
    network = Chunked().eval()
    net = autotailor.compile(network, resolution=32)
    assert [n.kind for n in net.graph.nodes].count("Split") == 1
    x = torch.randn(2, 3, 32, 32)
    with torch.no_grad():
        torch.testing.assert_close(net.build(net.largest())(x), network(x), atol=1e-5, rtol=1e-5)
