"""Two pictures in one array, of each of which a tower makes an embedding."""

from __future__ import annotations

import torch
from torch import nn
from torchvision.models import mobilenet_v3_small, resnet18


class Towers(nn.Module):
    """Channels 0 to 2 are one picture and 3 to 5 another: two embeddings of length 1, and how alike they are."""

    def __init__(self, length: int = 64) -> None:
        super().__init__()
        self.left, self.right = resnet18(num_classes=length), mobilenet_v3_small(num_classes=length)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        left, right = (nn.functional.normalize(tower(each)) for tower, each in self._read(x))
        return {"left": left, "right": right, "alike": (left * right).sum(1, keepdim=True)}

    def _read(self, x: torch.Tensor) -> tuple[tuple[nn.Module, torch.Tensor], ...]:
        return (self.left, x[:, :3]), (self.right, x[:, 3:])
