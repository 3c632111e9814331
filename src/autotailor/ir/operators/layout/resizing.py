"""Resize: spatial axes scaled by nearest, linear or cubic interpolation; DepthToSpace and SpaceToDepth.

Interpolation is separable: each axis is multiplied with a matrix ``[out, in]`` that ONNX's definition gives.
"""

import functools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from autotailor.ir.dimensions.dimension import Constant, Dimension, Side, Window, product
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attributes, Shape, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register

_MAX_DENOMINATOR = 64
CHANNELS = 2
"""Axes before the sides of a map: of the batch, and of channels."""
_OPTIONS: dict[str, Any] = {
    "mode": "nearest",
    "nearest_mode": "round_prefer_floor",
    "coordinate_transformation_mode": "half_pixel",
    "cubic_coeff_a": -0.75,
    "exclude_outside": 0,
    "antialias": 0,
}


@register
class ResizeRule(OperatorRule):
    """Sizes follow constant scales; constant sizes follow where they are a multiple or a part of the meta size.

    A map of one pixel, as global pooling leaves it, takes the size of the maps beside which it is read. The batch is
    left alone.
    """

    kinds = ("Resize",)
    constant_inputs = {1: "roi", 2: "scales", 3: "sizes"}
    follows_shapes = True

    def applies(self, node: Node, deduction: Deduction) -> str:
        if any(node.inputs[1:]):
            return "its scales are computed, not constant"
        source, target = (deduction.shape(name) for name in (node.inputs[0], node.outputs[0]))
        if source[:2] != target[:2]:
            return "it resizes channels"
        return "" if node.get("keep_aspect_ratio_policy", "stretch") == "stretch" else "it keeps the aspect ratio"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        target = deduction.shape(node.outputs[0])
        scales = _per_axis(node, "scales", len(x))
        resized: list[Dimension] = []
        for axis, (dimension, size, scale) in enumerate(zip(x, target, scales, strict=True)):
            if scale is None and axis >= CHANNELS and dimension == Constant(1) and size > 1:
                resized.append(Side(f"{node.outputs[0]}:{axis}", size))
                continue
            ratio = _ratio(dimension.meta, size, scale)
            if ratio is None:
                deduction.freeze(dimension)
            resized.append(Constant(size) if ratio is None else _scaled(dimension, ratio))
        return [tuple(resized)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        scales, sizes = (*arguments[2:], None, None)[:2]
        given = {"scales": scales, "sizes": sizes}
        node = node.with_attributes(**{k: tuple(v.tolist()) for k, v in given.items() if v is not None})
        options = {name: node.get(name, default) for name, default in _OPTIONS.items()}
        if options["coordinate_transformation_mode"] == "tf_crop_and_resize":
            raise GraphError(f"node {node.name}: Resize with a crop is not known; export it without")
        targets = zip(_per_axis(node, "scales", x.ndim), _per_axis(node, "sizes", x.ndim), strict=True)
        for axis, (scale, size) in enumerate(targets):
            if axis == 0:
                continue
            if size is None:
                size = math.floor(np.float32(scale or 1.0) * np.float32(x.shape[axis]))
            if size != x.shape[axis] or (scale or 1.0) != 1.0:
                ratio = size / x.shape[axis] if scale is None else scale
                matrix = torch.from_numpy(_matrix(x.shape[axis], int(size), ratio, tuple(options.items()))).to(x)
                x = torch.tensordot(x, matrix, ([axis], [1])).movedim(-1, axis)
        return x

    def specialise(self, node: Node, inputs: Sequence[Shape], outputs: Sequence[Shape]) -> Node:
        if node.get("sizes") is None or not outputs[0]:
            return node
        axes = node.get("axes") or range(len(outputs[0]))
        return node.with_attributes(sizes=tuple(outputs[0][axis] for axis in axes))

    def run_time_attributes(self, node: Node) -> Attributes:
        names = ("mode", "nearest_mode", "coordinate_transformation_mode")
        return freeze_attributes({name: node.get(name, _OPTIONS[name]) for name in names})

    def opset(self, node: Node) -> int:
        if node.get("coordinate_transformation_mode") == "half_pixel_symmetric":
            return 19
        later = ("axes", "antialias", "keep_aspect_ratio_policy")  # attributes of opset 18, whatever their values
        return 18 if any(node.get(name) is not None for name in later) else super().opset(node)


def _per_axis(node: Node, name: str, rank: int) -> list[Any]:
    """Scales or sizes of each axis; None where the node does not say."""
    values = node.get(name) or ()
    axes = node.get("axes") or range(len(values))
    per_axis: list[Any] = [None] * rank
    for axis, value in zip(axes, values, strict=False):
        per_axis[axis] = value
    return per_axis


def _ratio(meta: int, size: int, scale: float | None) -> Fraction | None:
    """The factor from the size of the input to the size of the output; None where no factor holds for every size."""
    if scale is None:
        ratio = Fraction(size, meta)
        return ratio if 1 in (ratio.numerator, ratio.denominator) else None
    ratio = Fraction(scale).limit_denominator(_MAX_DENOMINATOR)
    sizes = np.arange(1, meta + 1)
    rounded = np.floor(sizes.astype(np.float32) * np.float32(scale)).astype(np.int64)
    return ratio if (rounded == sizes * ratio.numerator // ratio.denominator).all() else None


def _scaled(dimension: Dimension, ratio: Fraction) -> Dimension:
    """``floor(size * ratio)``."""
    grown = product((dimension, Constant(ratio.numerator)))
    if ratio.denominator == 1:
        return grown
    window = Window(grown, ratio.denominator, ratio.denominator)
    return Constant(window.meta) if isinstance(dimension, Constant) else window


@functools.lru_cache(maxsize=64)
def _matrix(n: int, size: int, scale: float, options: tuple[tuple[str, Any], ...]) -> npt.NDArray[np.float64]:
    """Interpolation weights ``[size, n]`` (ONNX, Resize)."""
    said = dict(options)
    at = _coordinates(n, size, scale, said["coordinate_transformation_mode"])
    matrix = np.zeros((size, n))
    rows = np.arange(size)
    if said["mode"] == "nearest":
        matrix[rows, np.clip(_nearest(at, said["nearest_mode"]), 0, n - 1)] = 1.0
        return matrix
    dense = min(1.0, scale) if said["antialias"] else 1.0  # antialiasing widens the kernel where the image shrinks
    reach = math.ceil((1 if said["mode"] == "linear" else 2) / dense)
    first = np.floor(at)
    for offset in range(1 - reach, 1 + reach):
        index = first + offset
        weight = _kernel(np.abs(at - index) * dense, said["mode"], said["cubic_coeff_a"])
        if said["exclude_outside"]:
            weight = np.where((index >= 0) & (index < n), weight, 0.0)
        np.add.at(matrix, (rows, np.clip(index, 0, n - 1).astype(np.int64)), weight)
    normalised: npt.NDArray[np.float64] = matrix / matrix.sum(1, keepdims=True)
    return normalised


def _coordinates(n: int, size: int, scale: float, mode: str) -> npt.NDArray[np.float64]:
    """Where each output pixel lies in the input."""
    out = np.arange(size, dtype=np.float64)
    if mode == "asymmetric":
        return np.asarray(out / scale)
    if mode == "align_corners":
        return out * ((n - 1) / max(1, size - 1))
    if mode == "pytorch_half_pixel" and size == 1:
        return np.zeros(size)
    half: npt.NDArray[np.float64] = (out + 0.5) / scale - 0.5
    if mode == "half_pixel_symmetric":
        adjustment = size / (scale * n)
        half = half + n / 2 * (1 - adjustment)
    return half


def _nearest(at: npt.NDArray[np.float64], mode: str) -> npt.NDArray[np.int64]:
    rounded = {
        "round_prefer_floor": np.ceil(at - 0.5),
        "round_prefer_ceil": np.floor(at + 0.5),
        "floor": np.floor(at),
        "ceil": np.ceil(at),
    }
    return rounded[mode].astype(np.int64)


def _kernel(distance: npt.NDArray[np.float64], mode: str, a: float) -> npt.NDArray[np.float64]:
    """Weight of a neighbour by its distance."""
    if mode == "linear":
        return np.maximum(1 - distance, 0.0)
    near = (a + 2) * distance**3 - (a + 3) * distance**2 + 1
    far = a * distance**3 - 5 * a * distance**2 + 8 * a * distance - 4 * a
    return np.where(distance <= 1, near, np.where(distance < 2, far, 0.0))


@register
class DepthToSpaceRule(OperatorRule):
    """Channels to blocks of ``b x b`` pixels: DCR reads the channels as ``[b, b, c]``, CRD as ``[c, b, b]``."""

    kinds = ("DepthToSpace",)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        batch, channels, *spatial = deduction.dimensions(node.inputs[0])
        side = node.get("blocksize")
        kept = deduction.fresh(node, channels.meta // side**2)
        factors = (kept, Constant(side**2)) if node.get("mode", "DCR") == "CRD" else (Constant(side**2), kept)
        deduction.unify(channels, product(factors))
        return [(batch, kept, *(product((d, Constant(side))) for d in spatial))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        n, c, h, w = x.shape
        b = node.get("blocksize")
        if node.get("mode", "DCR") == "CRD":
            blocks = x.reshape(n, c // b**2, b, b, h, w).permute(0, 1, 4, 2, 5, 3)
        else:
            blocks = x.reshape(n, b, b, c // b**2, h, w).permute(0, 3, 4, 1, 5, 2)
        return blocks.reshape(n, c // b**2, h * b, w * b)


@register
class SpaceToDepthRule(OperatorRule):
    """Blocks of ``b x b`` pixels to channels ``[b, b, c]``; the resolution is restricted to whole blocks.

    An axis of pixels that is a width (channels last) keeps its size, because a block has a fixed side.
    """

    kinds = ("SpaceToDepth",)

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        batch, channels, *spatial = deduction.dimensions(node.inputs[0])
        side = node.get("blocksize")
        for dimension in spatial:
            if not dimension.is_spatial:
                deduction.freeze(dimension)
        parts = (
            deduction.factor((d,), (d.meta // side, side))[0] if d.is_spatial else Constant(d.meta // side)
            for d in spatial
        )
        return [(batch, product((Constant(side**2), channels)), *parts)]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        n, c, h, w = x.shape
        b = node.get("blocksize")
        return x.reshape(n, c, h // b, b, w // b, b).permute(0, 3, 5, 1, 2, 4).reshape(n, c * b**2, h // b, w // b)
