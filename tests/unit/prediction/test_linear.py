"""SubNets that training favours."""

from dataclasses import replace

import numpy as np
import pytest

from autotailor.ir.space.subnet import sample_distinct, smallest, stack
from autotailor.ir.space.variable import Space
from autotailor.prediction import Outcome, Outcomes, fit
from autotailor.prediction.evaluations.noise import log_odds
from autotailor.prediction.functions import groups
from autotailor.prediction.linear import VARIANCE, by_targets, extra_misfit, favoured
from gated_space import SPACE


def test_the_smallest_subnet_at_each_resolution_is_favoured(world) -> None:
    space = world.net.space
    found = stack(favoured(space))
    assert len(found) == len(space["resolution"].choices)
    column = space.positions["resolution"]
    assert set(found[:, column]) == set(range(len(found)))
    expected = np.tile(np.delete(smallest(space).to_array(), column), (len(found), 1))
    np.testing.assert_array_equal(np.delete(found, column, axis=1), expected)
    extra = extra_misfit(space, stack([*world.singles(), *favoured(space)]))
    np.testing.assert_array_equal(extra, [0.0] * len(world.singles()) + [VARIANCE] * len(found))


def test_without_a_resolution_one_subnet_is_favoured() -> None:
    rest = Space(tuple(v for v in SPACE if v.name != "resolution" and v.gate is None))
    assert favoured(rest) == [smallest(rest)]


@pytest.fixture(scope="module")
def others(world):
    return sample_distinct(world.net.space, 200, np.random.default_rng(99))


def lifted(outcome: Outcome) -> Outcome:
    """More right answers, by about half a unit of log-odds, and losses that are smaller by as much."""
    right = outcome.values.copy()
    share = 1 / (1 + np.exp(-log_odds(right.sum(), len(right)) - 0.5))
    right[np.flatnonzero(outcome.values == 0)[: round(share * len(right)) - int(outcome.values.sum())]] = True
    return Outcome(right, outcome.losses * np.float32(np.exp(-0.35)))


def test_a_favoured_subnet_does_not_lead_other_predictions_astray(
    world, others, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = favoured(world.net.space)
    better = {id_: lifted(each) for id_, each in world.evaluate(small).items()}
    outcomes = world.outcomes(16).with_more(small, better)
    model = fit(outcomes, world.cost)
    found = model.predict(stack(small))
    truth, rows = world.linear(others), stack(others)
    off, error = np.std(model.metric().linear(rows) - truth), model.metric_errors(stack(small)).min()
    np.testing.assert_allclose(found, [100 * each.values.mean() for each in better.values()], atol=2.0)
    monkeypatch.setattr("autotailor.prediction.linear.VARIANCE", 0.0)
    usual = fit(outcomes, world.cost)
    assert np.std(usual.metric().linear(rows) - truth) > 1.05 * off
    assert usual.metric_errors(stack(small)).max() < error


def test_a_favoured_subnet_that_is_known_has_a_small_error(world) -> None:
    small = favoured(world.net.space)
    outcomes = world.outcomes(16)
    more = Outcomes.of(
        world.net.space,
        [*outcomes.subnets, *small],
        {**world.evaluate([world.net.largest(), *outcomes.subnets, *small])},
        world.groups,
    )
    before, after = (fit(each, world.cost).standard_errors(stack(small)) for each in (outcomes, more))
    assert (after < 0.5 * before).all()


def test_the_columns_of_other_drops_are_those_of_the_derivative(world) -> None:
    """The columns are linear in the drops, so that the derivative tells them exactly."""
    space, random = world.net.space, np.random.default_rng(2)
    seen, rows = world.outcomes(5).observations, stack(sample_distinct(world.net.space, 25, random))
    moved = random.normal(size=len(seen.indices))
    offered = [groups(space, observed.drops(), world.cost) for observed in (seen, _with(seen, moved))]
    made_of_drops = 0
    for before, after in zip(*offered, strict=True):
        found = by_targets(before, space, rows, seen.indices)
        change = after.columns(space, rows) - before.columns(space, rows)
        assert len(found) in (0, len(before.functions))
        made_of_drops += len(found)
        np.testing.assert_allclose((found @ moved).T if len(found) else 0.0 * change, change, atol=1e-9)
    assert made_of_drops > 1


def _with(seen, moved):
    """Observations whose log-odds have moved."""
    first, *others = seen.parts
    return replace(seen, parts=(replace(first, target=first.target + moved), *others))
