"""Branch: paths side by side that a Concat joins, such as Inception's, SqueezeNet's and ShuffleNet's modules."""

from autotailor.ir.blocks.block import BlockTemplate, Outline, View, register_template
from autotailor.ir.blocks.region import Region, Row


@register_template
class Branch(BlockTemplate):
    """Its expand ratio scales every inner width together, relative to the output width.

    Regions with sums inside are left to the templates of sums.
    """

    kind = "Branch"
    order = 91

    def recognise(self, view: View, trunk: Row, position: int) -> Outline | None:
        item = trunk[position]
        if not isinstance(item, Region) or item.join.kind != "Concat" or item.paths is None:
            return None
        inner = [part for path in item.paths for part in path if isinstance(part, Region)]
        weighted = view.all_weighted((item,))
        if any(region.join.kind == "Add" for region in inner) or not weighted:
            return None
        length = 1 + view.trailing(trunk, position + 1)
        handles = {**view.kernel_size(weighted), **view.expand_ratio(weighted, "out")}
        identity = any(not view.all_weighted(path) for path in item.paths)
        return Outline(length, handles, residual=identity)
