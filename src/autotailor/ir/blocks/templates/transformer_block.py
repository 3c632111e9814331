"""TransformerBlock: attention, then feed-forward, each with its residual sum (Vaswani et al., 2017).

One block with the variables of both, because depth removes them together.
"""

from autotailor.ir.blocks.block import BlockTemplate, Outline, View, is_view, register_template
from autotailor.ir.blocks.region import Region, Row, item_output
from autotailor.ir.blocks.templates.attention import attention_handles, residual_attention
from autotailor.ir.blocks.templates.feed_forward import feed_forward_handles


@register_template
class TransformerBlock(BlockTemplate):
    """Its variables are those of Attention and FeedForward."""

    kind = "TransformerBlock"
    order = 30

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        core = residual_attention(view, trunk[position])
        if core is None:
            return None
        middle = position + 1 + _passing(view, trunk, position + 1)
        feed_forward = feed_forward_handles(view, trunk[middle]) if middle < len(trunk) else None
        if feed_forward is None:
            return None
        end = _same_shape(view, trunk, position, middle + 1)
        return Outline(end - position, {**attention_handles(view, core), **feed_forward}, residual=True)


def _passing(view: View, trunk: Row, position: int) -> int:
    """How many items from a position on are activations, normalisations or views."""
    count = 0
    while position + count < len(trunk) and (
        view.is_elementwise(trunk[position + count]) or is_view(trunk[position + count])
    ):
        count += 1
    return count


def _same_shape(view: View, trunk: Row, start: int, end: int) -> int:
    """The end of the block, behind the views that restore the dimensions of its input where there are such views."""
    dimensions = view.propagation.dimensions
    region = trunk[start]
    assert isinstance(region, Region)
    for further in range(end, len(trunk) + 1):
        if dimensions[item_output(trunk[further - 1])] == dimensions[region.fork]:
            return further
        if further == len(trunk) or not is_view(trunk[further]):
            break
    return end
