"""Residual: any sum of two or more paths that no other template knows."""

from autotailor.ir.blocks.block import BlockTemplate, Outline, View, register_template
from autotailor.ir.blocks.region import Region, Row


@register_template
class Residual(BlockTemplate):
    """Its expand ratio scales every inner width together, relative to the output width."""

    kind = "Residual"
    order = 90

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        item = trunk[position]
        if not isinstance(item, Region) or item.join.kind != "Add" or item.paths is None:
            return None
        weighted = view.all_weighted((item,))
        if not weighted:
            return None
        length = 1 + view.trailing(trunk, position + 1)
        handles = {**view.kernel_size(weighted), **view.expand_ratio(weighted, "out")}
        identity = any(not view.all_weighted(path) for path in item.paths)
        return Outline(length, handles, residual=identity)
