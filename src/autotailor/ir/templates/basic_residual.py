"""BasicResidual: x + (kxk, kxk), then an activation (He et al., 2016, ResNet-18 and -34)."""

from __future__ import annotations

from autotailor.ir.block import BlockTemplate, Match, View, register_template, residual_paths
from autotailor.ir.region import Sequence


@register_template
class BasicResidual(BlockTemplate):
    """Its expand ratio is the inner width over the output width (1 in ResNet-18)."""

    kind = "BasicResidual"
    order = 10

    def match(self, view: View, trunk: Sequence, position: int) -> Match | None:
        paths = residual_paths(trunk[position])
        if paths is None:
            return None
        inner = view.weighted(paths[0])
        if len(inner) != 2 or any(n.kind != "Conv" or view.is_pointwise(n) or view.is_depthwise(n) for n in inner):
            return None
        length = 1 + view.trailing(trunk, position + 1)
        return Match(length, view.handle(inner[:1], relative_to="out"), residual=not view.weighted(paths[1]))
