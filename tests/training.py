"""What tests of training share: a small network, its configuration, and comparisons of weights."""

from __future__ import annotations

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


def equal(a: Mapping[str, torch.Tensor], b: Mapping[str, torch.Tensor]) -> bool:
    """Whether two sets of weights have the same names and the same bits."""
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


def weights(net: autotailor.SuperNet) -> dict[str, torch.Tensor]:
    """Copies of a SuperNet's weights."""
    return {name: torch.from_numpy(weight.copy()) for name, weight in net.graph.weights.items()}
