"""Accuracy as a run predicts it: a sum of terms, and the standard error of every prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.variable import Space
from autotailor.prediction.model import AccuracyModel


@dataclass(frozen=True, eq=False)
class DropError:
    """Standard error of a sum of single drops: those of the baseline and of the drops add in quadrature.

    Attributes:
        variance: square of the standard error, a sum of terms, points².
    """

    variance: Metric

    @property
    def space(self) -> Space:
        """The variables."""
        return self.variance.space

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error ``[n]`` in points, for choice indices ``[n, variables]``."""
        return np.asarray(np.sqrt(self.variance.predict(subnets)), dtype=np.float64)


@dataclass(frozen=True, eq=False)
class ModelError:
    """Standard error of what a model predicts, as the accuracy on all images like those of its evaluations.

    Attributes:
        model: after the evaluations.
    """

    model: AccuracyModel

    @property
    def space(self) -> Space:
        """The variables."""
        return self.model.observations.space

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error ``[n]`` in points, for choice indices ``[n, variables]``."""
        return self.model.metric_errors(subnets)


@dataclass(frozen=True, eq=False)
class Accuracy:
    """The prediction of accuracy with inherited weights.

    Attributes:
        metric: in percent, on the validation set.
        error: predicts standard errors; None for a file that was written before errors were kept.
    """

    metric: Metric
    error: DropError | ModelError | None

    @property
    def model(self) -> AccuracyModel | None:
        """What evaluations have taught; None where the prediction is the sum of single drops."""
        return self.error.model if isinstance(self.error, ModelError) else None

    @classmethod
    def learnt(cls, model: AccuracyModel) -> Accuracy:
        """The posterior mean of a model, with its standard error."""
        return cls(model.metric(), ModelError(model))
