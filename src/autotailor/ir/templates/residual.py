"""Residual: any residual sum that no other template knows."""

from __future__ import annotations

from autotailor.ir.block import BlockTemplate, Match, View, register_template, residual_paths
from autotailor.ir.region import Sequence


@register_template
class Residual(BlockTemplate):
    """Its expand ratio scales every inner width together, relative to the output width."""

    kind = "Residual"
    order = 90

    def match(self, view: View, trunk: Sequence, position: int) -> Match | None:
        paths = residual_paths(trunk[position])
        if paths is None:
            return None
        inner = view.weighted(paths[0])
        length = 1 + view.trailing(trunk, position + 1)
        return Match(length, view.handle(inner[:-1], relative_to="out"), residual=not view.weighted(paths[1]))
