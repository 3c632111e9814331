"""ConvNeXtBlock: x + depthwise kxk, normalisation, two dense layers (Liu et al., 2022).

The dense layers are 1x1 convolutions, or matrices between two transpositions.
"""

from autotailor.ir.blocks.block import BlockTemplate, Outline, View, register_template, residual_paths
from autotailor.ir.blocks.region import Row


@register_template
class ConvNeXtBlock(BlockTemplate):
    """Its variables are the depthwise kernel, and the expand ratio: hidden over input width (4 in ConvNeXt)."""

    kind = "ConvNeXtBlock"
    order = 22

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        paths = residual_paths(trunk[position])
        if paths is None or view.weighted(paths[1]):
            return None
        inner = view.weighted(paths[0])
        if len(inner) != 3 or not view.is_depthwise(inner[0]) or not all(view.is_dense(n) for n in inner[1:]):
            return None
        handles = {**view.kernel_size(inner[:1]), **view.expand_ratio(inner[1:2], relative_to="in")}
        return Outline(1, handles, residual=True)
