"""The limits of a question about a front (``peak_memory<=2``, ``accuracy>=90``), and the answer."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet
from autotailor.runs.folder import RunError
from autotailor.runs.known_metric import Estimate
from autotailor.runs.metrics import metric_name


@dataclass(frozen=True)
class Limit:
    """A bound of one metric.

    Attributes:
        metric: its name.
        value: in the metric's unit.
        is_lower: whether values below are refused; else values above.
    """

    metric: str
    value: float
    is_lower: bool = False

    def excess(self, values: FloatArray) -> FloatArray:
        """By what share of the bound each of the values ``[n]`` breaks it; 0 where the value keeps it."""
        over = (self.value - values) if self.is_lower else (values - self.value)
        return np.asarray(np.maximum(over, 0.0) / max(abs(self.value), 1e-12), dtype=np.float64)

    def __str__(self) -> str:
        return f"{self.metric}{'>=' if self.is_lower else '<='}{self.value:g}"


def read_limits(limits: str | Iterable[str] | None) -> tuple[Limit, ...]:
    """One limit or several, each as ``read_limit`` reads it.

    Raises:
        RunError: something among them is no limit.
    """
    if isinstance(limits, str):
        return (read_limit(limits),)
    if limits is not None and not isinstance(limits, Iterable):
        raise RunError(f"limits {limits!r}: expected a list such as ['peak_memory<=2']")
    return tuple(read_limit(text) for text in limits or ())


def read_limit(text: str) -> Limit:
    """A limit such as ``peak_memory<=2`` or ``accuracy>=90``.

    Raises:
        RunError: the text is no limit.
    """
    try:
        match = re.fullmatch(r"\s*(\w+)\s*(<=|>=)\s*([^<>=]+)", text)
        value = float(match[3])  # type: ignore[index]
        if not math.isfinite(value):
            raise ValueError("not a finite number")
        return Limit(metric_name(match[1]), value, match[2] == ">=")  # type: ignore[index]
    except (TypeError, ValueError) as error:
        raise RunError(
            f"limit {text!r}: expected METRIC<=NUMBER or METRIC>=NUMBER, such as 'peak_memory<=2'"
        ) from error


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
