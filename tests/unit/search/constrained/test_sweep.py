"""Fronts of an objective and one or two costs within budgets, against all SubNets of the space, one by one."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import IntArray, canonical
from autotailor.search import Constraint, Objectives, SearchError, constrained_front
from autotailor.search.constrained.answers import Answers
from autotailor.search.constrained.sweep import ConstrainedFront
from autotailor.search.front import non_dominated


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(2, 2, 1), seed=4)


@pytest.fixture(name="constraints", scope="module")
def constraints_fixture(objectives: Objectives, memory_of) -> dict[str, Constraint]:
    (parameters,) = objectives.further
    metrics = (objectives.cost, parameters, memory_of(objectives.space, parameters))
    return {metric.name: Constraint(metric) for metric in metrics}


@pytest.fixture(name="everything", scope="module")
def everything_fixture(objectives: Objectives) -> IntArray:
    grid = itertools.product(*(range(len(variable.choices)) for variable in objectives.space))
    return np.unique(canonical(objectives.space, np.array(list(grid))), axis=0)


def missed(front: ConstrainedFront, costs: FloatArray, accuracy: FloatArray, limits: FloatArray) -> float:
    """By how much the front misses the best accuracy at the worst of some limits ``[n, costs]``.

    Only limits that some SubNet of the front keeps count.
    """
    worst = 0.0
    for limit in limits:
        kept = (front.spent <= limit + 1e-9).all(axis=1)
        if kept.any():
            worst = max(worst, accuracy[(costs <= limit).all(axis=1)].max() - front.values[kept].max())
    return worst


@pytest.mark.parametrize("name", ["latency", "peak_memory"])
def test_a_front_of_two_metrics_within_budgets_is_complete(
    name: str, objectives: Objectives, constraints: dict[str, Constraint], everything: IntArray
) -> None:
    limit = 2.9
    front = constrained_front(
        objectives.accuracy, [constraints[name]], [constraints["parameters"]], {"parameters": limit}, points=10_000
    )
    rows = everything[constraints["parameters"].metric.predict(everything) <= limit]
    cost, accuracy = constraints[name].metric.predict(rows), objectives.accuracy.predict(rows)
    best = non_dominated(cost, accuracy)
    assert front is not None
    assert front.values == pytest.approx(accuracy[best])
    assert front.spent[:, 0] == pytest.approx(cost[best])
    assert front.proven.all()
    assert front.gap == front.gap_between == 0.0


@pytest.mark.parametrize("points", [4, 9, 20])
def test_the_gap_of_an_unfinished_front_holds(
    points: int, objectives: Objectives, constraints: dict[str, Constraint], everything: IntArray
) -> None:
    front = constrained_front(objectives.accuracy, [constraints["latency"]], points=points)
    cost, accuracy = objectives.cost.predict(everything)[:, None], objectives.accuracy.predict(everything)
    assert front is not None
    assert front.gap > 0
    assert missed(front, cost, accuracy, np.sort(cost, axis=0)) <= front.gap + 1e-9


@pytest.mark.parametrize(("points", "levels"), [(10_000, 6), (8, 4)])
def test_a_front_of_three_metrics_holds_proven_subnets_and_its_gaps(
    points: int, levels: int, objectives: Objectives, constraints: dict[str, Constraint], everything: IntArray
) -> None:
    axes = [constraints["latency"], constraints["peak_memory"]]
    front = constrained_front(objectives.accuracy, axes, points=points, levels=levels)
    costs = np.stack([axis.metric.predict(everything) for axis in axes], axis=1)
    accuracy = objectives.accuracy.predict(everything)
    assert front is not None
    assert len(front.levels) == levels
    assert front.proven.all()
    for value, spent in zip(front.values, front.spent, strict=True):
        assert value == pytest.approx(accuracy[(costs <= spent + 1e-9).all(axis=1)].max())
    rng = np.random.default_rng(0)
    latencies = rng.choice(costs[:, 0], 200)
    at_levels = np.stack([latencies, rng.choice(front.levels, 200)], axis=1)
    anywhere = np.stack([latencies, rng.choice(costs[:, 1], 200)], axis=1)
    assert (front.gap == 0.0) == (points == 10_000)
    assert missed(front, costs, accuracy, at_levels) <= front.gap + 1e-7
    assert 0 < missed(front, costs, accuracy, anywhere) <= front.gap_between + 1e-7


@pytest.mark.parametrize("offset", [0.0, 20.0, 1e4, -1e4])
@pytest.mark.parametrize("axes", [1, 2])
def test_a_cost_that_hardly_varies_has_a_complete_front(
    offset: float,
    axes: int,
    objectives: Objectives,
    constraints: dict[str, Constraint],
    everything: IntArray,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the solver takes for rounding is a share of the limit, and exceeds a share of what the cost varies by."""
    asked, at = [], Answers.at

    def counted(answers: Answers, corner: FloatArray) -> int | None:
        asked.append(corner)
        assert len(asked) < 5000, "it asks without end"
        return at(answers, corner)

    monkeypatch.setattr(Answers, "at", counted)
    cost = replace(objectives.cost, constant=objectives.cost.constant + offset)
    swept = [Constraint(cost), constraints["parameters"]][:axes]
    front = constrained_front(objectives.accuracy, swept, points=500, levels=3)
    assert front is not None
    costs = np.stack([each.metric.predict(everything) for each in swept], axis=1)
    accuracy = objectives.accuracy.predict(everything)
    best = [accuracy[(costs <= spent + 1e-9 * (1 + abs(offset))).all(axis=1)].max() for spent in front.spent]
    assert front.values == pytest.approx(best)
    if axes == 1:
        assert len(front.rows) == len(non_dominated(costs[:, 0], accuracy))


def test_budgets_that_nothing_meets_have_no_front(objectives: Objectives, constraints: dict[str, Constraint]) -> None:
    found = constrained_front(
        objectives.accuracy, [constraints["latency"]], [constraints["parameters"]], {"parameters": 0.1}
    )
    assert found is None


def test_a_front_over_three_costs_is_refused(objectives: Objectives, constraints: dict[str, Constraint]) -> None:
    with pytest.raises(SearchError, match="front over 3 costs, expected one or two beside accuracy"):
        constrained_front(objectives.accuracy, list(constraints.values()))
