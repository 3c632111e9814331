"""TransformerBlock: attention, then feed-forward, each with its residual sum (Vaswani et al., 2017).

One block with the variables of both, because depth removes them together.
"""

from __future__ import annotations

from autotailor.ir.block import BlockTemplate, Match, View, register_template
from autotailor.ir.region import Sequence
from autotailor.ir.templates.attention import attention_handles, residual_attention
from autotailor.ir.templates.feed_forward import feed_forward_handles


@register_template
class TransformerBlock(BlockTemplate):
    """Its variables are those of Attention and FeedForward."""

    kind = "TransformerBlock"
    order = 30

    def match(self, view: View, trunk: Sequence, position: int) -> Match | None:
        core = residual_attention(view, trunk[position])
        if core is None:
            return None
        start = position + 1
        while start < len(trunk) and view.is_elementwise(trunk[start]):
            start += 1
        feed_forward = feed_forward_handles(view, trunk[start]) if start < len(trunk) else None
        if feed_forward is None:
            return None
        return Match(start - position + 1, {**attention_handles(view, core), **feed_forward}, residual=True)
