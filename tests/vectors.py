"""A person's network for embeddings: pictures of five kinds to vectors of length 1, trained by cosines to each kind."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import nn

import strangers

LENGTH, SHARPNESS = 16, 12.0


class Vectors(nn.Module):
    """Pictures ``[n, 3, 40, 40]`` to vectors ``[n, 16]`` of length 1."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(*list(strangers.network())[:-1], nn.Linear(64, LENGTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Vectors, whose cosines are large between pictures of a kind."""
        return nn.functional.normalize(self.trunk(x), dim=1)


class _Kinds(nn.Module):
    """Logits of the kinds from vectors; its owner leaves it out afterwards."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds = nn.Parameter(torch.randn(len(strangers.CLASSES), LENGTH))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return SHARPNESS * x @ nn.functional.normalize(self.kinds, dim=1).T


def write_network(pictures: Path, path: Path) -> Path:
    """Trains a network on a folder of ``strangers.write_photos``, and writes it as ONNX."""
    torch.manual_seed(0)
    network = strangers.train(nn.Sequential(Vectors(), _Kinds()), pictures)
    strangers.export(next(iter(network)), path)
    return path
