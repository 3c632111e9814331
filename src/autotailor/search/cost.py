"""What a search minimises and budgets limit: latency on a device, or what the graph alone says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from autotailor.search.config import SearchError
from autotailor.search.metrics import METRICS
from autotailor.sections import Section
from autotailor.values import OneOf

if TYPE_CHECKING:
    from autotailor.ir.space.metric import Metric
    from autotailor.ir.supernet import SuperNet


BUDGET_SHARE, UPPER_SHARE = "budget_share", "upper_share"
"""Columns: budgets that are shares of the largest SubNet's cost, and the share of it that a measurement of a SubNet
exceeds with a small probability only."""


@dataclass(frozen=True)
class Cost:
    """A metric that a search minimises.

    Attributes:
        name: of the metric.
        title: for headings and messages.
        unit: of its values.
        column: of its values in tables.
        suffix: of keys and columns whose values are in its unit: ``budget_ms``, ``slack_ms``.
        count: the metric of a SuperNet; None where operators must be measured on a device.
    """

    name: str
    title: str
    unit: str
    column: str
    suffix: str
    count: Callable[[SuperNet], Metric] | None = None

    @property
    def budget(self) -> str:
        """Column of the budgets in ``candidates.csv``."""
        return f"budget_{self.suffix}"

    @property
    def upper(self) -> str:
        """Column of what a measurement exceeds with a small probability only; of the values where no device is."""
        return f"upper_{self.suffix}" if self.is_measured else self.column

    @property
    def expected(self) -> str:
        """Column of what the device is expected to take (``LatencyForecast.expected``); of the values where none is."""
        return f"{self.name}_{self.suffix}_expected" if self.is_measured else self.column

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of predictions, of what follows, and of what a measurement exceeds with a small probability only."""
        return (self.column, self.expected, self.upper, UPPER_SHARE) if self.is_measured else (self.column,)

    @property
    def reached(self) -> str:
        """Column of the values of exported networks: measured on the device, or said by the graph."""
        return f"{self.name}_{self.suffix}_measured" if self.is_measured else self.column

    @property
    def is_measured(self) -> bool:
        """Whether the metric comes from measurements on a device; else the graph says it, and no device is needed."""
        return self.count is None


class Counting(Section, of="device", error=SearchError):
    """Section ``device`` of the configuration where there is no device.

    Attributes:
        name: name in results and messages.
        cost: what budgets limit, a metric that the graph alone says: ``macs`` (millions of multiply-accumulate
            operations of one image) or ``parameters`` (millions).
    """

    name: str
    cost: Annotated[str, OneOf(listed=lambda: [cost.name for cost in costs().values() if not cost.is_measured])]


LATENCY: Cost = Cost("latency", "latency", "ms", "latency_ms_predicted", "ms")


def costs() -> dict[str, Cost]:
    """Everything that a search can minimise, by name: latency, and the metrics that the graph alone says."""
    counted = sorted((spec for spec in METRICS.values() if not spec.on_device), key=lambda spec: spec.name)
    others = (Cost(spec.name, spec.title, spec.unit, spec.column, spec.column, spec.count) for spec in counted)
    return {cost.name: cost for cost in (LATENCY, *others)}


def cost_of_device(section: Mapping[str, Any]) -> Cost:
    """What budgets limit for a section ``device`` of the configuration: latency, unless the key ``cost`` is set.

    Raises:
        SearchError: the cost is unknown, or stands beside keys of a device.
    """
    return _counted(section) if "cost" in section else LATENCY


def _counted(section: Mapping[str, Any]) -> Cost:
    return costs()[Counting.from_section(section, where=f"device {section.get('name', '?')}: device").cost]


def cost_of_metric(name: str, unit: str) -> Cost:
    """The cost with the name of a metric; for a metric that is not in ``costs`` a new one, with its name and unit."""
    column = f"{name}_{unit.lower()}"
    return costs().get(name, Cost(name, name, unit, column, column))
