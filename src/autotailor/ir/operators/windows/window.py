"""What sliding-window operators share: kernel, strides, pads, dilations in ONNX's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant, Dimension, slid
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attribute, OperatorFeature, Shape
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Tensor


@dataclass(frozen=True)
class WindowAttributes:
    """A window over n spatial axes; ``pads`` are n begins, then n ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil: bool = False

    def slide(self, spatial: Sequence[Dimension]) -> tuple[Dimension, ...]:
        """Dimensions of the spatial axes behind the window."""
        rank = len(self.kernel)
        return tuple(
            slid(
                dimension,
                self.span(i) - self.pads[i] - self.pads[i + rank],
                self.strides[i],
                self.ceil,
                self.pads[i] if self.ceil else 0,
            )
            for i, dimension in enumerate(spatial)
        )

    def cropped(self, kernel: Sequence[int]) -> WindowAttributes:
        """The same window with its kernel cropped around the centre: pads shrink as well, the output keeps its size."""
        gone = [d * (old - new) // 2 for d, old, new in zip(self.dilations, self.kernel, kernel, strict=True)]
        pads = tuple(pad - less for pad, less in zip(self.pads, (*gone, *gone), strict=True))
        return replace(self, kernel=tuple(kernel), pads=pads)

    def can_be_cropped(self, least: int) -> bool:
        """Whether the kernel is a square of odd side whose pads allow sides down to ``least``."""
        side = self.kernel[0]
        room = all(
            pad >= dilation * (side - least) // 2 for pad, dilation in zip(self.pads, self.dilations * 2, strict=True)
        )
        return set(self.kernel) == {side} and side % 2 == 1 and side > least and room

    def left(self, sizes: Sequence[int]) -> tuple[int, ...]:
        """Spatial sizes of the output for an image of some sizes."""
        return tuple(dimension.meta for dimension in self.slide([Constant(size) for size in sizes]))

    def span(self, i: int) -> int:
        """Extent of the dilated kernel along one axis."""
        return self.dilations[i] * (self.kernel[i] - 1) + 1

    def as_attributes(self) -> dict[str, Attribute]:
        """ONNX attributes, all written out."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
        }


def convolution_refusal(node: Node, deduction: Deduction) -> str:
    """The reason why a convolution or its transpose stays static; empty where the rule holds."""
    if not deduction.is_weight(node.inputs[1]):
        return "its weight is computed, not constant"
    if len(deduction.shape(node.inputs[1])) not in (3, 4, 5):
        return "only 1 to 3 spatial axes are known"
    return ""


def kernel_shape(feature: OperatorFeature) -> Shape:
    """Shape of a convolution's weight; a computed weight is one of the activations."""
    rank = len(feature.inputs[0])
    return next(shape for shape in (*feature.weights, *feature.inputs[1:]) if len(shape) == rank)


def window_attributes(node: Node, kernel: Sequence[int]) -> WindowAttributes:
    """Reads a node's window with ONNX's defaults.

    Raises:
        GraphError: auto_pad SAME, which the compiler resolves to numbers before.
    """
    rank = len(kernel)
    auto_pad = node.get("auto_pad", "NOTSET")
    if auto_pad not in ("NOTSET", "VALID", ""):
        raise GraphError(f"node {node.name}: auto_pad={auto_pad} must be written as pads")
    return WindowAttributes(
        kernel=tuple(int(k) for k in kernel),
        strides=tuple(node.get("strides", (1,) * rank)),
        pads=tuple(node.get("pads", (0,) * (2 * rank))),
        dilations=tuple(node.get("dilations", (1,) * rank)),
        ceil=bool(node.get("ceil_mode", 0)),
    )


def pad_like(x: Tensor, window: WindowAttributes, value: float) -> tuple[Tensor, tuple[int, ...]]:
    """Applies pads that PyTorch's operators cannot express; returns x and the pads that are left to the operator."""
    rank = len(window.kernel)
    begins, ends = window.pads[:rank], window.pads[rank:]
    if begins == ends:
        return x, begins
    amounts = [amount for i in reversed(range(rank)) for amount in (begins[i], ends[i])]
    return F.pad(x, amounts, value=value), (0,) * rank
