"""Latency budgets to the SubNets that are exported."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from autotailor.artifacts import read_json, write_json
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives

Budgets = int | Sequence[float | str]


def budget_names(budgets: Budgets) -> tuple[str, ...]:
    """Names of the SubNets that these budgets export, known before anything runs: ``budget_01`` ..."""
    count = budgets if isinstance(budgets, int) else len(budgets)
    return tuple(f"budget_{k:02d}" for k in range(1, count + 1))


def latency_budgets(objectives: Objectives, front: Front, budgets: Budgets) -> dict[str, float]:
    """Named latency budgets in ms.

    Args:
        objectives: the latency metric says what the largest SubNet takes.
        front: gives the other end of the reachable range, its fastest SubNet.
        budgets: a number n spreads n budgets evenly from the fastest SubNet (included) to the largest (left
            out, it is exported anyway), the tightest first; a list gives each budget in ms, or as ``"50%"``
            of the largest's latency.

    Raises:
        SearchError: a budget is none of these.
    """
    low, high = float(front.latency[0]), float(objectives.latency.predict(largest(front.space).to_array())[0])
    if isinstance(budgets, bool) or (isinstance(budgets, int) and budgets < 0):
        raise SearchError(f"export.budgets: {budgets!r}, expected a number of budgets or a list of them")
    if isinstance(budgets, int):
        values = [low + (high - low) * k / budgets for k in range(budgets)]
    else:
        values = [_budget_ms(budget, high) for budget in budgets]
    return dict(zip(budget_names(budgets), values, strict=True))


def _budget_ms(budget: float | str, largest_ms: float) -> float:
    """One budget of the configuration in ms."""
    if isinstance(budget, str):
        if match := re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*%\s*", budget):
            return largest_ms * float(match[1]) / 100
    elif not isinstance(budget, bool) and math.isfinite(budget) and budget > 0:
        return float(budget)
    raise SearchError(
        f"latency budget {budget!r}: expected a positive number of ms, or a share of the largest SubNet "
        f"such as '50%'; "
        "correct export.budgets in the configuration"
    )


def write_budgets(path: Path, named: Mapping[str, SubNet]) -> None:
    """Writes ``front.json``: the assignment of each SubNet to export, by name."""
    write_json(path, {"subnets": {name: subnet.assignment for name, subnet in named.items()}})


def read_budgets(path: Path, space: Space) -> dict[str, SubNet]:
    """Reads ``write_budgets``."""
    return {name: SubNet.from_assignment(space, a) for name, a in read_json(path)["subnets"].items()}
