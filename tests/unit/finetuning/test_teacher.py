"""A network that does not know the user's data is questioned before it teaches, and the cause is named."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import fisher_exact
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig
from autotailor.data import DataSplits
from autotailor.data.splits import TensorEvaluationSet
from autotailor.finetuning import FinetuneConfig, PretrainConfig, TrainingError, finetune, pretrain
from autotailor.finetuning.teacher import Answers, _complaint, question

ORDER = (3, 0, 4, 1, 2)  # the network's class i is the data's class ORDER[i]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> nn.Module:
    torch.manual_seed(0)
    network, folder = networks.TinyResNet(), tmp_path_factory.mktemp("trained")
    data = replace(tiny_data.splits(), train=tiny_data.TinyStream(images=512))
    pretrain(network, data, PretrainConfig(epochs=3, batch_size=32), folder)
    return network.eval()


class Reordered(nn.Module):
    """A network whose classes have other numbers than the data's."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[:, list(ORDER)]


class Divided(nn.Module):
    """A network that was trained on pixels from 0 to 255."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x / 255)


class Blue(nn.Module):
    """Looks for something bright on the left or on the right, in the last channel alone."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        sides = x[:, 2].mean(1)
        return torch.stack([sides[:, :16].mean(1), sides[:, 16:].mean(1)], 1)


def red(count: int) -> DataSplits:
    """Two classes: the left or the right half is bright, and only in the first channel."""
    labels = np.arange(count) % 2
    images = torch.zeros(count, 3, 32, 32)
    for image, label in zip(images, labels, strict=True):
        image[0, :, 16 * label : 16 * label + 16] = 0.8
    held = TensorEvaluationSet(images, labels, np.arange(count))
    return replace(tiny_data.splits(), num_classes=2, validation=held)


def test_a_trained_network_may_teach(trained: nn.Module) -> None:
    assert question(trained, tiny_data.splits(), 0, accept_chance=False).mean() > 0.7


def test_classes_in_another_order_are_recognised(trained: nn.Module) -> None:
    accuracy = question(trained, tiny_data.splits(), 0, accept_chance=False).mean()
    wanted = (
        rf"would be for {accuracy:.1%} if its classes had another order: the network's class "
        r"0 is 3, 1 is 0, 2 is 4, 3 is 1, 4 is 2 in the data.*finetune\.accept_chance to true"
    )
    with pytest.raises(TrainingError, match=wanted):
        question(Reordered(trained), tiny_data.splits(), 0, accept_chance=False)


def test_another_normalisation_is_recognised(trained: nn.Module) -> None:
    with pytest.raises(TrainingError, match=r"with pixels from 0 to 255, mean \[0, 0, 0\].*set data\.mean"):
        question(Divided(trained), tiny_data.splits(), 0, accept_chance=False)


class Demanding(nn.Module):
    """Sees the right half only where it is very bright, as ImageNet's normalisation makes it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        bright = (x[:, 0, :, 16:].mean((1, 2)) > 0.9).float()
        return torch.stack([torch.full_like(bright, 0.5), bright], 1)


def test_a_network_that_knows_only_a_part_is_asked_about_its_normalisation() -> None:
    data = red(200)
    images = data.validation
    assert isinstance(images, TensorEvaluationSet)
    images.images[1::4] *= 1.25  # half of the right halves
    assert question(Demanding(), data, 0, accept_chance=True).mean() == 0.75
    with pytest.raises(TrainingError, match=r"is right for 75\.0%.*ImageNet's.*it is right for 100\.0% of 200"):
        question(Demanding(), data, 0, accept_chance=False)


def test_images_in_bgr_are_recognised() -> None:
    with pytest.raises(TrainingError, match=r"and BGR images .*it is right for 100\.0% of 40 of them"):
        question(Blue(), red(40), 0, accept_chance=False)
    assert question(Blue(), replace(red(40), validation=flipped(red(40))), 0, accept_chance=False).all()


def flipped(data: DataSplits) -> TensorEvaluationSet:
    images = data.validation
    assert isinstance(images, TensorEvaluationSet)
    return TensorEvaluationSet(images.images.flip(1), images.labels, images.groups)


def test_an_untrained_network_does_not_teach(tmp_path: Path) -> None:
    torch.manual_seed(3)
    net = autotailor.compile(networks.TinyResNet().eval(), networks.SPACES["resnet"], resolution=32)
    calibration = CalibrationConfig(images=32, batch_size=16)
    config = FinetuneConfig(epochs=1, batch_size=16, calibration=calibration, subnets=3)
    with pytest.raises(TrainingError, match=r"trained on these classes.*RGB images of 32 pixels.*mean \[0, 0, 0\]"):
        finetune(net, tiny_data.splits(fail_at=(0, 0)), config, tmp_path)
    assert not list(tmp_path.iterdir())


def test_the_configuration_lets_it_teach_all_the_same(caplog: pytest.LogCaptureFixture) -> None:
    torch.manual_seed(3)
    with caplog.at_level(logging.WARNING):
        question(networks.TinyResNet().eval(), tiny_data.splits(), 0, accept_chance=True)
    assert "it was trained on these classes" in caplog.text
    assert FinetuneConfig(epochs=1, accept_chance=True).identity == FinetuneConfig(epochs=1).identity
    with pytest.raises(TrainingError, match="expected true or false"):
        FinetuneConfig(epochs=1, accept_chance="no")  # type: ignore[arg-type]


class Brightness(nn.Module):
    """Says the second class for bright images."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        bright = images.mean((1, 2, 3))
        return torch.stack([1 - bright, bright], 1)


@pytest.mark.parametrize(("wrong", "few"), [(9, True), (14, False)])
def test_where_few_images_leave_a_doubt_the_message_says_so(wrong: int, few: bool) -> None:
    labels = torch.arange(30) % 2
    said = torch.where(torch.arange(30) < wrong, 1 - labels, labels)
    images = said.float().reshape(-1, 1, 1, 1).expand(-1, 3, 8, 8)
    validation = TensorEvaluationSet(images, labels, torch.arange(30))
    data = replace(tiny_data.splits(), num_classes=2, validation=validation)
    with pytest.raises(TrainingError, match=rf"right for {1 - wrong / 30:.1%} of .*by chance it would be") as refused:
        question(Brightness(), data, 0, accept_chance=False)
    assert ("30 images are too few to tell these apart for sure" in str(refused.value)) == few


def answers(predicted: np.ndarray, labels: np.ndarray, classes: int) -> Answers:
    return Answers(predicted, labels, np.arange(len(labels)), classes)


def test_answers_at_random_are_chance_and_hide_no_order() -> None:
    rng = np.random.default_rng(0)
    above = 0
    for _ in range(300):
        classes = int(rng.integers(2, 30))
        found = answers(rng.integers(classes, size=300), rng.integers(classes, size=300), classes)
        above += found.above_chance()
        assert found.matched().mean() < max(0.62, 2.5 / classes)
    assert above <= 3  # one in a thousand is expected


@pytest.mark.parametrize("share", [0.5, 0.97])
def test_chance_is_what_guessing_the_most_frequent_class_gives(share: float) -> None:
    rng = np.random.default_rng(0)
    labels = (rng.random(1000) > share).astype(np.int64)
    constant = answers(np.zeros(1000, dtype=np.int64), labels, 2)
    assert not constant.above_chance()
    knowing = np.where(rng.random(1000) < 0.6, labels, 0)  # finds six of ten of the rare class
    assert answers(knowing, labels, 2).above_chance()


@pytest.mark.parametrize("spread", [[95, 2, 3], [95, 5, 0]])
def test_a_rare_class_that_is_found_without_false_alarms_is_above_chance(spread: list[int]) -> None:
    """As Fisher's exact test says of two classes, where nearly all images are right by chance."""
    often, missed, found = spread
    labels = np.repeat([0, 1, 1], spread)
    said = np.repeat([0, 0, 1], spread)
    table = [[found, missed], [0, often]]
    significant = fisher_exact(table, alternative="greater").pvalue < 1e-3
    assert significant == (found == 3)
    assert answers(said, labels, 2).above_chance() == significant


def test_a_network_that_is_right_on_all_of_few_images_hears_that_they_are_few(tiny: DataSplits) -> None:
    images = TensorEvaluationSet(torch.zeros(4, 3, 8, 8), np.array([0, 1, 0, 1]), range(4))
    found = Answers(images.labels, images.labels, np.arange(4), 2)
    assert not found.above_chance(0.05)
    said = _complaint(found, nn.Identity(), replace(tiny, validation=images), 8, "it")
    assert "4 images are too few to tell these apart for sure" in said


def test_images_of_one_base_image_count_once() -> None:
    labels = np.repeat(np.array([0, 1, 0, 1, 0, 1]), 50)
    found = Answers(np.where(np.arange(300) < 250, labels, 0), labels, np.repeat(np.arange(6), 50), 2)
    assert found.right.mean() > 0.8
    assert not found.above_chance()


def test_two_classes_that_changed_places_are_enough() -> None:
    labels = np.arange(1000) % 10
    swapped = np.array([0, 1, 2, 4, 3, 5, 6, 7, 8, 9])
    found = answers(swapped[labels], labels, 10)
    assert found.above_chance()
    assert found.matched().all()
    np.testing.assert_array_equal(found.order(), swapped)
