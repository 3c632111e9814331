"""The genetic search against the beam search that it begins with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from autotailor.search import Front, Objectives, SearchConfig, exact_front
from autotailor.search.beam import beam_search
from autotailor.search.genetic import evolve, genetic_front
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
