"""Evaluations along the front."""

from collections.abc import Sequence

import numpy as np
import pytest

from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray, SubNet, sample_distinct, stack
from autotailor.prediction import Rounds, evaluate_along_front
from autotailor.prediction.rounds import _fresh


@pytest.fixture(scope="module")
def subnets(world) -> IntArray:
    return stack(sample_distinct(world.net.space, 2000, np.random.default_rng(5)))


def run(world, subnets: IntArray, count: int, tolerance: float) -> tuple[Rounds, list[SubNet]]:
    cost = world.cost.predict(subnets)
    limits = np.quantile(cost, [0.2, 0.5, 0.8])
    asked: list[SubNet] = []

    def best(metric: Metric) -> IntArray:
        values = metric.predict(subnets)
        return subnets[[int(np.argmax(np.where(cost <= limit, values, -np.inf))) for limit in limits]]

    def evaluate(wanted: Sequence[SubNet]):
        asked.extend(wanted)
        return world.evaluate(wanted)

    found = evaluate_along_front(
        world.outcomes(12), world.cost, best, evaluate, count, tolerance, np.random.default_rng(0)
    )
    return found, asked


def test_rounds_evaluate_new_subnets_up_to_the_count(world, subnets: IntArray) -> None:
    found, asked = run(world, subnets, 12, 0.0)
    assert found.evaluated == len(asked) == len(set(asked)) == 12
    assert not set(asked) & {world.net.largest(), *world.outcomes(12).subnets}
    assert set(asked) <= set(found.outcomes.subnets)
    np.testing.assert_array_equal(found.model.observations.indices, found.outcomes.indices)
    assert found.regret.shape == (3,)


@pytest.mark.parametrize("budgets", [1, 2, 3, 4])
def test_each_budget_comes_first_equally_often(budgets: int, world, subnets: IntArray) -> None:
    outcomes = world.outcomes(12)
    known = {world.net.largest(), *outcomes.subnets}
    new = [row for row in subnets if SubNet.from_array(world.net.space, row) not in known]
    offers = np.array(new[: 12 * budgets]).reshape(12, budgets, -1)
    first = [
        int((offer == subnet.to_array()).all(1).argmax())
        for offer, subnet in zip(offers, _fresh(list(offers), outcomes), strict=True)
    ]
    assert np.bincount(first, minlength=budgets).tolist() == [12 // budgets] * budgets


def test_rounds_end_where_the_choice_is_certain_enough(world, subnets: IntArray) -> None:
    found, asked = run(world, subnets, 50, 100.0)
    assert (found.evaluated, asked) == (0, [])
    some, _ = run(world, subnets, 400, 0.5)
    assert 0 < some.evaluated < 400
    assert some.regret.max() <= 0.5


def test_rounds_lower_the_regret_of_the_choice(world, subnets: IntArray) -> None:
    before, _ = run(world, subnets, 0, 0.0)
    after, _ = run(world, subnets, 24, 0.0)
    assert after.regret.max() < before.regret.max()


def test_what_remains_is_named_by_budget_and_is_more_for_a_worse_choice(world, subnets: IntArray) -> None:
    found, _ = run(world, subnets, 12, 0.0)
    names = ("loose", "middle", "tight")
    predicted = {n: SubNet.from_array(world.net.space, row) for n, row in zip(names, found.choice, strict=True)}
    assert list(found.remaining(predicted).values()) == pytest.approx(found.regret)
    worse = found.remaining(dict.fromkeys(names, world.net.smallest()))
    assert list(worse) == list(names)
    assert all(worse[name] > left for name, left in zip(names, found.regret, strict=True))
    assert found.remaining({}) == {}


def test_the_evaluated_subnets_are_better_than_others_of_their_cost(world, subnets: IntArray) -> None:
    _, asked = run(world, subnets, 24, 0.0)
    cost, truth = world.cost.predict(subnets), world.linear([SubNet.from_array(world.net.space, r) for r in subnets])
    better = []
    for subnet, value in zip(asked, world.linear(asked), strict=True):
        near = np.abs(cost - world.cost.predict(subnet.to_array())[0]) < 0.1 * np.ptp(cost)
        better.append(np.mean(truth[near] < value))
    assert np.mean(better) > 0.75
