"""The genetic search against what it begins with, and equal SubNets among individuals."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from pymoo.core.duplicate import DefaultDuplicateElimination
from pymoo.core.population import Population

from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray, SubNet, canonical, largest, stack
from autotailor.ir.space.variable import Modification, Space, Variable
from autotailor.search import Front, Objectives, SearchConfig, exact_front
from autotailor.search.genetic import (
    EqualRows,
    beam_search,
    best_at_budgets,
    descents,
    distinct,
    evolve,
    genetic_front,
    initial_population,
    neighbours,
)
from autotailor.search.optimizer import hypervolume_ratio

QUICK = SearchConfig(population=40, generations=30)


def test_the_genetic_search_beats_its_start(objectives: Objectives) -> None:
    found = Front.of(objectives, beam_search(objectives, QUICK.beam_width), "beam")
    assert hypervolume_ratio(found, genetic_front(objectives, QUICK)) < 1


def test_each_generation_adds_to_what_was_predicted(objectives: Objectives) -> None:
    sizes = [len(evaluator.cache) for evaluator in evolve(objectives, QUICK)]
    assert len(sizes) == QUICK.generations
    assert 0 < sizes[0] <= QUICK.population
    assert all(0 <= more <= QUICK.population for more in np.diff(sizes))
    assert sizes[-1] > 5 * sizes[0]


def test_uniform_crossover_is_nearer_to_the_exact_front_than_simulated_binary_crossover(
    residual_space, objectives_of
) -> None:
    objectives = objectives_of(residual_space(4, 3, 1), seed=3)
    exact = exact_front(objectives).front
    shares = {
        eta: [
            hypervolume_ratio(genetic_front(objectives, replace(QUICK, crossover_eta=eta, seed=seed)), exact)
            for seed in range(2)
        ]
        for eta in (None, 3.0)
    }
    assert np.mean(shares[None]) > np.mean(shares[3.0])


def test_the_start_is_as_near_to_the_front_as_beam_and_descents_at_its_budgets(objectives: Objectives) -> None:
    config = SearchConfig(population=200)
    start = initial_population(objectives, config, np.random.default_rng(0))
    assert len(start) == len(np.unique(start, axis=0)) == config.population
    front = Front.of(objectives, start, "start")
    beam = Front.of(objectives, beam_search(objectives, config.beam_width), "beam")
    both = Front.of(objectives, np.concatenate([beam.indices, descents(objectives, 100)]), "both")
    assert hypervolume_ratio(front, beam) > 1
    assert hypervolume_ratio(front, both) > 0.995


@pytest.mark.parametrize("others", [0, 25])
def test_equal_rows_are_those_of_pymoo(others: int) -> None:
    random = np.random.default_rng(others)
    rows, other = Population.new(X=random.integers(0, 2, (60, 5))), Population.new(X=random.integers(0, 2, (others, 5)))
    expected = DefaultDuplicateElimination().do(rows, other).get("X")
    assert 0 < len(expected) < 60
    np.testing.assert_array_equal(EqualRows().do(rows, other).get("X"), expected)


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
