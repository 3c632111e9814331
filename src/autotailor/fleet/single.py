"""One SubNet of one network for the whole fleet, against the best SubNet of any network on each device.

The budgets of one model with the same name, one on each device, are a row of budgets. The single SubNet keeps all of
them: it is the best solution under one limit of cost for each device (``search.solve``). As accuracies are predicted
on each device by what the search has learnt there, the SubNet is looked for once with each device's prediction, and
the one with the highest mean is taken.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from autotailor.fleet.runs import Fleet, within
from autotailor.ir.space.subnet import SubNet
from autotailor.search import Constraint, SearchConfig, SearchError, solve

SINGLE = (
    *("budgets", "device", "budget", "unit", "own_model", "own_subnet", "own_accuracy"),
    *("single_model", "single_subnet", "single_cost", "single_accuracy", "loss"),
)


@dataclass(frozen=True, eq=False)
class Choice:
    """A SubNet for some devices.

    Attributes:
        model: whose SubNet it is.
        subnet: the SubNet.
        accuracies: predicted on each device, percent.
        costs: predicted on each device, in the unit of the device's cost.
    """

    model: str
    subnet: SubNet
    accuracies: Mapping[str, float]
    costs: Mapping[str, float]

    @property
    def mean(self) -> float:
        """Mean of the accuracies."""
        return float(np.mean(list(self.accuracies.values())))


def single_subnets(fleet: Fleet) -> pd.DataFrame:
    """What a fleet loses that runs one SubNet of one model on all devices.

    Returns:
        A table with the columns ``SINGLE``, one row for each row of budgets and device. ``loss`` is the accuracy in
        points that the single SubNet lacks on the device. Columns are empty where no SubNet keeps the budgets.
    """
    return pd.DataFrame(
        [row for name, budgets in rows_of_budgets(fleet).items() for row in _rows(fleet, name, budgets)],
        columns=list(SINGLE),
    )


def rows_of_budgets(fleet: Fleet) -> dict[str, dict[str, float]]:
    """The budgets of the same name of one model, by device; rows that say the same are left out.

    Returns:
        ``{"resnet_digits budget_01": {"host": 0.04, "android": 0.2}, ...}``
    """
    rows: dict[str, dict[str, float]] = {}
    seen = set()
    for model in fleet.models:
        by_device = {d: {each.name: each.value for each in fleet.budgets(model, d)} for d in fleet.devices}
        for name in by_device[fleet.devices[0]]:
            row = {device: budgets[name] for device, budgets in by_device.items() if name in budgets}
            said = tuple(f"{value:.9g}" for value in row.values())
            if len(row) == len(fleet.devices) and said not in seen:
                rows[f"{model} {name}"] = row
                seen.add(said)
    return rows


def best_single(fleet: Fleet, budgets: Mapping[str, float]) -> Choice | None:
    """The SubNet of any model with the highest mean accuracy that keeps the budgets of all devices; None: none does."""
    choices = [choice for model in fleet.models for choice in _of_model(fleet, model, budgets)]
    return max(choices, key=lambda choice: choice.mean, default=None)


def _of_model(fleet: Fleet, model: str, budgets: Mapping[str, float]) -> list[Choice]:
    """The best SubNets of one model that keep the budgets of all devices, one by each device's prediction."""
    runs = {device: fleet.of(model, device) for device in budgets}
    costs = {device: run.objectives.cost for device, run in runs.items()}
    constraints = [Constraint(cost, f"cost@{device}") for device, cost in costs.items()]
    limits = {f"cost@{device}": runs[device].forecast.limit(value) for device, value in budgets.items()}
    choices = []
    for run in runs.values():
        config = SearchConfig.from_section(run.configuration["search"])
        try:
            (solution,) = solve(run.objectives.accuracy, constraints, [limits], max_table=config.exact_table)
        except SearchError:  # the terms couple too many variables: another device's may not
            continue
        if solution.meets:
            row = solution.subnet.to_array()
            accuracies = {device: float(other.objectives.accuracy.predict(row)[0]) for device, other in runs.items()}
            spent = {device: float(cost.predict(row)[0]) for device, cost in costs.items()}
            choices.append(Choice(model, solution.subnet, accuracies, spent))
    return choices


def _rows(fleet: Fleet, name: str, budgets: Mapping[str, float]) -> list[dict[str, object]]:
    """One row of budgets, a row of the table for each device."""
    single = best_single(fleet, budgets)
    rows = []
    for device, budget in budgets.items():
        row: dict[str, object] = {"budgets": name, "device": device, "budget": budget, "unit": fleet.unit(device)}
        row |= own(fleet, device, budget, single)
        if single is not None:
            row |= {"single_model": single.model, "single_subnet": single.subnet.id}
            row |= {"single_cost": single.costs[device], "single_accuracy": single.accuracies[device]}
            row["loss"] = float(str(row["own_accuracy"])) - single.accuracies[device]
        rows.append(row)
    return rows


def own(fleet: Fleet, device: str, budget: float, single: Choice | None) -> dict[str, object]:
    """The most accurate SubNet of any model within a budget on one device; empty where there is none.

    It is on a front of the device, or the single SubNet of the fleet where no front has a better one.
    """
    best: dict[str, object] = {}
    if single is not None:
        best = {"own_model": single.model, "own_subnet": single.subnet.id, "own_accuracy": single.accuracies[device]}
    for model in fleet.models:
        run = fleet.of(model, device)
        row = within(run, budget)
        if row is not None and run.pareto.accuracy[row] > float(str(best.get("own_accuracy", -np.inf))):
            best = {"own_model": model, "own_subnet": run.pareto.subnets[row].id}
            best["own_accuracy"] = float(run.pareto.accuracy[row])
    return best
