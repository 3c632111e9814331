"""Tasks by name, and the tasks of data."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import tiny_data
from autotailor import data, task
from autotailor.data.splits import TensorEvaluationSet
from autotailor.task import registry
from autotailor.task.registry import register


@pytest.mark.parametrize("name", task.names())
def test_each_task_says_what_it_is(name: str) -> None:
    found = task.find(name)
    assert found.name == name
    assert found.network.startswith(("a ", "an "))
    assert found.reading.endswith(".")
    assert found.agreement.compares
    assert found.score.compares != found.labelled


UNREAD = [name for name in task.names() if not (task.find(name).has_boxes or task.find(name).compares)]
"""Tasks whose outputs are judged as they are, by their answers; boxes and vectors have these tests of their own."""


@pytest.mark.parametrize("name", UNREAD)
def test_examples_are_targets_of_the_task_and_its_loss_has_a_gradient(name: str) -> None:
    found = task.find(name)
    targets, _ = found.examples(4, 3)
    places = (3, 3) if found.has_maps else ()
    outputs = torch.randn(4, 3, *places, generator=torch.Generator().manual_seed(0)).requires_grad_(True)
    for teacher in (None, torch.zeros(4, 3, *places)):
        loss = found.loss(outputs, targets, teacher, task.Lesson(weight=0.5))
        assert loss.isfinite()
        assert torch.autograd.grad(loss, outputs)[0].abs().sum() > 0
    assert found.misfit(outputs[:2], 3, "the data") == ""
    refusal = "that the network was trained on" if found.has_numbers else "of the network's classes"
    assert (refusal in found.misfit(outputs[:2], 4, "the data")) == found.labelled


@pytest.mark.parametrize("name", UNREAD)
def test_what_a_network_answers_is_right_as_a_target(name: str) -> None:
    found = task.find(name)
    outputs = torch.randn(50, 5, *((4, 4) if found.has_maps else ()), generator=torch.Generator().manual_seed(0))
    answers = found.answers(outputs)
    has_classes = found.labelled and not found.has_numbers
    kind = torch.uint8 if found.has_maps else torch.int64 if has_classes else torch.float32
    assert (answers.dtype, answers.ndim) == (kind, found.target_axes)
    assert (found.judge(outputs, answers).values == 1).all()
    assert (found.agree(outputs, outputs) == 1).all()
    assert 0 < found.chance(answers.numpy()) < 1


def test_a_section_without_a_task_is_classification() -> None:
    assert task.of_section({"name": "digits"}).name == "classification"
    assert task.score({"name": "digits"}).name == "accuracy"
    assert task.score({"name": "digits", "labels": False}).name == "agreement"
    assert task.score({"task": "multilabel"}).name == "average precision"


def test_an_unknown_task_is_refused_with_the_known_ones() -> None:
    with pytest.raises(
        task.TaskError,
        match=r"known are classification, detection, embedding, multilabel, outputs, regression, segmentation\. "
        r"Did you mean 'multilabel'",
    ):
        task.find("multi_label")


def test_a_task_is_registered_once() -> None:
    with pytest.raises(task.TaskError, match="registered twice"):
        register(type(task.find("classification")))


def test_data_have_targets_of_their_task() -> None:
    images = TensorEvaluationSet(torch.zeros(4, 3, 8, 8), np.arange(4) % 2, range(4), "multilabel")
    with pytest.raises(task.TaskError, match=r"multilabel, whose targets have 2 axes.*shape \[4\]"):
        task.of(replace(tiny_data.splits(), validation=images))
    assert task.of(tiny_data.splits()).name == "classification"


def test_a_task_that_builds_on_regression_gets_numbers_whatever_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task.names()
    monkeypatch.setattr(registry, "_KINDS", dict(registry._KINDS))

    @register
    class Ages(type(task.find("regression"))):  # type: ignore[misc]
        name = "ages"

    x = np.random.default_rng(0).normal(size=(40, 2, 8)).astype(np.float32)
    years = np.linspace(0.5, 90, 40, dtype=np.float32)
    np.savez(tmp_path / "a.npz", x=x, y=years)
    section = {"name": "a", "kind": "arrays", "root": str(tmp_path / "a.npz"), "task": "ages"}
    splits = data.load(section)
    assert splits.validation.labels.dtype == np.float32
    found = task.of(splits)
    assert isinstance(found, Ages)
    assert found.told  # means and deviations of the training targets
    kept = TensorEvaluationSet(torch.zeros(2, 3, 8, 8), np.array([[0.25], [1.75]], np.float32), range(2), "ages")
    assert kept.labels.tolist() == [[0.25], [1.75]]
    with pytest.raises(task.TaskError, match="unknown task 'aged'"):
        data.load({**section, "task": "aged"})
