"""Which constants of a graph training may change; a graph does not say which of them were parameters.

Training leaves alone:

- statistics, integers, constants of static operators, and single numbers but the slope of a PReLU and what a module
  of PyTorch has as a parameter (ReZero's scale, a bias of one);
- exponents: of GeM's power p exporters keep 1 / p as a constant of its own, which would no longer belong to p;
- what a module has as a buffer: coordinates, sinusoidal positions;
- what the image meets before anything weighs it: means and deviations of a network that standardises by itself;
- depthwise kernels that are the same for all channels: blur in front of strides, which nobody has learnt;
- what is computed and not learnt, by its numbers, unless a convolution, a product of matrices or a normalisation weighs
  with it: ramps and waves over positions (coordinates, sinusoidal positions, rotary tables) and masks.

Of ONNX files that is all there is to go by: fixed kernels of other kinds (Gabor, DCT, Sobel) and tables of other shapes
train there, where a module says that they are buffers.

A wave x over positions n, x_n = a cos(w n + b), and a ramp, x_n = a + b n, obey for one number c, |c| <= 1,

    x_{n+1} + x_{n-1} = 2 c x_n        (c = cos w; c = 1),

which what is learnt does not: the noise of training is far above that of rounding. Positions are an axis, or an axis of
length k + s s over a grid of s times s, after k tokens of another meaning.
"""

import math
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from autotailor.ir.graph import Graph, Node
from autotailor.ir.operators.rule import rules

_STANDARDISING = frozenset({"Add", "Sub", "Mul", "Div"})
_PASSING = frozenset({"Cast", "Clip", "Concat", "Gather", "Identity", "Slice", "Split", "Transpose"})

_WEIGHING = frozenset({"Conv", "ConvTranspose", "Gemm", "MatMul", "PRelu"})
_MOST_TOKENS = 5  # before a grid of positions, such as those of the class and registers
_LEAST_LINE, _LEAST_SIDE = 6, 4  # positions of a line, and of a side of a grid
_MASKED = -50.0  # added to the logits of an attention; what is below counts nothing


def untrainable(graph: Graph) -> set[str]:
    """Names of the constants that training leaves alone."""
    names = {name for name, w in graph.weights.items() if not np.issubdtype(w.dtype, np.floating) or w.size == 1}
    slopes = {node.inputs[1] for node in graph.nodes if node.kind == "PRelu"}
    names -= {
        name for name in (slopes | graph.parameters) & names if np.issubdtype(graph.weights[name].dtype, np.floating)
    }
    for node in graph.nodes:
        rule = rules.find(node.kind)
        if rule is None:
            names.update(name for name in node.inputs if name in graph.weights)
        else:
            names.update(node.inputs[i] for i in rule.statistics)
        if _is_blur(graph, node) or (node.kind == "Pow" and node.inputs[1] in graph.weights):
            names.add(node.inputs[1])
    weighing = {name for node in graph.nodes if (node.kind in _WEIGHING or "Norm" in node.kind) for name in node.inputs}
    unknown = graph.weights.keys() - weighing - names - graph.parameters
    names |= {name for name in unknown if _is_mask(graph.weights[name]) or _is_computed(graph.weights[name])}
    return names | graph.buffers | _preprocessing(graph)


def _preprocessing(graph: Graph) -> set[str]:
    """Constants that the image is standardised with."""
    images, names = {graph.input}, set[str]()
    for node in graph.nodes:
        read = graph.activations(node)
        if not read or not images.issuperset(read) or node.kind not in _STANDARDISING | _PASSING:
            continue
        images.update(node.outputs)
        if node.kind in _STANDARDISING:
            names.update(name for name in node.inputs if name in graph.weights)
    return names


def _is_blur(graph: Graph, node: Node) -> bool:
    """Whether a depthwise convolution has the same kernel of several pixels for each of several channels."""
    weight = graph.weights.get(node.inputs[1]) if node.kind == "Conv" else None
    if weight is None or len(weight) < 2 or weight.shape[1] != 1 or node.get("group", 1) != len(weight):
        return False
    return weight[0].size > 1 and bool(weight[0].any()) and bool((weight == weight[:1]).all())


def _is_mask(weight: npt.NDArray[np.generic]) -> bool:
    """Whether all numbers are zero or one and the same that lets a Softmax leave out what it is added to."""
    if not np.issubdtype(weight.dtype, np.floating) or weight.ndim < 2:
        return False
    levels = np.unique(weight)
    return len(levels) == 2 and levels[1] == 0 and float(levels[0]) <= _MASKED


def _is_computed(weight: npt.NDArray[np.generic]) -> bool:
    """Whether numbers are ramps and waves over positions."""
    if not np.issubdtype(weight.dtype, np.floating) or not np.isfinite(weight).all():
        return False
    rounding = 4 * float(np.finfo(weight.dtype.name).eps)
    values = weight.astype(np.float64)
    return any(_is_wave(lines, rounding) for lines in _lines(values))


def _lines(values: npt.NDArray[np.float64]) -> Iterator[list[npt.NDArray[np.float64]]]:
    """The ways to read numbers as lines over positions, each as ``[lines that share a c, positions, others]``."""
    for axis, length in enumerate(values.shape):
        moved = np.moveaxis(values, axis, 0).reshape(length, -1)
        if length >= _LEAST_LINE:
            yield [moved[None]]
        side = math.isqrt(length)
        if side >= _LEAST_SIDE and length - side * side <= _MOST_TOKENS:
            grid = moved[length - side * side :].reshape(side, side, -1)
            yield [grid, grid.transpose(1, 0, 2)]


def _is_wave(directions: list[npt.NDArray[np.float64]], rounding: float) -> bool:
    """Whether all lines obey the equation of the module's docstring in each direction, and some are no constants."""
    for lines in directions:
        middle, around = lines[:, 1:-1], lines[:, 2:] + lines[:, :-2]
        power = np.maximum(2 * np.square(middle).sum((0, 1)), np.finfo(np.float64).tiny)
        c = (middle * around).sum((0, 1)) / power
        largest, varies = np.abs(lines).max((0, 1)), np.ptp(lines, axis=(0, 1))
        error = np.abs(around - 2 * c * middle).max((0, 1))
        if (error > 1e-3 * varies + rounding * largest).any() or (np.abs(c) > 1 + 1e-3).any():
            return False
    whole = directions[0]
    return bool((np.ptp(whole, axis=(0, 1)) > 0.01 * np.abs(whole).max()).any())
