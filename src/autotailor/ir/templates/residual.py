"""Residual: any residual sum that no other template knows."""

from __future__ import annotations

from autotailor.ir.block import ResidualTemplate, View, register_template
from autotailor.ir.graph import Node


@register_template
class Residual(ResidualTemplate):
    """Its expand ratio scales every inner width together, relative to the output width."""

    kind = "Residual"
    order = 90

    def fits(self, view: View, inner: tuple[Node, ...]) -> bool:
        return True
