"""Search: metrics to Pareto front (paper, section 4.3.2)."""

from autotailor.search.budgets import (
    budget_names,
    latency_budgets,
    read_budgets,
    write_budgets,
)
from autotailor.search.candidates import Measured, candidates, choose
from autotailor.search.config import SearchConfig
from autotailor.search.elimination import ExactFront, exact_front
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives
from autotailor.search.optimizer import SearchResult, Yardstick, search

__all__ = [
    "ExactFront",
    "Front",
    "Measured",
    "Objectives",
    "SearchConfig",
    "SearchError",
    "SearchResult",
    "Yardstick",
    "budget_names",
    "candidates",
    "choose",
    "exact_front",
    "latency_budgets",
    "read_budgets",
    "search",
    "write_budgets",
]
