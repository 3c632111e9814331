"""A network that does not know the user's data is questioned before it teaches, and the cause is named."""

import logging
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import autotailor
import networks
import tiny_data
from autotailor.accuracy import CalibrationConfig
from autotailor.data import DataSplits
from autotailor.data.splits import TensorEvaluationSet
from autotailor.finetuning import FinetuneConfig, PretrainConfig, TrainingError, finetune, pretrain
from autotailor.finetuning.teacher import question

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
