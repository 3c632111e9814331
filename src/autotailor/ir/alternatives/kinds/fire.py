"""A dense convolution as one that squeezes channels, and two side by side that expand them (Iandola et al., 2016).

    Conv k x k  =>  Conv 1 x 1 (few channels) -> Conv k x k (half of the channels)      Concat
                                              -> Conv 1 x 1 (the other half)

The squeezed channels are the inputs' directions of which the kernels make most: the first right singular vectors of all
their taps. The channels that lose least by it get single pixels.
"""

import numpy as np

from autotailor.ir.alternatives.alternative import Array, Branch, read_switch, register_alternative
from autotailor.ir.alternatives.kinds.low_rank import POINT
from autotailor.ir.alternatives.rebuilding import Interior, Rebuilt, replaced
from autotailor.ir.dimensions.dimension import Atom
from autotailor.ir.feature import freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.space.architecture import round_width

SQUEEZED = 0.5
"""Squeezed channels over those that are read, or written where these are fewer; SqueezeNet, trained so, has 1/8."""


@register_alternative
class Fire(Rebuilt):
    """``fire: true``: the dense convolutions of several pixels that write hidden channels."""

    kind = "fire"

    def choices(self, value: object) -> tuple[str, ...]:
        return read_switch(self.kind, value)

    def fits(self, interior: Interior) -> bool:
        return bool(_large(interior))

    def rebuild(self, interior: Interior, choice: str) -> Branch:
        large = _large(interior)
        kept = {atom: _by_middle(interior.graph.weights[node.inputs[1]]) for node, atom in large}
        part = interior.narrowed(kept)
        for node, _ in large:
            part = _fired(part, next(each for each in part.nodes if each.name == node.name))
        return part


def _large(interior: Interior) -> list[tuple[Node, Atom]]:
    """The convolutions that are replaced, with the channels that they write."""
    weights = interior.graph.weights
    return [
        (node, atom)
        for node, atom in interior.maps()
        if weights[node.inputs[1]][0, 0].size > 1 and min(weights[node.inputs[1]].shape[:2]) >= 8
    ]


def _by_middle(weight: Array) -> Array:
    """The order of channels ``[out]`` by what all taps but the middle one say, the most first."""
    middle = weight[:, :, weight.shape[2] // 2, weight.shape[3] // 2]
    whole = np.square(weight, dtype=np.float64).sum((1, 2, 3))
    return np.argsort(np.square(middle, dtype=np.float64).sum(1) - whole, kind="stable")


def _fired(part: Branch, node: Node) -> Branch:
    """A part in which a convolution squeezes and expands."""
    weight = part.weights[node.inputs[1]].astype(np.float64)
    outputs, inputs, *kernel = weight.shape
    fewer = min(inputs, outputs)
    rank = min(fewer, round_width(SQUEEZED * fewer, 4 if fewer < 64 else 8))
    taps = weight.transpose(0, 2, 3, 1).reshape(-1, inputs)
    directions = np.linalg.eigh(taps.T @ taps)[1][:, : -rank - 1 : -1]  # [in, rank]
    large = np.einsum("oikl,ir->orkl", weight, directions)
    half = outputs - outputs // 2
    squeeze, expand, single = (f"{node.name}:fire.{word}" for word in ("squeeze", "expand", "single"))
    arrays = {
        f"{squeeze}.weight": directions.T[:, :, None, None],
        f"{expand}.weight": large[:half],
        f"{single}.weight": large[half:, :, kernel[0] // 2, kernel[1] // 2, None, None],
    }
    biases = [f"{name}.bias" for name in (expand, single)] if len(node.inputs) > 2 and node.inputs[2] else []
    if biases:
        bias = part.weights[node.inputs[2]]
        arrays |= {biases[0]: bias[:half], biases[1]: bias[half:]}
    weights = {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in arrays.items()}
    written = node.outputs[0]
    inner, one, other = (f"{written}:fire.{word}" for word in ("squeeze", "expand", "single"))
    attributes = dict(POINT) | {"strides": node.get("strides")}
    new = (
        Node(squeeze, "Conv", (node.inputs[0], f"{squeeze}.weight"), (inner,), POINT),
        Node(expand, "Conv", (inner, f"{expand}.weight", *biases[:1]), (one,), node.attributes),
        Node(single, "Conv", (inner, f"{single}.weight", *biases[1:]), (other,), freeze_attributes(attributes)),
        Node(f"{node.name}:fire", "Concat", (one, other), (written,), freeze_attributes({"axis": 1})),
    )
    shape, read = part.shapes[written], part.shapes[node.inputs[0]]
    shapes = {
        inner: (*read[:1], rank, *read[2:]),
        one: (*shape[:1], half, *shape[2:]),
        other: (*shape[:1], outputs - half, *shape[2:]),
    }
    return replaced(part, (node,), new, weights, shapes)
