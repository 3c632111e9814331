"""InvertedResidual: 1x1 expansion, depthwise, linear 1x1 projection (Sandler et al., 2018).

The block may have a residual sum, whose shortcut may project (Tang et al., 2023), and a squeeze-and-excitation gate
(Howard et al., 2019). Without a residual sum the block is a plain stretch of the trunk, and ends at the projection,
which no activation follows.
"""

from collections.abc import Mapping

from autotailor.ir.blocks.block import BlockTemplate, Handle, Outline, View, register_template, residual_paths
from autotailor.ir.blocks.region import Region, Row
from autotailor.ir.graph import Node


@register_template
class InvertedResidual(BlockTemplate):
    """Its expand ratio is the inner width over the input width (6 in MobileNetV2)."""

    kind = "InvertedResidual"
    order = 20
    expands = True

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        paths = residual_paths(trunk[position])
        if paths is not None:
            main, shortcut = paths
            inner = view.weighted(main)
            handles = self._handles(view, inner)
            return Outline(1, handles, residual=not view.weighted(shortcut)) if self._fits(view, inner) else None
        length = self._chain(view, trunk, position)
        if not length:
            return None
        return Outline(length, self._handles(view, view.weighted(trunk[position : position + length])), residual=False)

    def _fits(self, view: View, inner: tuple[Node, ...]) -> bool:
        if not self.expands:
            return len(inner) == 2 and view.is_depthwise(inner[0]) and view.is_pointwise(inner[1])
        return (
            len(inner) == 3
            and view.is_pointwise(inner[0])
            and view.is_depthwise(inner[1])
            and view.is_pointwise(inner[2])
        )

    def _handles(self, view: View, inner: tuple[Node, ...]) -> Mapping[str, Handle]:
        kernel = view.kernel_size(node for node in inner if view.is_depthwise(node))
        return {**kernel, **view.expand_ratio(inner[:1], relative_to="in")} if self.expands else kernel

    def _chain(self, view: View, trunk: Row, position: int) -> int:
        """Length of the plain stretch, 0 where there is none."""
        needed = 3 if self.expands else 2
        end, inner = position, 0
        while end < len(trunk) and inner < needed:
            item = trunk[end]
            if isinstance(item, Region):
                if item.join.kind != "Mul":
                    return 0
            elif item.kind == "Conv":
                inner += 1
            elif not view.is_elementwise(item) and item.kind != "Pad":  # reflections fold into no convolution
                return 0
            end += 1
        if not isinstance(trunk[position], Node) or not self._fits(view, view.weighted(trunk[position:end])):
            return 0
        while end < len(trunk) and isinstance(node := trunk[end], Node) and node.kind == "BatchNormalization":
            end += 1
        activated = end < len(trunk) and view.is_elementwise(trunk[end])
        return 0 if activated else end - position


@register_template
class DepthwiseSeparable(InvertedResidual):
    """An inverted residual without expansion: depthwise, then linear 1x1; only the kernel can change."""

    kind = "DepthwiseSeparable"
    order = 21
    expands = False
