"""What the readers of activations read, as second moments over pictures; slices follow from them in closed form.

Where a SubNet leaves channels out, the linear maps that read the others are solved by least squares on what they read
in the unmodified network. With M = E[x x'] over pictures, S the channels that are kept and E the columns of the
identity that S names, a reader W computes with

    W_S = W B,    B = (M[:, S] + s E) (M[S, S] + s I)^-1,    s = ridge x mean(diag M[S, S])

B depends on the choice alone, as Once-for-All's kernel matrices do (Cai et al., 2020, section 3.2): weights stay
shared, the largest SubNet is the given network, and gradients flow through B. The taps of a depthwise convolution are
the same with one B for each channel. The regression goes through the origin, so that no bias takes part: on a
pretrained network one with an intercept was no better, once BatchNorm was recalibrated (docs/design/closed-form.md).
Sources: GRAIL and PRACTISE, for least squares on activations.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.ir.dimensions.dimension import Atom, Dimension, Indices, Kernel
from autotailor.ir.graph import MIXING, Graph, Node, reading_axis
from autotailor.ir.operators.windows.window import window_attributes
from autotailor.ir.propagation import Propagation

Array = npt.NDArray[Any]
Matrix = npt.NDArray[np.float32]

WIDEST = 4096
"""Channels of an activation up to which moments are kept: 64 MiB. Readers of wider ones are sliced as they stand."""
CACHED_BYTES = 256 * 2**20
"""Room for solutions that were asked for before."""
RIDGE = 3e-3
FEW = 0.1
"""A regression on as many samples as unknowns has so much more ridge, one on ten times as many a tenth of it."""


def ridge_share(ridge: float, unknowns: int, samples: int) -> float:
    """Share of the mean square that is added to the diagonal of a regression of so many unknowns on so many samples."""
    return ridge + FEW * unknowns / max(samples, 1)


@dataclass(frozen=True)
class Reader:
    """A weight through which an operator reads an activation.

    Attributes:
        weight: name of the weight.
        tensor: name of the activation.
        axis: of the weight: the one along which it reads.
        channels: axis of the activation that the weight reads along.
        depthwise: the convolution that reads, where the weight holds depthwise kernels; ``axis`` is then 0.
    """

    weight: str
    tensor: str
    axis: int
    channels: int
    depthwise: Node | None = None


def find_readers(graph: Graph, propagation: Propagation) -> dict[str, Reader]:
    """Weights that read an activation which can be narrowed, and depthwise kernels that can shrink, by their names.

    A weight that several operators read is left out: it would have to answer for all of them.
    """
    static = {part.node for part in propagation.static}
    readers = (_reader(node, graph) for node in graph.nodes if node.name not in static)
    dimensions = propagation.dimensions
    return {
        reader.weight: reader
        for reader in readers
        if reader is not None and graph.uses[reader.weight] == 1 and _may_change(reader, dimensions[reader.weight])
    }


def _reader(node: Node, graph: Graph) -> Reader | None:
    if node.kind not in MIXING or node.inputs[1] not in graph.weights:
        return None
    tensor, weight = node.inputs[:2]
    shape, rank = graph.weights[weight].shape, len(graph.shapes.get(tensor, ()))
    if tensor in graph.weights or graph.weights[weight].dtype != np.float32:
        return None
    if node.kind == "Conv":
        if node.get("group", 1) == 1:
            return Reader(weight, tensor, reading_axis(node), 1)
        is_plain = len(shape) == 4 and shape[1] == 1 and shape[0] == node.get("group", 1)
        return Reader(weight, tensor, 0, 1, node) if is_plain else None
    if node.kind == "MatMul" and len(shape) != 2:
        return None
    return Reader(weight, tensor, reading_axis(node), rank - 1)


def _may_change(reader: Reader, axes: tuple[Dimension, ...]) -> bool:
    if reader.depthwise is not None:
        return isinstance(axes[2], Kernel)
    atoms = list(axes[reader.axis].atoms())
    return axes[reader.axis].meta <= WIDEST and any(not atom.is_spatial for atom in atoms)


def taps_of(reader: Reader, graph: Graph) -> tuple[int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Side, strides, pads (begins, then ends) and dilations of depthwise kernels."""
    assert reader.depthwise is not None
    window = window_attributes(reader.depthwise, graph.weights[reader.weight].shape[2:])
    return window.kernel[0], window.strides, window.pads, window.dilations


@dataclass(frozen=True, eq=False)
class Moments:
    """Second moments of what readers read in the unmodified network.

    Attributes:
        channels: activation name to E[x x'], float32 ``[n, n]``.
        taps: name of a weight of depthwise kernels to those of the pixels under its taps, float32 ``[c, k*k, k*k]``.
        samples: activation or weight name to the number of values x that the expectation is over.
        ridge: share of the mean square that is added to the diagonal.
    """

    channels: Mapping[str, Matrix]
    taps: Mapping[str, Matrix]
    samples: Mapping[str, int]
    ridge: float = RIDGE
    _solutions: _Cache = field(default_factory=lambda: _Cache())

    def reads(self, tensor: str, width: int) -> bool:
        """Whether the moments of an activation of some width are known."""
        return tensor in self.channels and len(self.channels[tensor]) == width

    def mixture(self, tensor: str, kept: Indices) -> Matrix:
        """B transposed ``[kept, n]`` for the readers of an activation of which some channels are kept."""
        key = (tensor, kept.tobytes())
        return self._solutions.get(key, lambda: self._solved(self.channels[tensor], kept, self.samples[tensor]))

    def tap_mixtures(self, weight: str, kept: Indices) -> Matrix:
        """B transposed ``[c, kept taps, k*k]`` for the channels of depthwise kernels."""
        key = (weight, kept.tobytes())
        return self._solutions.get(key, lambda: self._solved(self.taps[weight], kept, self.samples[weight]))

    def _solved(self, moments: Matrix, kept: Indices, samples: int) -> Matrix:
        """B transposed ``[..., kept, n]`` from moments ``[..., n, n]``."""
        rows = moments[..., kept, :].astype(np.float64)
        part = rows[..., kept]
        mean = np.trace(part, axis1=-2, axis2=-1)[..., None, None] / len(kept)
        s = ridge_share(self.ridge, len(kept), samples) * mean + np.finfo(np.float32).tiny
        own = np.zeros((len(kept), moments.shape[-1]))
        own[np.arange(len(kept)), kept] = 1.0
        solved: Array = np.linalg.solve(part + s * np.eye(len(kept)), rows + s * own)
        return solved.astype(np.float32)

    def sorted(self, readers: Iterable[Reader], propagation: Propagation, orders: Mapping[Atom, Indices]) -> Moments:
        """The moments behind a permutation of channels.

        Args:
            readers: of the network, see ``find_readers``.
            propagation: of the network.
            orders: of the channels of each atom.
        """
        channels, taps = dict(self.channels), dict(self.taps)
        for reader in readers:
            axis = propagation.dimensions[reader.weight][reader.axis]
            order = axis.indices(lambda atom: atom.meta, orders)
            if reader.tensor in self.channels and reader.depthwise is None:
                channels[reader.tensor] = self.channels[reader.tensor][np.ix_(order, order)]
            elif reader.weight in self.taps:
                taps[reader.weight] = self.taps[reader.weight][order]
        return replace(self, channels=channels, taps=taps, _solutions=_Cache())

    def turned(self, bases: Mapping[str, npt.NDArray[np.float64]]) -> Moments:
        """The moments behind a change of the coordinates of activations: T M T' for each T ``[n, n]`` by its name."""
        changed = {name: (basis @ self.channels[name] @ basis.T).astype(np.float32) for name, basis in bases.items()}
        return replace(self, channels={**self.channels, **changed}, _solutions=_Cache())

    @property
    def size(self) -> int:
        """Bytes that the moments take in a file."""
        every = (*self.channels.values(), *self.taps.values())
        return sum(each.nbytes * (each.shape[-1] + 1) // (2 * each.shape[-1]) for each in every)

    def describe(self) -> dict[str, Any]:
        """Plain data and tensors, for saving; matrices are symmetric, and one half is kept."""
        every = {**self.channels, **self.taps}
        tensors = {name: torch.from_numpy(_packed(matrix)) for name, matrix in every.items()}
        return {"matrices": tensors, "taps": list(self.taps), "samples": dict(self.samples), "ridge": self.ridge}

    @classmethod
    def restore(cls, data: Mapping[str, Any]) -> Moments:
        """Reads ``describe``."""
        whole = {name: _unpacked(tensor.numpy()) for name, tensor in data["matrices"].items()}
        taps = {name: whole.pop(name) for name in data["taps"]}
        return cls(whole, taps, dict(data["samples"]), data["ridge"])


def _packed(matrix: Matrix) -> Matrix:
    """The lower triangles ``[..., n (n + 1) / 2]`` of symmetric matrices ``[..., n, n]``."""
    rows, columns = np.tril_indices(matrix.shape[-1])
    return np.ascontiguousarray(matrix[..., rows, columns])


def _unpacked(packed: Matrix) -> Matrix:
    """Symmetric matrices ``[..., n, n]`` from their lower triangles ``[..., n (n + 1) / 2]``."""
    size = (math.isqrt(8 * packed.shape[-1] + 1) - 1) // 2
    rows, columns = np.tril_indices(size)
    matrix = np.empty((*packed.shape[:-1], size, size), packed.dtype)
    matrix[..., rows, columns] = packed
    matrix[..., columns, rows] = packed
    return matrix


class _Cache:
    """Solutions by what they were asked for; the oldest go where there is no room."""

    def __init__(self) -> None:
        self._arrays: OrderedDict[tuple[str, bytes], Matrix] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: tuple[str, bytes], solve: Callable[[], Matrix]) -> Matrix:
        """The solution of a key, which is computed where it is not known."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
                return self._arrays[key]
        matrix = solve()
        with self._lock:
            if key not in self._arrays:
                self._arrays[key] = matrix
                self._bytes += matrix.nbytes
            while self._bytes > CACHED_BYTES and len(self._arrays) > 1:
                self._bytes -= self._arrays.popitem(last=False)[1].nbytes
        return matrix

    def __reduce__(self) -> tuple[type[_Cache], tuple[()]]:
        return _Cache, ()
