"""A network that ncnn cannot run, because windows of the image take the place of the batch (as in Swin)."""

import torch
from torch import nn

from autotailor.zoo.resnet_digits import resnet_digits

SIDE = 2
"""Windows in each direction."""


class Windows(nn.Module):
    """A linear layer on the tokens of each window ``[windows, tokens, channels]``."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.mix = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        h, w = height // SIDE, width // SIDE
        windows = x.reshape(batch, channels, SIDE, h, SIDE, w).permute(0, 2, 4, 3, 5, 1)
        mixed = self.mix(windows.reshape(batch * SIDE**2, h * w, channels))
        back = mixed.reshape(batch, SIDE, SIDE, h, w, channels).permute(0, 5, 1, 3, 2, 4)
        return back.reshape(batch, channels, height, width)


def windowed_digits() -> nn.Module:
    """The default network with windows before its first stage."""
    network = resnet_digits()
    channels = next(m.out_channels for m in network.stem.modules() if isinstance(m, nn.Conv2d))
    network.stem.append(Windows(channels))
    return network
