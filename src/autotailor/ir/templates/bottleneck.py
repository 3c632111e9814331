"""Bottleneck: x + (1x1, kxk, 1x1), then an activation (He et al., 2016)."""

from __future__ import annotations

from autotailor.ir.block import BlockTemplate, Match, View, register_template, residual_paths
from autotailor.ir.region import Sequence


@register_template
class Bottleneck(BlockTemplate):
    """Its expand ratio is the inner width over the output width (0.25 in ResNet-50)."""

    kind = "Bottleneck"
    order = 10

    def match(self, view: View, trunk: Sequence, position: int) -> Match | None:
        paths = residual_paths(trunk[position])
        if paths is None:
            return None
        inner = view.weighted(paths[0])
        if len(inner) != 3 or not (view.is_pointwise(inner[0]) and view.is_pointwise(inner[2])):
            return None
        if inner[1].kind != "Conv" or view.is_pointwise(inner[1]) or view.is_depthwise(inner[1]):
            return None
        length = 1 + view.trailing(trunk, position + 1)
        return Match(length, view.handle(inner[:2], relative_to="out"), residual=not view.weighted(paths[1]))
