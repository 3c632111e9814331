"""Search for the Pareto front of accuracy and latency, or another cost (paper, section 4.3.2).

The names below are imported on first use, see ``autotailor.lazy``.
"""

from typing import TYPE_CHECKING

from autotailor.lazy import attach
from autotailor.search.candidates import candidates

if TYPE_CHECKING:
    from autotailor.search.alternatives import never_faster, without
    from autotailor.search.best import best_at
    from autotailor.search.budgets import (
        all_of_exits,
        as_whole,
        budget_limits,
        budget_names,
        budget_shares,
        read_budget,
        read_budgets,
        write_budgets,
    )
    from autotailor.search.candidates import undominated
    from autotailor.search.choice import Candidates, Choice, choose, read_candidates
    from autotailor.search.config import SearchConfig, SearchError
    from autotailor.search.constrained.program import Constraint, Solution
    from autotailor.search.constrained.solve import solve
    from autotailor.search.constrained.sweep import ConstrainedFront, constrained_front
    from autotailor.search.cost import LATENCY, Cost, cost_of_device, costs
    from autotailor.search.elimination import ExactFront, exact_front
    from autotailor.search.front import Front, Objectives
    from autotailor.search.joint.limits import check_budgets
    from autotailor.search.joint.table import read_limits
    from autotailor.search.metrics import METRICS, MetricSpec, further_metrics, needed_columns
    from autotailor.search.optimizer import SearchResult, Yardstick, search
    from autotailor.search.robust.forecast import AS_PREDICTED, LatencyForecast
    from autotailor.search.robust.learning import expected_from_others, read_forecast, read_link

__getattr__ = attach(__name__)
