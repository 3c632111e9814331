"""SubNets that only guess: an upper bound is known of them, and the model believes no more of them than this."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction import Accuracy, Outcome, Outcomes, fit, read_accuracy, write_accuracy

CLASSES = 10


def ruined(world, images: int, scale: float) -> tuple[Outcomes, object]:
    """A world in which modifications ruin a network, as slices of a trained network do that nobody has trained.

    Returns:
        Evaluations of the single modifications and of 20 random SubNets, and a function from SubNets to their
        accuracies on many images, percent.
    """
    space = world.net.space

    def answers(subnets, count: int, seed: int) -> dict[str, Outcome]:
        random = np.random.default_rng(seed)
        hard = random.logistic(0.0, 1.0, count)
        margins = 2.0 + scale * world.linear(subnets)[:, None] + hard + random.normal(0.0, 0.3, (len(subnets), count))
        right = (margins > 0) | (random.random(margins.shape) < 1 / CLASSES)
        losses = -np.log(1 / CLASSES + (1 - 1 / CLASSES) / (1 + np.exp(-margins))).astype(np.float32)
        return {s.id: Outcome(*each) for s, each in zip(subnets, zip(right, losses, strict=True), strict=True)}

    subnets = [*world.singles(), *sample_distinct(space, 20, np.random.default_rng(0))]
    found = Outcomes.of(space, subnets, answers(subnets, images, 1), np.arange(images), 1 / CLASSES)
    return found, lambda asked: np.array([100 * each.values.mean() for each in answers(asked, 20_000, 2).values()])


@pytest.mark.parametrize("images", [100, 200, 1000])
def test_subnets_that_guess_do_not_make_modifications_look_cheap(world, images: int) -> None:
    outcomes, truth = ruined(world, images, 6.0)
    assert outcomes.is_guess.mean() > 0.3
    offered = sample_distinct(world.net.space, 1000, np.random.default_rng(3))
    cost = world.cost.predict(stack(offered))
    within = [s for s, macs in zip(offered, cost, strict=True) if macs <= 0.7 * world.cost.predict(_base(world))[0]]

    def promised(outcomes: Outcomes) -> tuple[float, float]:
        """What the best SubNet within 70 % is promised to lose against the largest, and what it loses."""
        metric = fit(outcomes, world.cost).metric()
        best = within[int(np.argmax(metric.predict(stack(within))))]
        whole, found = truth([world.net.largest(), best])
        return float(metric.predict(_base(world))[0] - metric.predict(best.to_array())[0]), float(whole - found)

    (said, lost), (said_naively, lost_naively) = promised(outcomes), promised(replace(outcomes, floor=0.0))
    assert said > 0, "no more is promised than the largest SubNet has"
    assert abs(said - lost) < 5
    assert lost <= lost_naively
    assert said_naively < lost_naively - 5


def _base(world) -> np.ndarray:
    return world.net.largest().to_array()


def test_no_prediction_is_below_guessing(world) -> None:
    outcomes, _ = ruined(world, 500, 6.0)
    found = fit(outcomes, world.cost).metric().predict(world.net.smallest().to_array())
    assert 10.0 <= found[0] < 15.0


def test_a_subnet_that_guesses_counts_where_the_model_believes_more_of_it(world) -> None:
    """The single drops are small here, so that their sum would promise much of each of the SubNets that guess."""
    outcomes, _ = ruined(world, 500, 1.0)
    random = np.random.default_rng(5)
    whole = outcomes.observations.is_whole
    right = np.where(whole[:, None], random.random(outcomes.values.shape) < 1 / CLASSES, outcomes.values)
    losses = np.where(whole[:, None], np.float32(np.log(CLASSES)), outcomes.losses)
    dead = replace(outcomes, values=right, losses=losses)
    assert dead.is_guess[whole].all()
    model = fit(dead, world.cost)
    assert not model.observations.is_loose.all()
    predicted = model.metric().predict(dead.indices[whole])
    assert predicted.mean() < 35.0 < fit(outcomes, world.cost).metric().predict(dead.indices[whole]).mean()


def test_where_the_largest_subnet_guesses_itself_log_odds_are_plain(world) -> None:
    outcomes, _ = ruined(world, 200, 6.0)
    random = np.random.default_rng(1)
    guess = Outcome(random.random(200) < 0.1, outcomes.reference.losses)
    found = {**outcomes.by_id, world.net.largest().id: guess}
    after = Outcomes.of(world.net.space, outcomes.subnets, found, outcomes.groups, 1 / CLASSES)
    assert after.floor == 0.0
    assert not after.is_guess.any()


def test_a_model_of_subnets_that_guess_comes_back_from_its_file(world, tmp_path: Path) -> None:
    outcomes, _ = ruined(world, 200, 6.0)
    model = fit(outcomes, world.cost)
    write_accuracy(tmp_path / "accuracy.json", Accuracy.learnt(model))
    found = read_accuracy(tmp_path / "accuracy.json", world.cost)
    rows = stack(sample_distinct(world.net.space, 20, np.random.default_rng(1)))
    assert found.model is not None
    assert found.model.observations.floor == outcomes.floor > 0
    np.testing.assert_allclose(found.metric.predict(rows), model.metric().predict(rows))
    np.testing.assert_allclose(found.model.metric_errors(rows), model.metric_errors(rows))


def test_a_later_evaluation_that_guesses_lowers_what_the_model_believes(world) -> None:
    outcomes, _ = ruined(world, 500, 1.0)
    model, (subnet,) = fit(outcomes, world.cost), sample_distinct(world.net.space, 1, np.random.default_rng(9))
    before = model.predict(subnet.to_array())[0]
    right = np.random.default_rng(0).random(500) < 0.1
    guess = Outcome(right, np.full(500, np.log(10), dtype=np.float32))
    found = {world.net.largest().id: outcomes.reference, subnet.id: guess}
    later = Outcomes.of(world.net.space, [subnet], found, outcomes.groups, 1 / CLASSES)
    after = model.updated(later)
    assert not after.observations.is_loose[-1], "the model believed more of it"
    assert after.predict(subnet.to_array())[0] < before - 5
