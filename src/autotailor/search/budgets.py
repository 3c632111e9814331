"""Latency budgets, for each of which one SubNet is exported."""

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
    """Names of the exported SubNets, ``budget_01`` ..., which depend only on the number of budgets."""
    count = budgets if isinstance(budgets, int) else len(budgets)
    return tuple(f"budget_{k:02d}" for k in range(1, count + 1))


def latency_budgets(objectives: Objectives, front: Front, budgets: Budgets) -> dict[str, float]:
    """Named latency budgets in ms.

    Args:
        objectives: the latency metric gives the latency of the largest SubNet.
        front: its fastest SubNet is the lower end of the range.
        budgets: a number n spreads n budgets evenly from the fastest SubNet to the largest SubNet, the tightest first.
            The fastest SubNet is included; the largest is left out, because it is always exported. A list gives each
            budget in ms, or as a share such as ``"50%"`` of the largest SubNet's latency.

    Raises:
        SearchError: ``budgets`` is neither a number nor a list of budgets above 0.
    """
    low, high = float(front.latency[0]), float(objectives.latency.predict(largest(front.space).to_array())[0])
    if isinstance(budgets, bool) or (isinstance(budgets, int) and budgets < 0):
        raise SearchError(f"export.budgets: {budgets!r}, expected a number of budgets or a list of budgets")
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
    """Reads a file of ``write_budgets``."""
    return {name: SubNet.from_assignment(space, a) for name, a in read_json(path)["subnets"].items()}
