"""Search for the Pareto front of accuracy and latency (paper, section 4.3.2).

The names below are imported on first use, see ``autotailor.lazy``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from autotailor.lazy import attach
from autotailor.search.candidates import candidates

if TYPE_CHECKING:
    from autotailor.search.best import best_at
    from autotailor.search.budgets import budget_names, latency_budgets, read_budgets, write_budgets
    from autotailor.search.choice import Candidates, Choice, choose, read_candidates
    from autotailor.search.config import SearchConfig
    from autotailor.search.constrained.constraint import Constraint, Solution
    from autotailor.search.constrained.solve import solve
    from autotailor.search.elimination import ExactFront, exact_front
    from autotailor.search.errors import SearchError
    from autotailor.search.front import Front, Objectives
    from autotailor.search.optimizer import SearchResult, Yardstick, search

__all__ = [
    "Candidates",
    "Choice",
    "Constraint",
    "ExactFront",
    "Front",
    "Objectives",
    "SearchConfig",
    "SearchError",
    "SearchResult",
    "Solution",
    "Yardstick",
    "best_at",
    "budget_names",
    "candidates",
    "choose",
    "exact_front",
    "latency_budgets",
    "read_budgets",
    "read_candidates",
    "search",
    "solve",
    "write_budgets",
]

_HOMES = {
    "Candidates": "autotailor.search.choice",
    "Choice": "autotailor.search.choice",
    "Constraint": "autotailor.search.constrained.constraint",
    "ExactFront": "autotailor.search.elimination",
    "Front": "autotailor.search.front",
    "Objectives": "autotailor.search.front",
    "SearchConfig": "autotailor.search.config",
    "SearchError": "autotailor.search.errors",
    "SearchResult": "autotailor.search.optimizer",
    "Solution": "autotailor.search.constrained.constraint",
    "Yardstick": "autotailor.search.optimizer",
    "best_at": "autotailor.search.best",
    "budget_names": "autotailor.search.budgets",
    "choose": "autotailor.search.choice",
    "exact_front": "autotailor.search.elimination",
    "latency_budgets": "autotailor.search.budgets",
    "read_budgets": "autotailor.search.budgets",
    "read_candidates": "autotailor.search.choice",
    "search": "autotailor.search.optimizer",
    "solve": "autotailor.search.constrained.solve",
    "write_budgets": "autotailor.search.budgets",
}
__getattr__ = attach(__name__, _HOMES)
