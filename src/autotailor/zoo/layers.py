"""Parts that the networks of the zoo share: channel rounding, convolution with BatchNorm, seeded initial weights."""

import math
from collections.abc import Callable
from typing import TypeVar

import torch
import torch.nn.functional as F
from torch import nn

from autotailor.ir.errors import AutoTailorError

Network = TypeVar("Network", bound=nn.Module)


class ZooError(AutoTailorError):
    """An argument of a network of the zoo is out of range."""


def scale_channels(channels: int, width: float, divisor: int) -> int:
    """Channel count of a uniformly scaled network: the nearest multiple of ``divisor``, at least ``divisor``."""
    return max(divisor, int(channels * width / divisor + 0.5) * divisor)


def check_arguments(network: str, num_classes: int, width: float = 1.0) -> None:
    """Raises ZooError unless there are at least two classes and the width factor is positive and finite."""
    if isinstance(num_classes, bool) or not isinstance(num_classes, int) or num_classes < 2:
        raise ZooError(f"{network}: num_classes must be an integer of at least 2, not {num_classes!r}")
    if isinstance(width, bool) or not isinstance(width, int | float) or not math.isfinite(width) or width <= 0:
        raise ZooError(f"{network}: width must be a positive factor such as 0.5 or 1.0, not {width!r}")


def conv_bn(
    inputs: int,
    outputs: int,
    kernel: int = 1,
    stride: int = 1,
    groups: int = 1,
    activation: nn.Module | None = None,
    epsilon: float = 1e-5,
) -> nn.Sequential:
    """Conv without bias -> BatchNorm -> activation (none when None), padded to keep size / stride."""
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs, eps=epsilon),
    ]
    return nn.Sequential(*layers, *([activation] if activation is not None else []))


class SqueezeExcitation(nn.Module):
    """x times a gate in 0..1 for each channel: global average, 1x1, ReLU, 1x1, hard sigmoid (Howard et al., 2019)."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.squeeze = nn.Conv2d(channels, squeezed, 1)
        self.excite = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """``[n, channels, h, w]`` to the same shape."""
        return x * F.hardsigmoid(self.excite(F.relu(self.squeeze(self.pool(x)))))


def seeded(make: Callable[[], Network], seed: int, initialise: Callable[[nn.Module], None] | None = None) -> Network:
    """Makes a network whose weights depend on ``seed`` alone; the global random state does not change.

    Args:
        make: makes the network.
        seed: of the weights.
        initialise: draws the weights; None takes ``initialise_convolutions``.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
        (initialise or initialise_convolutions)(network)
    return network


def initialise_convolutions(network: nn.Module) -> None:
    """He initialisation for convolutions; linear layers get a standard deviation of 0.01; biases are zero."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")
        elif isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, 0.0, 0.01)
        if isinstance(layer, nn.Conv2d | nn.Linear) and layer.bias is not None:
            nn.init.zeros_(layer.bias)


def initialise_transformer(network: nn.Module) -> None:
    """He initialisation for convolutions, Glorot's for linear layers (Dosovitskiy et al., 2021); biases are zero."""
    initialise_convolutions(network)
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
