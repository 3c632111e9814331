"""Chooses the SubNet of each budget: the candidate with the highest measured accuracy."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotailor.artifacts import atomic
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space
from autotailor.search.budgets import Budgets, budget_limits
from autotailor.search.candidates import candidates
from autotailor.search.config import SearchConfig
from autotailor.search.cost import COSTS, Cost
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives

if TYPE_CHECKING:
    import pandas as pd


def columns(kind: Cost) -> tuple[str, ...]:
    """The columns of ``candidates.csv`` where budgets limit a cost."""
    return (
        "budget",
        kind.budget,
        "subnet",
        kind.column,
        "accuracy_predicted",
        "accuracy_validation",
        "standard_error",
        "chosen",
        "assignment",
    )


Accuracies = Mapping[str, tuple[float, float]]
"""Maps a SubNet's id to its accuracy on the validation set and the accuracy's standard error, both in percent."""
Measure = Callable[[Sequence[SubNet]], Accuracies]
"""Measures the accuracy of distinct SubNets."""


@dataclass(frozen=True, eq=False)
class Choice:
    """The chosen SubNets.

    Attributes:
        subnets: chosen SubNets by name of the budget.
        table: ``candidates.csv``, one row for each candidate of each budget, see ``columns``.
    """

    subnets: Mapping[str, SubNet]
    table: pd.DataFrame

    def write(self, path: Path) -> None:
        """Writes ``candidates.csv``; an interrupted write leaves no file."""
        with atomic(path) as temporary:
            self.table.to_csv(temporary, index=False)


def choose(objectives: Objectives, front: Front, budgets: Budgets, measure: Measure, config: SearchConfig) -> Choice:
    """The most accurate candidate within each budget. Candidates of tighter budgets count, too.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        budgets: see ``budget_limits``.
        measure: called once, with the candidates of all budgets.
        config: number of candidates for each budget, and the seed of their draws.

    Raises:
        SearchError: a budget is invalid, or no SubNet costs so little.
    """
    limits = budget_limits(objectives, front, budgets)
    found = {
        name: candidates(objectives, front, limit, config.candidates, config.seed) for name, limit in limits.items()
    }
    everyone = list(dict.fromkeys(subnet for subnets in found.values() for subnet in subnets))
    cost = {s: float(objectives.cost.predict(s.to_array())[0]) for s in everyone}
    accuracies = measure(everyone)

    def best(limit: float) -> SubNet:
        within = [s for s in everyone if cost[s] <= limit]
        return max(within, key=lambda s: (accuracies[s.id][0], -cost[s]))

    chosen = {name: best(limit) for name, limit in limits.items()}
    listed = {name: list(dict.fromkeys([*subnets, chosen[name]])) for name, subnets in found.items()}
    return Choice(chosen, _table(objectives, limits, listed, cost, accuracies, chosen))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The measured SubNets of ``candidates.csv``.

    Attributes:
        contests: name of a budget to all SubNets that meet the budget, candidates of other budgets included.
        accuracies: id of a SubNet to its accuracy on the validation set, percent.
    """

    contests: Mapping[str, Sequence[SubNet]]
    accuracies: Mapping[str, float]


def read_candidates(path: Path, space: Space) -> Candidates:
    """Reads ``candidates.csv``.

    Raises:
        SearchError: the file is no table of candidates, or a SubNet is not in the space.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"budget": str, "subnet": str}, float_precision="round_trip")
        assignments = dict(zip(table["subnet"], table["assignment"].astype(str), strict=True))
        subnets = {id_: SubNet.from_assignment(space, json.loads(text)) for id_, text in assignments.items()}
        (kind,) = (kind for kind in COSTS.values() if kind.budget in table)
        cost = dict(zip(table["subnet"], table[kind.column], strict=True))
        limits = dict(zip(table["budget"], table[kind.budget], strict=True))
        accuracies = dict(zip(table["subnet"], table["accuracy_validation"].astype(float), strict=True))
    except (OSError, ValueError, KeyError, AttributeError, AutoTailorError) as error:
        raise SearchError(f"{path} is no table of candidates of this space ({error}); run the rule search") from error
    contests = {name: [s for id_, s in subnets.items() if cost[id_] <= limit] for name, limit in limits.items()}
    return Candidates(contests, accuracies)


def _table(
    objectives: Objectives,
    limits: Mapping[str, float],
    listed: Mapping[str, Sequence[SubNet]],
    cost: Mapping[SubNet, float],
    accuracies: Accuracies,
    chosen: Mapping[str, SubNet],
) -> pd.DataFrame:
    """``candidates.csv`` from the SubNets that are listed under each budget."""
    import pandas as pd

    rows = [
        (
            name,
            limits[name],
            subnet.id,
            cost[subnet],
            float(objectives.accuracy.predict(subnet.to_array())[0]),
            *accuracies[subnet.id],
            subnet == chosen[name],
            subnet.to_json(),
        )
        for name, subnets in listed.items()
        for subnet in subnets
    ]
    return pd.DataFrame(rows, columns=list(columns(objectives.kind)))
