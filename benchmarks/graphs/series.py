"""Networks for signals, and for pictures that are read as a series."""

from __future__ import annotations

import torch
from torch import nn


def normed(before: int, after: int, kernel: int, stride: int = 1) -> nn.Sequential:
    """A convolution along time with BatchNorm."""
    return nn.Sequential(nn.Conv1d(before, after, kernel, stride, kernel // 2, bias=False), nn.BatchNorm1d(after))


class Block(nn.Module):
    """A residual pair of convolutions along time."""

    def __init__(self, before: int, after: int, stride: int = 1) -> None:
        super().__init__()
        self.main = nn.Sequential(normed(before, after, 7, stride), nn.ReLU(), normed(after, after, 5))
        self.shortcut = nn.Identity() if (before, stride) == (after, 1) else normed(before, after, 1, stride)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (self.main(x) + self.shortcut(x)).relu()


class Residual(nn.Sequential):
    """A residual network for windows of a sensor."""

    def __init__(self, channels: int = 6, classes: int = 6) -> None:
        widths = (32, 64, 128)
        blocks = (
            block
            for before, after in zip((32, *widths[:-1]), widths, strict=True)
            for block in (Block(before, after, 2), Block(after, after), Block(after, after))
        )
        head = (nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(widths[-1], classes))
        super().__init__(normed(channels, 32, 7), nn.ReLU(), *blocks, *head)


class CRNN(nn.Module):
    """Text in a picture (Shi 2015): convolutions make columns, two GRUs read them, and each column gets a class."""

    def __init__(self, classes: int = 37, width: int = 128) -> None:
        super().__init__()
        c = (32, 64, 128, 128, width)
        self.columns = nn.Sequential(
            *(nn.Conv2d(1, c[0], 3, 1, 1), nn.BatchNorm2d(c[0]), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(c[0], c[1], 3, 1, 1), nn.BatchNorm2d(c[1]), nn.ReLU(), nn.MaxPool2d(2)),
            *(nn.Conv2d(c[1], c[2], 3, 1, 1), nn.BatchNorm2d(c[2]), nn.ReLU()),
            *(nn.Conv2d(c[2], c[3], 3, 1, 1), nn.BatchNorm2d(c[3]), nn.ReLU(), nn.MaxPool2d((2, 1))),
            *(nn.Conv2d(c[3], c[4], (4, 1)), nn.BatchNorm2d(c[4]), nn.ReLU()),
        )
        self.gru = nn.GRU(width, 64, bidirectional=True, batch_first=True)
        self.last = nn.Linear(128, classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        columns = self.columns(x).squeeze(2).transpose(1, 2)
        found: torch.Tensor = self.last(self.gru(columns)[0])
        return found
