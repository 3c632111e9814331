"""The model as a whole, in a world whose truth is known."""

from dataclasses import replace

import numpy as np
import pytest

from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.prediction import AccuracyModel, Observations, Outcome, Outcomes, fit, learn
from autotailor.prediction.evidence import MISFIT, TYPICAL
from autotailor.prediction.linear import Prior, extra_misfit
from autotailor.prediction.model import functions
from autotailor.statistics import kendall_tau


@pytest.fixture(scope="module")
def model(world) -> AccuracyModel:
    return fit(world.outcomes(60), world.cost)


@pytest.fixture(scope="module")
def others(world, model: AccuracyModel):
    drawn = sample_distinct(world.net.space, 200, np.random.default_rng(99))
    known = {*world.outcomes(60).subnets, world.net.largest()}
    return [subnet for subnet in drawn if subnet not in known]


def misfit(model: AccuracyModel) -> float:
    """Variance of the misfit of all parts together."""
    return sum(prior.variances[MISFIT] for prior in model.priors)


def measured(world, subnets) -> np.ndarray:
    return np.array([100 * found.values.mean() for found in world.evaluate(subnets).values()])


def test_the_metric_is_the_prediction_of_subnets_without_evaluation(model: AccuracyModel, others) -> None:
    metric = model.metric()
    assert (metric.name, metric.unit, metric.link.name) == ("accuracy", "%", "logit")
    np.testing.assert_allclose(metric.predict(stack(others)), model.predict(stack(others)))


def test_terms_of_the_metric_do_not_repeat_a_scope(model: AccuracyModel) -> None:
    keys = [(term.variables, term.gate) for term in model.metric().terms]
    assert len(keys) == len(set(keys))


def test_the_prediction_of_an_evaluated_subnet_includes_its_measurement(world, model: AccuracyModel) -> None:
    rows, right = model.observations.indices, 100 * world.outcomes(60).values.mean(axis=1)
    with_own, without = np.abs(model.predict(rows) - right), np.abs(model.metric().predict(rows) - right)
    assert with_own.mean() < 0.9 * without.mean()


def test_an_evaluation_lowers_the_standard_error(world, model: AccuracyModel, others) -> None:
    before = model.standard_errors(stack(others[:5]))
    more = world.outcomes(60).with_more(others[:5], world.evaluate(others[:5])).observed(model.observations.slope)
    after = AccuracyModel(more, model.priors).standard_errors(stack(others[:5]))
    assert (after < before).all()


def test_the_metric_has_the_error_of_a_subnet_without_evaluation(world, model: AccuracyModel, others) -> None:
    """Its images are draws as well, so that the level of all SubNets is uncertain."""
    rows, share = stack(others), model.metric().predict(stack(others)) / 100
    whole = model.metric_errors(rows) / (100 * share * (1 - share))
    known = model.metric_errors(rows, known_level=True) / (100 * share * (1 - share))
    np.testing.assert_allclose(whole**2 - known**2, model.observations.level)
    evaluated = model.observations.indices
    share = model.metric().predict(evaluated) / 100
    own = model.metric_errors(evaluated, known_level=True) / (100 * share * (1 - share))
    assert (own > np.sqrt(misfit(model))).all()


def test_the_gain_is_the_derivative_by_each_evaluation(world) -> None:
    """Also by those of single modifications, of which functions of the model are made."""
    model = fit(world.outcomes(12), world.cost)
    seen, step = model.observations, 1e-6
    rows = np.concatenate([stack(sample_distinct(world.net.space, 9, np.random.default_rng(7))), seen.indices[-3:]])
    for number, part in enumerate(model.parts):
        gain = part.gain(rows)
        for evaluated in range(0, len(seen.indices), 3):
            values = []
            for sign in (1, -1):
                target = part.part.target.copy()
                target[evaluated] += sign * step
                parts = [*seen.parts]
                parts[number] = replace(part.part, target=target)
                moved = _refitted(world, model, replace(seen, parts=tuple(parts))).parts[number]
                values.append(moved._features(rows) @ moved.weights)
            np.testing.assert_allclose(gain[:, evaluated], (values[0] - values[1]) / (2 * step), rtol=1e-4, atol=1e-7)


def test_the_error_of_the_metric_counts_what_draws_of_base_images_do_to_it(world, others) -> None:
    """The bootstrap of base images moves predictions as the error says, up to the shift of all of them."""
    outcomes = world.outcomes(60, groups_fail_alike=True)
    model, rows, random = fit(outcomes, world.cost), stack(others), np.random.default_rng(0)
    images = np.arange(len(world.groups)).reshape(-1, int((world.groups == 0).sum()))
    drawn = []
    for _ in range(40):
        chosen = images[random.integers(0, len(images), len(images))].ravel()
        again = replace(
            outcomes,
            values=outcomes.values[:, chosen],
            losses=outcomes.losses[:, chosen],
            reference=Outcome(outcomes.reference.values[chosen], outcomes.reference.losses[chosen]),
        )
        parts = zip(again.observed(outcomes.slope).parts, model.observations.parts, strict=True)
        seen = replace(model.observations, parts=tuple(replace(new, independent=old.independent) for new, old in parts))
        drawn.append(_refitted(world, model, seen).metric().linear(rows))
    scatter = np.array(drawn) - np.mean(drawn, axis=1, keepdims=True)
    share = model.metric().predict(rows) / 100
    error = model.metric_errors(rows, known_level=True) / (100 * share * (1 - share))
    counted = error**2 - sum(part.variance_beside_noise(rows) for part in model.parts)
    assert counted.mean() == pytest.approx(scatter.var(axis=0).mean(), rel=0.2)


def _refitted(world, model: AccuracyModel, seen: Observations) -> AccuracyModel:
    """A model of other numbers with the same prior variances; the functions are made of the new single drops."""
    offered = zip(functions(seen, world.cost), model.priors, strict=True)
    return AccuracyModel(seen, tuple(Prior(groups, prior.variances) for groups, prior in offered))


def test_evaluations_improve_the_order_over_single_drops(world, model: AccuracyModel, others) -> None:
    truth = world.linear(others)
    few = fit(world.outcomes(0), world.cost)
    assert kendall_tau(few.metric().predict(stack(others)), truth) < kendall_tau(model.predict(stack(others)), truth)
    assert kendall_tau(model.predict(stack(others)), truth) > 0.85


def test_the_80_percent_interval_covers_about_80_percent(world, model: AccuracyModel, others) -> None:
    errors = model.standard_errors(stack(others))
    found = measured(world, others)
    share = found / 100
    noise = 100 * share * (1 - share) * np.sqrt(np.median(world.outcomes(60).independent))
    covered = np.abs(found - model.predict(stack(others))) < 1.2816 * np.hypot(errors, noise)
    assert 0.65 < covered.mean() < 0.95


@pytest.mark.parametrize("uncertain", [0, 1], ids=["score", "rest"])
def test_draws_scatter_around_the_mean_as_the_standard_error_says(model: AccuracyModel, others, uncertain: int) -> None:
    """Also where most of the error is that of one part: its prior variances are a hundred times as large."""
    wide = {name: 100 * value for name, value in model.priors[uncertain].variances.items()}
    priors = [*model.priors]
    priors[uncertain] = Prior(model.priors[uncertain].groups, wide)
    model, random = AccuracyModel(model.observations, tuple(priors)), np.random.default_rng(0)
    rows = stack(others[:40])
    draws = np.array([model.draw(random).linear(rows) for _ in range(300)])
    mean, scatter = draws.mean(axis=0), draws.std(axis=0)
    assert (np.abs(mean - model.metric().linear(rows)) < 5 * scatter / np.sqrt(300)).all()
    share = model.predict(rows) / 100
    error = model.standard_errors(rows) / (100 * share * (1 - share))
    np.testing.assert_allclose(scatter, np.sqrt(error**2 - misfit(model)), rtol=0.2)


def test_single_drops_have_no_part_in_the_evidence(world) -> None:
    """The drops are the prior mean, so that the evidence would find the mean to be right and the errors to be small."""
    outcomes = world.outcomes(0)
    assert not outcomes.observations.is_whole.any()
    for prior in fit(outcomes, world.cost).priors:
        assert prior.variances == pytest.approx({name: v for name, v in TYPICAL.items() if name != "drops_by_variable"})


def test_evaluations_on_more_images_replace_those_of_the_same_subnet(world, others) -> None:
    """A model that has learnt from a quarter of the images, and SubNets that are measured on all of them."""
    quarter = np.arange(len(world.groups)) % 16 < 4
    known, chosen = [*world.singles(), *others[:30]], others[20:40]
    evaluated = world.evaluate(known).items()
    few = {id_: Outcome(each.values[quarter], each.losses[quarter]) for id_, each in evaluated}
    small = fit(Outcomes.of(world.net.space, known, few, world.groups[quarter]), world.cost)
    whole = Outcomes.of(world.net.space, chosen, _with_largest(world, chosen), world.groups)
    after = small.updated(whole)
    assert len(after.observations.indices) == len(small.observations.indices) + 10
    assert after.observations.baseline == whole.baseline
    assert after.observations.slope == small.observations.slope != whole.slope
    said = after.observations.parts[0].target[-len(chosen) :]
    np.testing.assert_allclose(said, small.observations.slope * whole.score)
    truth = 100 / (1 + np.exp(-world.linear(chosen) - whole.baseline))
    before, value = small.metric(whole.reference.values).predict(stack(chosen)), after.predict(stack(chosen))
    assert np.abs(value - truth).mean() < np.abs(before - truth).mean()
    errors = after.standard_errors(stack(chosen))
    assert (errors < small.standard_errors(stack(chosen))).all()


def test_the_luckiest_of_many_are_drawn_to_what_other_subnets_say(world, model: AccuracyModel, others) -> None:
    rows = others[:60]
    after = model.updated(Outcomes.of(world.net.space, rows, _with_largest(world, rows), world.groups))
    value, found = after.predict(stack(rows)), measured(world, rows)
    lucky = np.argsort(found - model.metric().predict(stack(rows)))[-10:]
    assert value[lucky].mean() < found[lucky].mean()  # of a single one, its losses can say that it is even better
    assert (value[lucky] > model.metric().predict(stack(rows))[lucky]).all()


def _with_largest(world, subnets):
    return world.evaluate([world.net.largest(), *subnets])


def test_losses_improve_the_order_over_answers_alone(world, others) -> None:
    outcomes, truth, rows = world.outcomes(8), world.linear(others), stack(others)
    with_losses, without = fit(outcomes, world.cost), learn(outcomes.observed(None), world.cost)
    tau, alone = (kendall_tau(each.metric().linear(rows), truth) for each in (with_losses, without))
    assert tau > alone + 0.02, (tau, alone)
    error, before = (np.std(each.metric().linear(rows) - truth) for each in (with_losses, without))
    assert error < 0.9 * before, (error, before)


def test_the_prior_is_the_single_drops_of_the_score_and_none_of_the_rest(world, model: AccuracyModel) -> None:
    said, rest = ({group.name: group for group in prior.groups} for prior in model.priors)
    assert (said["drops"].mean, rest["drops"].mean) == (1.0, 0.0)
    outcomes = world.outcomes(60)
    alone = ~outcomes.observations.is_whole
    drops = said["drops"].columns(world.net.space, outcomes.indices[alone])[:, 0]
    np.testing.assert_allclose(drops, outcomes.slope * outcomes.score[alone])


def test_mean_and_error_are_those_of_a_gaussian_by_brute_force(world) -> None:
    """The joint Gaussian of asked and evaluated SubNets is written out for each part, and conditioned as a whole."""
    outcomes = world.outcomes(20)
    model = fit(outcomes, world.cost)
    asked = stack([*sample_distinct(world.net.space, 7, np.random.default_rng(4)), *outcomes.subnets[-3:]])
    seen, n = model.observations, len(asked)
    both = np.concatenate([asked, seen.indices])
    mean, variance = np.zeros(n), np.zeros(n)
    for part, prior in zip(seen.parts, model.priors, strict=True):
        prior_mean, covariance = np.zeros(len(both)), np.zeros((len(both), len(both)))
        for group in prior.groups:
            columns = group.columns(world.net.space, both)
            prior_mean += group.mean * columns.sum(axis=1)
            covariance += prior.variances[group.name] * columns @ columns.T
        same = (both[:, None] == both[None]).all(axis=2)
        covariance += same * (prior.variances[MISFIT] + extra_misfit(world.net.space, both))[:, None]
        observed = covariance[n:, n:] + np.diag(part.independent)
        gain = covariance[:n, n:] @ np.linalg.inv(observed)
        mean += prior_mean[:n] + gain @ (part.target - prior_mean[n:])
        variance += np.diag(covariance[:n, :n] - gain @ covariance[n:, :n])
    percent = 100 / (1 + np.exp(-mean - seen.baseline))
    np.testing.assert_allclose(model.predict(asked), percent, rtol=1e-6)
    errors = percent * (1 - percent / 100) * np.sqrt(variance)
    np.testing.assert_allclose(model.standard_errors(asked), errors, rtol=1e-5)


def test_a_draw_is_a_sum_of_tables_of_the_same_scopes_as_the_mean(world, model: AccuracyModel, others) -> None:
    draw, rows = model.draw(np.random.default_rng(2)), stack(others)
    assert [(term.variables, term.gate) for term in draw.terms] == [(t.variables, t.gate) for t in model.metric().terms]
    space = world.net.space
    total = np.full(len(rows), draw.constant)
    for number, subnet in enumerate(others):
        choices = dict(zip((v.name for v in space), subnet.indices, strict=True))
        for term in draw.terms:
            if subnet.opens(term.gate):
                total[number] += term.table[tuple(choices[name] for name in term.variables)]
    np.testing.assert_allclose(draw.linear(rows), total)
    np.testing.assert_allclose(draw.predict(rows), 100 / (1 + np.exp(-total)))
