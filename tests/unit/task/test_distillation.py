"""The losses of heads with one Softmax, and with a Sigmoid for each class."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence
from torch.nn import functional

from autotailor.task.distillation import distillation_loss, label_loss
from autotailor.task.interface import Lesson

LOGITS, TEACHER = (torch.randn(6, 5, generator=torch.Generator().manual_seed(seed)).double() for seed in (0, 1))
LABELS = torch.tensor([0, 1, 2, 3, 4, 0])
HALF = Lesson(weight=0.5)
SOFT = Lesson(weight=1.0, temperature=2.0)


def test_soft_labels_of_a_softmax_are_one_distribution() -> None:
    wanted = 4 * kl_divergence(Categorical(logits=TEACHER / 2), Categorical(logits=LOGITS / 2)).mean()
    torch.testing.assert_close(distillation_loss(LOGITS, LABELS, TEACHER, SOFT), wanted)


def test_soft_labels_of_sigmoids_are_one_distribution_for_each_class() -> None:
    wanted = 4 * kl_divergence(Bernoulli(logits=TEACHER / 2), Bernoulli(logits=LOGITS / 2)).sum(1).mean()
    torch.testing.assert_close(distillation_loss(LOGITS, LABELS, TEACHER, replace(SOFT, independent=True)), wanted)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_hard_labels_of_sigmoids_are_yes_for_one_class_and_no_for_the_others(smoothing: float) -> None:
    hard = torch.full((6, 5), smoothing / 5).double()
    hard[torch.arange(6), LABELS] += 1 - smoothing
    probability = LOGITS.sigmoid()
    wanted = -(hard * probability.log() + (1 - hard) * (1 - probability).log()).sum(1).mean()
    torch.testing.assert_close(label_loss(LOGITS, LABELS, smoothing, independent=True), wanted)


def test_a_common_shift_of_the_logits_counts_for_sigmoids_only() -> None:
    """Otherwise a threshold on an exported Sigmoid would mean something else after training."""
    for independent in (False, True):
        same = distillation_loss(TEACHER, LABELS, TEACHER, replace(SOFT, independent=independent))
        shifted = distillation_loss(TEACHER + 3, LABELS, TEACHER, replace(SOFT, independent=independent))
        assert same.item() == pytest.approx(0.0, abs=1e-12)
        assert bool(shifted > 0.1) == independent


@pytest.mark.parametrize("independent", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_of_mixed_labels_is_the_mixture_of_their_losses(smoothing: float, independent: bool) -> None:
    first, second = LABELS, LABELS.roll(1)
    mixed = 0.3 * functional.one_hot(first, 5) + 0.7 * functional.one_hot(second, 5)
    lesson = replace(HALF, smoothing=smoothing, independent=independent)
    wanted = sum(
        share * distillation_loss(LOGITS, labels, TEACHER, lesson) for share, labels in ((0.3, first), (0.7, second))
    )
    torch.testing.assert_close(distillation_loss(LOGITS, mixed, TEACHER, lesson), wanted, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("independent", [False, True])
def test_shares_of_one_class_are_its_number(independent: bool) -> None:
    shares = functional.one_hot(LABELS, 5).double()
    numbers = label_loss(LOGITS, LABELS, 0.1, independent)
    torch.testing.assert_close(label_loss(LOGITS, shares, 0.1, independent), numbers)
