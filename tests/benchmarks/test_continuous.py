"""Continuous scores of ``benchmarks/accuracy_predictor.py``: cross entropies, their noise, what is learnt of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from evaluated import losses as keeping
from evaluated.continuous import Scored, with_losses
from evaluated.losses import losses
from evaluated.predictors import ours
from torch.nn import functional

import tiny_data
from autotailor.accuracy import Calibrator
from autotailor.accuracy.calibration import as_input, resolution_of
from autotailor.compute.placement import CPU
from autotailor.data import DataSplits
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.ir.space.variable import Modification
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcomes
from autotailor.statistics import kendall_tau

IMAGES, COPIES = 400, 2
CALIBRATION = {"images": 16, "batch_size": 16}


@dataclass(frozen=True)
class Trained:
    """Stands for ``sampled.training.Run``."""

    folder: Path
    configuration: dict[str, Any]


@dataclass(frozen=True)
class Evaluated:
    """Stands for ``evaluated.network.Network``: right answers are drawn around known probabilities."""

    net: SuperNet
    data: DataSplits
    run: Trained

    def margins(self, subnets: list[SubNet]) -> np.ndarray:
        """Log-odds of each SubNet for each image; SubNets differ by a sum over their choices."""
        strength = np.linspace(0.2, 0.6, len(self.net.space))
        away = np.abs(stack(subnets) - self.net.largest().to_array()) @ strength
        hard = np.random.default_rng(1).normal(0.0, 1.0, IMAGES // COPIES).repeat(COPIES)
        return 3.0 - 0.5 * away[:, None] + hard

    def outcomes(self, subnets: list[SubNet]) -> Outcomes:
        distinct = list(dict.fromkeys([self.net.largest(), *subnets]))
        right = {}
        for subnet, margin in zip(distinct, self.margins(distinct), strict=True):
            own = np.random.default_rng(int(subnet.id, 16) % 2**32)
            right[subnet.id] = margin + own.logistic(size=IMAGES) > 0
        return Outcomes.of(self.net.space, distinct, right, np.arange(IMAGES) // COPIES)


@pytest.fixture
def evaluated(tmp_path: Path, resnet_net: SuperNet) -> Evaluated:
    run = Trained(tmp_path, {"finetune": {"calibration": CALIBRATION}})
    return Evaluated(resnet_net, tiny_data.splits(), run)


def scored(evaluated: Evaluated, count: int, **weights: float) -> Scored:
    plain = evaluated.outcomes(list(sample_distinct(evaluated.net.space, count, np.random.default_rng(0))))
    found = np.logaddexp(0.0, -evaluated.margins([evaluated.net.largest(), *plain.subnets]))
    fields = (plain.space, plain.subnets, plain.right, plain.reference, plain.groups)
    return Scored(*fields, found[1:], found[0], **weights)


def test_with_log_odds_alone_target_and_noise_are_those_of_the_outcomes(evaluated: Evaluated) -> None:
    found = scored(evaluated, 8, of_log_odds=1.0, of_score=0.0)
    plain = evaluated.outcomes(list(found.subnets))
    np.testing.assert_allclose(found.target, plain.target)
    np.testing.assert_allclose(found.covariance, plain.covariance, atol=1e-12)


def test_the_noise_of_a_score_is_that_of_draws_of_base_images(evaluated: Evaluated) -> None:
    found = scored(evaluated, 8, of_log_odds=0.0, of_score=1.0)
    random, bases = np.random.default_rng(0), IMAGES // COPIES
    drawn = (random.integers(bases, size=(2000, bases))[:, :, None] * COPIES + np.arange(COPIES)).reshape(2000, -1)
    scores = [np.log(found.reference_losses[d].mean()) - np.log(found.losses[:, d].mean(axis=1)) for d in drawn]
    np.testing.assert_allclose(found.covariance, np.cov(np.array(scores).T), rtol=0.2, atol=1e-6)


def test_losses_are_those_of_each_subnet_alone_and_are_kept(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch
) -> None:
    subnets = [evaluated.net.largest(), evaluated.net.smallest()]
    found = losses(evaluated, subnets)  # type: ignore[arg-type]
    module, images = evaluated.net.module().eval(), evaluated.data.validation
    config = keeping.CalibrationConfig.from_section(CALIBRATION)
    for subnet in subnets:
        module.statistics = Calibrator(evaluated.data, config).statistics(module, subnet)
        with torch.no_grad():
            logits = [module(as_input(batch, CPU, resolution_of(subnet))) for batch, _ in images.batches(keeping.BATCH)]
        chances = functional.softmax(torch.cat(logits), dim=1).numpy()
        np.testing.assert_allclose(
            np.exp(-found[subnet.id]), chances[np.arange(len(images)), images.labels], rtol=1e-4, atol=1e-6
        )

    monkeypatch.setattr(keeping, "_losses", None)
    np.testing.assert_array_equal(losses(evaluated, subnets)[subnets[1].id], found[subnets[1].id])  # type: ignore[arg-type]


def test_scores_that_say_more_than_answers_predict_better(
    evaluated: Evaluated, monkeypatch: pytest.MonkeyPatch
) -> None:
    def known(_: Any, subnets: list[SubNet]) -> dict[str, np.ndarray]:
        rows = np.logaddexp(0.0, -evaluated.margins(subnets))
        return {subnet.id: row for subnet, row in zip(subnets, rows, strict=True)}

    monkeypatch.setattr("evaluated.continuous.losses", known)
    base = evaluated.net.largest()
    singles = [base.transform(Modification(v.name, c)) for v in evaluated.net.space for c in v.choices]
    drawn = list(sample_distinct(evaluated.net.space, 120, np.random.default_rng(2)))
    learnt, asked = [*singles, *drawn[:20]], drawn[20:]
    truth = evaluated.margins(asked).mean(axis=1)
    tau, without = (
        kendall_tau(predictor(evaluated, learnt, asked).values, truth)  # type: ignore[arg-type]
        for predictor in (with_losses, ours)
    )
    assert tau > without + 0.05, (tau, without)
