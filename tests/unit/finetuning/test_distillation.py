"""The losses of heads with one Softmax, and with a Sigmoid for each class."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import Bernoulli, Categorical, kl_divergence

from autotailor.finetuning.config import DistillationConfig
from autotailor.finetuning.distillation import distillation_loss, label_loss

LOGITS, TEACHER = (torch.randn(6, 5, generator=torch.Generator().manual_seed(seed)).double() for seed in (0, 1))
LABELS = torch.tensor([0, 1, 2, 3, 4, 0])
SOFT = DistillationConfig(weight=1.0, temperature=2.0)


def test_soft_labels_of_a_softmax_are_one_distribution() -> None:
    wanted = 4 * kl_divergence(Categorical(logits=TEACHER / 2), Categorical(logits=LOGITS / 2)).mean()
    torch.testing.assert_close(distillation_loss(LOGITS, LABELS, TEACHER, SOFT, 0.0), wanted)


def test_soft_labels_of_sigmoids_are_one_distribution_for_each_class() -> None:
    wanted = 4 * kl_divergence(Bernoulli(logits=TEACHER / 2), Bernoulli(logits=LOGITS / 2)).sum(1).mean()
    torch.testing.assert_close(distillation_loss(LOGITS, LABELS, TEACHER, SOFT, 0.0, independent=True), wanted)


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
        same = distillation_loss(TEACHER, LABELS, TEACHER, SOFT, 0.0, independent)
        shifted = distillation_loss(TEACHER + 3, LABELS, TEACHER, SOFT, 0.0, independent)
        assert same.item() == pytest.approx(0.0, abs=1e-12)
        assert bool(shifted > 0.1) == independent
