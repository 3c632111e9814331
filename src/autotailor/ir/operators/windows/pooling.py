"""Pooling: windows that slide over spatial axes, and global pooling. Reductions stand in ``reductions.py``."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.dimensions.dimension import Constant
from autotailor.ir.errors import GraphError
from autotailor.ir.feature import Attributes, freeze_attributes
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, Dimensions, OperatorRule, Tensor, register
from autotailor.ir.operators.windows.window import WindowAttributes, window_attributes


@register
class PoolRule(OperatorRule):
    """MaxPool, AveragePool and LpPool: channels pass, spatial axes slide."""

    kinds = ("MaxPool", "AveragePool", "LpPool")

    def applies(self, node: Node, deduction: Deduction) -> str:
        if any(node.outputs[1:]):
            return "a second output (indices) is not known"
        return "" if len(node.get("kernel_shape")) in (1, 2, 3) else "only 1 to 3 spatial axes are known"

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        window = window_attributes(node, node.get("kernel_shape"))
        for dimension, dilation in zip(x[2:], window.dilations, strict=True):
            if dilation > 1 and any(window.pads):
                reason = f"a window of {node.kind} {node.name} would hold pads alone"
                deduction.require(dimension, dilation, reason)
        slid = (*x[:2], *window.slide(x[2:]))
        if tuple(d.meta for d in slid) != deduction.shape(node.outputs[0]):
            raise GraphError(
                f"node {node.name}: its last window starts behind the image, which ONNX's shape inference counts and "
                f"runtimes do not; export it without ceil_mode"
            )
        return [slid]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        window = window_attributes(node, node.get("kernel_shape"))
        if node.kind == "MaxPool":
            return _max_pool(x, window)
        if node.kind == "LpPool":
            p: int = node.get("p", 2)
            sums = _window_sums(x.abs() ** p, window)
            return sums ** (1 / p)
        return _average_pool(x, window, bool(node.get("count_include_pad", 0)))

    def run_time_attributes(self, node: Node) -> Attributes:
        window = window_attributes(node, node.get("kernel_shape"))
        extra: dict[str, Any] = {"ceil_mode": int(window.ceil)}
        if node.kind == "AveragePool":
            extra["count_include_pad"] = node.get("count_include_pad", 0)
        elif node.kind == "LpPool":
            extra["p"] = node.get("p", 2)
        return freeze_attributes({**window.as_attributes(), **extra})

    def opset(self, node: Node) -> int:
        dilated = node.get("dilations", None) is not None  # a later opset has the attribute, whatever its value
        if node.kind == "AveragePool" and dilated:
            return 19
        later = dilated or node.get("ceil_mode", None) is not None
        return 18 if node.kind == "LpPool" and later else super().opset(node)


def _is_plain(window: WindowAttributes) -> bool:
    """Whether PyTorch's pooling has the pads."""
    rank = len(window.kernel)
    half = all(2 * pad <= k for pad, k in zip(window.pads, window.kernel * 2, strict=True))
    return half and window.pads[:rank] == window.pads[rank:]


def _max_pool(x: Tensor, window: WindowAttributes) -> Tensor:
    rank = len(window.kernel)
    pool: Callable[..., Tensor] = (F.max_pool1d, F.max_pool2d, F.max_pool3d)[rank - 1]
    if _is_plain(window):
        return pool(x, window.kernel, window.strides, window.pads[:rank], window.dilations, window.ceil)
    return pool(_padded(x, window, float("-inf")), window.kernel, window.strides, 0, window.dilations)


def _average_pool(x: Tensor, window: WindowAttributes, include_pads: bool) -> Tensor:
    rank = len(window.kernel)
    if _is_plain(window) and set(window.dilations) == {1}:
        pool: Callable[..., Tensor] = (F.avg_pool1d, F.avg_pool2d, F.avg_pool3d)[rank - 1]
        return pool(x, window.kernel, window.strides, window.pads[:rank], window.ceil, include_pads)
    counts = _window_sums(torch.ones_like(x[:1, :1]), window, 1.0 if include_pads else 0.0)
    return _window_sums(x, window) / counts


def _window_sums(x: Tensor, window: WindowAttributes, pad_value: float = 0.0) -> Tensor:
    """Sum over each window: a convolution of each channel with ones."""
    x = _padded(x, window, pad_value)
    convolve: Callable[..., Tensor] = (F.conv1d, F.conv2d, F.conv3d)[len(window.kernel) - 1]
    ones = x.new_ones(1, 1, *window.kernel)
    sums = convolve(x.reshape(-1, 1, *x.shape[2:]), ones, None, window.strides, 0, window.dilations)
    return sums.reshape(*x.shape[:2], *sums.shape[2:])


def _padded(x: Tensor, window: WindowAttributes, value: float) -> Tensor:
    """The image with its pads, and zeros where windows overhang it (ceil mode); minus infinity where the pads are."""
    rank = len(window.kernel)
    sizes = x.shape[2:]
    begins, ends = window.pads[:rank], window.pads[rank:]
    counts = window.left(sizes)
    needed = [(counts[i] - 1) * window.strides[i] + window.span(i) - sizes[i] - begins[i] for i in range(rank)]
    x = F.pad(x, _amounts(begins, ends), value=value)
    overhang = [need - end for need, end in zip(needed, ends, strict=True)]
    return F.pad(x, _amounts((0,) * rank, overhang), value=min(value, 0.0))


def _amounts(begins: Sequence[int], ends: Sequence[int]) -> list[int]:
    """Pads in PyTorch's order: the last axis first."""
    return [amount for pair in reversed(list(zip(begins, ends, strict=True))) for amount in pair]


_GLOBAL: dict[str, Callable[[Tensor, tuple[int, ...]], Tensor]] = {
    "GlobalAveragePool": lambda x, axes: x.mean(axes, keepdim=True),
    "GlobalMaxPool": lambda x, axes: x.amax(axes, keepdim=True),
}


@register
class GlobalPoolRule(OperatorRule):
    """Global pooling: every spatial axis becomes one."""

    kinds = (*_GLOBAL, "GlobalLpPool")

    def deduce(self, node: Node, deduction: Deduction) -> Sequence[Dimensions]:
        x = deduction.dimensions(node.inputs[0])
        return [(*x[:2], *(Constant(1) for _ in x[2:]))]

    def call(self, node: Node, arguments: Sequence[Any]) -> Tensor:
        x: Tensor = arguments[0]
        axes = tuple(range(2, x.ndim))
        if node.kind == "GlobalLpPool":
            norm: Tensor = torch.linalg.vector_norm(x, node.get("p", 2), axes, keepdim=True)
            return norm
        return _GLOBAL[node.kind](x, axes)
