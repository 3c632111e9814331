"""What the classifier of a network reads, beside the logits that it makes of it.

A SubNet that is to answer as its teacher does learns faster where it also computes what the teacher's last map reads
(FitNets; Romero et al., 2015): one number for each class is little to learn from.
"""

from __future__ import annotations

import torch
from torch import nn

from autotailor.ir.execution.head import find_features
from autotailor.ir.execution.modules.graph import GraphModule


class Featured(nn.Module):
    """A network that returns its logits, and behind them what its classifier reads.

    Args:
        network: of a graph, up to its logits; parameters and buffers are shared with it.
        features: tensor that its classifier reads.
    """

    def __init__(self, network: GraphModule, features: str) -> None:
        super().__init__()
        self.network, self._features = network, features

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values = {self.network.graph.input: images}
        self.network.advance(values, 0, len(self.network.schedule.nodes), hold=(self._features,))
        return self.network.logits(values), values[self._features]


def featured(network: nn.Module) -> nn.Module:
    """The network with its features; the network itself where it has no graph that shows them."""
    if not isinstance(network, GraphModule):
        return network
    name = find_features(network.graph)
    is_there = any(name in node.outputs for node in network.schedule.nodes)
    return Featured(network, name) if is_there else network


def feature_loss(ours: torch.Tensor, teacher: torch.Tensor) -> torch.Tensor:
    """Mean square of the distance from the teacher's features, over their variance; both of the same shape."""
    return (ours.float() - teacher.float()).pow(2).mean() / teacher.float().var().clamp(min=torch.finfo().tiny)
