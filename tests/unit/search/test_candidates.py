"""Candidates of a budget."""

from __future__ import annotations

import pytest

from autotailor.ir.space.subnet import largest, smallest, stack
from autotailor.search import Objectives, SearchConfig, SearchError, candidates, search
from autotailor.search.candidates import APART


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(3, 2, 1), seed=1)


@pytest.fixture(scope="module")
def front(objectives: Objectives):
    return search(objectives, SearchConfig(population=20, generations=5)).front


def budget_of(objectives: Objectives, share: float) -> float:
    return share * float(objectives.cost.predict(largest(objectives.space).to_array())[0])


def test_candidates_fit_the_budget_and_differ(objectives: Objectives, front) -> None:
    budget = budget_of(objectives, 0.6)
    found = candidates(objectives, front, budget, 8, seed=0)
    assert found[:2] == [front.at(budget, "budget"), smallest(objectives.space)]
    assert len(set(found)) == len(found) > 3
    assert (objectives.cost.predict(stack(found)) <= budget).all()
    rows = stack(found)
    apart = [(a != b).mean() for i, a in enumerate(rows) for b in rows[:i]]
    assert min(apart) >= APART
    assert candidates(objectives, front, budget, 8, seed=0) == found


def test_one_candidate_trusts_the_prediction(objectives: Objectives, front) -> None:
    budget = budget_of(objectives, 0.6)
    assert candidates(objectives, front, budget, 1, seed=0) == [front.at(budget, "budget")]


def test_a_budget_out_of_reach_is_refused(objectives: Objectives, front) -> None:
    with pytest.raises(SearchError):
        candidates(objectives, front, 1e-9, 4, seed=0)
