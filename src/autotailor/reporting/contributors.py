"""The contributors to a SubNet's latency: the LUT's entry for each place of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.space.subnet import SubNet

if TYPE_CHECKING:
    import pandas as pd

    from autotailor.ir.blocks.stage import Stage
    from autotailor.ir.fusion.places import Place


class PlaceLike(Protocol):
    """One fused operator of the SuperNet, over the choices of the variables that it depends on."""

    @property
    def label(self) -> str:
        """Name of the place."""

    def feature(self, subnet: SubNet) -> OperatorFeature | None:
        """The place's operator in a SubNet; None where the place's block is removed."""


def describe(feature: OperatorFeature) -> str:
    """Short description of an operator: ``Conv 3×3``, ``Depthwise 5×5``, ``Gemm``."""
    if feature.kind != "Conv" or not feature.weights or len(feature.weights[0]) != 4:
        return feature.kind
    out, per_group, height, width = feature.weights[0]
    group = int(feature.attribute("group", 1))
    name = "Depthwise" if group > 1 and per_group == 1 and group == out else "Grouped" if group > 1 else "Conv"
    return f"{name} {height}×{width}"


def stages_of(places: Iterable[Place], stages: Iterable[Stage]) -> dict[str, str]:
    """The stage of each place by the place's name; places outside of all stages, such as the stem's, are left out."""
    named = {node.name: stage.name for stage in stages for block in stage.blocks for node in block.nodes}
    names = {place.label: next((named[n.name] for n in place.group.members if n.name in named), "") for place in places}
    return {label: stage for label, stage in names.items() if stage}


def contributors(
    places: Iterable[PlaceLike],
    latencies: Mapping[str, float],
    subnets: Mapping[str, SubNet],
    stages: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Latency of every place of some SubNets.

    Args:
        places: ``net.places(fusion)``.
        latencies: feature id to ms, ``LUT.latencies()``.
        subnets: SubNets by name, for instance from ``read_budgets``.
        stages: of places, by their names (``stages_of``).

    Returns:
        Columns name, subnet (id), stage ("" outside of all stages), place, kind, operator (id), latency_ms:
        ``contributors.csv``.
    """
    import pandas as pd

    rows = []
    places, stages = list(places), stages or {}
    for name, subnet in subnets.items():
        for place in places:
            feature = place.feature(subnet)
            if feature is not None:
                latency = float(latencies[feature.id])
                stage = stages.get(place.label, "")
                rows.append((name, subnet.id, stage, place.label, describe(feature), feature.id, latency))
    return pd.DataFrame(rows, columns=["name", "subnet", "stage", "place", "kind", "operator", "latency_ms"])
