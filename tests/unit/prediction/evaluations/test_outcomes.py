"""Targets and their noise."""

import numpy as np
import pytest

from autotailor.ir.space.subnet import sample_distinct
from autotailor.prediction import Outcome, Outcomes, PredictionError
from autotailor.prediction.evaluations import outcomes
from autotailor.prediction.evaluations.noise import LEAST_LOSS, log_odds


def answered(right: np.ndarray) -> Outcome:
    """An outcome with the same loss for every image."""
    return Outcome(right, np.ones(len(right), dtype=np.float32))


def test_the_target_is_the_log_odds_against_the_largest_subnet(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    outcomes = {base.id: answered(np.arange(10) < 8), small.id: answered(np.arange(10) < 5)}
    found = Outcomes.of(world.net.space, [small, base, small], outcomes, np.arange(10))
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
        reference = log_odds(found.reference.values[drawn].sum(), len(drawn))
        targets.append(log_odds(found.values[:, drawn].sum(axis=1), len(drawn)) - reference)
    drawn = np.cov(np.array(targets).T)
    noisy = np.sqrt(np.diag(drawn)) > 0.02
    np.testing.assert_allclose(np.diag(found.covariance)[noisy], np.diag(drawn)[noisy], rtol=0.3)
    assert np.corrcoef(found.covariance.ravel(), drawn.ravel())[0, 1] > 0.97


def test_the_score_is_the_logarithm_of_the_mean_loss_against_the_largest_subnet(world) -> None:
    found = world.outcomes(6)
    losses = {subnet.id: each.losses.astype(np.float64) for subnet, each in zip(*evaluated(world, found), strict=True)}
    base = losses[world.net.largest().id].mean()
    np.testing.assert_allclose(found.score, [np.log(base / losses[s.id].mean()) for s in found.subnets], atol=1e-12)


def evaluated(world, found):
    subnets = [world.net.largest(), *found.subnets]
    return subnets, world.evaluate(subnets).values()


def test_the_slope_is_that_of_the_least_squares_line(world) -> None:
    found = world.outcomes(12)
    assert found.slope == pytest.approx(np.polyfit(found.score, found.target, 1)[0])
    seen = found.observations
    np.testing.assert_allclose(seen.parts[0].target, found.slope * found.score)
    np.testing.assert_allclose(seen.log_odds, found.target, atol=1e-12)
    assert seen.slope == found.slope


def test_the_noise_of_each_part_is_that_of_draws_of_base_images(world) -> None:
    """Of a part's covariance over draws, the leading component is what all SubNets share, at most 95 %."""
    found, slope, random = world.outcomes(12), 1.7, np.random.default_rng(0)
    bases = len(found.groups) // 4
    said, rest = [], []
    for _ in range(1500):
        drawn = (random.integers(bases, size=bases)[:, None] * 4 + np.arange(4)).ravel()
        score = np.log(found.reference.losses[drawn].mean()) - np.log(found.losses[:, drawn].mean(axis=1))
        right = found.values[:, drawn].sum(axis=1)
        target = log_odds(right, len(drawn)) - log_odds(found.reference.values[drawn].sum(), len(drawn))
        said.append(slope * score)
        rest.append(target - slope * score)
    for part, values in zip(found.observed(slope).parts, (said, rest), strict=True):
        covariance = np.cov(np.array(values).T)
        strength, vectors = np.linalg.eigh(covariance)
        own = np.maximum(np.diag(covariance) - strength[-1] * vectors[:, -1] ** 2, 0.05 * np.diag(covariance))
        noisy = own > 0.1 * own.max()
        assert noisy.sum() > 10
        np.testing.assert_allclose(part.independent[noisy], own[noisy], rtol=0.35)


def test_the_score_has_less_noise_than_the_log_odds(world) -> None:
    """Otherwise nothing would be gained by learning from losses."""
    seen = world.outcomes(30).observed(None)
    two = world.outcomes(30).observations
    whole = seen.is_whole
    assert np.median(two.parts[0].independent[whole]) < 0.5 * np.median(seen.parts[0].independent[whole])


def test_without_a_slope_the_log_odds_are_one_part(world) -> None:
    found = world.outcomes(6)
    (part,) = found.observed(None).parts
    np.testing.assert_array_equal(part.target, found.target)
    np.testing.assert_array_equal(part.independent, found.independent)


def test_equal_losses_have_no_slope(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    alike = {base.id: answered(np.arange(20) < 15), small.id: answered(np.arange(20) < 9)}
    found = Outcomes.of(world.net.space, [small], alike, np.arange(20))
    assert found.slope is None
    assert len(found.observations.parts) == 1


def test_losses_of_0_have_a_score(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    sure = Outcome(np.ones(20, dtype=bool), np.zeros(20, dtype=np.float32))
    found = Outcomes.of(
        world.net.space, [small], {base.id: answered(np.arange(20) < 15), small.id: sure}, np.arange(20)
    )
    assert found.score[0] == pytest.approx(-np.log(LEAST_LOSS))
    assert np.isfinite(found.observed(1.0).parts[0].independent).all()


def test_shared_and_independent_variance_add_up_and_the_most_is_shared(world) -> None:
    found = world.outcomes(30)
    np.testing.assert_allclose(found.shared + found.independent, np.diag(found.covariance))
    assert (found.independent > 0).all()
    whole = found.observations.is_whole
    assert found.shared[whole].sum() > found.independent[whole].sum()


def test_correlated_noise_and_the_rest_are_the_whole_covariance(world, monkeypatch: pytest.MonkeyPatch) -> None:
    found = world.outcomes(10)
    count = len(found.subnets)
    few = found.observations.parts
    assert few[0].correlated.shape == (count, outcomes.CORRELATED)
    monkeypatch.setattr(outcomes, "CORRELATED", 2 * count)
    every = found.observed(found.slope).parts
    whole = sum(part.correlated for part in every)
    np.testing.assert_allclose(whole @ whole.T, found.covariance, atol=1e-9)
    for part, kept in zip(every, few, strict=True):
        assert (kept.rest >= 0).all()
        own = np.square(kept.correlated).sum(axis=1) + kept.rest
        np.testing.assert_allclose(own, np.square(part.correlated).sum(axis=1), atol=1e-12)
        np.testing.assert_allclose(part.rest, 0.0, atol=1e-12)


def test_the_noise_beside_the_shift_is_what_differs_from_the_mean_of_the_others(world) -> None:
    found, random = world.outcomes(20), np.random.default_rng(0)
    effects = np.linalg.cholesky(found.covariance + 1e-12 * np.eye(len(found.subnets)))
    noise = random.standard_normal((20_000, len(effects))) @ effects.T
    shift = (noise.sum(axis=1, keepdims=True) - noise) / (len(effects) - 1)
    least = 0.05 * np.diag(found.covariance)
    differs = np.mean(np.square(noise - shift), axis=0)
    of_mean = np.mean(np.square(shift), axis=0)  # the others' own noise scatters their mean, which the shift has not
    between = (found.covariance.sum() - np.trace(found.covariance)) / (len(effects) * (len(effects) - 1))
    expected = np.maximum(differs - of_mean + between, least)
    np.testing.assert_allclose(found.beside_shift, expected, rtol=0.1, atol=0.02 * expected.max())
    single = Outcomes.of(world.net.space, [world.net.smallest()], world.evaluate(_ends(world)), found.groups)
    np.testing.assert_array_equal(single.beside_shift, np.diag(single.covariance))


def _ends(world):
    return [world.net.largest(), world.net.smallest()]


def test_the_level_is_what_all_log_odds_have_in_common_over_draws_of_base_images(world) -> None:
    found = world.outcomes(12)
    images, random = found.groups.max() + 1, np.random.default_rng(0)
    copies = len(found.groups) // images
    both = np.concatenate([found.reference.values[None], found.values])
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
    np.testing.assert_array_equal(both.score[: len(first.subnets)], first.score)


def test_what_was_not_evaluated_is_named(world) -> None:
    base, small = world.net.largest(), world.net.smallest()
    found = world.evaluate([base, small])
    with pytest.raises(PredictionError, match=f"first {base.id}"):
        Outcomes.of(world.net.space, [small], {small.id: found[small.id]}, world.groups)
    with pytest.raises(PredictionError, match="3 images"):
        Outcomes.of(world.net.space, [small], found, np.arange(3))
    less = Outcome(found[small.id].values, found[small.id].losses[:1])
    with pytest.raises(PredictionError, match=r"with \[1, 2000\] images"):
        Outcomes.of(world.net.space, [small], {**found, small.id: less}, world.groups)
    with pytest.raises(PredictionError, match="besides the largest"):
        Outcomes.of(world.net.space, [base], found, world.groups)
    with pytest.raises(PredictionError, match="single base image"):
        _ = Outcomes.of(world.net.space, [small], found, np.zeros(len(world.groups), dtype=int)).covariance
    with pytest.raises(PredictionError, match=r"resolution = .* alone"):
        Outcomes.of(world.net.space, [small], found, world.groups).observations.drops()
