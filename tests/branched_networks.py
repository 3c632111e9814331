"""Networks that no template was written for: running concatenations, sums of three paths, paths side by side."""

import torch
from torch import nn

from acceptance import classifiers

SIDE = 16
"""Pixels of an image."""


def conv(inputs: int, outputs: int, kernel: int = 3) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, kernel, padding=kernel // 2, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()
    )


class Dense(nn.Module):
    """Layers that read everything before them."""

    def __init__(self, inputs: int, growth: int, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(conv(inputs + i * growth, 2 * growth, 1), conv(2 * growth, growth)) for i in range(layers)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found = [x]
        for layer in self.layers:
            found.append(layer(torch.cat(found, 1)))
        return torch.cat(found, 1)


class ThreePaths(nn.Module):
    """A sum of three paths, one of them a normalisation (RepVGG)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.wide, self.narrow = nn.Conv2d(width, width, 3, padding=1), nn.Conv2d(width, width, 1)
        self.identity = nn.BatchNorm2d(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.wide(x) + self.narrow(x) + self.identity(x))


class Inception(nn.Module):
    """Paths of several depths and kernels, joined by a concatenation."""

    def __init__(self, inputs: int) -> None:
        super().__init__()
        self.paths = nn.ModuleList(
            [conv(inputs, 16, 1), nn.Sequential(conv(inputs, 24, 1), conv(24, 32)),
             nn.Sequential(conv(inputs, 8, 1), conv(8, 16, 5))]
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([path(x) for path in self.paths], 1)


def network(*body: nn.Module, width: int) -> nn.Module:
    torch.manual_seed(0)
    head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, 5))
    return classifiers.randomise(nn.Sequential(*body, head).eval())


NETWORKS = {
    "dense": lambda: network(
        conv(3, 16), Dense(16, 16, 3), conv(64, 32, 1), nn.MaxPool2d(2), Dense(32, 16, 2), width=64
    ),
    "sums": lambda: network(conv(3, 32), ThreePaths(32), ThreePaths(32), width=32),
    "inception": lambda: network(conv(3, 16), Inception(16), Inception(64), nn.MaxPool2d(2), Inception(64), width=64),
    "plain": lambda: network(conv(3, 16), conv(16, 16), nn.MaxPool2d(2), conv(16, 32, 5), conv(32, 32), width=32),
}  # fmt: skip
