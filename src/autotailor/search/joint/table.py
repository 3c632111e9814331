"""The limits beside the cost in ``candidates.csv``: two columns for each limited metric, only where a budget has some.

``NAME_predicted`` is the prediction of the row's SubNet, ``NAME_budget`` the limit of the row's budget, empty where the
budget has none.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.space.variable import Space
from autotailor.search.joint.limits import Limits
from autotailor.search.metrics import METRICS, Further
from autotailor.search.robust.forecast import ROUNDING

if TYPE_CHECKING:
    import pandas as pd


def predicted(name: str) -> str:
    """Column of a metric's predictions."""
    return f"{name}_predicted"


def budget(name: str) -> str:
    """Column of a metric's limits."""
    return f"{name}_budget"


def with_limits(table: pd.DataFrame, beside: Mapping[str, Limits], space: Space) -> pd.DataFrame:
    """The table with the columns of all limited metrics before its last column.

    Args:
        table: candidates, with the columns ``budget`` and ``assignment``.
        beside: name of each budget to its limits.
        space: of the SubNets.
    """
    metrics = {name: metric for each in beside.values() for name, metric in zip(each.names, each.metrics, strict=True)}
    if not metrics:
        return table
    rows = stack(SubNet.from_assignment(space, json.loads(text)) for text in table["assignment"])
    result, last = table.copy(), len(table.columns) - 1
    for number, (name, metric) in enumerate(metrics.items()):
        result.insert(last + 2 * number, predicted(name), metric.predict(rows))
        limits = [beside[each].named.get(name, np.nan) for each in table["budget"]]
        result.insert(last + 2 * number + 1, budget(name), limits)
    return result


def read_limits(path: Path, further: Further) -> dict[str, Limits]:
    """The limits beside the cost that the budgets of a file of candidates set, by name of the budget.

    Args:
        path: of ``candidates.csv``.
        further: the metrics that the budgets limit.
    """
    import pandas as pd

    first = pd.read_csv(path, dtype={"budget": str}).drop_duplicates("budget").set_index("budget")
    limits = {}
    for name, row in first.iterrows():
        named = {metric: float(row[budget(metric)]) for metric in further if budget(metric) in first}
        kept = {metric: value for metric, value in named.items() if not np.isnan(value)}
        limits[str(name)] = Limits(tuple(kept), tuple(further[metric] for metric in kept), tuple(kept.values()))
    return limits


def keeping(table: pd.DataFrame) -> dict[str, set[str]]:
    """Name of each budget to the ids of all SubNets of the table that keep its limits beside the cost."""
    first = table.drop_duplicates("subnet").set_index("subnet")
    names = {}
    for name, rows in table.groupby("budget", sort=False):
        kept = np.ones(len(first), dtype=bool)
        for metric in (metric for metric in METRICS if budget(metric) in table):
            limit = float(rows[budget(metric)].iloc[0])
            if not np.isnan(limit):
                kept &= first[predicted(metric)].to_numpy(dtype=np.float64) <= limit * (1 + ROUNDING)
        names[str(name)] = set(first.index[kept])
    return names
