"""The metrics of SubNets that budgets, questions, tables and the report know, each once.

A metric is one ``MetricSpec``. What is registered here is what budgets can limit, a column of ``summary.csv`` and of
the report, and, where the graph alone says it, what a search without a device minimises in place of latency
(``search/cost.py``). Accuracy (``prediction``) and latency are measured as well as predicted, and are none of them.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Union, cast

if TYPE_CHECKING:
    from autotailor.ir.fusion.rules import FusionRules
    from autotailor.ir.metrics.memory import PeakMemory
    from autotailor.ir.space.metric import Metric
    from autotailor.ir.supernet import SuperNet

Budget = float | str | Mapping[str, float | str]
"""A limit of the cost, or limits by name of the metric, the cost's among them (see ``joint.limits``)."""
Budgets = int | Sequence[Budget]
Predicted = Union["Metric", "PeakMemory"]
Further = Mapping[str, Predicted]
"""The metrics that budgets can limit beside the cost, by name."""
Known = Callable[[str], Mapping[str, float]]
"""A column of the LUT to its values by operator, such as ``LUT.column``."""


@dataclass(frozen=True)
class Sources:
    """What metrics are made from.

    Attributes:
        net: the SuperNet.
        fusion: of the device's runtime; None without a device.
        columns: columns of the LUT; None without a device.
        width: bytes of a number of an activation on the device.
    """

    net: SuperNet
    fusion: FusionRules | None = None
    columns: Known | None = None
    width: int = 4

    @property
    def rules(self) -> FusionRules:
        """The fusion rules of a device."""
        assert self.fusion is not None
        return self.fusion

    def column(self, name: str) -> Mapping[str, float]:
        """A column of the LUT; empty without a device."""
        return {} if self.columns is None else self.columns(name)


@dataclass(frozen=True)
class MetricSpec:
    """One metric; a lower value is better.

    Attributes:
        name: in budgets, questions and tables of candidates.
        title: in headings.
        unit: of its values.
        column: of its predictions in ``summary.csv``.
        make: makes it; called only where what it needs is there.
        source: where its numbers come from.
        on_device: whether it depends on the device, and not on the graph alone.
        needs: columns of the LUT that it needs of each operator.
        remedy: what such a column needs, as a sentence without its end.
        short: another name in questions.
        digits: format of its values in the report.
    """

    name: str
    title: str
    unit: str
    column: str
    make: Callable[[Sources], Predicted]
    source: str
    on_device: bool = False
    needs: tuple[str, ...] = ()
    remedy: str = ""
    short: str = ""
    digits: str = ".3f"

    def of(self, sources: Sources) -> Predicted | None:
        """The metric of a SuperNet; None where it cannot be predicted."""
        if (self.on_device or self.needs) and (sources.fusion is None or sources.columns is None):
            return None
        ids = {operator.id for operator in sources.net.operators(fusion=sources.rules)} if self.needs else set()
        return None if any(not ids <= set(sources.column(name)) for name in self.needs) else self.make(sources)

    def count(self, net: SuperNet) -> Metric:
        """The metric where the graph alone says it, which is a sum of terms."""
        return cast("Metric", self.make(Sources(net)))


def _energy(sources: Sources) -> Predicted:
    return sources.net.energy(sources.column("energy_mj"), sources.rules)


def _peak_memory(sources: Sources) -> Predicted:
    resident, workspace = sources.column("resident_weight_mb"), sources.column("workspace_mb")
    return sources.net.peak_memory(sources.rules, resident=resident, workspace=workspace, width=sources.width)


METRICS: dict[str, MetricSpec] = {}
"""The metrics by name, in the order of tables."""


def register(spec: MetricSpec) -> MetricSpec:
    """Adds a metric.

    Raises:
        ValueError: another metric has its name.
    """
    if spec.name in METRICS:
        raise ValueError(f"metric {spec.name!r} is registered twice; choose another name")
    METRICS[spec.name] = spec
    return spec


register(
    MetricSpec(
        "energy",
        "energy",
        "mJ",
        "energy_mj_predicted",
        _energy,
        source="lut.csv: power above idle of each kind of operator times its latency, summed",
        on_device=True,
        needs=("energy_mj",),
        remedy="energy needs a sensor on the device that can be read",
    )
)
PEAK_MEMORY = register(
    MetricSpec(
        "peak_memory",
        "peak memory",
        "MiB",
        "memory_mb_predicted",
        _peak_memory,
        source="lut.csv and the graph: resident weights, plus the largest sum of live activations and scratch memory",
        on_device=True,
        short="memory",
        digits=".1f",
    )
)
register(MetricSpec("parameters", "parameters", "M", "parameters_m", lambda own: own.net.parameters(), "the graph"))
register(MetricSpec("macs", "MACs", "M", "macs_m", lambda own: own.net.macs(), "the graph", digits=".2f"))


def all_metrics(sources: Sources, names: Container[str] = METRICS) -> Further:
    """Every metric of these names that can be predicted, by name."""
    made = {name: spec.of(sources) for name, spec in METRICS.items() if name in names}
    return {name: metric for name, metric in made.items() if metric is not None}


def further_metrics(
    net: SuperNet, budgets: Budgets, fusion: FusionRules | None = None, columns: Known | None = None, width: int = 4
) -> Further:
    """What the budgets name, as far as it can be predicted; the arguments are those of ``Sources``."""
    return all_metrics(Sources(net, fusion, columns, width), named_in(budgets))


def named_in(budgets: Budgets) -> set[str]:
    """The names of all limits of budgets with several limits."""
    each = [] if isinstance(budgets, int) else [budget for budget in budgets if isinstance(budget, Mapping)]
    return set().union(*each)


def needed_columns(budgets: Budgets) -> set[str]:
    """Columns of the LUT that the metrics need which budgets limit."""
    specs = [METRICS[name] for name in named_in(budgets) if name in METRICS]
    return {column for spec in specs for column in spec.needs}
