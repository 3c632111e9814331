"""The metrics of a SuperNet that budgets limit beside the cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from autotailor.search.budgets import Budgets
from autotailor.search.joint.limits import ENERGY, Further, named_in

if TYPE_CHECKING:
    from autotailor.ir.fusion.rules import FusionRules
    from autotailor.ir.metrics.memory import PeakMemory
    from autotailor.ir.space.metric import Metric
    from autotailor.ir.supernet import SuperNet

Known = Callable[[str], Mapping[str, float]]
"""A column of the LUT to its values by operator, such as ``LUT.known``."""


def further_metrics(
    net: SuperNet, budgets: Budgets, fusion: FusionRules | None = None, known: Known | None = None
) -> Further:
    """What the budgets name, as far as it can be predicted.

    Args:
        net: the SuperNet.
        budgets: of the configuration.
        fusion: of the device's runtime; None without a device, where energy and peak memory are not known.
        known: columns of the LUT; None without a device.
    """
    names = named_in(budgets)
    found: dict[str, Metric | PeakMemory] = {}
    if "parameters" in names:
        found["parameters"] = net.parameters()
    if "macs" in names:
        found["macs"] = net.macs()
    if fusion is not None and known is not None:
        if "peak_memory" in names:
            resident, workspace = known("resident_weight_mb"), known("workspace_mb")
            found["peak_memory"] = net.peak_memory(fusion, resident=resident, workspace=workspace)
        energies = known("energy_mj")
        if ENERGY in names and {operator.id for operator in net.operators(fusion=fusion)} <= set(energies):
            found[ENERGY] = net.energy(energies, fusion)
    return found
