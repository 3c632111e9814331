"""Solves the last maps of merged blocks on pictures, in forward passes of the unmodified network.

A merged block reads what the first of its blocks reads there, and its map is to say what the last of its blocks says in
front of their activation functions. With f what the map reads, T what the last block says and a what sums add in the
merged block,

    W f + b  ~  T - a        (least squares over pixels and pictures).

BatchNorm inside a merged block takes on the statistics of what it meets. BatchNorm behind the map has the statistics of
W f, and gain and shift with which it adds b and nothing else, so that recalibration leaves it as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch.nn.functional as F

from autotailor.ir.alternatives.alternative import Array, Responses, least_squares
from autotailor.ir.alternatives.merging import Ending, activations_behind, ending_of, merge_junctions
from autotailor.ir.execution.modules.responses import Sums
from autotailor.ir.execution.modules.statistics import NORMALISATION, Collector
from autotailor.ir.graph import Graph, Node, Weights, reading_axis
from autotailor.ir.junctions import branch
from autotailor.ir.moments import ridge_share
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor
from autotailor.ir.operators.windows.window import window_attributes

POSITIONS = 16
"""Rows, and columns, of a map at which what a kernel of several pixels reads is read; more say the same."""


@dataclass(frozen=True, eq=False)
class _Fit:
    """A merged block.

    Attributes:
        ending: of the merged block.
        target: tensor in front of the activation functions of the last block that it stands in for.
        sums: of what is solved.
    """

    ending: Ending
    target: str
    sums: Sums = field(default_factory=Sums)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the solution follows from."""
        return (self.ending.map.inputs[0], self.target, *self.ending.added)


class MergeSums:
    """Adds up what merged blocks are solved on, while a module runs the nodes of a graph with junctions.

    Args:
        graph: of the network.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._fits: dict[str, _Fit] = {}
        norms: list[Node] = []
        for junction in merge_junctions(graph):
            copies = branch(graph, junction, 1)
            norms += [node for node in copies if node.kind == NORMALISATION]
            ending = ending_of(graph, copies, junction.inputs[1])
            assert ending is not None  # only such blocks are merged
            target = activations_behind(graph, _first(graph, junction))[1]
            self._fits[junction.name] = _Fit(ending, target)
        self.norms = {node.name: node for node in norms}
        self.statistics = Collector()
        self._wanted = {name for fit in self._fits.values() for name in fit.reads}
        self._held: dict[str, Tensor] = {}

    def see(self, node: Node, values: Mapping[str, Tensor]) -> None:
        """Holds what a node is about to read, as far as it is asked for, and adds it where a merged block ends."""
        self._held.update((name, values[name]) for name in node.inputs if name in self._wanted)
        if (fit := self._fits.get(node.name)) is not None:
            f, map_ = self._held.pop(fit.ending.map.inputs[0]), fit.ending.map
            y = self._held[fit.target]
            for name in fit.ending.added:
                y = y - self._held[name]
            f, y = self._read(map_, f), self._said(map_, y)
            fit.sums.add(len(f), y.sum(0), y.T @ y, f.sum(0), f.T @ f, f.T @ y)

    def forget(self) -> None:
        """Lets go of the tensors of a pass."""
        self._held.clear()

    def _read(self, node: Node, x: Tensor) -> Tensor:
        """What a map reads for each of its answers, ``[answers, features]``."""
        if node.kind != "Conv":
            return x.flatten(0, -2).float()
        window = window_attributes(node, self._graph.weights[node.inputs[1]].shape[2:])
        pads = window.pads
        x = F.pad(x, (pads[1], pads[3], pads[0], pads[2]))
        for axis in (0, 1):
            x = x.unfold(2 + axis, (window.kernel[axis] - 1) * window.dilations[axis] + 1, window.strides[axis])
        x = x[..., :: window.dilations[0], :: window.dilations[1]]
        rows, columns = _steps(node, self._graph, x.shape[2:4])
        return x[:, :, ::rows, ::columns].permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(0, 2).float()

    def _said(self, node: Node, y: Tensor) -> Tensor:
        """What a map is to answer there, ``[answers, out]``."""
        if node.kind != "Conv":
            return y.flatten(0, -2).float()
        rows, columns = _steps(node, self._graph, y.shape[2:4])
        return y[:, :, ::rows, ::columns].movedim(1, -1).flatten(0, -2).float()

    def solved(self, ridge: float) -> Weights:
        """Weights of the merged blocks, nearest to the unmodified network on the images so far.

        Args:
            ridge: see ``Moments``.
        """
        found: dict[str, Array] = {}
        for name, (mean, variance) in self.statistics.statistics().items():
            arrays = (mean.cpu().numpy(), variance.cpu().numpy())
            found.update(zip(self.norms[name].inputs[3:], arrays, strict=True))
        for fit in self._fits.values():
            if fit.sums.samples:
                found |= _solved(self._graph, fit, ridge)
        return found


def _first(graph: Graph, junction: Node) -> str:
    """The tensor of the last block that a merged block stands in for, in front of all junctions behind the block."""
    tensor = junction.inputs[0]
    while (node := graph.producers[tensor]).name in {each.name for each in merge_junctions(graph)}:
        tensor = node.inputs[0]
    return tensor


def _steps(node: Node, graph: Graph, shape: Sequence[int]) -> list[int]:
    several = graph.weights[node.inputs[1]][0, 0].size > 1
    return [max(1, size // POSITIONS) if several else 1 for size in shape]


def _solved(graph: Graph, fit: _Fit, ridge: float) -> dict[str, Array]:
    """Weights of the last map of a merged block, and of the BatchNorm or bias behind the map."""
    ending, weight = fit.ending, graph.weights[fit.ending.map.inputs[1]]
    mean, square, *features = fit.sums.means()
    share = ridge_share(ridge, len(features[0]), fit.sums.samples)
    responses = Responses(mean, square, (features[0], features[1], features[2]), share)
    if ending.norm is None and not ending.bias:  # the map goes through the origin
        responses = replace(responses, mean=0 * mean, features=(0 * features[0], features[1], features[2]))
    solved, bias = least_squares(responses)
    shaped = solved.reshape(weight.shape) if reading_axis(ending.map) == 1 else solved.T
    found = {ending.map.inputs[1]: np.ascontiguousarray(shaped)}
    if ending.norm is None:
        return found | ({ending.bias: bias} if ending.bias else {})
    exact = solved.astype(np.float64)
    said = exact @ features[0]
    variance = np.einsum("of,fg,og->o", exact, features[1] - np.outer(features[0], features[0]), exact).clip(min=0.0)
    gain = np.sqrt(variance + ending.norm.get("epsilon", EPSILON))
    vectors = zip(ending.norm.inputs[1:], (gain, bias + said, said, variance), strict=True)
    found |= {name: vector.astype(np.float32) for name, vector in vectors}
    return found | ({ending.bias: np.zeros_like(bias)} if ending.bias else {})
