"""Sums from messages, and what the branch and bound proves where it has little time, little room or a gap to spare."""

import itertools

import numpy as np
import pytest

from autotailor.ir.space.link import LOGIT
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import canonical
from autotailor.search import Constraint, Objectives, solve
from autotailor.search.constrained import branches
from autotailor.search.constrained.cliques import best, reduce
from autotailor.search.constrained.program import Program
from autotailor.search.constrained.solver import Solver

SHARES = (0.75, 0.55)


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(2, 2, 1), seed=4)


@pytest.fixture(name="constraints", scope="module")
def constraints_fixture(objectives: Objectives, memory_of) -> list[Constraint]:
    (parameters,) = objectives.further
    return [Constraint(m) for m in (objectives.cost, parameters, memory_of(objectives.space, parameters))]


@pytest.fixture(name="everything", scope="module")
def everything_fixture(objectives: Objectives) -> np.ndarray:
    grid = itertools.product(*(range(len(variable.choices)) for variable in objectives.space))
    return np.unique(canonical(objectives.space, np.array(list(grid))), axis=0)


def limits(constraints: list[Constraint], everything: np.ndarray, share: float) -> np.ndarray:
    """A share of the way from the least value of each constraint to its highest."""
    values = np.stack([c.metric.predict(everything) for c in constraints])
    return np.asarray(values.min(axis=1) + share * np.ptp(values, axis=1))


def truth(objectives: Objectives, constraints: list[Constraint], everything: np.ndarray, share: float) -> float:
    """The highest accuracy within the limits, by brute force."""
    values = np.stack([c.metric.predict(everything) for c in constraints], axis=1)
    kept = (values <= limits(constraints, everything, share)).all(axis=1)
    return float(objectives.accuracy.predict(everything[kept]).max())


def test_the_least_sum_and_the_excesses_of_its_entries_are_the_sum_of_each_subnet(
    objectives: Objectives, constraints: list[Constraint], everything: np.ndarray
) -> None:
    program = Program(objectives.accuracy, constraints, 100_000)
    reduced = reduce(program.cliques, program.loss[None])
    entries = program.cliques.entries_of(everything)
    assert program.constant - program.losses(everything) == pytest.approx(objectives.accuracy.predict(everything))
    assert reduced.least + reduced.excess[0, entries].sum(axis=1) == pytest.approx(program.losses(everything))
    first = best(program.cliques, reduced.excess[0])
    assert program.losses(first[None])[0] == pytest.approx(program.losses(everything).min())


@pytest.mark.parametrize("share", SHARES)
def test_without_time_the_bound_holds_and_a_nearby_set_of_budgets_is_met(
    share: float, objectives: Objectives, constraints: list[Constraint], everything: np.ndarray
) -> None:
    found = Solver(objectives.accuracy, constraints, seconds=0.0).best(limits(constraints, everything, share))
    spent = np.array([c.metric.predict(found.row)[0] for c in constraints])
    assert (spent <= found.limits * (1 + 1e-9)).all()
    assert found.linear < found.bound
    assert found.bound >= truth(objectives, constraints, everything, share)
    assert found.raised_bound == 0.0


@pytest.mark.parametrize("share", SHARES)
def test_nodes_that_wait_are_looked_at_later(
    share: float,
    objectives: Objectives,
    constraints: list[Constraint],
    everything: np.ndarray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(branches, "WIDTH", 2)
    found = Solver(objectives.accuracy, constraints).best(limits(constraints, everything, share))
    assert found.linear == pytest.approx(truth(objectives, constraints, everything, share))
    assert found.bound == found.linear


@pytest.mark.parametrize("gap", [0.3, 3.0])
def test_a_gap_to_spare_is_reported_in_the_unit_of_the_objective(
    gap: float, objectives: Objectives, constraints: list[Constraint], everything: np.ndarray
) -> None:
    plain = objectives.accuracy
    linked = Metric("accuracy", "%", plain.space, plain.terms, 3.0, LOGIT)
    asked = limits(constraints, everything, 0.6)
    budgets = {c.key: float(value) for c, value in zip(constraints, asked, strict=True)}
    (found,) = solve(linked, constraints, [budgets], gap=gap)
    best_of_all = LOGIT.value(np.array([truth(objectives, constraints, everything, 0.6) - plain.constant + 3.0]))[0]
    assert found.value - 1e-9 <= best_of_all <= found.bound + 1e-9
    assert found.gap <= gap + 1e-9
