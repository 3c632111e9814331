"""Predictors of ``benchmarks/accuracy_predictor.py``: what learning from losses beside right answers changes."""

from dataclasses import dataclass

import numpy as np
import pytest
from evaluated.predictors import answers_alone, network_singles, ours

from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.ir.supernet import SuperNet
from autotailor.prediction import Outcome, Outcomes
from autotailor.statistics import kendall_tau

IMAGES, COPIES = 400, 2


@dataclass(frozen=True)
class Evaluated:
    """Stands for ``evaluated.network.Network``: right answers are drawn around known probabilities.

    Attributes:
        net: the SuperNet.
        power: to which all losses are raised.
    """

    net: SuperNet
    power: float = 1.0

    def margins(self, subnets: list[SubNet]) -> np.ndarray:
        """Log-odds of each SubNet for each image; SubNets differ by a sum over their choices."""
        strength = np.linspace(0.2, 0.6, len(self.net.space))
        away = np.abs(stack(subnets) - self.net.largest().to_array()) @ strength
        hard = np.random.default_rng(1).normal(0.0, 1.0, IMAGES // COPIES).repeat(COPIES)
        return 3.0 - 0.5 * away[:, None] + hard

    def outcomes(self, subnets: list[SubNet]) -> Outcomes:
        distinct = list(dict.fromkeys([self.net.largest(), *subnets]))
        found = {}
        for subnet, margin in zip(distinct, self.margins(distinct), strict=True):
            own = np.random.default_rng(int(subnet.id, 16) % 2**32)
            losses = np.logaddexp(0.0, -margin) ** self.power
            found[subnet.id] = Outcome(margin + own.logistic(size=IMAGES) > 0, losses.astype(np.float32))
        return Outcomes.of(self.net.space, distinct, found, np.arange(IMAGES) // COPIES)


@pytest.fixture
def evaluated(resnet_net: SuperNet) -> Evaluated:
    return Evaluated(resnet_net)


@pytest.fixture
def drawn(resnet_net: SuperNet) -> list[SubNet]:
    return list(sample_distinct(resnet_net.space, 120, np.random.default_rng(2)))


def test_losses_that_say_more_than_answers_predict_better(evaluated: Evaluated, drawn: list[SubNet]) -> None:
    learnt, asked = [*network_singles(evaluated), *drawn[:20]], drawn[20:]  # type: ignore[arg-type]
    truth = evaluated.margins(asked).mean(axis=1)
    tau, without = (
        kendall_tau(predictor(evaluated, learnt, asked).values, truth)  # type: ignore[arg-type]
        for predictor in (ours, answers_alone)
    )
    assert tau > without + 0.05, (tau, without)


def test_answers_alone_does_not_see_the_losses(evaluated: Evaluated, drawn: list[SubNet]) -> None:
    learnt, asked = [*network_singles(evaluated), *drawn[:20]], drawn[20:]  # type: ignore[arg-type]
    other = Evaluated(evaluated.net, power=0.5)
    alone, again = (answers_alone(each, learnt, asked) for each in (evaluated, other))  # type: ignore[arg-type]
    np.testing.assert_array_equal(alone.values, again.values)
    with_losses, changed = (ours(each, learnt, asked) for each in (evaluated, other))  # type: ignore[arg-type]
    assert not np.allclose(with_losses.values, changed.values)
