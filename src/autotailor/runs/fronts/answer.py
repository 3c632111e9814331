"""The answer to a question about a front."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from autotailor.ir.space.subnet import SubNet
from autotailor.runs.fronts.limit import Limit
from autotailor.runs.known_metric import Estimate


@dataclass(frozen=True)
class Gap:
    """By how much a better SubNet than the front's can exist, at any limits that a SubNet of the front keeps.

    Attributes:
        metric: that the gap is in, in its unit.
        largest: the gap at any limit of the first of the other metrics; with three metrics, at the levels alone.
        between: the same at any limits of both of the other metrics.
        axis: the metric that has levels; None with two metrics.
        levels: limits of ``axis`` at which the front was searched.
    """

    metric: str
    largest: float = 0.0
    between: float = 0.0
    axis: str | None = None
    levels: tuple[float, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {**asdict(self), "levels": list(self.levels)}


@dataclass(frozen=True, eq=False)
class FrontAnswer:
    """SubNets that no other SubNet beats in all metrics, by rising first metric.

    Attributes:
        x: name of the first metric.
        y: name of the second.
        z: name of the third; None for a front of two metrics.
        limits: that all SubNets keep, as predicted.
        points: for each SubNet all its predictions, by name of the metric.
        subnets: the SubNets.
        is_exact: whether no other SubNet of the space beats one of these in all metrics.
        method: how the front was found.
        gap: what the front misses.
    """

    x: str
    y: str
    z: str | None
    limits: tuple[Limit, ...]
    points: tuple[Mapping[str, Estimate], ...]
    subnets: tuple[SubNet, ...]
    is_exact: bool
    method: str
    gap: Gap | None = None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; the sources of the metrics stand once, under ``metrics``."""
        metrics = {name: (each.unit, each.source) for point in self.points[:1] for name, each in point.items()}
        return {
            "x": self.x,
            "y": self.y,
            "z": self.z,
            "limits": [str(limit) for limit in self.limits],
            "exact": self.is_exact,
            "method": self.method,
            "gap": None if self.gap is None else self.gap.to_dict(),
            "metrics": {name: {"unit": unit, "source": source} for name, (unit, source) in metrics.items()},
            "points": [
                {
                    "subnet": subnet.id,
                    "assignment": subnet.assignment,
                    **{n: {"value": e.value, "standard_error": e.standard_error} for n, e in point.items()},
                }
                for subnet, point in zip(self.subnets, self.points, strict=True)
            ],
        }
