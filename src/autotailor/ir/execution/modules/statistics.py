"""Statistics of normalisations, and how they are collected in forward passes (recalibration)."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import torch

from autotailor.ir.dimensions.dimension import Indices
from autotailor.ir.graph import Graph
from autotailor.ir.operators.rule import Tensor

NORMALISATION = "BatchNormalization"
Statistics = Mapping[str, tuple[Tensor, Tensor]]
"""Maps the name of each normalisation to its mean ``[c]`` and its variance ``[c]``."""


@dataclass
class Collector:
    """Running averages of batch means and variances, by normalisation node."""

    _sums: dict[str, tuple[Tensor, Tensor, int]] = field(default_factory=dict)

    def add(self, node: str, mean: Tensor, variance: Tensor) -> None:
        """Takes one batch's statistics in."""
        means, variances, count = self._sums.get(node, (torch.zeros_like(mean), torch.zeros_like(variance), 0))
        self._sums[node] = (means + mean, variances + variance, count + 1)

    def statistics(self) -> dict[str, tuple[Tensor, Tensor]]:
        """Averages over the batches seen: node name to (mean ``[c]``, variance ``[c]``)."""
        return {node: (means / n, variances / n) for node, (means, variances, n) in self._sums.items()}


def unbias(x: Tensor) -> float:
    """The factor n / (n - 1), with n the values of a channel: PyTorch stores unbiased variances."""
    count = x.numel() // x.shape[1]
    return count / max(1, count - 1)


def as_weights(graph: Graph, statistics: Statistics) -> dict[str, Indices]:
    """Statistics as the weights that a graph's normalisations read."""
    weights: dict[str, Indices] = {}
    for node in graph.nodes:
        if node.kind == NORMALISATION and node.name in statistics:
            mean, variance = statistics[node.name]
            weights[node.inputs[3]] = mean.detach().cpu().numpy()
            weights[node.inputs[4]] = variance.detach().cpu().numpy()
    return weights
