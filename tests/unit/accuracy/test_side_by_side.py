"""Many SubNets of one SuperNet, against each of them alone."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import autotailor
from autotailor.accuracy import CalibrationConfig, Calibrator, evaluate
from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.accuracy.side_by_side import Evaluator
from autotailor.data import DataSplits
from autotailor.data.errors import DataError
from autotailor.data.splits import TensorEvaluationSet
from autotailor.ir.space.subnet import SubNet, sample_distinct
from autotailor.task.interface import Lesson

CALIBRATION = CalibrationConfig(images=32, batch_size=16)


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("memory_mb", [0, 1, 1024])
def test_neither_workers_nor_memory_change_answers_and_losses(
    plain_net: autotailor.SuperNet, tiny: DataSplits, workers: int, memory_mb: int
) -> None:
    module, calibrator = plain_net.module().eval(), Calibrator(tiny, CALIBRATION)
    subnets = [plain_net.largest(), *sample_distinct(plain_net.space, 9, np.random.default_rng(0))]
    subnets.append(subnets[1])
    before = module.active
    evaluator = Evaluator(module, calibrator, tiny.validation, workers, batch_size=16, memory_mb=memory_mb)
    found = list(evaluator.all(subnets))
    assert module.active == before
    assert sorted(subnet.id for subnet, _ in found) == sorted(subnet.id for subnet in subnets)
    for subnet, outcome in found:
        expected = evaluate(module, subnet, tiny.validation, calibrator.statistics(module, subnet), batch_size=16)
        assert (outcome.values.dtype, outcome.losses.dtype) == (np.float64, np.float32)
        assert outcome.values.tolist() == expected.values.tolist()
        assert outcome.losses.tobytes() == expected.losses.tobytes()


def test_an_evaluator_follows_the_weights(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    module, calibrator = plain_net.module().eval(), Calibrator(tiny, CALIBRATION)
    subnets = list(sample_distinct(plain_net.space, 4, np.random.default_rng(0)))
    evaluator = Evaluator(module, calibrator, tiny.validation, 1)
    before = dict(evaluator.all(subnets))
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.mul_(torch.randn_like(parameter))
    evaluator.look_at(module)
    after = dict(evaluator.all(subnets))
    assert all((before[s].losses != after[s].losses).any() for s in subnets)
    for subnet, outcome in after.items():
        expected = evaluate(module, subnet, tiny.validation, calibrator.statistics(module, subnet))
        assert outcome.values.tolist() == expected.values.tolist()
        assert outcome.losses.tobytes() == expected.losses.tobytes()


def test_subnets_that_keep_the_given_statistics_see_one_batch_and_answer_as_after_all(
    plain_net: autotailor.SuperNet, tiny: DataSplits
) -> None:
    net, calibrators = plain_net.recalibrated(0.0), [Calibrator(tiny, CalibrationConfig(n, 16)) for n in (16, 32)]
    assert [len(calibrators[1].images_for(each.module())) for each in (net, plain_net)] == [1, 2]
    subnets = sample_distinct(net.space, 4, np.random.default_rng(0))
    few, many = (dict(Evaluator(net.module().eval(), each, tiny.validation, 1).all(subnets)) for each in calibrators)
    assert all(few[subnet].losses.tobytes() == many[subnet].losses.tobytes() for subnet in subnets)


@pytest.mark.parametrize("workers", [1, 2])
def test_divergences_are_those_from_the_largest_subnet(
    plain_net: autotailor.SuperNet, tiny: DataSplits, workers: int
) -> None:
    module, calibrator = plain_net.module(logits=True).eval(), Calibrator(tiny, CALIBRATION)
    subnets = [plain_net.largest(), *sample_distinct(plain_net.space, 5, np.random.default_rng(0))]
    lesson = Lesson(weight=1.0)
    evaluator = Evaluator(module, calibrator, tiny.validation, workers, batch_size=16, lesson=lesson)
    found = dict(evaluator.all(subnets))
    by_labels = dict(Evaluator(module, calibrator, tiny.validation, 1, batch_size=16).all(subnets))

    def answers(subnet: SubNet) -> torch.Tensor:
        module.activate(subnet).eval()
        module.statistics = calibrator.statistics(module, subnet)
        batches = tiny.validation.batches(16)
        with torch.no_grad():
            return torch.cat([module(as_input(b, torch.device("cpu"), resolution_of(subnet))) for b, _ in batches])

    wanted = answers(subnets[0]).log_softmax(1)
    assert found[subnets[0]].losses == pytest.approx(0.0, abs=1e-6)
    for subnet in subnets[1:]:
        apart = (wanted.exp() * (wanted - answers(subnet).log_softmax(1))).sum(1)
        np.testing.assert_allclose(found[subnet].losses, apart.numpy(), rtol=1e-3, atol=1e-6)
        assert found[subnet].is_divergence
        assert found[subnet].losses.any()
        np.testing.assert_array_equal(found[subnet].values, by_labels[subnet].values)


def test_no_subnets_are_evaluated_at_once(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    evaluator = Evaluator(plain_net.module().eval(), Calibrator(tiny, CALIBRATION), tiny.validation, 2)
    assert list(evaluator.all([])) == []


def test_images_without_labels_are_refused(plain_net: autotailor.SuperNet, tiny: DataSplits) -> None:
    images = next(tiny.validation.batches(40))[0]
    unlabelled = TensorEvaluationSet(images, np.full(40, -1), np.arange(40))
    evaluator = Evaluator(plain_net.module().eval(), Calibrator(tiny, CALIBRATION), unlabelled, 1)
    with pytest.raises(DataError, match="40 of 40 images have no label"):
        list(evaluator.all([plain_net.largest()]))
