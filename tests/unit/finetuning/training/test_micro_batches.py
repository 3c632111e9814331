"""Gradients of one step in several forward passes, and what happens where memory is too small."""

import logging
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import tiny_data
from autotailor import finetuning
from autotailor.data import DataSplits
from autotailor.finetuning import TrainingError
from autotailor.finetuning.training.micro_batches import MicroBatches
from autotailor.finetuning.training.steps import Step
from training import PRETRAIN, equal


class Small(nn.Module):
    """A network that has memory for ``most`` images; with BatchNorm or without."""

    def __init__(self, most: int = 1000, norm: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.most, self.seen = most, list[int]()
        normalised = [nn.BatchNorm2d(4)] if norm else []
        self.layers = nn.Sequential(
            nn.Conv2d(3, 4, 3, 2), *normalised, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()
        )
        self.head = nn.Linear(4, 5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = self.layers(images)  # BatchNorm has seen the images when memory runs out
        if self.training and len(images) > self.most:
            raise torch.OutOfMemoryError("CUDA out of memory")
        self.seen.append(len(images))
        return self.head(hidden)


def batch(count: int = 10) -> Step:
    images, labels = tiny_data.draw(count, 7)
    return Step(images, labels, 0.0, np.random.default_rng(0))


def micro_batches(network: nn.Module, size: int) -> MicroBatches:
    def step(part: Step) -> float:
        loss = nn.functional.cross_entropy(network(part.images), part.labels)
        (loss * part.loss_scale).backward()
        return loss.item()

    return MicroBatches(network, step, size, "test")


def gradients(network: nn.Module) -> list[torch.Tensor]:
    return [parameter.grad for parameter in network.parameters() if parameter.grad is not None]


@pytest.mark.parametrize(("size", "passes"), [(4, [4, 3, 3]), (9, [5, 5]), (1, [1] * 10), (10, [10]), (0, [10])])
def test_the_gradients_are_those_of_the_whole_batch(size: int, passes: list[int]) -> None:
    whole, parts = Small(), Small()
    expected = micro_batches(whole, 0).gradients(batch(), seed=0).loss
    assert micro_batches(parts, size).gradients(batch(), seed=0).loss == pytest.approx(expected, rel=1e-5)
    assert parts.seen == passes
    for found, wanted in zip(gradients(parts), gradients(whole), strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-6)


def test_a_part_of_the_batch_weighs_as_many_images_as_it_has() -> None:
    scales: list[float] = []
    MicroBatches(nn.Linear(1, 1), lambda part: scales.append(part.loss_scale) or 1.0, 4, "test").gradients(batch(), 0)
    assert scales == pytest.approx([0.4, 0.3, 0.3])


def test_each_part_of_a_step_draws_the_same() -> None:
    drawn: list[float] = []
    MicroBatches(nn.Linear(1, 1), lambda part: drawn.append(part.random.random()) or 1.0, 3, "test").gradients(
        batch(), 0
    )
    assert len(drawn) == 4
    assert len(set(drawn)) == 1


def test_where_memory_is_too_small_the_step_is_repeated_with_half_of_the_images(
    caplog: pytest.LogCaptureFixture,
) -> None:
    small, fitting = Small(most=3, norm=True), Small(norm=True)
    steps = micro_batches(small, 0)
    with caplog.at_level(logging.WARNING):
        loss = steps.gradients(batch(), seed=0).loss
    assert steps.size == 2  # 10, 5, 2
    assert [record.args[1:] for record in caplog.records if record.args] == [(10, 5), (5, 2)]
    assert loss == micro_batches(fitting, 2).gradients(batch(), seed=0).loss
    for found, wanted in zip(gradients(small), gradients(fitting), strict=True):
        assert torch.equal(found, wanted)
    assert equal(small.state_dict(), fitting.state_dict())
    steps.gradients(batch(), seed=0)
    assert len(caplog.records) == 2


def test_too_little_memory_for_one_image_is_an_error_with_a_remedy() -> None:
    with pytest.raises(TrainingError, match="too small for one image"):
        micro_batches(Small(most=0), 0).gradients(batch(), seed=0)


def test_other_errors_pass() -> None:
    with pytest.raises(RuntimeError, match="channels"):
        micro_batches(Small(), 0).gradients(Step(torch.zeros(2, 1, 8, 8), torch.zeros(2), 0.0, batch().random), 0)


def test_an_interrupted_training_remembers_the_size(tiny: DataSplits, tmp_path: Path) -> None:
    whole = finetuning.pretrain(Small(most=9), tiny, PRETRAIN, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        finetuning.pretrain(Small(most=9), tiny_data.splits(fail_at=(1, 1)), PRETRAIN, tmp_path / "killed")
    network = Small()
    again = finetuning.pretrain(network, tiny, PRETRAIN, tmp_path / "killed")
    assert equal(whole.state_dict, again.state_dict)
    assert {count for count in network.seen if count <= 16} >= {8}


@pytest.mark.parametrize(("size", "count"), [(1, 4), (2, 3)])
def test_a_single_image_for_a_norm_of_single_values_is_refused_with_the_remedy(size: int, count: int) -> None:
    network = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.BatchNorm1d(3), nn.Linear(3, 5))
    with pytest.raises(TrainingError, match=rf"test: a BatchNorm .*set micro_batch \(it is {size}\) to 0 or to"):
        micro_batches(network, size).gradients(batch(count), seed=0)
