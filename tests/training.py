"""What tests of training share: a small network, its configuration, and comparisons of weights."""

from collections.abc import Mapping

import torch
from torch import nn

import autotailor
import networks
from autotailor.finetuning import PretrainConfig

PRETRAIN = PretrainConfig(epochs=3, batch_size=16, checkpoint_seconds=0.0)


def fresh(seed: int = 0) -> nn.Module:
    """A small ResNet that a seed initialises."""
    torch.manual_seed(seed)
    return networks.TinyResNet()


def without_norm(seed: int = 0) -> nn.Module:
    """A small network without BatchNorm, for which the gradients of a batch are the mean of those of its parts."""
    torch.manual_seed(seed)
    layers = [nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.Conv2d(8, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(8, 5))


def close(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> bool:
    """Whether two sets of weights have the same names, and values that differ only by rounding."""
    return a.keys() == b.keys() and all(torch.allclose(a[name], b[name], rtol=1e-4, atol=1e-6) for name in a)


def equal(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> bool:
    """Whether two sets of weights have the same names and the same bits."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def weights(net: autotailor.SuperNet) -> dict[str, torch.Tensor]:
    """Copies of a SuperNet's weights."""
    return {name: torch.from_numpy(weight.copy()) for name, weight in net.graph.weights.items()}
