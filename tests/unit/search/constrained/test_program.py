"""The best SubNet under constraints equals that of HiGHS, on a space that is too large for brute force."""

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import Bounds, LinearConstraint, milp

from autotailor.ir.space.metric import Metric
from autotailor.search import Constraint, solve
from autotailor.search.constrained.program import Program
from autotailor.search.constrained.solve import limits_of


def highest(objective: Metric, constraints: list[Constraint], budgets: dict[str, float | str]) -> float:
    """The highest objective, from a mixed-integer linear program with a number, 0 or 1, for each entry of a clique."""
    program = Program(objective, constraints, 100_000)
    cliques = program.cliques
    rows, right = [], []
    for clique, place in enumerate(cliques.places):
        own = np.arange(cliques.starts[clique], cliques.starts[clique + 1])
        number = len(own) // cliques.choices[clique]
        for assignment in range(number):
            row = np.zeros(len(program.loss))
            row[own[assignment * cliques.choices[clique] :][: cliques.choices[clique]]] = 1.0
            if place is not None:
                parent = cliques.parents[clique]
                row[cliques.starts[parent] + np.flatnonzero(place == assignment)] -= 1.0
            rows.append(row)
            right.append(1.0 if place is None else 0.0)
    limits = limits_of(constraints, budgets)[program.owners] - program.constants
    found = milp(
        program.loss,
        integrality=np.ones(len(program.loss)),
        bounds=Bounds(0, cliques.allowed),
        constraints=[
            LinearConstraint(sparse.csr_array(np.array(rows)), right, right),
            LinearConstraint(program.costs, -np.inf, limits),
        ],
        options={"mip_rel_gap": 0.0},
    )
    return float(program.constant - found.fun)


@pytest.mark.parametrize(
    ("stages", "blocks", "with_memory", "share"), [(3, 2, True, 85), (4, 3, False, 75)], ids=["1e5", "1e8"]
)
def test_equals_highs(
    stages: int, blocks: int, with_memory: bool, share: int, residual_space, objectives_of, memory_of
) -> None:
    objectives = objectives_of(residual_space(stages, blocks, 1), seed=2)
    (parameters,) = objectives.further
    constraints = [Constraint(objectives.cost), Constraint(objectives_of(objectives.space, seed=8).cost, "phone")]
    constraints += [Constraint(parameters)]
    constraints += [Constraint(memory_of(objectives.space, parameters))] if with_memory else []
    budgets = {c.key: f"{share}%" for c in constraints}
    (found,) = solve(objectives.accuracy, constraints, [budgets])
    assert found.meets
    assert found.gap == pytest.approx(0, abs=1e-6)
    assert found.value == pytest.approx(highest(objectives.accuracy, constraints, budgets), abs=1e-5)
