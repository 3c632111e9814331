"""Search for the Pareto front of accuracy and latency, or another cost (paper, section 4.3.2).

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach
from autotailor.search.candidates import candidates

if TYPE_CHECKING:
    from autotailor.search.best import best_at
    from autotailor.search.budgets import (
        budget_limits,
        budget_names,
        budget_shares,
        read_budget,
        read_budgets,
        write_budgets,
    )
    from autotailor.search.candidates import undominated
    from autotailor.search.choice import Candidates, Choice, choose, read_candidates
    from autotailor.search.config import SearchConfig
    from autotailor.search.constrained.constraint import Constraint, Solution
    from autotailor.search.constrained.solve import solve
    from autotailor.search.constrained.sweep import ConstrainedFront, constrained_front
    from autotailor.search.cost import LATENCY, Cost, cost_of_device, costs
    from autotailor.search.elimination import ExactFront, exact_front
    from autotailor.search.errors import SearchError
    from autotailor.search.front import Front, Objectives
    from autotailor.search.joint.limits import check_budgets
    from autotailor.search.joint.table import read_limits
    from autotailor.search.metrics import METRICS, MetricSpec, further_metrics, needed_columns
    from autotailor.search.optimizer import SearchResult, Yardstick, search
    from autotailor.search.robust.forecast import AS_PREDICTED, LatencyForecast
    from autotailor.search.robust.learning import read_forecast

__all__ = [
    "AS_PREDICTED",
    "LATENCY",
    "METRICS",
    "Candidates",
    "Choice",
    "ConstrainedFront",
    "Constraint",
    "Cost",
    "ExactFront",
    "Front",
    "LatencyForecast",
    "MetricSpec",
    "Objectives",
    "SearchConfig",
    "SearchError",
    "SearchResult",
    "Solution",
    "Yardstick",
    "best_at",
    "budget_limits",
    "budget_names",
    "budget_shares",
    "candidates",
    "check_budgets",
    "choose",
    "constrained_front",
    "cost_of_device",
    "costs",
    "exact_front",
    "further_metrics",
    "needed_columns",
    "read_budget",
    "read_budgets",
    "read_candidates",
    "read_forecast",
    "read_limits",
    "search",
    "solve",
    "undominated",
    "write_budgets",
]

_HOMES = {
    "AS_PREDICTED": "autotailor.search.robust.forecast",
    "METRICS": "autotailor.search.metrics",
    "MetricSpec": "autotailor.search.metrics",
    "needed_columns": "autotailor.search.metrics",
    "costs": "autotailor.search.cost",
    "LATENCY": "autotailor.search.cost",
    "Candidates": "autotailor.search.choice",
    "Choice": "autotailor.search.choice",
    "ConstrainedFront": "autotailor.search.constrained.sweep",
    "Constraint": "autotailor.search.constrained.constraint",
    "Cost": "autotailor.search.cost",
    "ExactFront": "autotailor.search.elimination",
    "Front": "autotailor.search.front",
    "LatencyForecast": "autotailor.search.robust.forecast",
    "Objectives": "autotailor.search.front",
    "SearchConfig": "autotailor.search.config",
    "SearchError": "autotailor.search.errors",
    "SearchResult": "autotailor.search.optimizer",
    "Solution": "autotailor.search.constrained.constraint",
    "Yardstick": "autotailor.search.optimizer",
    "best_at": "autotailor.search.best",
    "budget_limits": "autotailor.search.budgets",
    "budget_shares": "autotailor.search.budgets",
    "budget_names": "autotailor.search.budgets",
    "constrained_front": "autotailor.search.constrained.sweep",
    "check_budgets": "autotailor.search.joint.limits",
    "choose": "autotailor.search.choice",
    "cost_of_device": "autotailor.search.cost",
    "exact_front": "autotailor.search.elimination",
    "further_metrics": "autotailor.search.metrics",
    "read_budget": "autotailor.search.budgets",
    "read_budgets": "autotailor.search.budgets",
    "read_candidates": "autotailor.search.choice",
    "read_limits": "autotailor.search.joint.table",
    "read_forecast": "autotailor.search.robust.learning",
    "search": "autotailor.search.optimizer",
    "solve": "autotailor.search.constrained.solve",
    "undominated": "autotailor.search.candidates",
    "write_budgets": "autotailor.search.budgets",
}
__getattr__ = attach(__name__, _HOMES)
