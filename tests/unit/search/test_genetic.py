"""The genetic search against what it begins with, and equal SubNets among individuals."""

from dataclasses import replace

import numpy as np
import pytest
from pymoo.core.duplicate import DefaultDuplicateElimination
from pymoo.core.population import Population

from autotailor.search import Front, Objectives, SearchConfig, exact_front
from autotailor.search.genetic import EqualRows, evolve, genetic_front, initial_population
from autotailor.search.optimizer import hypervolume_ratio
from autotailor.search.start.beam import beam_search, descents

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
