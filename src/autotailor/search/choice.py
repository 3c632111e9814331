"""Chooses a SubNet for each budget by its accuracy with shared weights; measuring and polishing may choose another."""

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
from autotailor.search.alternatives import without_alternatives
from autotailor.search.budgets import budget_limits, budget_shares, forecasts, predicted_limit
from autotailor.search.candidates import Asked, safe_candidates, surest, trivial
from autotailor.search.config import SearchConfig, SearchError
from autotailor.search.cost import BUDGET_SHARE, UPPER_SHARE, Cost, costs
from autotailor.search.front import Front, Objectives
from autotailor.search.joint.limits import all_limits
from autotailor.search.joint.reach import reach_all
from autotailor.search.joint.table import keeping, with_limits
from autotailor.search.metrics import Budgets, Further
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
        *([BUDGET_SHARE] if kind.is_measured else []),
        "subnet",
        *kind.columns,
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
    evaluated: Sequence[SubNet] = (),
) -> Choice:
    """The candidate of each budget with the highest posterior mean of accuracy; those of tighter budgets count, too.

    Candidates are what the search offers, the best SubNet without alternatives of blocks, and whatever else meets the
    budget: what a person tries first (``trivial``), and what the run has evaluated. The table lists the best of these.

    Args:
        objectives: predicted accuracy and cost.
        front: of the search.
        budgets: see ``budget_limits``.
        measure: called once, with the candidates of all budgets.
        config: number of candidates that the search offers for each budget, and the seed of their draws; as many of
            the evaluated SubNets are listed at most.
        forecast: of measured costs; candidates meet their budgets with its confidence, see ``safe_candidates``.
        further: metrics that budgets limit beside the cost. Where no SubNet keeps the limits of such a budget, the
            nearest one that can be kept takes its place, with a warning.
        evaluated: SubNets that the run has evaluated before, so that ``measure`` knows them.

    Raises:
        SearchError: a budget is invalid, or no SubNet costs so little.
    """
    targets = _asked(objectives, front, budgets, config, forecast, further)
    safe = {each.name: safe_candidates(objectives, front, each, config.candidates, config.seed) for each in targets}
    for name, subnet in _unaltered(objectives, front, targets, config).items():
        safe[name] = list(dict.fromkeys([*safe[name], subnet]))
    before = dict.fromkeys([*trivial(objectives.space), *evaluated])
    searched = dict.fromkeys(subnet for subnets in safe.values() for subnet in subnets)
    cost = {s: float(objectives.cost.predict(s.to_array())[0]) for s in [*searched, *before]}
    also = {each.name: [subnet for subnet in before if each.is_met(subnet, cost[subnet])] for each in targets}
    everyone = list(dict.fromkeys([*searched, *(subnet for subnets in also.values() for subnet in subnets)]))
    accuracies = measure(everyone)

    def standing(subnet: SubNet) -> tuple[float, float]:
        return accuracies[subnet.id].posterior, -cost[subnet]

    def ranked(subnets: Sequence[SubNet]) -> list[SubNet]:
        return sorted(subnets, key=standing, reverse=True)

    def best(each: Asked) -> SubNet:
        within = [subnet for subnet in everyone if each.is_met(subnet, cost[subnet])] or safe[each.name]
        return max(within, key=standing)

    chosen = {each.name: best(each) for each in targets}
    listed = {
        name: list(dict.fromkeys([*subnets, *ranked(also[name])[: config.candidates], chosen[name]]))
        for name, subnets in safe.items()
    }
    shares = budget_shares(budgets, objectives.kind.name) if forecast.shares is not None else {}
    table = _table(objectives, targets, shares, listed, cost, forecast, accuracies, chosen)
    return Choice(chosen, with_limits(table, {each.name: each.limits for each in targets}, objectives.space))


def _unaltered(
    objectives: Objectives, front: Front, targets: Sequence[Asked], config: SearchConfig
) -> dict[str, SubNet]:
    """The best SubNet of each budget without alternatives of blocks, where the space has such."""
    given = without_alternatives(objectives, config)
    if given is None:
        return {}
    limits = {each.name: predicted_limit(front, each.budget, each.name, each.forecast) for each in targets}
    return {each.name: subnet for each in targets if (subnet := surest(given, limits[each.name], each))}


def _asked(
    objectives: Objectives,
    front: Front,
    budgets: Budgets,
    config: SearchConfig,
    forecast: LatencyForecast,
    further: Further,
) -> list[Asked]:
    """What each budget asks; where no SubNet keeps all its limits, the nearest budget that one keeps."""
    limits = budget_limits(objectives, front, budgets, forecast)
    joint = reach_all(objectives, front, limits, all_limits(budgets, objectives.kind, further), config, forecast)
    judging = forecasts(budgets, objectives.kind.name, forecast)
    return [
        Asked(name, reached.budget, judging[name], reached.limits, reached.best)
        if (reached := joint.get(name))
        else Asked(name, budget, judging[name])
        for name, budget in limits.items()
    ]


@dataclass(frozen=True, eq=False)
class Candidates:
    """The measured SubNets of ``candidates.csv``.

    Attributes:
        limits: name of a budget to the budget, in the unit of the cost.
        contests: name of a budget to all SubNets that meet the budget, candidates of other budgets included, from the
            lowest predicted cost to the highest. The chosen one is always among them.
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
        return _candidates_of(table, space)
    except (OSError, ValueError, KeyError, AttributeError, AutoTailorError) as error:
        raise SearchError(f"{path} is no table of candidates of this space ({error}); run the rule search") from error


def _candidates_of(table: pd.DataFrame, space: Space) -> Candidates:
    """What a table of candidates says; of ``confirmed.csv``, what was measured to meet a budget may be chosen, too."""
    (kind,) = (kind for kind in costs().values() if kind.budget in table)
    assignments = dict(zip(table["subnet"], table["assignment"].astype(str), strict=True))
    cost = dict(zip(table["subnet"], table[kind.column].astype(float), strict=True))
    rising = sorted(assignments, key=cost.__getitem__)
    subnets = {id_: SubNet.from_assignment(space, json.loads(assignments[id_])) for id_ in rising}
    may_stay = table["chosen"].astype(bool)
    if "met" in table:
        may_stay |= table["met"].astype(bool)
    named = set(table.loc[may_stay, ["budget", "subnet"]].itertuples(index=False, name=None))
    limits = dict(zip(table["budget"], table[kind.budget].astype(float), strict=True))
    values = zip(*(table[name].astype(float) for name in ACCURACIES), strict=True)
    accuracies = {id_: Measured(*values) for id_, values in zip(table["subnet"], values, strict=True)}
    within, kept = _within(table, kind), keeping(table)
    contests = {
        name: [s for id_, s in subnets.items() if (id_ in within[name] and id_ in kept[name]) or (name, id_) in named]
        for name in limits
    }
    return Candidates(limits, contests, accuracies)


def _within(table: pd.DataFrame, kind: Cost) -> dict[str, set[str]]:
    """Name of each budget to the ids of the SubNets that are expected to meet it; none where they were measured."""
    within: dict[str, set[str]] = {}
    for name, rows in table.groupby("budget", sort=False):
        first = rows.iloc[0]
        is_share = BUDGET_SHARE in table and not math.isnan(float(first[BUDGET_SHARE]))
        limit, upper = (first[BUDGET_SHARE], UPPER_SHARE) if is_share else (first[kind.budget], kind.upper)
        is_met = table[upper].astype(float) <= float(limit) * (1 + ROUNDING)
        within[str(name)] = set() if "met" in table else set(table.loc[is_met, "subnet"])
    return within


def outlook_of(forecast: LatencyForecast, subnet: SubNet, predicted: float) -> tuple[float, float, float]:
    """The columns ``Cost.expected``, ``Cost.upper`` and ``UPPER_SHARE`` of a SubNet with a predicted cost."""
    expected, upper = forecast.expected(predicted), forecast.of(subnet, predicted).quantile(forecast.confidence)
    shares = forecast.shares
    if shares is None or shares.whole is None:
        return expected, upper, math.nan
    return expected, upper, shares.of(subnet, predicted).quantile(shares.confidence) / shares.whole.latency_ms


def _table(
    objectives: Objectives,
    targets: Sequence[Asked],
    shares: Mapping[str, float],
    listed: Mapping[str, Sequence[SubNet]],
    cost: Mapping[SubNet, float],
    forecast: LatencyForecast,
    accuracies: Accuracies,
    chosen: Mapping[str, SubNet],
) -> pd.DataFrame:
    """``candidates.csv`` from the SubNets that are listed under each budget, some of which are shares."""
    import pandas as pd

    rows = [
        (
            each.name,
            each.budget,
            *([shares.get(each.name)] if objectives.kind.is_measured else []),
            subnet.id,
            cost[subnet],
            *(outlook_of(forecast, subnet, cost[subnet]) if objectives.kind.is_measured else ()),
            float(objectives.accuracy.predict(subnet.to_array())[0]),
            *astuple(accuracies[subnet.id]),
            subnet == chosen[each.name],
            subnet.to_json(),
        )
        for each in targets
        for subnet in listed[each.name]
    ]
    return pd.DataFrame(rows, columns=list(columns(objectives.kind)))
