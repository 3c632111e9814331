"""Without labels the original network teaches alone."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig, with_labels
from autotailor.data import DataSplits
from autotailor.data.labels import UNKNOWN
from autotailor.data.splits import Batch, TensorEvaluationSet
from autotailor.finetuning import (
    FinetuneConfig,
    PretrainConfig,
    ScaledConfig,
    Teacher,
    TrainingError,
    finetune,
    pretrain,
)
from autotailor.finetuning.lesson import teacher_alone
from autotailor.finetuning.scaled import train_scaled
from autotailor.task.distillation import distillation_loss
from autotailor.task.interface import Lesson

CONFIG = FinetuneConfig(epochs=2, batch_size=16, lr=1e-3, calibration=CalibrationConfig(images=32, batch_size=16))


class Unlabelled(tiny_data.TinyStream):
    def batches(self, epoch: int, batch_size: int, start: int = 0):  # type: ignore[no-untyped-def]
        for images, labels in super().batches(epoch, batch_size, start):
            yield images, torch.full_like(labels, UNKNOWN)


def unlabelled() -> DataSplits:
    splits = tiny_data.splits()
    held = [
        TensorEvaluationSet(images.images, np.full(len(images), UNKNOWN), images.groups)  # type: ignore[attr-defined]
        for images in (splits.validation, splits.test)
    ]
    return replace(splits, train=Unlabelled(), validation=held[0], test=held[1], labelled=False, num_classes=0)


@pytest.fixture(scope="module")
def net() -> autotailor.SuperNet:
    torch.manual_seed(3)
    return autotailor.compile(networks.make("resnet"), networks.SPACES["resnet"], name="resnet", resolution=32)


@pytest.mark.parametrize("independent", [False, True])
def test_labels_do_not_matter_where_the_teacher_has_all_the_weight(independent: bool) -> None:
    torch.manual_seed(0)
    logits, teacher = torch.randn(6, 5), torch.randn(6, 5)
    alone = Lesson(weight=1.0, smoothing=0.1, independent=independent)
    unknown: Batch = logits, torch.full((6,), UNKNOWN)
    soft = distillation_loss(*unknown, teacher, alone)
    labelled = distillation_loss(logits, torch.arange(6) % 5, teacher, alone)
    assert soft.item() > 0
    assert torch.equal(soft, labelled)


def test_the_weight_of_the_labels_goes_to_the_teacher() -> None:
    assert teacher_alone(CONFIG, tiny_data.splits()) is CONFIG
    assert CONFIG.distillation.weight < 1
    assert teacher_alone(CONFIG, unlabelled()).distillation == replace(CONFIG.distillation, weight=1.0)


def test_a_supernet_is_trained_and_the_check_of_the_teacher_is_skipped_with_a_sentence(
    net: autotailor.SuperNet, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    data = with_labels(unlabelled(), net)
    with caplog.at_level(logging.INFO):
        result = finetune(net, data, CONFIG, tmp_path)
    assert "whether the original network knows these pictures well cannot be checked" in caplog.text
    assert result.metrics["original_validation_accuracy"] == 100.0
    assert np.isfinite(result.metrics["loss"])


def test_a_scaled_network_learns_from_the_teacher_alone(net: autotailor.SuperNet, tmp_path: Path) -> None:
    data = with_labels(unlabelled(), net)
    config = ScaledConfig(epochs=1, batch_size=16, lrs=(1e-3,))
    teacher = Teacher.largest_of(net, torch.device("cpu"))
    result = train_scaled(lambda: networks.make("resnet"), teacher, data, config, tmp_path)
    assert np.isfinite(result.metrics["loss"])


def test_training_from_scratch_needs_labels(net: autotailor.SuperNet, tmp_path: Path) -> None:
    data = replace(unlabelled(), num_classes=5)
    with pytest.raises(TrainingError, match=r"has no labels, and training from scratch needs them"):
        pretrain(networks.make("resnet"), data, PretrainConfig(epochs=1, batch_size=16), tmp_path)
