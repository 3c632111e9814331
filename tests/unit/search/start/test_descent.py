"""Descents: local optima of weighted sums, against all SubNets and against all neighbours."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray, canonical
from autotailor.ir.space.variable import Space, Variable
from autotailor.search import Front, Objectives
from autotailor.search.optimizer import hypervolume_ratio
from autotailor.search.start.beam import beam_search, neighbours
from autotailor.search.start.descent import descents


def weights(objectives: Objectives, count: int) -> FloatArray:
    """Angles spread evenly between the objectives, which are in units of the range from smallest to largest SubNet."""
    space = objectives.space
    small = [v.choices.index(max(v.choices) if v.kind == "depth" else min(v.choices)) for v in space]
    costs, accuracies = (
        metric.linear(canonical(space, [small, [v.default for v in space]]))
        for metric in (objectives.cost, objectives.accuracy)
    )
    angles = [np.pi / 2 * (k + 1) / (count + 1) for k in range(count)]
    return np.array([[np.cos(a) / abs(np.ptp(costs)), np.sin(a) / abs(np.ptp(accuracies))] for a in angles])


def sums(objectives: Objectives, weighted: FloatArray, rows: IntArray) -> FloatArray:
    """Weighted sums of cost and negated accuracy ``[weights, n]``."""
    return weighted @ np.stack([objectives.cost.linear(rows), -objectives.accuracy.linear(rows)])


def test_without_couplings_descents_end_at_the_least_sums_of_all_subnets() -> None:
    random = np.random.default_rng(3)
    space = Space(tuple(Variable(name, "width", (1.0, 0.75, 0.5), 0, least=2) for name in "abcde"))

    def metric(name: str) -> Metric:
        terms = tuple(Term((v.name,), -np.sort(np.append(random.exponential(1.0, 2), 0.0))) for v in space)
        return Metric(name, "", space, terms, 50.0)

    objectives = Objectives(metric("accuracy"), metric("latency"))
    rows = np.array(list(itertools.product(range(3), repeat=5)))
    least = rows[np.argmin(sums(objectives, weights(objectives, 12), rows), axis=1)]
    np.testing.assert_array_equal(descents(objectives, 12), np.unique(least, axis=0))


def test_no_other_choice_of_one_variable_improves_what_a_descent_finds(objectives: Objectives) -> None:
    weighted = weights(objectives, 20)
    found = descents(objectives, 20)
    assert 3 < len(found) <= 20
    best_of_neighbours = np.stack(
        [sums(objectives, weighted, neighbours(objectives.space, row[None])).min(axis=1) for row in found], axis=1
    )
    is_least = sums(objectives, weighted, found) <= best_of_neighbours + 1e-9
    assert is_least.any(axis=0).all()


@pytest.mark.parametrize("seed", range(3))
def test_descents_come_nearer_to_the_front_than_the_beam_search(residual_space, objectives_of, seed: int) -> None:
    objectives = objectives_of(residual_space(4, 4, 2), seed=seed)
    fronts = [Front.of(objectives, rows, "") for rows in (beam_search(objectives, 2), descents(objectives, 100))]
    assert hypervolume_ratio(*fronts) < 1


def test_metrics_in_which_nothing_changes_are_no_obstacle() -> None:
    space = Space((Variable("a", "width", (1.0, 0.5), 0, least=1),))
    flat = Metric("accuracy", "%", space, (Term(("a",), np.zeros(2)),), 90.0)
    cost = Metric("latency", "ms", space, (Term(("a",), np.array([2.0, 1.0])),))
    assert descents(Objectives(flat, cost), 4).tolist() == [[1]]
