"""Solves the last maps of merged blocks on pictures, in forward passes of the unmodified network.

A merged block reads what the first of its blocks reads there, and its map is to say what the last of its blocks says in
front of their activation functions. With f what the map reads, T what the last block says and C what the copy says,

    D f + d  ~  T - C        (least squares over pixels and pictures, with D near to zero),

the map becomes that of the copy and D: with few pictures the merged block stays near to the copy, which already keeps
much where blocks are residual. BatchNorm inside the block takes on the statistics of what it meets. BatchNorm behind
the map has the statistics of what the new map says, and gain and shift with which it adds a bias and nothing else, so
that recalibration leaves it as it is.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch.nn.functional as F

from autotailor.ir.alternatives.alternative import Array, Responses, least_squares
from autotailor.ir.alternatives.copies import copy_junctions
from autotailor.ir.alternatives.merging import Ending, activations_behind, ending_of
from autotailor.ir.execution.modules.responses import Sums
from autotailor.ir.execution.modules.statistics import NORMALISATION, Collector
from autotailor.ir.graph import Graph, Node, Weights, reading_axis
from autotailor.ir.junctions import SOURCES, branch, span_of
from autotailor.ir.moments import ridge_share
from autotailor.ir.operators.pointwise.normalization import EPSILON
from autotailor.ir.operators.rule import Tensor
from autotailor.ir.operators.windows.window import window_attributes

POSITIONS = 16
"""Rows, and columns, of a map at which what a kernel of several pixels reads is read; more say the same."""

NEAR = 100.0
"""So many times the ridge of other regressions holds D near to zero, because the pixels of a picture are alike. Of 1,
10 and 100 times, 100 left a pretrained network nearest to itself on unseen pictures (docs/design/closed-form.md)."""
CONSTANT = 1e-5
"""A feature whose deviation is a smaller share of the largest one says nothing."""


@dataclass(frozen=True, eq=False)
class _Fit:
    """A merged block.

    Attributes:
        ending: of the merged block.
        target: tensor in front of the activation functions of the last block that it stands in for.
        near: so many times the ridge of other regressions hold D near to zero.
        sums: of what is solved.
    """

    ending: Ending
    target: str
    near: float
    sums: Sums = field(default_factory=Sums)

    @property
    def reads(self) -> tuple[str, ...]:
        """The tensors that the solution follows from: what the map reads, T and C."""
        return (self.ending.map.inputs[0], self.target, self.ending.before)


class MergeSums:
    """Adds up what merged blocks are solved on, while a module runs the nodes of a graph with junctions.

    Args:
        graph: of the network.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._fits: dict[str, _Fit] = {}
        norms: list[Node] = []
        for junction in copy_junctions(graph):
            copies = branch(graph, junction, 1)
            ending = ending_of(graph, copies, junction.inputs[1])
            assert ending is not None  # only such blocks are merged
            target = activations_behind(graph, _first(graph, junction))[1]
            norms += [node for node in copies if node.kind == NORMALISATION and node != ending.norm]
            near = NEAR if span_of(junction.get(SOURCES)[1]) else 1.0
            self._fits[junction.name] = _Fit(ending, target, near)
        self.norms = {node.name: node for node in norms}
        self.statistics = Collector()
        self._read_tensors = {name for fit in self._fits.values() for name in fit.reads}
        self._held: dict[str, Tensor] = {}

    def see(self, node: Node, values: Mapping[str, Tensor]) -> None:
        """Holds what a node is about to read, as far as it is asked for, and adds it where a merged block ends."""
        self._held.update((name, values[name]) for name in node.inputs if name in self._read_tensors)
        if (fit := self._fits.get(node.name)) is not None:
            read, target, said = (self._held[name] for name in fit.reads)
            f, y = self._read(fit.ending.map, read), self._said(fit.ending.map, target - said)
            self._held.pop(fit.reads[0])
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
        weights: dict[str, Array] = {}
        for name, (mean, variance) in self.statistics.statistics().items():
            arrays = (mean.cpu().numpy(), variance.cpu().numpy())
            weights.update(zip(self.norms[name].inputs[3:], arrays, strict=True))
        for fit in self._fits.values():
            if fit.sums.samples:
                weights |= _solved(self._graph, fit, ridge)
        return weights


def _first(graph: Graph, junction: Node) -> str:
    """The tensor of the last block that a merged block stands in for, in front of all junctions behind the block."""
    tensor = junction.inputs[0]
    while (node := graph.producers[tensor]).name in {each.name for each in copy_junctions(graph)}:
        tensor = node.inputs[0]
    return tensor


def _steps(node: Node, graph: Graph, shape: Sequence[int]) -> list[int]:
    several = graph.weights[node.inputs[1]][0, 0].size > 1
    return [max(1, size // POSITIONS) if several else 1 for size in shape]


def _solved(graph: Graph, fit: _Fit, ridge: float) -> dict[str, Array]:
    """Weights of the last map of a merged block, and of the BatchNorm or bias behind the map."""
    ending, weight = fit.ending, graph.weights[fit.ending.map.inputs[1]].astype(np.float64)
    target, square, mean, second, product = fit.sums.means()
    if ending.norm is None and not ending.bias:  # the map goes through the origin
        target, mean = 0 * target, 0 * mean
    size = np.sqrt((np.diagonal(second) - mean**2).clip(min=0.0))
    size = np.where(size > CONSTANT * size.max(), size, size.max() + np.finfo(np.float32).tiny)
    features = (mean / size, second / np.outer(size, size), product / size[:, None])
    share = fit.near * ridge_share(ridge, len(mean), fit.sums.samples)
    added, shift = least_squares(Responses(target, square, features, share))
    scale, offset = _affine(graph, ending)
    rows = weight.reshape(len(weight), -1) if reading_axis(ending.map) == 1 else weight.T
    exact, bias = scale * rows + added / size, offset + shift
    shaped = exact.reshape(weight.shape) if reading_axis(ending.map) == 1 else exact.T
    weights = {ending.map.inputs[1]: shaped}
    if ending.norm is None:
        weights |= {ending.bias: bias} if ending.bias else {}
    else:
        said = exact @ mean
        variance = np.einsum("of,fg,og->o", exact, second - np.outer(mean, mean), exact).clip(min=0.0)
        gain = np.sqrt(variance + ending.norm.get("epsilon", EPSILON))
        weights |= dict(zip(ending.norm.inputs[1:], (gain, bias + said, said, variance), strict=True))
        weights |= {ending.bias: 0 * bias} if ending.bias else {}
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in weights.items()}


def _affine(graph: Graph, ending: Ending) -> tuple[Array, Array]:
    """What stands behind the map of a copy: a factor ``[out, 1]`` and a summand ``[out]``."""
    channels = graph.weights[ending.map.inputs[1]].shape[0 if reading_axis(ending.map) == 1 else 1]
    bias = graph.weights[ending.bias].astype(np.float64) if ending.bias else np.zeros(channels)
    if ending.norm is None:
        return np.ones((channels, 1)), bias
    gain, shift, mean, variance = (graph.weights[name].astype(np.float64) for name in ending.norm.inputs[1:])
    factor = gain / np.sqrt(variance + ending.norm.get("epsilon", EPSILON))
    return factor[:, None], shift + factor * (bias - mean)
