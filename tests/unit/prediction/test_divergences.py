"""Accuracy learnt from how far outputs are from the largest SubNet's, in a world where these distances add up."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.prediction import Accuracy, Outcome, Outcomes, PredictionError, fit, read_accuracy, write_accuracy
from autotailor.prediction.evaluations.storage import read_outcomes, write_outcomes
from autotailor.statistics import kendall_tau

IMAGES = 200
SLOPE = 2.5
"""Log-odds that a nat of divergence costs."""


def distances(world, subnets: list[SubNet]) -> FloatArray:
    """True divergences: a hundredth of a nat for what costs little in ``world``, and more for the rest."""
    rows = stack(subnets)
    effects = (world.effects[variable.name][rows[:, column]] for column, variable in enumerate(world.net.space))
    return np.asarray(-0.06 * sum(effects))


def evaluate(world, subnets: list[SubNet]) -> dict[str, Outcome]:
    """Few images, so that right answers say little of a SubNet, while divergences have little noise."""
    hard, found = np.random.default_rng(1).logistic(0.0, 1.0, IMAGES), {}
    for subnet, distance in zip(subnets, distances(world, subnets), strict=True):
        own = np.random.default_rng(int(subnet.id, 16) % 2**32)
        right = 2.5 - SLOPE * distance + hard + own.normal(0.0, 0.4, IMAGES) > 0
        apart = distance * own.gamma(4.0, 0.25, IMAGES) * own.lognormal(0.0, 0.05)
        found[subnet.id] = Outcome(right, apart.astype(np.float32), is_divergence=True)
    return found


@pytest.fixture(scope="module")
def outcomes(world) -> Outcomes:
    subnets = [*world.singles(), *sample_distinct(world.net.space, 8, np.random.default_rng(0))]
    return Outcomes.of(world.net.space, subnets, evaluate(world, subnets), np.arange(IMAGES))


@pytest.fixture(scope="module")
def others(world) -> list[SubNet]:
    return [*sample_distinct(world.net.space, 100, np.random.default_rng(9))]


def test_the_score_is_the_divergence_that_a_subnet_has_more(outcomes: Outcomes) -> None:
    more = outcomes.losses.mean(axis=1, dtype=np.float64) - outcomes.reference.losses.mean(dtype=np.float64)
    np.testing.assert_allclose(outcomes.score, -more, atol=2e-6)  # none counts as less than a millionth of a nat
    assert outcomes.observations.adds_up


def test_the_noise_of_the_score_is_that_of_draws_of_images(outcomes: Outcomes) -> None:
    said = outcomes.observations.parts[0]
    variance = outcomes.slope**2 * outcomes.losses.var(axis=1, ddof=1) / IMAGES
    np.testing.assert_allclose(np.square(said.correlated).sum(axis=1) + said.rest, variance, rtol=1e-4)


def test_divergences_order_subnets_that_right_answers_cannot_tell_apart(world, outcomes: Outcomes, others) -> None:
    truth, rows = -distances(world, others), stack(others)
    by_labels = replace(
        outcomes, reference=replace(outcomes.reference, is_divergence=False), losses=1 - outcomes.values
    )
    by_labels = replace(by_labels, reference=replace(by_labels.reference, losses=1 - outcomes.reference.values))
    found = kendall_tau(fit(outcomes, world.cost).metric().predict(rows), truth)
    assert found > 0.9
    assert kendall_tau(fit(by_labels, world.cost).metric().predict(rows), truth) < found - 0.1


def test_luck_of_right_answers_moves_no_other_subnet(world, outcomes: Outcomes, others) -> None:
    """Only the weight of divergences follows from right answers, and it is the same for all SubNets."""
    lucky = replace(outcomes, values=np.roll(outcomes.values, 1, axis=0))
    rows, orders = stack(others), list[FloatArray]()
    for each in (outcomes, lucky):
        seen = replace(each.observed(outcomes.slope), baseline=0.0)
        assert seen.parts[0].target == pytest.approx(outcomes.observations.parts[0].target)
        orders.append(fit(replace(each, floor=0.0), world.cost).metric().linear(rows))
    assert np.corrcoef(*orders)[0, 1] > 0.999


def test_intervals_hold_whatever_the_size_of_the_divergence(world, outcomes: Outcomes, others) -> None:
    model, rows = fit(outcomes, world.cost), stack(others)
    found = np.array([100 * each.values.mean() for each in evaluate(world, others).values()])
    noise = 100 * np.sqrt(np.median(outcomes.independent)) * found / 100 * (1 - found / 100)
    covered = np.abs(found - model.predict(rows)) < 1.2816 * np.hypot(model.standard_errors(rows), noise)
    assert covered.mean() > 0.65


def test_the_model_is_read_as_it_was_written(world, outcomes: Outcomes, others, tmp_path: Path) -> None:
    model, rows = fit(outcomes, world.cost), stack(others)
    write_accuracy(tmp_path / "accuracy.json", Accuracy.learnt(model))
    found = read_accuracy(tmp_path / "accuracy.json", world.cost).model
    np.testing.assert_allclose(found.predict(rows), model.predict(rows))
    np.testing.assert_allclose(found.metric_errors(rows), model.metric_errors(rows))
    np.testing.assert_allclose(found.standard_errors(rows), model.standard_errors(rows))


def test_evaluations_say_what_judged_them(world, outcomes: Outcomes, tmp_path: Path) -> None:
    write_outcomes(tmp_path / "e.csv", outcomes)
    assert "divergences" in (tmp_path / "e.csv").read_text(encoding="utf-8").splitlines()[0]
    found = read_outcomes(tmp_path / "e.csv", world.net.space, np.arange(IMAGES))
    assert all(each.is_divergence for each in found.by_id.values())
    np.testing.assert_array_equal(found.losses, outcomes.losses)


def test_what_two_judges_said_is_not_mixed(world, outcomes: Outcomes) -> None:
    by_id = dict(outcomes.by_id)
    last = outcomes.subnets[-1].id
    by_id[last] = replace(by_id[last], is_divergence=False)
    with pytest.raises(PredictionError, match=r"with one sensitivity\.judge"):
        Outcomes.of(outcomes.space, outcomes.subnets, by_id, outcomes.groups)


def test_divergences_that_rise_with_right_answers_are_left_aside(world, outcomes: Outcomes, others) -> None:
    upside_down = replace(outcomes, losses=outcomes.losses.max() - outcomes.losses)
    upside_down = replace(upside_down, reference=replace(outcomes.reference, losses=np.full(IMAGES, 9, np.float32)))
    assert upside_down.slope is None
    assert not upside_down.observations.adds_up
    assert np.isfinite(fit(upside_down, world.cost).metric().predict(stack(others))).all()
