"""What numbers are worth: closeness of each picture, R² of a set, and a network whose final Sigmoid is its answer."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

import autotailor
import tiny_data
from autotailor import accuracy
from autotailor.data.labels import scaled
from autotailor.data.splits import DataSplits, TensorEvaluationSet
from autotailor.ir.space.metric import FloatArray
from autotailor.task import Task, TaskError, find, of
from autotailor.task.interface import Asked, Lesson
from autotailor.task.tasks.regression import FAR


def drawn(count: int, outputs: int, error: float, seed: int) -> tuple[FloatArray, FloatArray]:
    """Outputs and targets of some pictures, each number in a unit of its own."""
    random = np.random.default_rng(seed)
    targets = random.normal(size=(count, outputs))
    said = targets + error * random.normal(size=targets.shape)
    scale, start = random.uniform(0.01, 100, outputs), random.uniform(-100, 100, outputs)
    return said * scale + start, targets * scale + start


def told(targets: FloatArray) -> Task:
    return find(scaled("regression", targets))


def r2(said: FloatArray, targets: FloatArray, weights: FloatArray | None = None) -> float:
    """R² by hand, of pictures that count several times or in part."""
    w = np.ones(len(said)) if weights is None else weights
    mean = np.average(targets, axis=0, weights=w)
    lost, total = (w[:, None] * np.square(said - targets)).sum(0), (w[:, None] * np.square(targets - mean)).sum(0)
    return float((1 - lost / total).mean())


def shares(said: FloatArray, targets: FloatArray) -> FloatArray:
    task = told(targets)
    return task.shares(task.judge(torch.from_numpy(said), torch.from_numpy(targets)).kept.numpy())


SETS = st.tuples(st.integers(3, 40), st.integers(1, 4), st.floats(0, 3), st.integers(0, 10**6))


@settings(deadline=None)
@given(SETS)
def test_the_mean_share_is_r2(some: tuple[int, int, float, int]) -> None:
    said, targets = drawn(*some)
    assert shares(said, targets).mean() == pytest.approx(r2(said, targets), rel=1e-6, abs=1e-6)


def test_a_share_is_what_r2_gains_where_a_picture_counts_more() -> None:
    said, targets = drawn(30, 2, 0.5, 1)
    found, step = shares(said, targets), 1e-6
    for i in (0, 7, 29):
        more, less = (r2(said, targets, np.eye(30)[i] * each + 1) for each in (step, -step))
        slope = 30 * (more - less) / (2 * step)
        assert found[i] == pytest.approx(r2(said, targets) + slope, rel=1e-4)


@settings(deadline=None)
@given(SETS)
def test_another_unit_changes_neither_values_nor_losses(some: tuple[int, int, float, int]) -> None:
    said, targets = drawn(*some)
    task, other = told(targets), told(1000 * targets - 7)
    wanted = task.judge(torch.from_numpy(said), torch.from_numpy(targets))
    found = other.judge(torch.from_numpy(1000 * said - 7), torch.from_numpy(1000 * targets - 7))
    torch.testing.assert_close(found.values, wanted.values, atol=1e-6, rtol=1e-6)
    assert ((wanted.values >= 0) & (wanted.values <= 1)).all()
    one, two = torch.from_numpy(said), torch.from_numpy(1000 * said - 7)
    losses = (
        task.loss(one, torch.from_numpy(targets), None, Lesson()),
        other.loss(two, torch.from_numpy(1000 * targets - 7), None, Lesson()),
    )
    torch.testing.assert_close(*losses, atol=1e-6, rtol=1e-6)


def test_networks_without_absurd_errors_have_the_order_of_r2() -> None:
    _, targets = drawn(200, 1, 0.0, 3)
    task, random, spread = told(targets), np.random.default_rng(0), targets.std()
    networks = [targets + spread * random.uniform(0, FAR) * random.uniform(-1, 1, (200, 1)) for _ in range(12)]
    closeness = [task.judge(torch.from_numpy(y), torch.from_numpy(targets)).values.mean().item() for y in networks]
    assert np.argsort(closeness).tolist() == np.argsort([r2(y, targets) for y in networks]).tolist()


@pytest.mark.parametrize("output", [math.nan, math.inf, -1e30], ids=str)
def test_outputs_that_are_no_numbers_count_as_the_worst(output: float) -> None:
    targets = torch.tensor([[0.0, 1.0], [2.0, 5.0]])
    task = told(targets.numpy())
    found = task.judge(torch.tensor([[output, 1.0], [2.0, 5.0]]), targets)
    assert torch.isfinite(found.losses).all()
    assert torch.isfinite(found.kept).all()
    assert found.values.tolist() == [0.0 if math.isnan(output) else 0.5, 1.0]


def test_the_loss_is_hubers_on_standardised_numbers() -> None:
    task = find(f"regression {json.dumps([[10.0], [2.0]])}")
    outputs, targets = torch.tensor([[12.0], [20.0]], requires_grad=True), torch.tensor([[10.0], [10.0]])
    wanted = (0.5 * 1**2 + FAR * (5 - FAR / 2)) / 2
    assert task.loss(outputs, targets, None, Lesson(weight=0.7)).item() == pytest.approx(wanted)
    taught = task.loss(outputs, targets, outputs.detach(), Lesson(weight=0.7))
    assert taught.item() == pytest.approx(0.3 * wanted)
    assert task.loss(outputs, torch.full((2, 1), -1.0), outputs.detach(), Lesson(weight=1.0)).item() == 0


def test_chance_is_the_mean_of_the_targets() -> None:
    targets = np.array([[-1.0], [1.0], [-1.0], [1.0]])
    assert told(targets).chance(targets) == pytest.approx(1 - 1 / FAR**2)


@pytest.mark.parametrize("shape", [(2,), (2, 1), (2, 1, 1, 1)], ids=str)
def test_one_number_of_any_shape_is_read(shape: tuple[int, ...]) -> None:
    targets = torch.tensor([[3.0], [5.0]])
    task = told(targets.numpy())
    assert task.misfit(torch.zeros(shape), 1, "data") == ""
    assert task.judge(targets.reshape(shape), targets).values.tolist() == [1.0, 1.0]
    assert task.answers(targets.reshape(shape)).shape == (2, 1)


@pytest.mark.parametrize("outputs", [torch.zeros(2, 3), (torch.zeros(2, 2), torch.zeros(2, 2))], ids=["3", "two"])
def test_other_outputs_than_targets_are_refused(outputs: torch.Tensor | tuple[torch.Tensor, ...]) -> None:
    assert "expected one number for each target, [2, 2]" in find("regression").misfit(outputs, 2, "data mine")


def splits(targets: FloatArray, labelled: bool = True) -> DataSplits:
    tiny = tiny_data.splits()
    count = len(tiny.validation)
    labels = targets.astype(np.float32) if labelled else np.full(count, -1)
    task = scaled("regression", labels)
    held = [
        TensorEvaluationSet(each.images, labels, range(count), task)  # type: ignore[attr-defined]
        for each in (tiny.validation, tiny.test)
    ]
    classes = targets.shape[1] if labelled else 0
    return replace(tiny, num_classes=classes, validation=held[0], test=held[1], labelled=labelled)


def doubt(said: FloatArray, targets: FloatArray) -> str:
    data = splits(targets)
    task, known = of(data), torch.from_numpy(data.validation.labels)
    values = task.judge(torch.from_numpy(said), known).values.numpy()
    return task.doubt(Asked(values, said, lambda _: said), data, 0, "it")


def test_a_network_in_another_unit_is_doubted_with_the_line_that_would_help() -> None:
    said, targets = drawn(40, 2, 0.2, 5)
    assert doubt(said, targets) == ""
    standardised = (said - targets.mean(0)) / targets.std(0)
    found = doubt(standardised, targets)
    assert "closeness" in found
    assert "the mean of the targets, returned for every picture, has" in found
    assert f"{np.polyfit(standardised[:, 0], targets[:, 0], 1)[0]:.4g} y" in found
    assert "R² would be" not in doubt(np.random.default_rng(0).normal(size=targets.shape), targets)


def test_labels_of_classes_are_no_targets() -> None:
    images = TensorEvaluationSet(torch.zeros(4, 3, 8, 8), np.arange(4), range(4), "regression")
    with pytest.raises(TaskError, match=r"data\.task is regression, whose targets have 2 axes"):
        of(images)


class Squashed(nn.Module):
    """Ends in a Sigmoid that belongs to the answer, from 0 to 30."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.last = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 30 * torch.sigmoid(self.last(self.body(x)))


def test_answers_of_the_original_network_keep_its_final_sigmoid_and_their_scale() -> None:
    torch.manual_seed(0)
    network = Squashed().eval()
    net = autotailor.compile(network, resolution=32)
    assert net.head.activation == "Sigmoid"  # of a classifier it would be set aside
    data = accuracy.with_labels(splits(np.zeros((40, 2)), labelled=False), net)
    with torch.no_grad():
        wanted = network(next(data.test.batches(40))[0])
    np.testing.assert_allclose(data.test.labels, wanted.numpy(), rtol=1e-5)
    assert data.validation.task == data.test.task == scaled("regression", data.validation.labels)
    values = accuracy.correctness(network, data.test)
    assert values.mean() == pytest.approx(1, abs=1e-5)
