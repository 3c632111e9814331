"""What a search minimises and budgets limit: latency on a device, or what the graph alone says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from autotailor.search.errors import SearchError

if TYPE_CHECKING:
    from autotailor.ir.space.metric import Metric
    from autotailor.ir.supernet import SuperNet


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
        """Column of what a measurement of the metric exceeds with a small probability only."""
        return f"upper_{self.suffix}"

    @property
    def is_measured(self) -> bool:
        """Whether the metric comes from measurements on a device; else the graph says it, and no device is needed."""
        return self.count is None


LATENCY = Cost("latency", "latency", "ms", "latency_ms_predicted", "ms")
COSTS = {
    cost.name: cost
    for cost in (
        LATENCY,
        Cost("macs", "MACs", "M", "macs_m", "macs_m", methodcaller("macs")),
        Cost("parameters", "parameters", "M", "parameters_m", "parameters_m", methodcaller("parameters")),
    )
}
"""Everything that the configuration can name as ``device.cost``, by name."""


def cost_of_device(section: Mapping[str, Any]) -> Cost:
    """What the section ``device`` of the configuration asks budgets to limit: latency, unless its key ``cost`` is set.

    Raises:
        SearchError: the cost is unknown.
    """
    name = section.get("cost", LATENCY.name)
    if name not in COSTS:
        raise SearchError(
            f"device {section.get('name', '?')}: unknown cost {name!r}; known are {', '.join(COSTS)}: correct it in "
            "conf/device"
        )
    return COSTS[name]


def cost_of_metric(name: str, unit: str) -> Cost:
    """The cost with the name of a metric; for a metric that is not in ``COSTS`` a new one, with its name and unit."""
    column = f"{name}_{unit.lower()}"
    return COSTS.get(name, Cost(name, name, unit, column, column))
