"""Operators that are computed but stay static: indices and orders of channels have no meaning after slicing."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F

from autotailor.ir.errors import GraphError
from autotailor.ir.graph import Node
from autotailor.ir.operators.rule import Deduction, OperatorRule, Tensor, register


def _extreme(node: Node, x: Tensor, *_: Any) -> Tensor:
    """ArgMax and ArgMin; of equal values the first, or the last."""
    axis, keep = node.get("axis", 0), bool(node.get("keepdims", 1))
    find: Callable[..., Tensor] = torch.argmax if node.kind == "ArgMax" else torch.argmin
    if not node.get("select_last_index", 0):
        return find(x, axis, keep)
    last: int = x.shape[axis] - 1
    return find(x.flip(axis), axis, keep).neg().add(last)


def _triangle(node: Node, x: Tensor, diagonal: Tensor | None = None) -> Tensor:
    k = 0 if diagonal is None else int(diagonal)
    return torch.triu(x, k) if node.get("upper", 1) else torch.tril(x, k)


def _running_sum(node: Node, x: Tensor, axis: Tensor) -> Tensor:
    dim, backwards = int(axis), node.get("reverse", 0)
    x = x.flip(dim) if backwards else x
    sums = x.cumsum(dim) - (x if node.get("exclusive", 0) else 0)
    return sums.flip(dim) if backwards else sums


def _hardmax(node: Node, x: Tensor) -> Tensor:
    axis = node.get("axis", -1)
    return torch.zeros_like(x).scatter(axis, x.argmax(axis, keepdim=True), 1.0)


def _gather_elements(node: Node, x: Tensor, indices: Tensor) -> Tensor:
    axis = node.get("axis", 0)
    return torch.gather(x, axis, indices % x.shape[axis])


def _top(node: Node, x: Tensor, k: Tensor | None = None) -> tuple[Tensor, Tensor]:
    count = node.get("k")[0] if k is None else int(k)
    values, indices = torch.topk(x, count, node.get("axis", -1), bool(node.get("largest", 1)))
    return values, indices


def _scatter(node: Node, x: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """ScatterND: ``x`` with some of its slices replaced.

    Where ``x`` and the indices are constants of one image, they hold for each image of a batch of updates.
    """
    if node.get("reduction", "none") != "none":
        raise GraphError(f"node {node.name}: ScatterND that reduces by {node.get('reduction')} is not known")
    batch = len(updates)
    if batch == len(indices) or len(indices) != 1 or bool((indices[..., 0] != 0).any()):
        result = x.clone()
        result[indices.unbind(-1)] = updates
        return result
    result = x.expand(batch, *x.shape[1:]).clone() if len(x) == 1 else x.clone()
    places: tuple[Any, ...] = (slice(None), *indices[0].unbind(-1)[1:])
    result[places] = updates
    return result


def _overlap(node: Node, x: Tensor, image: Tensor, block: Tensor) -> Tensor:
    """Col2Im: patches ``[n, c * block, places]`` added up where they overlap in the image."""
    pads = node.get("pads", (0,) * 4)
    if len(image) != 2 or pads[:2] != pads[2:]:
        raise GraphError(
            f"node {node.name}: Col2Im of {len(image)} axes with pads {pads}; known are images, padded alike"
        )
    dilations, strides = node.get("dilations", (1, 1)), node.get("strides", (1, 1))
    return F.fold(x, tuple(image.tolist()), tuple(block.tolist()), dilations, pads[:2], strides)


_CALLS: dict[str, tuple[Callable[..., Any], str]] = {
    "ArgMax": (_extreme, "its output are indices"),
    "ArgMin": (_extreme, "its output are indices"),
    "TopK": (_top, "it selects by value"),
    "ScatterND": (_scatter, "it depends on positions"),
    "Trilu": (_triangle, "it depends on positions"),
    "CumSum": (_running_sum, "it depends on positions"),
    "Hardmax": (_hardmax, "its output is an index"),
    "Col2Im": (_overlap, "it depends on positions"),
    "GatherElements": (_gather_elements, "it selects single elements"),
}


@register
class StaticRule(OperatorRule):
    """Computed with the meta shape, whatever the SubNet."""

    kinds = tuple(_CALLS.keys() - {"TopK"})

    def applies(self, node: Node, deduction: Deduction) -> str:
        return _CALLS[node.kind][1]

    def call(self, node: Node, arguments: Sequence[Any]) -> Any:
        return _CALLS[node.kind][0](node, *arguments)

    def opset(self, node: Node) -> int:
        return 18 if node.kind == "Col2Im" else super().opset(node)


@register
class TopKRule(StaticRule):
    """TopK of a constant count, which is no weight."""

    kinds = ("TopK",)
    constant_inputs = {1: "k"}
