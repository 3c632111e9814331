"""Evaluations of SubNets beside the single modifications."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import autotailor
import tiny_data
from autotailor import prediction, sensitivity
from autotailor.accuracy import CalibrationConfig, side_by_side
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.prediction import Outcomes
from autotailor.prediction.evaluations.chance import CLEAR, paired_errors
from autotailor.sensitivity import SensitivityConfig, evaluations, measurement
from autotailor.sensitivity.evaluations import singles
from autotailor.task.registry import of

CONFIG = SensitivityConfig(batch_size=20, evaluations=9, validate_subnets=5, calibration=CalibrationConfig(16, 16))


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("evaluations") / "journal.jsonl"


@pytest.fixture(scope="module")
def outcomes(resnet_net: autotailor.SuperNet, journal: Path) -> Outcomes:
    sensitivity.measure(resnet_net, tiny_data.splits(), CONFIG, journal)
    return sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), CONFIG, journal)


def test_singles_and_then_others_that_judge_no_prediction_are_evaluated(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes
) -> None:
    alone = singles(resnet_net.space)[1:]
    assert outcomes.subnets[: len(alone)] == tuple(alone)
    more = outcomes.subnets[len(alone) :]
    assert len(set(more)) == 9
    assert not set(more) & {*sensitivity.validation_subnets(resnet_net, CONFIG), *alone}


def test_subnets_that_judge_are_left_out(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = outcomes.subnets[-CONFIG.evaluations :]
    monkeypatch.setattr(evaluations, "validation_subnets", lambda *_: chosen[:3])
    monkeypatch.setattr(prediction.Outcomes, "with_more", lambda _, more, __: more)
    others = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), CONFIG, journal)
    assert len(others) == CONFIG.evaluations
    assert set(others) & set(chosen[3:])
    assert not set(others) & set(chosen[:3])


def test_the_same_images_are_right_as_in_the_sensitivities(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, journal: Path
) -> None:
    measured = sensitivity.measure(resnet_net, tiny_data.splits(), CONFIG, journal)
    assert 100 * outcomes.reference.values.mean() == pytest.approx(measured.baseline)


def test_a_second_run_evaluates_nothing_again(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("evaluated again")

    monkeypatch.setattr(side_by_side.Evaluator, "_group", refuse)
    again = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), CONFIG, journal)
    assert again.subnets == outcomes.subnets
    np.testing.assert_array_equal(again.values, outcomes.values)
    np.testing.assert_array_equal(again.losses, outcomes.losses)


def test_without_further_evaluations_the_singles_remain(resnet_net: autotailor.SuperNet, journal: Path) -> None:
    found = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), replace(CONFIG, evaluations=0), journal)
    assert found.subnets == tuple(singles(resnet_net.space)[1:])


def test_predictions_of_the_model_are_compared_on_the_test_set(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, tmp_path: Path
) -> None:
    model, data = prediction.fit(outcomes, resnet_net.macs()), tiny_data.splits()
    subnets = sensitivity.validation_subnets(resnet_net, CONFIG)
    table = sensitivity.validate_accuracy(resnet_net, data, model, subnets, CONFIG, tmp_path / "j")
    right = sensitivity.evaluate(
        resnet_net, data, data.test, [resnet_net.largest()], CONFIG, tmp_path / "other", "largest"
    )[resnet_net.largest().id].values
    expected = model.metric(right).predict(np.stack([subnet.to_array() for subnet in subnets]))
    np.testing.assert_allclose(table.predicted, expected)
    rows = np.stack([subnet.to_array() for subnet in subnets])
    np.testing.assert_allclose(table.predicted_standard_error, model.metric_errors(rows, known_level=True))
    assert not np.allclose(table.predicted, model.metric(1 - right).predict(np.stack([s.to_array() for s in subnets])))


def test_evaluations_lead_through_files_to_posteriors_of_candidates(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, tmp_path: Path
) -> None:
    """As the rules sensitivity, search and confirm work, one after the other, on the files of the ones before."""
    net, data, cost = resnet_net, tiny_data.splits(), resnet_net.macs()
    prediction.write_outcomes(tmp_path / "evaluations.csv", outcomes)
    images = sensitivity.learnt_from(data, CONFIG)
    known = prediction.read_outcomes(tmp_path / "evaluations.csv", net.space, images.groups)
    some = np.stack([subnet.to_array() for subnet in sample_distinct(net.space, 60, np.random.default_rng(1))])
    rounds = prediction.evaluate_along_front(
        known,
        cost,
        lambda metric: some[[int(np.argmax(metric.predict(some)))]],
        lambda subnets: sensitivity.evaluate(net, data, images, subnets, CONFIG, tmp_path / "front", "front"),
        4,
        0.0,
        np.random.default_rng(0),
    )
    assert rounds.evaluated > 0
    assert rounds.model.observations.slope is not None
    prediction.write_accuracy(tmp_path / "accuracy.json", prediction.Accuracy.learnt(rounds.model))
    model = prediction.read_accuracy(tmp_path / "accuracy.json", cost).model
    assert model is not None
    candidates = [SubNet.from_array(net.space, row) for row in some[:3]]
    found = sensitivity.measure_accuracies(net, data, candidates, CONFIG, tmp_path / "candidates", model)
    evaluated = sensitivity.evaluate(
        net, data, images, [net.largest(), *candidates], CONFIG, tmp_path / "again", "again"
    )
    after = rounds.model.updated(Outcomes.of(net.space, candidates, evaluated, images.groups))
    expected = after.predict(some[:3]), after.standard_errors(some[:3])
    measured = [found[subnet.id] for subnet in candidates]
    np.testing.assert_allclose([(each.posterior, each.posterior_error) for each in measured], np.transpose(expected))
    assert all(each.posterior_error > 0 for each in measured)


def test_what_is_known_is_not_evaluated_again_and_bounds_what_a_model_believes(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, data, asked = resnet_net, tiny_data.splits(), [resnet_net.largest(), *outcomes.subnets]
    model = prediction.fit(outcomes, net.macs())

    def refuse(*_: object) -> None:
        raise AssertionError("evaluated again")

    monkeypatch.setattr(side_by_side.Evaluator, "_group", refuse)
    monkeypatch.setattr(prediction.AccuracyModel, "predict", lambda _, rows: np.full(len(rows), 100.0))
    found = sensitivity.measure_accuracies(net, data, asked, CONFIG, tmp_path / "j", model, outcomes)
    right = np.concatenate([outcomes.reference.values[None], outcomes.values])
    errors = paired_errors(right, outcomes.groups)[0]
    measured = np.array([found[subnet.id].accuracy for subnet in asked])
    posterior = np.array([found[subnet.id].posterior for subnet in asked])
    np.testing.assert_allclose(measured, 100 * right.mean(axis=1))
    assert (posterior <= measured + CLEAR * errors + 1e-9).all()
    assert (posterior < 100.0).any()


def test_a_part_of_the_images_is_enough(resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    config = replace(CONFIG, images=10, evaluations=0)
    found = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), config, tmp_path / "j")
    assert found.values.shape[1] == 10
    measured = sensitivity.measure(resnet_net, tiny_data.splits(), config, tmp_path / "j")
    assert 100 * found.reference.values.mean() == pytest.approx(measured.baseline)


def test_divergences_take_the_place_of_losses(
    resnet_net: autotailor.SuperNet, outcomes: Outcomes, tmp_path: Path
) -> None:
    judged = replace(CONFIG, judge="divergence")
    found = sensitivity.evaluate_designed(resnet_net, tiny_data.splits(), judged, tmp_path / "journal.jsonl")
    assert found.reference.losses == pytest.approx(0.0, abs=1e-6)
    assert found.reference.is_divergence
    common = [subnet.id for subnet in singles(resnet_net.space)]
    assert all((found.by_id[each].values == outcomes.by_id[each].values).all() for each in common)
    assert found.losses.any()


def test_labels_judge_smaller_pictures_where_outputs_tell_lengths(
    resnet_net: autotailor.SuperNet, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged, images = replace(CONFIG, judge="divergence"), tiny_data.splits().validation
    assert measurement.compared(resnet_net, images, judged) is not None
    assert measurement.compared(resnet_net, images, CONFIG) is None
    monkeypatch.setattr(of(images).__class__, "at_side", True)
    assert len(resnet_net.space["resolution"].choices) > 1
    assert measurement.compared(resnet_net, images, judged) is None
