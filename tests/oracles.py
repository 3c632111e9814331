"""A teacher that knows the classes of ``tiny_data``."""

import torch
from torch import nn


class Oracle(nn.Module):
    """Knows the classes of ``tiny_data``: the rows of the bright square.

    Args:
        sharpness: factor of the logits; with 0, all classes are equally likely.
    """

    def __init__(self, sharpness: float = 4.0) -> None:
        super().__init__()
        self.sharpness = nn.Parameter(torch.tensor(sharpness))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        rows = images[:, :, :, 4:20].mean(dim=(1, 3))
        return self.sharpness * torch.stack([rows[:, 6 * n : 6 * n + 8].mean(1) for n in range(5)], dim=1)
