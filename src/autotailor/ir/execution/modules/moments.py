"""Second moments of what readers read, collected in forward passes of the unmodified network."""

from collections.abc import Iterable, Mapping
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.elastic_graph import ElasticGraph
from autotailor.ir.execution.modules.elastic import variance_and_mean
from autotailor.ir.execution.modules.graph import GraphModule, Outputs
from autotailor.ir.execution.modules.merges import MergeSums
from autotailor.ir.execution.modules.responses import ResponseSums
from autotailor.ir.execution.modules.statistics import unbias
from autotailor.ir.execution.schedule import Schedule
from autotailor.ir.graph import Node, Weights
from autotailor.ir.moments import RIDGE, Moments, Reader, taps_of
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor

POSITIONS = 12
"""Rows, and columns, of a map at which the pixels under a kernel's taps are read; more say the same."""


class MomentCollector(GraphModule):
    """The unmodified network, which adds up moments, and what its alternatives are solved on, while it runs images.

    Args:
        elastic: whose readers are asked; those that no variable changes are left out.
    """

    def __init__(self, elastic: ElasticGraph) -> None:
        super().__init__(elastic.graph)
        self.eval()
        changed = set(elastic.architecture.sliced)
        dimensions = elastic.propagation.dimensions
        self._readers: dict[str, list[Reader]] = {}
        for reader in elastic.readers.values():
            axis = dimensions[reader.weight][2 if reader.depthwise else reader.axis]
            if changed & set(axis.atoms()):
                self._readers.setdefault(reader.tensor, []).append(reader)
        self._responses, self._merges = ResponseSums(elastic), MergeSums(elastic.graph)
        self._sums: dict[str, Tensor] = {}
        self._samples: dict[str, int] = {}

    def _schedule(self, nodes: Iterable[Node], outputs: tuple[str, ...]) -> Schedule:
        """Node by node, because what a reader reads must not be hidden in a function of several nodes."""
        return Schedule.of(self.graph, tuple(nodes), outputs)

    def _run(self, node: Node, values: Mapping[str, Tensor]) -> Any:
        for reader in self._readers.get(node.inputs[0], ()) if len(node.inputs) > 1 else ():
            if reader.weight == node.inputs[1]:
                self._add(reader, values[reader.tensor])
        self._responses.see(node, values)
        self._merges.see(node, values)
        return super()._run(node, values)

    def normalise(self, node: Node, arguments: list[Any]) -> Tensor:
        """BatchNorm with its stored statistics; inside merged blocks with those of the batch, which are kept."""
        if node.name not in self._merges.norms:
            return super().normalise(node, arguments)
        x, gain, shift = arguments[:3]
        variance, mean = variance_and_mean(x, [0, *range(2, x.ndim)])
        self._merges.statistics.add(node.name, mean, variance * unbias(x))
        return F.batch_norm(x, mean, variance, gain, shift, False, 0.0, node.get("epsilon", EPSILON))

    def forward(self, x: Tensor) -> Outputs:
        said = super().forward(x)
        self._merges.forget()
        return said

    def _add(self, reader: Reader, x: Tensor) -> None:
        key = reader.weight if reader.depthwise else reader.tensor
        first = self._readers[reader.tensor]
        if reader.depthwise is None and next(r for r in first if r.depthwise is None) is not reader:
            return  # several readers of one activation read the same
        rows = self._under_taps(reader, x) if reader.depthwise else x.movedim(reader.channels, -1).flatten(0, -2)
        rows = rows.float()
        self._sums[key] = self._sums.get(key, torch.zeros(())) + (rows.mT @ rows).double().cpu()
        self._samples[key] = self._samples.get(key, 0) + rows.shape[-2]

    def _under_taps(self, reader: Reader, x: Tensor) -> Tensor:
        """The pixels under each channel's taps, ``[c, positions, k * k]``."""
        side, strides, pads, dilations = taps_of(reader, self.graph)
        x = F.pad(x, (pads[1], pads[3], pads[0], pads[2]))
        for axis in (0, 1):
            x = x.unfold(2 + axis, (side - 1) * dilations[axis] + 1, strides[axis])
        steps = [max(1, size // POSITIONS) for size in x.shape[2:4]]
        x = x[:, :, :: steps[0], :: steps[1], :: dilations[0], :: dilations[1]]
        return x.movedim(1, 0).flatten(4, 5).flatten(1, 3)

    def alternatives(self, ridge: float = RIDGE) -> Weights:
        """Weights of all alternatives, nearest to the unmodified network on the images so far."""
        return {**self._responses.solved(ridge), **self._merges.solved(ridge)}

    def moments(self, ridge: float = RIDGE) -> Moments:
        """The moments of the images so far."""
        means = {key: (total / self._samples[key]).float().numpy() for key, total in self._sums.items()}
        taps = {reader.weight for readers in self._readers.values() for reader in readers if reader.depthwise}
        return Moments(
            {key: value for key, value in means.items() if key not in taps},
            {key: value for key, value in means.items() if key in taps},
            dict(self._samples),
            ridge,
        )
