"""Which network, and which SubNet of it, is the most accurate on each device within each budget."""

import json

import numpy as np
import pandas as pd

from autotailor.fleet.runs import Budget, Fleet, within
from autotailor.search.front import non_dominated
from autotailor.search.robust.forecast import ROUNDING

FRONT = ("device", "model", "subnet", "cost_predicted", "unit", "accuracy_predicted", "assignment")
BEST = (
    *("device", "budget", "unit", "asked_by", "model", "subnet", "cost_predicted", "accuracy_predicted", "is_best"),
    *("export", "export_cost", "export_accuracy", "is_best_export"),
)

EXPORTS = ("model", "device", "name", "subnet", "weights", "budget", "cost", "unit", "accuracy", "macs_m")


def united_front(fleet: Fleet) -> pd.DataFrame:
    """For each device, the SubNets of all models that no SubNet of any model beats in predicted cost and accuracy.

    Returns:
        A table with the columns ``FRONT``, by rising cost, and thus by rising accuracy; accuracies are those of
        inherited weights.
    """
    rows = []
    for device in fleet.devices:
        every = pd.concat([_front(fleet, model, device) for model in fleet.models], ignore_index=True)
        kept = non_dominated(every["cost_predicted"].to_numpy(), every["accuracy_predicted"].to_numpy())
        rows.append(every.iloc[kept])
    return pd.concat(rows, ignore_index=True)[list(FRONT)]


def _front(fleet: Fleet, model: str, device: str) -> pd.DataFrame:
    """The front of one pair, in the columns ``FRONT``."""
    front = fleet.of(model, device).pareto
    return pd.DataFrame(
        {
            "device": device,
            "model": model,
            "subnet": [subnet.id for subnet in front.subnets],
            "cost_predicted": front.cost,
            "unit": fleet.unit(device),
            "accuracy_predicted": front.accuracy,
            "assignment": [json.dumps(subnet.assignment) for subnet in front.subnets],
        }
    )


def best_within(fleet: Fleet) -> pd.DataFrame:
    """For each budget of each device, the best SubNet of every model, and the best of all models.

    Returns:
        A table with the columns ``BEST``. ``is_best`` marks the highest prediction of all models, ``is_best_export``
        the highest measured accuracy of all exports whose measured cost is within the budget. The columns of a model
        are empty where none of its SubNets is within the budget.
    """
    rows = [
        row
        for device in fleet.devices
        for budget in fleet.on_device(device)
        for row in _marked([_best(fleet, model, device, budget) for model in fleet.models])
    ]
    return pd.DataFrame(rows, columns=list(BEST))


def _best(fleet: Fleet, model: str, device: str, budget: Budget) -> dict[str, object]:
    """The best SubNet of one model within a budget, predicted and as exported."""
    run = fleet.of(model, device)
    line: dict[str, object] = {"device": device, "budget": budget.value, "unit": fleet.unit(device), "model": model}
    line["asked_by"] = f"{budget.model} {budget.name}"
    row = within(run, budget.value)
    if row is not None:
        line["subnet"] = run.pareto.subnets[row].id
        line |= {"cost_predicted": run.pareto.cost[row], "accuracy_predicted": run.pareto.accuracy[row]}
    reached = run.summary[run.cost.reached]
    kept = run.summary[(reached <= budget.kept * (1 + ROUNDING)) & (run.summary["name"] != "original")]
    if len(kept):
        export = kept.iloc[int(kept["accuracy_measured"].to_numpy().argmax())]
        line |= {"export": export["name"], "export_cost": export[run.cost.reached]}
        line["export_accuracy"] = export["accuracy_measured"]
    return line


def _marked(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """The rows of all models within one budget, the best ones marked; of equal ones the first."""
    for mark, column in (("is_best", "accuracy_predicted"), ("is_best_export", "export_accuracy")):
        values = np.array([row.get(column, -np.inf) for row in rows], dtype=np.float64)
        best = int(np.argmax(values)) if np.isfinite(values).any() else -1
        for number, row in enumerate(rows):
            row[mark] = number == best
    return rows


def exports(fleet: Fleet) -> pd.DataFrame:
    """The rows of every ``summary.csv`` in common columns, ``EXPORTS``.

    ``cost`` is what the device measured, else what is predicted; ``budget`` is its limit, empty where there is none.
    """
    return pd.concat([_of(fleet, model, device) for model, device in fleet.runs], ignore_index=True)


def _of(fleet: Fleet, model: str, device: str) -> pd.DataFrame:
    run = fleet.of(model, device)
    summary, reached = run.summary, run.cost.reached
    is_measured = summary[reached].notna().all()
    limits = {budget.name: budget.kept for budget in fleet.budgets(model, device)}
    return pd.DataFrame(
        {
            "model": model,
            "device": device,
            "name": summary["name"],
            "subnet": summary["subnet"],
            "weights": summary["weights"],
            "budget": summary["name"].map(limits),
            "cost": summary[reached] if is_measured else summary[run.cost.column],
            "unit": run.cost.unit,
            "accuracy": summary["accuracy_measured"],
            "macs_m": summary["macs_m"],
        }
    )
