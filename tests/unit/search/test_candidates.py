"""Candidates of a budget."""

import pytest

from autotailor.ir.space.subnet import largest, smallest, stack
from autotailor.search import Objectives, SearchConfig, SearchError, candidates, search
from autotailor.search.candidates import APART, CLOSE


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
    assert min(apart) >= APART[0]
    assert candidates(objectives, front, budget, 8, seed=0) == found


def test_where_few_subnets_are_so_different_candidates_may_be_alike(objectives: Objectives, front) -> None:
    least, most = (float(objectives.cost.predict(s(objectives.space).to_array())[0]) for s in (smallest, largest))
    budget = least + 0.03 * (most - least)
    found = candidates(objectives, front, budget, 6, seed=0)
    rows = stack(found)
    apart = [min((a != b).mean() for b in rows[:i]) for i, a in enumerate(rows) if i]
    assert len(set(found)) == 6
    assert (objectives.cost.predict(rows) <= budget).all()
    assert min(apart) < APART[0], "the budget leaves enough SubNets that differ much: the test shows nothing"
    assert candidates(objectives, front, budget, 3, seed=0) == found[:3], "those that differ most come first"


@pytest.mark.parametrize("share", [1.3, 6.0])
def test_a_budget_above_all_subnets_has_candidates_of_all_kinds(objectives: Objectives, front, share: float) -> None:
    found = candidates(objectives, front, budget_of(objectives, share), 6, seed=0)
    assert len(set(found)) == 6
    others = objectives.cost.predict(stack([subnet for subnet in found if subnet != smallest(objectives.space)]))
    assert others.min() >= CLOSE * budget_of(objectives, 1.0)


def test_one_candidate_trusts_the_prediction(objectives: Objectives, front) -> None:
    budget = budget_of(objectives, 0.6)
    assert candidates(objectives, front, budget, 1, seed=0) == [front.at(budget, "budget")]


def test_a_budget_out_of_reach_is_refused(objectives: Objectives, front) -> None:
    with pytest.raises(SearchError):
        candidates(objectives, front, 1e-9, 4, seed=0)
