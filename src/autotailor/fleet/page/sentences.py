"""What the tables of a fleet say, in one sentence each."""

from __future__ import annotations

import pandas as pd

from autotailor.task.scores import Score


def answers(best: pd.DataFrame, score: Score) -> list[str]:
    """Which network to take, a sentence for each device.

    Args:
        best: a result of ``best.best_within``.
        score: what the share of right answers is called.
    """
    found = []
    for device, rows in best[best["is_best"]].groupby("device", sort=False):
        models = list(dict.fromkeys(rows["model"]))
        asked = best[best["device"] == device]["budget"].nunique()
        if len(models) == 1 and len(rows) == asked:
            within = "the budget" if asked == 1 else f"each of the {asked} budgets"
            found.append(f"On {device}, {models[0]} is the {score.best} network within {within}.")
        else:
            parts = [
                f"{model} {_range(part, rows['unit'].iloc[0])}" for model, part in rows.groupby("model", sort=False)
            ]
            found.append(f"On {device}, the {score.best} network is {' and '.join(parts)}.")
    return found


def _range(rows: pd.DataFrame, unit: str) -> str:
    """For which budgets a network is the best one."""
    values = [f"{value:.3g}" for value in rows["budget"]]
    return f"within {', '.join(values)} {unit}"


def cost_of_a_device(spent: pd.DataFrame) -> str:
    """What one more device takes.

    Args:
        spent: a result of ``effort.minutes``.
    """
    own = spent.drop(columns="", errors="ignore").sum()
    once = spent[""].sum() if "" in spent else 0.0
    return (
        f"The networks took {once:.1f} minutes once; one more device took {own.mean():.1f} minutes on average, from "
        f"{own.min():.1f} ({own.idxmin()}) to {own.max():.1f} ({own.idxmax()})."
    )


def loss_of_a_single(single: pd.DataFrame) -> str:
    """What a fleet with one SubNet for all devices loses.

    Args:
        single: a result of ``single.single_subnets``.
    """
    known = single.dropna(subset=["loss"])
    if known.empty:
        return "No single SubNet keeps the budgets of all devices."
    worst = known.iloc[int(known["loss"].to_numpy().argmax())]
    missing = single["budgets"].nunique() - known["budgets"].nunique()
    none = f" For {missing} rows of budgets no SubNet keeps all of them." if missing else ""
    return (
        f"One SubNet for all devices loses {known['loss'].mean():.1f} points on average, and at most "
        f"{worst['loss']:.1f} points, on {worst['device']}.{none}"
    )
