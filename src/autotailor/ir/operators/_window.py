"""What sliding-window operators share: kernel, strides, pads, dilations in ONNX's conventions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch.nn.functional as F

from autotailor.ir.dimension import Constant, Dimension, Window
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attribute
from autotailor.ir.graph import Node
from autotailor.ir.operator import Tensor


@dataclass(frozen=True)
class WindowAttributes:
    """A window over n spatial axes; ``pads`` are n begins, then n ends."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    ceil: bool = False

    def slide(self, spatial: Sequence[Dimension]) -> tuple[Dimension, ...]:
        """Dimensions that are left of the spatial axes."""
        rank = len(self.kernel)
        slid: list[Dimension] = []
        for i, dimension in enumerate(spatial):
            span = self.dilations[i] * (self.kernel[i] - 1) + 1
            shrink = span - self.pads[i] - self.pads[i + rank]
            window = Window(dimension, shrink, self.strides[i], self.ceil)
            identity = shrink == 1 and window.stride == 1
            constant = isinstance(dimension, Constant)
            slid.append(dimension if identity else Constant(window.meta) if constant else window)
        return tuple(slid)

    def as_attributes(self) -> dict[str, Attribute]:
        """ONNX attributes, all written out."""
        return {
            "kernel_shape": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
        }


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
    """Pads that PyTorch's operators cannot express are applied beforehand; returns x and what is left of them."""
    rank = len(window.kernel)
    begins, ends = window.pads[:rank], window.pads[rank:]
    if begins == ends:
        return x, begins
    amounts = [amount for i in reversed(range(rank)) for amount in (begins[i], ends[i])]
    return F.pad(x, amounts, value=value), (0,) * rank
