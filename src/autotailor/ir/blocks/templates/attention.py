"""Attention: softmax(Q K) V over heads (Vaswani et al., 2017), with or without a residual sum.

The score product contracts the channels of queries and keys; the context product follows the softmax. Heads and value
channels are read off the operands of both products, so that projections may be fused or separate, and that windows,
biases, and heads that are folded into the batch do not matter.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from autotailor.ir.blocks.block import BlockTemplate, Handle, Outline, View, register_template
from autotailor.ir.blocks.region import Region, Row
from autotailor.ir.dimensions.dimension import HEADS, V_SCALE, Atom, Dimension
from autotailor.ir.graph import Node

PRODUCTS = ("MatMul", "Einsum")


@dataclass(frozen=True)
class AttentionCore:
    """Products around one softmax: Q K and (softmax) V."""

    scores: Node
    context: Node


def find_core(view: View, nodes: Row | tuple[Node, ...]) -> AttentionCore | None:
    """The products before and after the only softmax among some nodes; None where the nodes are no attention."""
    own = [n for n in nodes if isinstance(n, Node) and n.kind in PRODUCTS]
    products = [n for n in own if len(view.graph.activations(n)) == 2]
    softmaxes = [i for i, n in enumerate(nodes) if isinstance(n, Node) and n.kind == "Softmax"]
    if len(softmaxes) != 1 or len(products) != 2:
        return None
    scores, context = products
    return AttentionCore(scores, context) if nodes.index(scores) < softmaxes[0] < nodes.index(context) else None


def attention_handles(view: View, core: AttentionCore) -> Mapping[str, Handle]:
    """Handles of heads, and of value channels relative to key channels, where these can change by themselves."""
    dimensions = view.propagation.dimensions
    keys, values = dimensions[core.scores.inputs[0]][-1], dimensions[core.context.inputs[1]][-1]
    handles: dict[str, Handle] = {}
    heads = _channel_atoms(*dimensions[core.context.outputs[0]][:-2])
    if len(heads) == 1:
        handles[HEADS] = Handle(heads, None)
    scaled = tuple(atom for atom in _channel_atoms(values) if atom not in set(keys.atoms()))
    if scaled and len(_channel_atoms(values)) == len(scaled):
        handles[V_SCALE] = Handle(scaled, keys)
    return handles


def _channel_atoms(*axes: Dimension) -> tuple[Atom, ...]:
    return tuple(dict.fromkeys(a for axis in axes for a in axis.atoms() if not a.is_spatial))


def residual_attention(view: View, item: object) -> AttentionCore | None:
    """The core of x + attention(x); None where an item is something else."""
    if not isinstance(item, Region) or item.join.kind != "Add" or item.fork not in view.graph.activations(item.join):
        return None
    return find_core(view, item.nodes)


@register_template
class Attention(BlockTemplate):
    """Attention without feed-forward; its variables are the number of heads, and the width of values over keys."""

    kind = "Attention"
    order = 31

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        item = trunk[position]
        core = find_core(view, item.nodes) if isinstance(item, Region) else None
        if core is None:
            return None
        residual = residual_attention(view, item) is not None
        length = 1 if residual else 1 + _projection(view, trunk, position + 1)
        return Outline(length, attention_handles(view, core), residual=residual)


def _projection(view: View, trunk: Row, position: int) -> int:
    """Number of items behind the context product that belong to the projection of the context."""
    length = weighted = 0
    for item in trunk[position:]:
        if isinstance(item, Region):
            break
        weighted += len(view.weighted((item,)))
        if weighted > 1:
            break
        length += 1
    return length if weighted else 0
