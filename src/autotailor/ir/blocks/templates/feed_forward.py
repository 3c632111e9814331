"""FeedForward: x + two dense layers on every token or pixel (Vaswani et al., 2017)."""

from collections.abc import Mapping

from autotailor.ir.blocks.block import WEIGHTED, BlockTemplate, Handle, Outline, View, register_template
from autotailor.ir.blocks.region import Region, Row


def feed_forward_handles(view: View, item: object) -> Mapping[str, Handle] | None:
    """The expand ratio (hidden over input width) of x + dense(dense(x)); None where an item is something else."""
    if not isinstance(item, Region) or item.join.kind != "Add" or item.fork not in view.graph.activations(item.join):
        return None
    layers = [node for node in item.nodes if node.kind in WEIGHTED]
    if len(layers) != 2 or not all(view.is_dense(node) for node in layers):
        return None
    return view.expand_ratio(layers[:1], relative_to="in")


@register_template
class FeedForward(BlockTemplate):
    """Feed-forward without attention; its expand ratio is the hidden width over the input width (mostly 4)."""

    kind = "FeedForward"
    order = 32

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        handles = feed_forward_handles(view, trunk[position])
        return None if handles is None else Outline(1, handles, residual=True)
