"""The exported SubNets of all runs, and the original networks, as they were measured."""

from __future__ import annotations

import pandas as pd

from autotailor.fleet.runs import Fleet

EXPORTS = ("model", "device", "name", "subnet", "weights", "budget", "cost", "unit", "accuracy", "macs_m")


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
