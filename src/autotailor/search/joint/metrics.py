"""The metrics of a SuperNet that budgets limit beside the cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from autotailor.search.budgets import Budgets
from autotailor.search.joint.limits import ENERGY, PEAK_MEMORY, Further, named_in

if TYPE_CHECKING:
    from autotailor.ir.fusion.rules import FusionRules
    from autotailor.ir.metrics.memory import PeakMemory
    from autotailor.ir.space.metric import Metric
    from autotailor.ir.supernet import SuperNet

Known = Callable[[str], Mapping[str, float]]
"""A column of the LUT to its values by operator, such as ``LUT.known``."""


def further_metrics(
    net: SuperNet, budgets: Budgets, fusion: FusionRules | None = None, known: Known | None = None, width: int = 4
) -> Further:
    """What the budgets name, as far as it can be predicted.

    Args:
        net: the SuperNet.
        budgets: of the configuration.
        fusion: of the device's runtime; None without a device, where energy and peak memory are not known.
        known: columns of the LUT; None without a device.
        width: bytes of a number of an activation on the device.
    """
    names = named_in(budgets)
    found: dict[str, Metric | PeakMemory] = {}
    if "parameters" in names:
        found["parameters"] = net.parameters()
    if "macs" in names:
        found["macs"] = net.macs()
    if fusion is not None and known is not None:
        if PEAK_MEMORY in names:
            found[PEAK_MEMORY] = peak_memory(net, fusion, known, width)
        if ENERGY in names and (metric := energy(net, fusion, known)) is not None:
            found[ENERGY] = metric
    return found


def peak_memory(net: SuperNet, fusion: FusionRules, known: Known, width: int = 4) -> PeakMemory:
    """Peak memory of an inference (MiB), with the LUT's resident weights and workspaces; ``width``: bytes a number."""
    resident, workspace = known("resident_weight_mb"), known("workspace_mb")
    return net.peak_memory(fusion, resident=resident, workspace=workspace, width=width)


def energy(net: SuperNet, fusion: FusionRules, known: Known) -> Metric | None:
    """Energy above idle (mJ); None where the LUT lacks that of an operator, as without a sensor."""
    energies = known("energy_mj")
    if not {operator.id for operator in net.operators(fusion=fusion)} <= set(energies):
        return None
    return net.energy(energies, fusion)
