"""Accuracy of all SubNets from evaluations of some: a sum of terms with a standard error for every SubNet.

Log-odds against the largest SubNet are the sum of one or two parts (``autotailor.prediction.evaluations.outcomes``),
and a Bayesian linear model (``autotailor.prediction.linear``) learns each. The part of the log-odds that follows from
the mean loss has little noise; a second model adds the residual. All parts are observed on the same SubNets, and then
the sum of the models is what a model of all parts at once would predict, up to the correlation of their noise: means
and variances add up. The prior variances of each part maximise its evidence.

The posterior mean is a sum of terms, and so is every draw from the posterior: an exact front of either can be found by
elimination. Drawing a front and evaluating it is Thompson sampling (Baptista and Poloczek, 2018, for such models).

The drops of single modifications are the prior mean, and evaluations as well. They have no part in the evidence,
because they would confirm the mean that is made of them, and every variance would come out too small. The prior mean of
the second part is 0, because its drops by single modifications are mostly noise of right answers.

Of a SubNet that only guesses, an upper bound of the log-odds is known. It counts as an observation where the model
believes that the SubNet is above, and else as none: it is left out first, and comes back where the fit contradicts it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.link import Link, logit_above, points_of_log_odds
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray
from autotailor.prediction.evaluations.noise import log_odds
from autotailor.prediction.evaluations.observations import Observations, Part
from autotailor.prediction.evaluations.outcome import BoolArray
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.prediction.evidence import maximise
from autotailor.prediction.functions import Group, groups, proportional
from autotailor.prediction.linear import LinearModel, Prior, added, extra_misfit

UNEVEN = 0.3
"""Standard deviation of how far the divergence of a whole SubNet is from that which its modifications add up to, as a
share of the latter (docs/design/accuracy.md)."""
UNLIKE = 0.15
"""Standard deviation of how far log-odds are from a sum of terms, as a share of them, where evaluated SubNets guess:
with it, 80 % intervals cover about as many SubNets of made-up worlds as they should (docs/design/accuracy.md)."""


@dataclass(frozen=True, eq=False)
class AccuracyModel:
    """Accuracy of SubNets after evaluations of some of them.

    Attributes:
        observations: the evaluations.
        priors: of each part of the observations.
    """

    observations: Observations
    priors: tuple[Prior, ...]

    def metric(self, reference: FloatArray | None = None) -> Metric:
        """The posterior mean of accuracy in percent, a sum of terms with the link ``logit``.

        Args:
            reference: values of the largest SubNet for some images, on which accuracy is predicted instead of the
                evaluated ones.
        """
        mean = self._mean_metric
        if reference is None:
            return mean
        seen = self.observations
        shift = float(log_odds(reference.sum(), len(reference), seen.floor)) - seen.baseline
        return replace(mean, constant=mean.constant + shift)

    def draw(self, random: np.random.Generator) -> Metric:
        """A draw from the posterior of the weights, as a metric like ``metric``."""
        return self._metric([part.draw(random) for part in self.parts])

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Accuracy for choice indices ``[n, variables]``: ``[n]``, percent.

        Unlike ``metric``, the mean of a SubNet that was evaluated includes its own misfit.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        linear = sum(part.mean(array) for part in self.parts)
        return self.link.value(np.asarray(linear + self.observations.baseline))

    def standard_errors(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error of ``predict`` as the accuracy on the evaluated images, relative to the largest SubNet's.

        Args:
            subnets: choice indices ``[n, variables]``.

        Returns:
            ``[n]``, points.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        return self._points(self.predict(array), np.asarray(sum(part.variance(array) for part in self.parts)))

    def updated(self, later: Outcomes) -> AccuracyModel:
        """The model after further evaluations, with the same priors and slope (``Observations.updated``)."""
        seen = self.observations
        later = replace(later, floor=seen.floor)
        model = replace(self, observations=seen.updated(later.observed(seen.slope)))
        while (rows := model.contradicted).any():
            model = replace(model, observations=model.observations.tightened(rows))
        return model

    @property
    def contradicted(self) -> BoolArray:
        """Which SubNets the model believes to be above an upper bound that does not count yet ``[n]``."""
        seen = self.observations
        return seen.is_loose & (self._mean_metric.linear(seen.indices) - seen.baseline > seen.log_odds)

    @property
    def link(self) -> Link:
        """From log-odds to percent."""
        return logit_above(100.0 * self.observations.floor)

    def metric_errors(self, subnets: npt.ArrayLike, *, known_level: bool = False) -> FloatArray:
        """Standard error of ``metric``, as the accuracy on all images like the evaluated ones: ``[n]``, points.

        That of an evaluated SubNet is as if it had not been evaluated: ``metric`` does not know a SubNet's own misfit.

        Args:
            subnets: choice indices ``[n, variables]``.
            known_level: whether the largest SubNet was evaluated on the images in question; else the error includes the
                level of all SubNets, the largest one included.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        level = 0.0 if known_level else self.observations.level
        variance = self._on_other_images(array) + level + self._unlike_terms(array)
        return self._points(self._mean_metric.predict(array), variance)

    def _unlike_terms(self, subnets: IntArray) -> FloatArray:
        """Variance of log-odds ``[n]`` beside the misfit, where evaluated SubNets guess; else none.

        What a guessing SubNet leaves open lets evidence say little about terms that do not add up, and these count for
        more the more is lost.
        """
        if not self.observations.is_loose.any():
            return np.zeros(len(subnets))
        return np.square(UNLIKE * (self._mean_metric.linear(subnets) - self.observations.baseline))

    def _on_other_images(self, subnets: IntArray) -> FloatArray:
        """Variance of sums of terms ``[n]`` as predictions for other images, up to a shift of all predictions.

        What the prior leaves open, and the noise of the evaluated images as it moves the prediction. The fit takes the
        noise of SubNets for independent, which makes the posterior variance too small where they fail at the same
        images. The shift is the mean over evaluated SubNets with several modifications.
        """
        gains = [part.gain(subnets) for part in self.parts]
        apart = sum(part.variance_beside_noise(subnets) for part in self.parts)
        moved = self._moved(gains) - self._shift
        rest = sum(np.square(gain) @ part.rest for gain, part in zip(gains, self.observations.parts, strict=True))
        return np.asarray(apart + np.square(moved).sum(axis=1) + rest)

    def _moved(self, gains: Iterable[FloatArray]) -> FloatArray:
        """Effects on predictions ``[n, k]`` of the draws that evaluated SubNets have in common, from their gains."""
        parts = self.observations.parts
        return np.asarray(sum(gain @ part.correlated for gain, part in zip(gains, parts, strict=True)))

    @cached_property
    def _shift(self) -> FloatArray:
        """What these draws do to all predictions alike ``[k]``."""
        seen = self.observations
        rows = seen.indices[seen.is_whole] if seen.is_whole.any() else seen.indices
        return np.asarray(self._moved([part.gain(rows) for part in self.parts]).mean(axis=0))

    @cached_property
    def parts(self) -> tuple[LinearModel, ...]:
        """The model of each part of the log-odds."""
        seen = self.observations
        return tuple(
            LinearModel(seen.space, seen.indices, part, prior)
            for part, prior in zip(seen.parts, self.priors, strict=True)
        )

    @cached_property
    def _mean_metric(self) -> Metric:
        return self._metric([part.weights for part in self.parts])

    def _metric(self, weights: Iterable[FloatArray]) -> Metric:
        """The sum of all parts with given weights, with one term for each set of variables and gate."""
        constant, terms = self.observations.baseline, list[Term]()
        for term in added(t for part, own in zip(self.parts, weights, strict=True) for t in part.terms(own)):
            if term.variables or term.gate is not None:
                terms.append(term)
            else:
                constant += float(term.table)
        return Metric("accuracy", "%", self.observations.space, tuple(terms), constant, self.link)

    def _points(self, percent: FloatArray, variance: FloatArray) -> FloatArray:
        """Standard errors of log-odds as those of percentages ``[n]``, points."""
        return np.asarray(points_of_log_odds(percent, 100.0 * self.observations.floor) * np.sqrt(variance))


def fit(outcomes: Outcomes, cost: Metric) -> AccuracyModel:
    """Fits the model to answers and losses.

    Args:
        outcomes: evaluations, among them each single modification of the largest SubNet.
        cost: terms over two variables are admitted where this metric couples the two.

    Raises:
        PredictionError: a single modification was not evaluated.
    """
    return learn(outcomes.observations, cost)


def learn(seen: Observations, cost: Metric) -> AccuracyModel:
    """Fits the model to what is read of evaluations; arguments and errors as of ``fit``."""
    offered = functions(seen, cost)
    while True:
        priors = tuple(_prior(seen, part, own) for part, own in zip(seen.parts, offered, strict=True))
        model = AccuracyModel(seen, priors)
        if not (rows := model.contradicted).any():
            return model
        seen = seen.tightened(rows)


def functions(seen: Observations, cost: Metric) -> list[tuple[Group, ...]]:
    """The functions of each part, in groups; arguments and errors as of ``fit``.

    Of log-odds beside what divergences say of them, nothing is learnt but how much they scatter: with a few hundred
    images they are mostly noise, and a search would choose those SubNets for which the noise is kind.
    """
    if seen.adds_up:
        return [proportional(seen.space, seen.drops(seen.parts[0].target)), ()]
    means = [1.0, *[0.0] * (len(seen.parts) - 1)]
    return [
        groups(seen.space, seen.drops(part.target), cost, mean) for part, mean in zip(seen.parts, means, strict=True)
    ]


def _prior(seen: Observations, part: Part, offered: tuple[Group, ...]) -> Prior:
    """The prior of one part, with the variances that maximise the evidence of whole SubNets."""
    whole = seen.is_whole
    columns = {group.name: group.columns(seen.space, seen.indices[whole]) for group in offered}
    expected = np.zeros(whole.sum()) + sum(group.mean * columns[group.name].sum(axis=1) for group in offered)
    kernels = {name: values @ values.T for name, values in columns.items()}
    uneven = UNEVEN if seen.adds_up and offered else 0.0
    own = part.independent[whole] + extra_misfit(seen.space, seen.indices[whole]) + np.square(uneven * expected)
    return Prior(offered, maximise(kernels, part.target[whole] - expected, own), uneven)
