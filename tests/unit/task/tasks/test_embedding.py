"""What vectors are worth: nearness of each picture, the nearest neighbours of a set, and targets beside labels."""

from __future__ import annotations

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
from autotailor.accuracy.teaching import AnsweredSet
from autotailor.data.labels import UNKNOWN
from autotailor.data.splits import DataSplits
from autotailor.ir.space.metric import FloatArray
from autotailor.task import TaskError, find, of
from autotailor.task.interface import Asked, Lesson
from autotailor.task.tasks import embedding

TASK = find("embedding")


def drawn(count: int, classes: int, seed: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Vectors, classes and base pictures; some pictures are made of the same one."""
    random = np.random.default_rng(seed)
    labels = random.integers(0, classes, count)
    vectors = random.normal(size=(count, 5)) + 1.5 * np.eye(5)[labels % 5]
    return vectors, labels, random.integers(0, max(2, count - 2), count)


def targets(vectors: FloatArray, labels: FloatArray, groups: FloatArray) -> torch.Tensor:
    return torch.from_numpy(TASK.beside(labels, groups.astype(np.int64), vectors))


def shares(vectors: FloatArray, labels: FloatArray, groups: FloatArray) -> FloatArray:
    """Those of a network with other vectors than the original one, which has these."""
    wanted = targets(np.random.default_rng(1).normal(size=vectors.shape), labels, groups)
    return TASK.shares(TASK.judge(torch.from_numpy(vectors), wanted).kept.numpy())


def hits(vectors: FloatArray, labels: FloatArray, groups: FloatArray) -> list[bool]:
    """Of each picture that can have one, whether its nearest other picture is of its class; picture by picture."""
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    found = []
    for i in range(len(unit)):
        others = [j for j in range(len(unit)) if groups[j] != groups[i]]
        if any(labels[j] == labels[i] for j in others):
            near = max(others, key=lambda j: float(unit[i] @ unit[j]))
            found.append(bool(labels[near] == labels[i]))
    return found


@settings(deadline=None)
@given(st.integers(2, 24), st.integers(1, 4), st.integers(0, 10**6))
def test_the_mean_share_is_the_precision_of_the_nearest_neighbour(count: int, classes: int, seed: int) -> None:
    some = drawn(count, classes, seed)
    found = hits(*some)
    assert shares(*some).mean() == pytest.approx(np.mean(found) if found else 0.0)


def test_a_share_is_what_leaving_the_picture_out_takes() -> None:
    vectors, labels, _ = drawn(30, 3, 4)
    alone = np.arange(30)
    found = shares(vectors, labels, alone)
    without = []
    for i in range(30):
        rest = np.delete(alone, i)
        without.append(np.mean(hits(vectors[rest], labels[rest], rest)))
    np.testing.assert_allclose(found - found.mean(), 29 * (np.mean(without) - np.array(without)), atol=1e-9)
    assert found.std() > 0


def test_many_pictures_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    some = drawn(23, 3, 2)
    whole = shares(*some)
    monkeypatch.setattr(embedding, "ROWS", 5)
    assert np.array_equal(shares(*some), whole)


def test_without_classes_neighbours_are_those_of_the_original_network() -> None:
    random = np.random.default_rng(0)
    one, other, groups = random.normal(size=(40, 6)), random.normal(size=(40, 6)), np.arange(40)
    labels = np.full(40, UNKNOWN)
    found = TASK.shares(TASK.judge(torch.from_numpy(other), targets(one, labels, groups)).kept.numpy())

    def near(vectors: FloatArray, i: int) -> set[int]:
        cosines = vectors @ vectors[i] / np.linalg.norm(vectors, axis=1)
        return set(np.argsort(-np.delete(cosines, i))[: embedding.NEAREST].tolist())

    np.testing.assert_allclose(found, [len(near(one, i) & near(other, i)) / embedding.NEAREST for i in range(40)])
    same = TASK.shares(TASK.judge(torch.from_numpy(3 * one), targets(one, labels, groups)).kept.numpy())
    assert same.tolist() == [1.0] * 40


def test_nearness_is_1_in_the_same_direction_and_0_where_others_are_as_near() -> None:
    vectors, _, groups = drawn(50, 3, 7)
    labels = np.full(50, UNKNOWN)
    wanted = targets(vectors, labels, groups)
    same = TASK.judge(torch.from_numpy(2 * vectors), wanted)
    torch.testing.assert_close(same.values, torch.ones(50, dtype=torch.float64), atol=1e-6, rtol=0)
    opposite = TASK.judge(torch.from_numpy(-vectors), wanted)
    assert opposite.values.tolist() == [0.0] * 50
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    away = np.array([[1 - one @ other for other in unit] for one in unit])
    np.testing.assert_allclose(wanted[:, embedding.SPREAD], away.sum(1) / 49, rtol=1e-5)
    turned = TASK.judge(torch.from_numpy(np.roll(vectors, 1, 0)), wanted)
    expected = 1 - np.minimum(1, away[np.arange(50), np.arange(50) - 1] / (away.sum(1) / 49))
    np.testing.assert_allclose(turned.values, expected, atol=1e-5)


@pytest.mark.parametrize("classes", [2, 4, 6])
def test_class_precision_compares_with_the_own_class_and_those_most_like_it(classes: int) -> None:
    vectors, labels, groups = drawn(40, classes, 3)
    others = np.random.default_rng(5).normal(size=vectors.shape) + vectors
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def cosine(one: FloatArray, other: FloatArray) -> float:
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))

    expected = []
    for i, y in enumerate(others):
        own = unit[labels == labels[i]].sum(0)
        sums = {c: unit[labels == c].sum(0) for c in set(labels.tolist()) - {labels[i]}}
        rivals = sorted(sums.values(), key=lambda each: -cosine(own, each))[: embedding.RIVALS]
        expected.append(all(cosine(y, own - unit[i]) > cosine(y, each) for each in rivals))
    found = TASK.judge(torch.from_numpy(others), targets(vectors, labels, groups))
    assert found.values.tolist() == [float(each) for each in expected]
    assert 0 < sum(expected) < 40


def test_pictures_of_one_class_are_judged_by_nearness() -> None:
    vectors, _, groups = drawn(20, 1, 3)
    others = torch.from_numpy(np.roll(vectors, 1, 0))
    found, plain = (TASK.judge(others, targets(vectors, np.full(20, label), groups)) for label in (0, UNKNOWN))
    assert torch.equal(found.values, plain.values)


def test_chance_is_the_mean_direction() -> None:
    vectors, labels, groups = drawn(60, 3, 9)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    constant = torch.from_numpy(np.tile(unit.mean(0), (60, 1)))
    wanted = targets(vectors, labels, groups)
    assert TASK.chance(wanted.numpy()) == pytest.approx(TASK.judge(constant, wanted).values.mean().item(), abs=1e-6)


@pytest.mark.parametrize("output", [math.nan, math.inf, 0.0], ids=str)
def test_a_vector_without_a_direction_is_near_nothing(output: float) -> None:
    vectors, labels, groups = drawn(6, 2, 1)
    outputs = torch.from_numpy(vectors.copy())
    outputs[0] = output
    found = TASK.judge(outputs, targets(vectors, labels, groups))
    assert torch.isfinite(found.losses).all()
    assert torch.isfinite(found.kept).all()
    assert found.values[0] == 0
    same = TASK.judge(torch.from_numpy(vectors), targets(vectors, labels, groups))
    assert torch.equal(found.values[1:], same.values[1:])


def test_the_loss_is_the_squared_distance_from_the_teacher() -> None:
    outputs, teacher = (
        torch.tensor([[1.0, 0.0], [0.0, 2.0]], requires_grad=True),
        torch.tensor([[0.0, 0.0], [0.0, 1.0]]),
    )
    assert TASK.loss(outputs, torch.zeros(2), teacher, Lesson(weight=0.5)).item() == pytest.approx(2.0)
    with pytest.raises(TaskError, match="training without a teacher needs a loss"):
        TASK.loss(outputs, torch.zeros(2), None, Lesson())


def test_only_a_row_of_numbers_is_a_vector() -> None:
    assert TASK.misfit(torch.zeros(2, 8), 5, "data") == TASK.misfit(torch.zeros(2, 8, 1, 1), 5, "data") == ""
    for wrong in (torch.zeros(2, 1), torch.zeros(2, 8, 4, 4), torch.zeros(2), (torch.zeros(2, 8), torch.zeros(2, 8))):
        assert "expected vectors [2, d]" in TASK.misfit(wrong, 5, "data")


class Vectors(nn.Module):
    """Ends in a Tanh and a division by the length."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten())
        self.last = nn.Linear(128, 6)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.normalize(torch.tanh(self.last(self.body(x))), dim=1)


def splits() -> DataSplits:
    tiny = tiny_data.splits()
    for images in (tiny.validation, tiny.test):
        images.task = "embedding"
    return tiny


def test_targets_hold_classes_and_the_original_networks_vectors() -> None:
    torch.manual_seed(0)
    network, plain = Vectors().eval(), splits()
    with pytest.raises(TaskError, match=r"accuracy\.with_labels"):
        accuracy.correctness(network, plain.validation)
    data = accuracy.with_labels(plain, autotailor.compile(network, resolution=32))
    assert data.labelled
    assert data.num_classes == tiny_data.CLASSES
    with torch.no_grad():
        wanted = network(next(data.validation.batches(40))[0])
    np.testing.assert_array_equal(data.validation.labels[:, embedding.CLASS], plain.validation.labels)
    np.testing.assert_allclose(data.validation.labels[:, embedding.VECTOR :][:, :6], wanted.numpy(), atol=1e-5)
    some = data.validation.part(np.array([3, 5, 30]))
    np.testing.assert_array_equal(some.labels, data.validation.labels[[3, 5, 30]])
    known = hits(wanted.numpy(), plain.validation.labels, plain.validation.groups)
    assert accuracy.correctness(network, data.validation).mean() == pytest.approx(np.mean(known))


def test_vectors_that_know_no_class_are_doubted() -> None:
    data = splits()
    labels, groups = data.validation.labels, np.arange(40)
    random = np.random.default_rng(0)
    apart = np.eye(tiny_data.CLASSES)[labels] + 0.1 * random.normal(size=(40, tiny_data.CLASSES))

    def doubt(vectors: FloatArray) -> str:
        images = replace(data, validation=AnsweredSet(data.validation, TASK.beside(labels, groups, vectors)))
        assert of(images) is TASK
        return TASK.doubt(Asked(np.ones(40), vectors, lambda _: vectors), images, 0, "it")

    assert doubt(apart) == ""
    found = doubt(random.normal(size=(40, 5)))
    assert found.startswith("it has P@1")
    assert "a neighbour that is drawn by lot has 17.9 %" in found
