"""A predictor that learns from a continuous score as well: the mean cross entropy of each evaluated SubNet.

The score of a SubNet is c = -log(mean cross entropy), against the largest SubNet's on the same images. It is far less
noisy than the log-odds y of a right answer, and nearly a linear function of them. So y = b c + d, with b by least
squares over the evaluated SubNets; two models of ``autotailor.prediction`` learn c and d, and the prediction is the sum
of b times the first and the second. For outputs that are all observed on the same SubNets, this is what a model of
both outputs at once would predict, up to the correlation of their noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.subnet import SubNet, stack
from autotailor.prediction import AccuracyModel, Outcomes, fit
from autotailor.prediction.outcomes import log_odds
from evaluated.losses import losses
from evaluated.network import Network
from evaluated.predictors import Prediction

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Scored(Outcomes):
    """Evaluated SubNets whose target is a weighted sum of log-odds and score, each against the largest SubNet's.

    Attributes:
        losses: cross entropy of each SubNet for each image, ``[n, images]``.
        reference_losses: the same for the largest SubNet, ``[images]``.
        of_log_odds: weight of the log-odds y.
        of_score: weight of the score c.
    """

    losses: FloatArray
    reference_losses: FloatArray
    of_log_odds: float
    of_score: float

    @cached_property
    def score(self) -> FloatArray:
        """The score c ``[n]``."""
        return np.asarray(np.log(self.reference_losses.mean()) - np.log(self.losses.mean(axis=1)))

    @cached_property
    def target(self) -> FloatArray:
        """The weighted sum ``[n]``."""
        against = log_odds(self.right.sum(axis=1), self.right.shape[1]) - self.baseline
        return np.asarray(self.of_log_odds * against + self.of_score * self.score)

    @cached_property
    def covariance(self) -> FloatArray:
        """Covariance of the targets over draws of base images ``[n, n]`` (delta method)."""
        answers = _of_answers(self.right) - _of_answers(self.reference[None])
        scores = _of_losses(self.reference_losses[None]) - _of_losses(self.losses)
        effects = self.of_log_odds * answers + self.of_score * scores
        _, group = np.unique(self.groups, return_inverse=True)
        sums = np.stack([np.bincount(group, weights=row) for row in effects])
        count = sums.shape[1]
        return np.asarray(sums @ sums.T * (count / (count - 1) / effects.shape[1] ** 2))


def with_losses(network: Network, learnt: Sequence[SubNet], asked: Sequence[SubNet]) -> Prediction:
    """The model of ``autotailor.prediction`` for the score, and once more for what log-odds are beside it."""
    plain = network.outcomes(learnt)
    found = losses(network, [network.net.largest(), *plain.subnets])
    of_subnets = np.stack([found[subnet.id] for subnet in plain.subnets])
    fields = (plain.space, plain.subnets, plain.right, plain.reference, plain.groups)
    scored = Scored(*fields, of_subnets, found[network.net.largest().id], of_log_odds=0.0, of_score=1.0)
    slope = float(np.polyfit(scored.score, plain.target, 1)[0])
    rest = replace(scored, of_log_odds=1.0, of_score=-slope)
    values, variance = np.zeros(len(asked)), np.zeros(len(asked))
    for weight, outcomes in ((slope, scored), (1.0, rest)):
        value, own = _predicted(fit(outcomes, network.net.macs()), asked)
        values, variance = values + weight * value, variance + weight**2 * own
    return Prediction(values, variance)


def _predicted(model: AccuracyModel, asked: Sequence[SubNet]) -> tuple[FloatArray, FloatArray]:
    """Predicted targets ``[n]`` and their variances: the model's percentages are converted back."""
    rows, metric = stack(asked), model.metric()
    share = metric.predict(rows) / 100
    errors = model.standard_errors(rows, same_images=True) / (100 * share * (1 - share))
    return metric.linear(rows) - model.observations.baseline, np.square(errors)


def _of_answers(right: npt.NDArray[np.bool_]) -> FloatArray:
    """First-order effect of each image on log-odds ``[n, images]``, as in ``autotailor.prediction.outcomes``."""
    share = (right.sum(axis=1, keepdims=True) + 0.5) / (right.shape[1] + 1)
    return np.asarray((right - right.mean(axis=1, keepdims=True)) / (share * (1 - share)))


def _of_losses(values: FloatArray) -> FloatArray:
    """First-order effect of each image on the logarithm of the mean loss ``[n, images]``."""
    return np.asarray(values / values.mean(axis=1, keepdims=True) - 1)
