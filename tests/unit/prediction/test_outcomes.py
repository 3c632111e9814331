"""Targets and their noise."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.ir.space.subnet import sample_distinct
from autotailor.prediction import Outcomes, PredictionError
from autotailor.prediction.outcomes import log_odds


def test_the_target_is_the_log_odds_against_the_largest_subnet(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    right = {base.id: np.arange(10) < 8, small.id: np.arange(10) < 5}
    found = Outcomes.of(world.net.space, [small, base, small], right, np.arange(10))
    assert found.subnets == (small,)
    np.testing.assert_allclose(found.target, [np.log(5.5 / 5.5) - np.log(8.5 / 2.5)])
    assert found.baseline == pytest.approx(np.log(8.5 / 2.5))


def test_a_subnet_that_answers_as_the_largest_has_no_drop_and_no_noise(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    answers = world.evaluate([base])[base.id]
    found = Outcomes.of(world.net.space, [small], {base.id: answers, small.id: answers}, world.groups)
    assert found.target[0] == 0
    assert found.covariance[0, 0] == pytest.approx(0)


def test_the_covariance_is_that_of_draws_of_base_images(world) -> None:
    found = world.outcomes(12)
    random = np.random.default_rng(0)
    targets = []
    images = found.groups.max() + 1
    copies = len(found.groups) // images
    for _ in range(400):
        drawn = (random.integers(images, size=images)[:, None] * copies + np.arange(copies)).ravel()
        reference = log_odds(found.reference[drawn].sum(), len(drawn))
        targets.append(log_odds(found.right[:, drawn].sum(axis=1), len(drawn)) - reference)
    drawn = np.cov(np.array(targets).T)
    noisy = np.sqrt(np.diag(drawn)) > 0.02
    np.testing.assert_allclose(np.diag(found.covariance)[noisy], np.diag(drawn)[noisy], rtol=0.3)
    assert np.corrcoef(found.covariance.ravel(), drawn.ravel())[0, 1] > 0.97


def test_shared_and_independent_variance_add_up_and_the_most_is_shared(world) -> None:
    found = world.outcomes(30)
    np.testing.assert_allclose(found.shared + found.independent, np.diag(found.covariance))
    assert (found.independent > 0).all()
    whole = found.observations.is_whole
    assert found.shared[whole].sum() > found.independent[whole].sum()


def test_the_level_is_what_all_log_odds_have_in_common_over_draws_of_base_images(world) -> None:
    found = world.outcomes(12)
    images, random = found.groups.max() + 1, np.random.default_rng(0)
    copies = len(found.groups) // images
    both = np.concatenate([found.reference[None], found.right])
    drawn = (random.integers(images, size=(400, images))[:, :, None] * copies + np.arange(copies)).reshape(400, -1)
    values = np.array([log_odds(both[:, images].sum(axis=1), len(images)) for images in drawn])
    assert np.var(values.mean(axis=1)) < found.level < np.var(values, axis=0).mean()


def test_drops_are_the_targets_of_single_modifications(world) -> None:
    found = world.outcomes(2)
    drops = found.observations.drops()
    assert list(drops) == [v.name for v in world.net.space]
    assert all(drops[v.name][v.default] == 0 for v in world.net.space)
    assert drops["resolution"][0] == found.target[found.subnets.index(world.singles()[1])]


def test_more_evaluations_join_the_known_ones(world) -> None:
    first = world.outcomes(3)
    more = sample_distinct(world.net.space, 6, np.random.default_rng(8))
    both = first.with_more(more, world.evaluate(more))
    assert set(both.subnets) == {*first.subnets, *more} - {world.net.largest()}
    np.testing.assert_array_equal(both.target[: len(first.subnets)], first.target)


def test_what_was_not_evaluated_is_named(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    right = world.evaluate([base, small])
    with pytest.raises(PredictionError, match=f"first {base.id}"):
        Outcomes.of(world.net.space, [small], {small.id: right[small.id]}, world.groups)
    with pytest.raises(PredictionError, match="3 images"):
        Outcomes.of(world.net.space, [small], right, np.arange(3))
    with pytest.raises(PredictionError, match="besides the largest"):
        Outcomes.of(world.net.space, [base], right, world.groups)
    with pytest.raises(PredictionError, match="single base image"):
        _ = Outcomes.of(world.net.space, [small], right, np.zeros(len(world.groups), dtype=int)).covariance
    with pytest.raises(PredictionError, match=r"resolution = .* alone"):
        Outcomes.of(world.net.space, [small], right, world.groups).observations.drops()
