"""The finished runs of a fleet: one for each pair of a network and a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas as pd

from autotailor.ir.errors import AutoTailorError
from autotailor.runs import Run, open_run
from autotailor.search import SearchError
from autotailor.search.robust.forecast import ROUNDING


class FleetError(AutoTailorError):
    """Runs cannot be compared."""


@dataclass(frozen=True)
class Budget:
    """A budget of one pair, which every network on the device is compared within.

    Attributes:
        model: whose configuration asks for the budget.
        name: of the budget, such as ``budget_01``.
        value: limit of what is measured, in the unit of the device's cost, in the session that the search knew.
        kept: the same in the session in which exports were measured, in which a share of the largest SubNet's latency
            is another number of milliseconds.
    """

    model: str
    name: str
    value: float
    kept: float


@dataclass(frozen=True, eq=False)
class Fleet:
    """Finished runs, all pairs of some models and some devices.

    Attributes:
        runs: by model and device.
    """

    runs: Mapping[tuple[str, str], Run]

    @classmethod
    def open(cls, folders: Sequence[Path]) -> Fleet:
        """Opens ``results/MODEL/DEVICE`` of every pair.

        Raises:
            FleetError: a pair is missing, or models have other data, so that their accuracies cannot be compared.
            RunError: a folder is not that of a finished run.
        """
        opened = [open_run(folder) for folder in folders]
        fleet = cls({(run.folder.model, run.folder.device): run for run in opened})
        pairs = {(model, device) for model in fleet.models for device in fleet.devices}
        if missing := sorted(pairs - set(fleet.runs)):
            raise FleetError(f"there is no run of {' on '.join(missing[0])}; compare all models on all devices")
        data = {model: fleet.of(model, fleet.devices[0]).folder.provenance.lineage["data"] for model in fleet.models}
        if others := [model for model in data if data[model] != data[fleet.models[0]]]:
            raise FleetError(
                f"{fleet.models[0]} and {others[0]} were trained and evaluated on other data, so that their accuracies "
                "cannot be compared; give both the same data, or run them one by one"
            )
        return fleet

    @cached_property
    def models(self) -> list[str]:
        """In the order of the runs."""
        return list(dict.fromkeys(model for model, _ in self.runs))

    @cached_property
    def devices(self) -> list[str]:
        """In the order of the runs."""
        return list(dict.fromkeys(device for _, device in self.runs))

    def of(self, model: str, device: str) -> Run:
        """The run of one pair."""
        return self.runs[model, device]

    def unit(self, device: str) -> str:
        """Unit of what budgets limit on a device."""
        return self.of(self.models[0], device).cost.unit

    def budgets(self, model: str, device: str) -> list[Budget]:
        """The budgets of one pair, by name."""
        run = self.of(model, device)
        first = pd.read_csv(run.folder.file("candidates.csv"), dtype={"budget": str}).drop_duplicates("budget")
        values = first.set_index("budget")[run.cost.budget].sort_index().astype(float)
        told = run.summary.set_index("name").get(run.cost.budget, values).reindex(values.index).fillna(values)
        rows = zip(values.index, values, told, strict=True)
        return [Budget(model, str(name), float(value), float(kept)) for name, value, kept in rows]

    def on_device(self, device: str) -> list[Budget]:
        """The budgets of all models on a device, by value; of equal ones the first."""
        every = [budget for model in self.models for budget in self.budgets(model, device)]
        first = {f"{budget.value:.9g}": budget for budget in reversed(every)}
        return sorted(first.values(), key=lambda budget: budget.value)


def within(run: Run, budget: float) -> int | None:
    """Row of the run's front with the most accurate SubNet whose measured cost is to be within a budget; None: none is.

    The SubNet meets the budget with the confidence that the run's own search has asked for. A budget that was raised to
    what the cheapest SubNet needs is met by this SubNet, however the way there and back was rounded.
    """
    try:
        return run.pareto.position(run.forecast.limit(budget) * (1 + ROUNDING))
    except SearchError:
        return None
