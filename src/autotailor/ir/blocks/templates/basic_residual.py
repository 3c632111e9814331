"""BasicResidual: x + (kxk, kxk), then an activation (He et al., 2016, ResNet-18 and -34)."""

from autotailor.ir.blocks.block import ResidualTemplate, View, register_template
from autotailor.ir.graph import Node


@register_template
class BasicResidual(ResidualTemplate):
    """Its expand ratio is the inner width over the output width (1 in ResNet-18)."""

    kind = "BasicResidual"
    order = 10

    def fits(self, view: View, inner: tuple[Node, ...]) -> bool:
        return len(inner) == 2 and all(
            n.kind == "Conv" and not view.is_pointwise(n) and not view.is_depthwise(n) for n in inner
        )
