"""Budgets of latency or of another cost, for each of which one SubNet is exported."""

import math
import re
from collections.abc import Mapping
from numbers import Real
from pathlib import Path

from autotailor.artifacts import read_json, write_json
from autotailor.ir.space.subnet import SubNet, largest
from autotailor.ir.space.variable import Space
from autotailor.search.config import SearchError
from autotailor.search.front import Front, Objectives
from autotailor.search.metrics import Budget, Budgets
from autotailor.search.robust.forecast import AS_PREDICTED, ROUNDING, LatencyForecast

_SHARE, _RATE = r"\s*(\d+(?:\.\d+)?)\s*%\s*", r"\s*(\d+(?:\.\d+)?)\s*/\s*s\s*"
_COUNT, _MILLIONS = r"\s*(\d+(?:\.\d+)?)\s*([kMGT])\s*", {"k": 1e-3, "M": 1.0, "G": 1e3, "T": 1e6}


EXPECTED, WORST = "expected", "worst"


def of_exits(budget: Budget, cost: str) -> dict[str, float | str]:
    """What a picture that may leave a network early may cost: in the mean (``expected``) and at most (``worst``).

    Args:
        budget: as ``{latency.expected: "60%", latency.worst: 5}``; the result is empty for one of whole networks.
        cost: name of the cost.
    """
    named = budget if isinstance(budget, Mapping) else {}
    return {key: named[f"{cost}.{key}"] for key in (EXPECTED, WORST) if f"{cost}.{key}" in named}


def all_of_exits(budgets: Budgets, cost: str) -> dict[str, dict[str, float | str]]:
    """The budgets that ``of_exits`` reads, by name."""
    each = [] if isinstance(budgets, int) else budgets
    found = zip(budget_names(budgets), (of_exits(budget, cost) for budget in each), strict=False)
    return {name: early for name, early in found if early}


def as_whole(budgets: Budgets, limits: Mapping[str, float]) -> Budgets:
    """The budgets, those among them replaced that limit what a network may cost as a whole.

    Args:
        budgets: of a run.
        limits: name of a budget of ``all_of_exits`` to what its SubNet may cost as a whole.
    """
    if isinstance(budgets, int) or not limits:
        return budgets
    return [limits.get(name, budget) for name, budget in zip(budget_names(budgets), budgets, strict=True)]


def budget_names(budgets: Budgets) -> tuple[str, ...]:
    """Names of the exported SubNets, ``budget_01`` ..., which depend only on the number of budgets."""
    count = budgets if isinstance(budgets, int) else len(budgets)
    return tuple(f"budget_{k:02d}" for k in range(1, count + 1))


def budget_limits(
    objectives: Objectives, front: Front, budgets: Budgets, forecast: LatencyForecast = AS_PREDICTED
) -> dict[str, float]:
    """Named budgets, in the unit of the cost: limits of what is measured.

    Args:
        objectives: the cost of the largest SubNet is the upper end of the range.
        front: its cheapest SubNet is the lower end of the range.
        budgets: a number n spreads n budgets evenly from the cheapest SubNet to the largest SubNet, the tightest
            first. The cheapest SubNet is included; the largest is left out, because it is always exported. A list
            gives each budget as ``read_budget`` reads it, or several limits by name, of which this is the cost's.
        forecast: of measured costs. The lower end of the range is what the cheapest SubNet keeps with the forecast's
            confidence, and the cost of the largest SubNet is the median of its forecast.

    Raises:
        SearchError: ``budgets`` is neither a number nor a list of budgets above 0.
    """
    cheapest = SubNet.from_array(front.space, front.indices[0])
    low = forecast.of(cheapest, float(front.cost[0])).quantile(forecast.confidence)
    high = forecast.expected(float(objectives.cost.predict(largest(front.space).to_array())[0]))
    if isinstance(budgets, bool) or (isinstance(budgets, int) and budgets < 0):
        raise SearchError(f"export.budgets: {budgets!r}, expected a number of budgets or a list of budgets")
    if isinstance(budgets, int):
        values = [low + max(high - low, 0.0) * k / budgets for k in range(budgets)]
    else:
        kind = objectives.kind
        named = (budget if isinstance(budget, Mapping) else {kind.name: budget} for budget in budgets)
        values = [read_budget(limits[kind.name], high, kind.unit) for limits in named]
    return dict(zip(budget_names(budgets), values, strict=True))


def budget_shares(budgets: Budgets, cost: str) -> dict[str, float]:
    """Named budgets that are a share of the largest SubNet's cost, as fractions.

    A share is of whatever the largest SubNet costs, so that each session that measures it says anew what the share
    comes to. Budgets with further limits are left out, because the search raises limits that no SubNet keeps at once.

    Args:
        budgets: as ``budget_limits`` takes them.
        cost: name of the cost.
    """
    each = [] if isinstance(budgets, int) else budgets
    alone = (budget.get(cost) if isinstance(budget, Mapping) and len(budget) == 1 else budget for budget in each)
    matches = (re.fullmatch(_SHARE, budget) if isinstance(budget, str) else None for budget in alone)
    named = zip(budget_names(budgets), matches, strict=False)
    return {name: float(share[1]) / 100 for name, share in named if share}


def forecasts(budgets: Budgets, cost: str, forecast: LatencyForecast) -> dict[str, LatencyForecast]:
    """Name of each budget to the forecast that it is judged by: that of shares for ``budget_shares``."""
    shares = budget_shares(budgets, cost)
    return {name: forecast.judging(shares=name in shares) for name in budget_names(budgets)}


def predicted_limit(front: Front, budget: float, name: str, forecast: LatencyForecast = AS_PREDICTED) -> float:
    """The largest predicted cost that meets a budget with the forecast's confidence, in the unit of the cost.

    Where only less confidence is left, it is the cost of the cheapest SubNet.

    Args:
        front: of the search.
        budget: of what is measured.
        name: of the budget.
        forecast: of measured costs.

    Raises:
        SearchError: the cheapest SubNet is above the budget, as predicted and by the median of its forecast.
    """
    limit = nearest_limit(front, budget, forecast)
    if limit < float(front.cost[0]):
        front.position(budget * (1 + ROUNDING), name)
    return limit


def nearest_limit(front: Front, budget: float, forecast: LatencyForecast = AS_PREDICTED) -> float:
    """As ``predicted_limit``, but where even the cheapest SubNet is above the budget, the limit is below its cost."""
    limit, cheapest = forecast.limit(budget) * (1 + ROUNDING), float(front.cost[0])
    is_reached = min(cheapest, forecast.expected(cheapest)) <= budget * (1 + ROUNDING)
    return max(limit, cheapest) if is_reached else limit


def read_budget(budget: float | str, largest: float, unit: str) -> float:
    """One budget in a metric's unit.

    Args:
        budget: a number in ``unit``; a share such as ``"50%"`` of the largest SubNet's value; a throughput such as
            ``"30/s"``, runs of the network in a second, where the unit is ms; or a count such as ``"300M"`` or
            ``"1.2G"``, where the unit is M (millions).
        largest: the value of the largest SubNet.
        unit: of the metric.

    Raises:
        SearchError: the budget is none of these, or not above 0.
    """
    if isinstance(budget, str):
        share, rate, count = (re.fullmatch(pattern, budget) for pattern in (_SHARE, _RATE, _COUNT))
        if share and float(share[1]) > 0:
            return largest * float(share[1]) / 100
        if rate and unit == "ms" and float(rate[1]) > 0:
            return 1000.0 / float(rate[1])
        if count and unit == "M" and float(count[1]) > 0:
            return float(count[1]) * _MILLIONS[count[2]]
    elif isinstance(budget, Real) and not isinstance(budget, bool) and math.isfinite(budget) and budget > 0:
        return float(budget)
    others = {"ms": ", or a throughput such as '30/s'", "M": ", or a count such as '300M' or '1.2G'"}
    raise SearchError(
        f"budget {budget!r}: expected a positive number of {unit}, or a share of the largest SubNet such as '50%'"
        f"{others.get(unit, '')}; "
        "correct export.budgets in the configuration, or the budgets that the search was asked for"
    )


def write_budgets(path: Path, named: Mapping[str, SubNet]) -> None:
    """Writes ``front.json``: the assignment of each SubNet to export, by name."""
    write_json(path, {"subnets": {name: subnet.assignment for name, subnet in named.items()}})


def read_budgets(path: Path, space: Space) -> dict[str, SubNet]:
    """Reads a file of ``write_budgets``."""
    return {name: SubNet.from_assignment(space, a) for name, a in read_json(path)["subnets"].items()}
