"""Bottleneck: x + (1x1, kxk, 1x1), then an activation (He et al., 2016)."""

from autotailor.ir.blocks.block import ResidualTemplate, View, register_template
from autotailor.ir.graph import Node


@register_template
class Bottleneck(ResidualTemplate):
    """Its expand ratio is the inner width over the output width (0.25 in ResNet-50)."""

    kind = "Bottleneck"
    order = 10

    def fits(self, view: View, inner: tuple[Node, ...]) -> bool:
        if len(inner) != 3 or not (view.is_pointwise(inner[0]) and view.is_pointwise(inner[2])):
            return False
        return inner[1].kind == "Conv" and not view.is_pointwise(inner[1]) and not view.is_depthwise(inner[1])
