"""The contributors to a SubNet's latency: the LUT's entry for each place of the network."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.space.subnet import SubNet

if TYPE_CHECKING:
    import pandas as pd


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


def contributors(
    places: Iterable[PlaceLike], latencies: Mapping[str, float], subnets: Mapping[str, SubNet]
) -> pd.DataFrame:
    """Latency of every place of some SubNets.

    Args:
        places: ``net.places(fusion)``.
        latencies: feature id to ms, ``LUT.latencies()``.
        subnets: SubNets by name, for instance from ``read_budgets``.

    Returns:
        Columns name, subnet (id), place, kind, operator (id), latency_ms: ``contributors.csv``.
    """
    import pandas as pd

    rows = []
    places = list(places)
    for name, subnet in subnets.items():
        for place in places:
            feature = place.feature(subnet)
            if feature is not None:
                latency = float(latencies[feature.id])
                rows.append((name, subnet.id, place.label, describe(feature), feature.id, latency))
    return pd.DataFrame(rows, columns=["name", "subnet", "place", "kind", "operator", "latency_ms"])
