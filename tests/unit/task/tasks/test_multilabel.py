"""What is right of several labels, and how far."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import label_ranking_average_precision_score

import tiny_data
from autotailor.data.splits import TensorEvaluationSet
from autotailor.ir.space.metric import FloatArray
from autotailor.task import find
from autotailor.task.interface import Asked, Lesson
from autotailor.task.rows import WORST
from autotailor.task.tasks import multilabel

TASK = find("multilabel")
LEVELS = st.integers(-3, 3)  # few, so that outputs are often equal


@st.composite
def pictures(draw: st.DrawFn) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs and labels of some pictures."""
    count, labels = draw(st.integers(1, 6)), draw(st.integers(2, 6))
    rows = st.lists(LEVELS, min_size=labels, max_size=labels)
    known = st.lists(st.integers(0, 1), min_size=labels, max_size=labels)
    outputs = torch.tensor(draw(st.lists(rows, min_size=count, max_size=count)), dtype=torch.float32)
    return outputs, torch.tensor(draw(st.lists(known, min_size=count, max_size=count)))


@settings(deadline=None)
@given(pictures())
def test_the_mean_value_is_the_average_precision_of_scikit_learn(found: tuple[torch.Tensor, torch.Tensor]) -> None:
    outputs, labels = found
    wanted = label_ranking_average_precision_score(labels.numpy(), outputs.numpy())
    assert TASK.judge(outputs, labels).values.mean().item() == pytest.approx(wanted, abs=1e-6)


@settings(deadline=None)
@given(pictures())
def test_values_lie_between_0_and_1_and_a_sigmoid_changes_none(found: tuple[torch.Tensor, torch.Tensor]) -> None:
    outputs, labels = found
    values = TASK.judge(outputs, labels).values
    assert ((values >= 0) & (values <= 1)).all()
    torch.testing.assert_close(TASK.judge(outputs.sigmoid(), labels).values, values)


@settings(deadline=None)
@given(pictures())
def test_a_network_whose_answers_are_the_labels_has_the_value_1(found: tuple[torch.Tensor, torch.Tensor]) -> None:
    _, labels = found
    outputs = 2.0 * labels - 1.0
    assert torch.equal(TASK.answers(outputs), labels)
    assert (TASK.judge(outputs, labels).values == 1).all()


def test_many_labels_are_judged_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    outputs, labels = torch.randn(9, 5, generator=generator), torch.randint(2, (9, 5), generator=generator)
    whole = TASK.judge(outputs, labels)
    monkeypatch.setattr(multilabel, "MOST", 50)
    assert torch.equal(TASK.judge(outputs, labels).values, whole.values)


@pytest.mark.parametrize("output", [math.nan, math.inf, -1e30], ids=str)
def test_outputs_that_are_no_numbers_count_as_the_worst(output: float) -> None:
    found = TASK.judge(torch.tensor([[output, 0.0], [0.0, 3.0]]), torch.tensor([[0, 1], [0, 1]]))
    assert torch.isfinite(found.losses).all()
    assert found.losses.max() <= WORST
    assert (found.values[0] == 0) == math.isnan(output)


def test_chance_is_the_order_in_which_labels_occur() -> None:
    """Labels that occur equally often are equally far: none comes before the other."""
    often = np.array([[1, 0, 0], [1, 0, 0], [1, 1, 0], [0, 0, 1]])
    assert TASK.chance(often) == pytest.approx((1 + 1 + 5 / 6 + 1 / 3) / 4)


def test_labels_alone_and_a_teacher_are_learnt_for_each_output() -> None:
    outputs, labels = torch.zeros(2, 3, requires_grad=True), torch.tensor([[1, 0, 1], [0, 0, 0]])
    hard = TASK.loss(outputs, labels, None, Lesson())
    assert hard.item() == pytest.approx(3 * math.log(2))
    (slope,) = torch.autograd.grad(hard, outputs)
    torch.testing.assert_close(slope, (0.5 - labels.float()) / 2)
    taught = TASK.loss(outputs, labels, torch.zeros(2, 3), Lesson(weight=1.0))
    assert taught.item() == pytest.approx(0.0)


def test_smoothed_labels_are_less_sure_in_both_directions() -> None:
    outputs = torch.zeros(1, 2, requires_grad=True)
    (slope,) = torch.autograd.grad(TASK.loss(outputs, torch.tensor([[1, 0]]), None, Lesson(smoothing=0.2)), outputs)
    torch.testing.assert_close(slope, torch.tensor([[-0.4, 0.4]]))


def test_a_network_that_ranks_labels_by_chance_is_doubted() -> None:
    generator = torch.Generator().manual_seed(0)
    labels = (torch.rand(200, 6, generator=generator) < torch.tensor([0.7, 0.5, 0.3, 0.2, 0.1, 0.1])).long()
    images = TensorEvaluationSet(torch.zeros(200, 3, 8, 8), labels, range(200), "multilabel")
    data = replace(tiny_data.splits(), num_classes=6, validation=images)

    def doubt(outputs: torch.Tensor) -> str:
        values: FloatArray = TASK.judge(outputs, labels).values.double().numpy()
        answers = TASK.answers(outputs).numpy()
        return TASK.doubt(Asked(values, answers, lambda _: answers), data, 0, "it")

    assert "check that it was trained on these labels, in this order" in doubt(torch.rand(200, 6, generator=generator))
    assert doubt(labels + 2.0 * torch.rand(200, 6, generator=generator)) == ""
