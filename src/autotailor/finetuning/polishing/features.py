"""What a network computes on its way to the logits: what its classifier reads, and its stream between blocks.

A SubNet that is to answer as its teacher does learns faster where it also computes what the teacher's last map reads
(FitNets; Romero et al., 2015), and what its blocks hand on: one number for each class is little to learn from where
pictures are few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import nn
from torch.nn import functional

from autotailor.ir.execution.head import find_features
from autotailor.ir.execution.modules.graph import GraphModule, Outputs

TOKENS, MAP = 3, 4
"""Axes of tokens, and of a map."""


class Featured(nn.Module):
    """A network that returns its logits, and behind them some of its tensors.

    Args:
        network: of a graph, up to its logits; parameters and buffers are shared with it.
        names: of the tensors.
    """

    def __init__(self, network: GraphModule, names: Sequence[str]) -> None:
        super().__init__()
        self.network, self._names = network, tuple(names)

    def forward(self, images: torch.Tensor) -> tuple[Outputs, ...]:
        values = {self.network.graph.input: images}
        self.network.advance(values, 0, len(self.network.schedule.nodes), hold=self._names)
        return self.network.logits(values), *(values[name] for name in self._names)


def features_of(network: nn.Module, streams: Iterable[str]) -> tuple[str, ...]:
    """Names of the tensors that a network shows: those of ``streams`` that it has, and what its classifier reads.

    Args:
        network: none are shown where it has no graph.
        streams: tensors that blocks hand on.
    """
    if not isinstance(network, GraphModule):
        return ()
    there = {name for node in network.schedule.nodes for name in node.outputs}
    return tuple(name for name in dict.fromkeys((*streams, find_features(network.graph))) if name in there)


def featured(network: nn.Module, names: Sequence[str]) -> nn.Module:
    """The network with some of its tensors; the network itself where it has none to show."""
    return Featured(network, names) if names and isinstance(network, GraphModule) else network


def feature_loss(ours: torch.Tensor, teacher: torch.Tensor, channels: int | None = None) -> torch.Tensor:
    """Mean square of the distance from the teacher's features, over their variance.

    A SubNet that keeps fewer channels than the teacher keeps its first ones, and smaller maps are compared with the
    means of the teacher's. The loss is 0 where shapes differ more: the tokens of smaller images are other tokens.

    Args:
        ours: ``[b, ...]``.
        teacher: the same of the teacher, whose channels are in the same order.
        channels: their axis; None takes the last one of tokens ``[b, n, c]``, and else the one behind the images.
    """
    if ours.dim() != teacher.dim():
        return ours.new_zeros(())
    axis = channels or (-1 if ours.dim() == TOKENS else 1)
    ours, teacher = ours.movedim(axis, 1), teacher.movedim(axis, 1)
    if ours.dim() == MAP and all(a <= b for a, b in zip(ours.shape[2:], teacher.shape[2:], strict=True)):
        teacher = functional.adaptive_avg_pool2d(teacher, (ours.shape[2], ours.shape[3]))
    kept = teacher[:, : ours.shape[1]].float()
    if kept.shape != ours.shape:
        return ours.new_zeros(())
    return (ours.float() - kept).pow(2).mean() / kept.var().clamp(min=torch.finfo().tiny)
