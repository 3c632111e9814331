"""Detection: what a decoder's answer becomes, how pictures and sets are judged, and what is refused before training."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from autotailor.task import TaskError, average_precision, find, of_section
from autotailor.task.interface import Lesson
from autotailor.task.tasks.detection import MOST, Detection

BOX = [8.0, 16.0, 24.0, 32.0]
TARGET = torch.tensor([[[0.125, 0.25, 0.375, 0.5, 1.0, 0.0]], [[0.0, 0.0, 0.0, 0.0, -1.0, 0.0]]])
Decode = Callable[[Any, int], Any]


def answer(boxes: list[list[float]], scores: list[float], labels: list[int]) -> dict[str, torch.Tensor]:
    return {"boxes": torch.tensor(boxes).reshape(-1, 4), "scores": torch.tensor(scores), "labels": torch.tensor(labels)}


@pytest.fixture
def told() -> Callable[[Decode], Detection]:
    """A task with a decoder."""

    def make(decode: Decode) -> Detection:
        task = Detection("somewhere:decode")
        task.__dict__["_decode"] = decode
        return task

    return make


def test_a_decoders_boxes_become_shares_of_the_picture_the_best_first(told: Callable[[Decode], Detection]) -> None:
    nan = float("nan")
    boxes = [[0.0, 0.0, 4.0, 4.0], BOX, [nan, 0.0, 1.0, 1.0], [5.0, 5.0, 5.0, 9.0]]
    task = told(lambda outputs, size: [answer(boxes, [0.4, 0.9, 0.8, 0.7], [0, 1, 1, 1]), answer([], [], [])])
    found = task.read((torch.zeros(2, 7), torch.zeros(2, 3)), 64)
    assert found.shape == (2, MOST, 6)
    assert found[0, 0].tolist() == pytest.approx([0.125, 0.25, 0.375, 0.5, 0.9, 1.0])
    assert (found[0, :, 5] >= 0).sum() == 2
    assert (found[1, :, 5] < 0).all()


def test_pictures_are_judged_each_for_itself_and_the_set_by_map(told: Callable[[Decode], Detection]) -> None:
    task = told(lambda outputs, size: [answer([BOX], [0.9], [1]), answer([BOX], [0.8], [1])])
    found = task.read(torch.zeros(2, 1), 64)
    judged = task.judge(found, TARGET)
    assert judged.values.tolist() == [1.0, 1.0], "where there is nothing to find, nothing is said"
    shares = task.shares(judged.kept.numpy())
    assert shares.mean() == pytest.approx(average_precision.of_set(judged.kept.numpy())[0]) == pytest.approx(1.0)
    other = task.judge(task.read(torch.zeros(2, 1), 128), TARGET)
    assert other.values.tolist() == [0.0, 1.0], "edges are pixels of the image that the network saw"
    assert other.losses.tolist() == [1.0, 0.0]
    assert task.chance(TARGET.numpy()) == 0.5
    assert task.agree(found, found).tolist() == [1.0, 1.0]
    assert task.judge(found, task.answers(found)).values.tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("decode", "message"),
    [
        (lambda outputs, size: 1 / 0, "failed on outputs for 2 images: ZeroDivisionError"),
        (lambda outputs, size: [answer([BOX], [0.9], [1])], "returned 1 pictures for 2 images"),
        (lambda outputs, size: [{"boxes": [BOX]}] * 2, "failed on outputs for 2 images: KeyError: 'scores'"),
        (lambda outputs, size: [answer([BOX], [3.0], [1])] * 2, "scores from 3 to 3"),
        (lambda outputs, size: [answer([BOX], [0.5, 0.5], [1])] * 2, r"returned shapes \[\[1, 4\], \[2\], \[1\]\]"),
    ],
)
def test_a_decoder_that_answers_otherwise_is_refused(
    told: Callable[[Decode], Detection], decode: Decode, message: str
) -> None:
    with pytest.raises(TaskError, match=f"data.decode somewhere:decode .*{message}.*expected for each picture"):
        told(decode).read(torch.zeros(2, 1), 64)


def test_a_class_that_the_data_do_not_have_is_named(told: Callable[[Decode], Detection]) -> None:
    task = told(lambda outputs, size: [answer([BOX], [0.9], [5])] * 2)
    read = task.read(torch.zeros(2, 1), 64)
    assert task.misfit(read, 6, "data x") == ""
    assert re.search("finds class 5 .* data x has 3 classes, 0 to 2", task.misfit(read, 3, "data x"))


def test_training_learns_the_teachers_outputs_and_needs_one(told: Callable[[Decode], Detection]) -> None:
    task, wanted = told(lambda outputs, size: []), (torch.randn(2, 3, 4, 4), torch.randn(2, 2, 4, 4))
    found = tuple((each + 0.1).requires_grad_() for each in wanted)
    loss = task.loss(found, TARGET, wanted, Lesson(weight=0.5))
    assert loss == find("outputs").loss(found, TARGET, wanted, Lesson())
    assert all(each.abs().sum() > 0 for each in torch.autograd.grad(loss, found))
    examples, what = task.examples(4, 3)
    assert (examples.shape, "edges are shares" in what) == ((4, 1, 6), True)
    with pytest.raises(TaskError, match=r"give the trained network .* or name your own loss in finetune\.loss"):
        task.loss(found, TARGET, None, Lesson())


def test_the_decoder_is_named_by_the_data_and_found_before_any_work() -> None:
    section = {"task": "detection", "decode": "autotailor.task.decoders.yolo:yolo"}
    task = of_section(section)
    task.check()
    assert (task.name, task.told) == ("detection", section["decode"])
    with pytest.raises(TaskError, match=r"data\.decode names no function"):
        of_section({"task": "detection"}).check()
    with pytest.raises(TaskError, match=r"data\.decode mine:nothing: module mine cannot be imported"):
        of_section({"task": "detection", "decode": "mine:nothing"}).check()
    assert np.isclose(task.total(np.array([0.5, 0.7]), np.array([0, 1]))[0], 60)
