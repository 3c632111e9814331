"""Chooses the SubNet of each budget: the candidate with the highest accuracy, by all that is known after measuring."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from autotailor.artifacts import atomic
from autotailor.ir.errors import AutoTailorError
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space
from autotailor.prediction.measured import Measured
from autotailor.search.budgets import Budgets, budget_limits
from autotailor.search.candidates import safe_candidates
from autotailor.search.config import SearchConfig
from autotailor.search.cost import COSTS, Cost
from autotailor.search.errors import SearchError
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import NONE, Further, all_limits
from autotailor.search.joint.reach import reach_all
from autotailor.search.joint.table import keeping, with_limits
from autotailor.search.robust.forecast import AS_PREDICTED, ROUNDING, LatencyForecast

ACCURACIES = ("accuracy_validation", "standard_error", "accuracy_posterior", "posterior_standard_error")
"""The columns of ``Measured``."""

if TYPE_CHECKING:
    import pandas as pd


def columns(kind: Cost) -> tuple[str, ...]:
    """The columns of ``candidates.csv`` where budgets limit a cost."""
    return (
        "budget",
        kind.budget,
        "subnet",
        *dict.fromkeys((kind.column, kind.upper)),
        "accuracy_predicted",
        *ACCURACIES,
        "chosen",
        "assignment",
    )


Accuracies = Mapping[str, Measured]
"""Maps a SubNet's id to its accuracy on the validation set."""
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


def choose(
    objectives: Objectives,
    front: Front,
    budgets: Budgets,
    measure: Measure,
    config: SearchConfig,
    forecast: LatencyForecast = AS_PREDICTED,
    further: Further = MappingProxyType({}),
) -> Choice:
    """The candidate of each budget with the highest posterior mean of accuracy; those of tighter budgets count, too.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        budgets: see ``budget_limits``.
        measure: called once, with the candidates of all budgets.
        config: number of candidates for each budget, and the seed of their draws.
        forecast: of measured costs; candidates meet their budgets with its confidence, see ``safe_candidates``.
        further: metrics that budgets limit beside the cost. Where no SubNet keeps the limits of such a budget, the
            nearest one that can be kept takes its place, with a warning.

    Raises:
        SearchError: a budget is invalid, or no SubNet costs so little.
    """
    asked = budget_limits(objectives, front, budgets, forecast)
    joint = reach_all(objectives, front, asked, all_limits(budgets, objectives.kind, further), config, forecast)
    limits = {name: joint[name].budget if name in joint else budget for name, budget in asked.items()}
    beside = {name: joint[name].limits if name in joint else NONE for name in asked}
    found = {
        name: safe_candidates(
            objectives,
            front,
            limit,
            name,
            config.candidates,
            config.seed,
            forecast,
            beside[name],
            joint[name].best if name in joint else None,
        )
        for name, limit in limits.items()
    }
    everyone = list(dict.fromkeys(subnet for subnets in found.values() for subnet in subnets))
    cost = {s: float(objectives.cost.predict(s.to_array())[0]) for s in everyone}
    upper = {s: forecast.of(s, value).quantile(forecast.confidence) for s, value in cost.items()}
    accuracies = measure(everyone)

    def best(name: str) -> SubNet:
        meets = (s for s in everyone if upper[s] <= limits[name] * (1 + ROUNDING) and beside[name].allow(s))
        within = list(meets) or found[name]
        return max(within, key=lambda s: (accuracies[s.id].posterior, -cost[s]))

    chosen = {name: best(name) for name in limits}
    listed = {name: list(dict.fromkeys([*subnets, chosen[name]])) for name, subnets in found.items()}
    costs = (cost, upper) if objectives.kind.is_measured else (cost,)
    table = _table(objectives, limits, listed, costs, accuracies, chosen)
    return Choice(chosen, with_limits(table, beside, objectives.space))


@dataclass(frozen=True, eq=False)
class Candidates:
    """The measured SubNets of ``candidates.csv``.

    Attributes:
        limits: name of a budget to the budget, in the unit of the cost.
        contests: name of a budget to all SubNets that meet the budget, candidates of other budgets included. The chosen
            one is always among them.
        accuracies: id of a SubNet to its accuracy on the validation set.
    """

    limits: Mapping[str, float]
    contests: Mapping[str, Sequence[SubNet]]
    accuracies: Accuracies


def read_candidates(path: Path, space: Space) -> Candidates:
    """Reads ``candidates.csv``, or ``confirmed.csv``, which says which SubNets have met which budget when measured.

    Raises:
        SearchError: the file is no table of candidates, or a SubNet is not in the space.
    """
    import pandas as pd

    try:
        table = pd.read_csv(path, dtype={"budget": str, "subnet": str}, float_precision="round_trip")
        assignments = dict(zip(table["subnet"], table["assignment"].astype(str), strict=True))
        subnets = {id_: SubNet.from_assignment(space, json.loads(text)) for id_, text in assignments.items()}
        (kind,) = (kind for kind in COSTS.values() if kind.budget in table)
        upper = dict(zip(table["subnet"], table[kind.upper].astype(float), strict=True))
        if "met" in table:
            table["chosen"] |= table["met"].astype(bool)
            upper = dict.fromkeys(subnets, math.inf)
        limits = dict(zip(table["budget"], table[kind.budget].astype(float), strict=True))
        named = set(table.loc[table["chosen"].astype(bool), ["budget", "subnet"]].itertuples(index=False, name=None))
        kept = keeping(table)
        known = zip(*(table[name].astype(float) for name in ACCURACIES), strict=True)
        accuracies = {id_: Measured(*values) for id_, values in zip(table["subnet"], known, strict=True)}
    except (OSError, ValueError, KeyError, AttributeError, AutoTailorError) as error:
        raise SearchError(f"{path} is no table of candidates of this space ({error}); run the rule search") from error
    contests = {
        name: [
            s
            for id_, s in subnets.items()
            if (upper[id_] <= limit * (1 + ROUNDING) and id_ in kept[name]) or (name, id_) in named
        ]
        for name, limit in limits.items()
    }
    return Candidates(limits, contests, accuracies)


def _table(
    objectives: Objectives,
    limits: Mapping[str, float],
    listed: Mapping[str, Sequence[SubNet]],
    costs: Sequence[Mapping[SubNet, float]],
    accuracies: Accuracies,
    chosen: Mapping[str, SubNet],
) -> pd.DataFrame:
    """``candidates.csv`` from the SubNets that are listed under each budget; ``costs`` are predicted, and upper."""
    import pandas as pd

    rows = [
        (
            name,
            limits[name],
            subnet.id,
            *(cost[subnet] for cost in costs),
            float(objectives.accuracy.predict(subnet.to_array())[0]),
            *astuple(accuracies[subnet.id]),
            subnet == chosen[name],
            subnet.to_json(),
        )
        for name, subnets in listed.items()
        for subnet in subnets
    ]
    return pd.DataFrame(rows, columns=list(columns(objectives.kind)))
