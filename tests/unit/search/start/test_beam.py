"""Beam search: neighbours against a walk over all modifications, and what a beam keeps."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import SubNet, largest, stack
from autotailor.ir.space.variable import Modification, Space, Variable
from autotailor.search import Objectives
from autotailor.search.start.beam import beam_search, best_at_budgets, distinct, neighbours


def rows(array: np.ndarray) -> set[tuple[int, ...]]:
    return {tuple(row) for row in array.tolist()}


def test_distinct_rows_are_in_the_order_of_their_numbers() -> None:
    rows_ = np.random.default_rng(0).choice([0, 1, 2, 255, 256, 300], (200, 3))
    np.testing.assert_array_equal(distinct(rows_), np.unique(rows_, axis=0))


def test_neighbours_are_one_modification_away(objectives: Objectives) -> None:
    space, rng = objectives.space, np.random.default_rng(0)
    some = [SubNet(space, tuple(rng.integers(0, len(v.choices)) for v in space)) for _ in range(3)]
    expected = {
        subnet.transform(Modification(v.name, choice)).indices for subnet in some for v in space for choice in v.choices
    }
    found = neighbours(space, stack(some))
    assert rows(found) == expected
    assert len(found) == len(expected)


@pytest.mark.parametrize("width", [1, 8])
def test_a_beam_leaves_the_largest_step_by_step_and_everything_is_faster(objectives: Objectives, width: int) -> None:
    found = beam_search(objectives, width)
    start = largest(objectives.space).to_array()[None]
    latency = objectives.cost.predict(found)
    assert len(rows(found)) == len(found) > 10
    assert rows(start) <= rows(found)
    assert (latency < objectives.cost.predict(start)).sum() == len(found) - 1
    reached = start
    while (more := rows(neighbours(objectives.space, reached)) & rows(found)) != rows(reached):
        reached = np.array(sorted(more))
    assert rows(reached) == rows(found)


def test_a_beam_of_one_takes_the_step_that_costs_least_for_each_millisecond() -> None:
    space = Space(tuple(Variable(name, "width", (1.0, 0.5), 0, least=1) for name in "abc"))

    def metric(name: str, lost: tuple[float, ...], constant: float) -> Metric:
        terms = tuple(Term((v.name,), np.array([0.0, -loss])) for v, loss in zip(space, lost, strict=True))
        return Metric(name, "", space, terms, constant)

    objectives = Objectives(metric("accuracy", (3.5, 1.0, 1.0), 90.0), metric("latency", (2.0, 1.0, 0.5), 10.0))
    assert rows(beam_search(objectives, 1)) == {(0, 0, 0), (0, 1, 0), (0, 1, 1), (1, 1, 1)}


@pytest.mark.parametrize("budgets", [1, 4, 9])
def test_the_best_at_each_budget_is_that_of_brute_force(objectives: Objectives, budgets: int) -> None:
    found = beam_search(objectives, 8)
    latency, accuracy = objectives.cost.predict(found), objectives.accuracy.predict(found)
    limits = np.linspace(latency.min(), latency.max(), budgets)
    limits[-1] = latency.max()
    best = best_at_budgets(objectives, found, budgets)
    expected = {accuracy[latency <= limit].max() for limit in limits}
    assert set(objectives.accuracy.predict(best).tolist()) == expected
    for row, value in zip(best, objectives.accuracy.predict(best), strict=True):
        own = objectives.cost.predict(row)[0]
        assert own == latency[accuracy == value].min()
