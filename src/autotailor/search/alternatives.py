"""Alternatives of blocks in the search: which are never faster, and what is best without any."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import largest, stack
from autotailor.ir.space.variable import Modification
from autotailor.search.config import SearchConfig
from autotailor.search.elimination import exact_or_reason
from autotailor.search.front import Front, Objectives

BEYOND = 1e6
"""Cost of what is left out, as a multiple of the largest SubNet's: beyond every budget."""


def never_faster(cost: Metric) -> dict[Modification, float]:
    """Alternatives that cost no less than the operators that they stand in for, each alone in the unmodified network.

    Returns:
        Modification to its cost, in the metric's unit.
    """
    base = largest(cost.space)
    named = [Modification(v.name, c) for v in cost.space if not v.is_ordered for c in v.choices]
    costs = dict(zip(named, cost.predict(stack([base, *map(base.transform, named)]))[1:].tolist(), strict=True))
    whole = cost.predict(base.to_array())[0]
    return {each: value for each, value in costs.items() if value >= whole and base.transform(each) != base}


def without(cost: Metric, left_out: Collection[Modification]) -> Metric:
    """The metric under which no budget can be met with some modifications."""
    beyond = BEYOND * float(cost.predict(largest(cost.space).to_array())[0])
    terms = []
    for name in dict.fromkeys(each.variable for each in left_out):
        variable = cost.space[name]
        table = [beyond if Modification(name, choice) in left_out else 0.0 for choice in variable.choices]
        terms.append(Term((name,), np.array(table), variable.gate, f"{name}: left out"))
    return replace(cost, terms=(*cost.terms, *terms))


def without_alternatives(objectives: Objectives, config: SearchConfig) -> Front | None:
    """The exact front of the SubNets whose blocks all are the given network's, of whatever sizes.

    A space with alternatives has more SubNets than one without, for as many evaluations, and alternatives may look
    better before polishing than after. The best SubNets without them are therefore candidates as well.

    Returns:
        The front, which goes on above all costs with SubNets that have alternatives; None where no block has any, or
        where the search is not exact.
    """
    altered = [
        Modification(variable.name, choice)
        for variable in objectives.space
        if variable.kind == OPERATOR
        for choice in variable.choices
        if variable.index(choice) != variable.default
    ]
    if not altered:
        return None
    exact, _ = exact_or_reason(Objectives(objectives.accuracy, without(objectives.cost, altered)), config)
    return None if exact is None else exact.front
