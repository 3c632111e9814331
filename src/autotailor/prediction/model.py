"""A Bayesian linear model of accuracy: a sum of terms with a standard error for every SubNet.

Log-odds against the largest SubNet are a weighted sum of functions (``autotailor.prediction.functions``) and a misfit,
which is independent from SubNet to SubNet and larger for those that training favours
(``autotailor.prediction.favoured``). Weights and misfit are Gaussian; their prior variances maximise the
evidence. The posterior mean is a sum of terms, and so is every draw from the posterior: an exact front of either can be
found by elimination. Drawing a front and evaluating it is Thompson sampling (Baptista and Poloczek, 2018, for such
models).

The drops of single modifications are the prior mean, and evaluations as well. They have no part in the evidence,
because they would confirm the mean that is made of them, and every variance would come out too small.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.gate import Gate
from autotailor.ir.space.link import LOGIT, points_of_log_odds
from autotailor.ir.space.metric import FloatArray, Metric, Term
from autotailor.ir.space.subnet import IntArray
from autotailor.prediction.evidence import MISFIT, maximise
from autotailor.prediction.favoured import extra_misfit
from autotailor.prediction.functions import Group, groups
from autotailor.prediction.observations import Observations
from autotailor.prediction.outcomes import BoolArray, Outcomes, log_odds


@dataclass(frozen=True, eq=False)
class AccuracyModel:
    """Accuracy of SubNets after evaluations of some of them.

    Attributes:
        observations: the evaluations.
        groups: of functions.
        variances: prior variance of each group's weights, and of the misfit, in squared log-odds.
    """

    observations: Observations
    groups: tuple[Group, ...]
    variances: Mapping[str, float]

    def metric(self, reference: BoolArray | None = None) -> Metric:
        """The posterior mean of accuracy in percent, a sum of terms with the link ``logit``.

        Args:
            reference: whether the largest SubNet is right about each of some images, on which accuracy is predicted
                instead of the evaluated ones.
        """
        found = self._mean_metric
        if reference is None:
            return found
        shift = float(log_odds(reference.sum(), len(reference))) - self.observations.baseline
        return replace(found, constant=found.constant + shift)

    def draw(self, random: np.random.Generator) -> Metric:
        """A draw from the posterior of the weights, as a metric like ``metric``."""
        weights = self._mean + np.sqrt(self._scale) * random.standard_normal(len(self._mean))
        spread = np.sqrt(self._own)
        seen = self._columns @ weights + spread * random.standard_normal(len(spread))
        correction = np.linalg.solve(self._total, self.observations.target - seen)
        return self._metric(weights + self._scale * (self._columns.T @ correction))

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Accuracy for choice indices ``[n, variables]``: ``[n]``, percent.

        Unlike ``metric``, the mean of a SubNet that was evaluated includes its own misfit.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        linear = self._features(array) @ self._mean + self._cross(array) @ self._solved
        return LOGIT.value(linear + self.observations.baseline)

    def standard_errors(self, subnets: npt.ArrayLike, *, same_images: bool = False) -> FloatArray:
        """Standard error of ``predict``, relative to the largest SubNet's accuracy: ``[n]``, points.

        Args:
            subnets: choice indices ``[n, variables]``.
            same_images: whether the accuracy on the evaluated images is asked; else that on all images like them, whose
                error includes what is common to all SubNets on the evaluated images.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        variance = self._variance(array, self._cross(array))
        common = 0.0 if same_images else self.observations.shared
        return _points(self.predict(array), variance + common)

    def updated(self, later: Observations) -> AccuracyModel:
        """The model after further evaluations, with the same prior variances (``Observations.updated``)."""
        return replace(self, observations=self.observations.updated(later))

    def metric_errors(self, subnets: npt.ArrayLike, *, same_images: bool = False) -> FloatArray:
        """Standard error of ``metric``: ``[n]``, points.

        That of an evaluated SubNet is as if it had not been evaluated: ``metric`` does not know a SubNet's own misfit.

        Args:
            subnets: choice indices ``[n, variables]``.
            same_images: whether the accuracy on the evaluated images is asked; else that on all images like them, whose
                error includes the level of all SubNets, the largest one included.
        """
        array = np.array(subnets, dtype=np.int64, ndmin=2)
        level = 0.0 if same_images else self.observations.level
        terms = (self._features(array) * self._scale) @ self._columns.T
        return _points(self._mean_metric.predict(array), self._variance(array, terms) + level)

    def _variance(self, subnets: IntArray, cross: FloatArray) -> FloatArray:
        """Posterior variance of log-odds ``[n]``, given prior covariances with the evaluated SubNets ``[n, m]``."""
        prior = np.square(self._features(subnets)) @ self._scale + self._misfit(subnets)
        variance = prior - np.einsum("ij,ij->i", cross, np.linalg.solve(self._total, cross.T).T)
        return np.asarray(np.maximum(variance, 0.0))

    def _features(self, subnets: IntArray) -> FloatArray:
        space = self.observations.space
        return np.concatenate([group.columns(space, subnets) for group in self.groups], axis=1)

    def _cross(self, subnets: IntArray) -> FloatArray:
        """Prior covariance of SubNets ``[n, variables]`` with the evaluated ones, misfits included: ``[n, m]``."""
        same = (subnets[:, None, :] == self.observations.indices[None]).all(axis=2)
        own = self._misfit(subnets)[:, None] * same
        return np.asarray((self._features(subnets) * self._scale) @ self._columns.T + own)

    def _misfit(self, subnets: IntArray) -> FloatArray:
        """Variance of the misfit of each SubNet ``[n]``."""
        return self.variances[MISFIT] + extra_misfit(self.observations.space, subnets)

    @cached_property
    def _mean_metric(self) -> Metric:
        return self._metric(self._mean + self._scale * (self._columns.T @ self._solved))

    @cached_property
    def _columns(self) -> FloatArray:
        return self._features(self.observations.indices)

    @cached_property
    def _mean(self) -> FloatArray:
        return np.concatenate([np.full(len(group.functions), group.mean) for group in self.groups])

    @cached_property
    def _scale(self) -> FloatArray:
        return np.concatenate([np.full(len(g.functions), self.variances[g.name]) for g in self.groups])

    @cached_property
    def _total(self) -> FloatArray:
        """Prior covariance of the targets ``[m, m]``."""
        return np.asarray((self._columns * self._scale) @ self._columns.T + np.diag(self._own))

    @cached_property
    def _own(self) -> FloatArray:
        """Variance that each target has for itself, misfit and noise ``[m]``."""
        return self._misfit(self.observations.indices) + self.observations.independent

    @cached_property
    def _solved(self) -> FloatArray:
        return np.asarray(np.linalg.solve(self._total, self.observations.target - self._columns @ self._mean))

    def _metric(self, weights: FloatArray) -> Metric:
        """The weighted sum of all functions, with one term for each set of variables and gate."""
        tables: dict[tuple[tuple[str, ...], Gate | None], FloatArray] = {}
        functions = [function for group in self.groups for function in group.functions]
        for weight, function in zip(weights, functions, strict=True):
            for term in function:
                key = (term.variables, term.gate)
                tables[key] = tables.get(key, 0.0) + weight * term.table
        constant = self.observations.baseline + float(tables.pop(((), None), 0.0))
        terms = tuple(
            Term(variables, table, gate, " and ".join(variables)) for (variables, gate), table in tables.items()
        )
        return Metric("accuracy", "%", self.observations.space, terms, constant, LOGIT)


def _points(percent: FloatArray, variance: FloatArray) -> FloatArray:
    """Standard errors of log-odds as those of percentages ``[n]``, points."""
    return np.asarray(points_of_log_odds(percent) * np.sqrt(variance))


def fit(outcomes: Outcomes, cost: Metric) -> AccuracyModel:
    """Fits the model.

    Args:
        outcomes: evaluations, among them each single modification of the largest SubNet.
        cost: terms over two variables are admitted where this metric couples the two.

    Raises:
        PredictionError: a single modification was not evaluated.
    """
    seen = outcomes.observations
    found = groups(seen.space, seen.drops(), cost)
    whole = seen.is_whole
    columns = {group.name: group.columns(seen.space, seen.indices[whole]) for group in found}
    expected = sum(group.mean * columns[group.name].sum(axis=1) for group in found)
    kernels = {name: values @ values.T for name, values in columns.items()}
    own = seen.independent[whole] + extra_misfit(seen.space, seen.indices[whole])
    variances = maximise(kernels, seen.target[whole] - expected, own)
    return AccuracyModel(seen, found, variances)
