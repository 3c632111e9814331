import numpy as np
import pytest

from autotailor.exits.answers import Costs
from autotailor.exits.guarantee import Guarantee, guaranteed, p_value
from simulated_exits import answers

COSTS = Costs((2.0, 3.0, 5.0), (0.2, 0.3))


@pytest.mark.parametrize("harm", [0.01, 0.05, 0.3])
def test_a_true_hypothesis_is_rejected_in_no_more_cases_than_its_level(harm: float) -> None:
    random = np.random.default_rng(0)
    gain = harm - 0.01  # the mean loss is epsilon itself, where the test is hardest
    losses = random.choice([1.0, -1.0, 0.0], size=(500, 800), p=[harm, gain, 1 - harm - gain])
    rejected = np.mean([p_value(row, 0.01, 0.05) <= 0.05 for row in losses])
    assert rejected <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 500)


def test_losses_of_nothing_are_told_from_one_percent_by_some_hundred_pictures() -> None:
    assert p_value(np.zeros(400), 0.01, 0.05) < 0.05
    assert p_value(np.zeros(100), 0.01, 0.05) > 0.05


def test_the_guarantee_breaks_in_at_most_one_of_20_splits() -> None:
    promise = Guarantee(epsilon=0.02, delta=0.05)
    population = answers(100_000, 1)
    broken, found = 0, 0
    for seed in range(60):
        sample = np.random.default_rng(seed).choice(len(population), 1500, replace=False)
        policy = guaranteed(population.of(sample), COSTS, promise, seed)
        if policy is not None:
            found += 1
            loss = population.right[:, -1].mean() - policy.right(population).mean()
            broken += loss > promise.epsilon
            assert policy.expected < COSTS.whole
    assert found > 40
    assert broken / 60 <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 60)


def test_few_pictures_promise_nothing() -> None:
    assert guaranteed(answers(60, 0), COSTS, Guarantee(epsilon=0.01)) is None
