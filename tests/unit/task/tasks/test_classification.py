"""What is right of a classifier, and how far."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.task import find
from autotailor.task.rows import WORST

TASK = find("classification")


def test_losses_are_those_of_pytorch_in_fp64() -> None:
    random = torch.Generator().manual_seed(0)
    logits = 8 * torch.randn(200, 7, generator=random)
    labels = torch.randint(7, (200,), generator=random)
    found = TASK.judge(logits, labels)
    right, losses = found.values, found.losses
    assert right.tolist() == (logits.argmax(1) == labels).tolist()
    assert losses.dtype == torch.float32
    np.testing.assert_allclose(losses, F.cross_entropy(logits.double(), labels, reduction="none"), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("logit", [float("nan"), float("inf"), -1e30], ids=str)
def test_outputs_that_are_no_numbers_have_the_worst_loss(logit: float) -> None:
    logits = torch.tensor([[0.0, logit, 0.0], [0.0, 3.0, 0.0]])
    losses = TASK.judge(logits, torch.tensor([1, 1])).losses
    assert losses[0] == WORST
    assert losses[1] == pytest.approx(-np.log(np.exp(3) / (np.exp(3) + 2)), rel=1e-5)


@settings(deadline=None)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=60))
def test_guessing_classes_as_often_as_they_occur_is_right_by_chance(labels: list[int]) -> None:
    counts = np.bincount(labels)
    guesses = np.repeat(np.arange(len(counts)), counts)
    every = np.equal.outer(guesses, labels).mean()
    assert TASK.chance(np.array(labels)) == pytest.approx(every)


def test_a_softmax_changes_no_value() -> None:
    logits = torch.randn(50, 6, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(50) % 6
    assert torch.equal(TASK.judge(logits, labels).values, TASK.judge(logits.softmax(1), labels).values)
    assert torch.equal(TASK.agree(logits, logits.roll(1, 0)), TASK.answers(logits) == TASK.answers(logits).roll(1, 0))
