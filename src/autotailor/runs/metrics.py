"""The metrics that a finished run can predict, with their standard errors."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.space.variable import Space
from autotailor.measurement.summary import Predictions
from autotailor.prediction import Accuracy, DropError, ModelError
from autotailor.runs.known_metric import KnownMetric
from autotailor.search import LatencyForecast
from autotailor.search.metrics import METRICS
from autotailor.task.scores import Score

LATENCY = (
    "lut.csv: sum over the SubNet's operators, and what validation.csv says that such sums are off by; the standard "
    "error is that of a further measurement"
)
HOW: Mapping[type, str] = {
    DropError: "{score} of the largest SubNet on the validation set minus the drops of the SubNet's modifications "
    "(sensitivity.csv), with inherited weights; standard errors as if independent",
    ModelError: "{score} learnt from evaluated SubNets, on the validation set, with inherited weights; standard errors "
    "are those of the model, and of the images",
    type(None): "{score} on the validation set, with inherited weights; the file was written before standard errors "
    "were kept",
}
"""Class of the standard errors to how the accuracy was predicted."""


def metric_name(name: str) -> str:
    """The name of a metric as tables and budgets have it: ``memory`` stands for ``peak_memory``."""
    return next((spec.name for spec in METRICS.values() if spec.short == name), name)


def accuracy_of(accuracy: Accuracy, score: Score) -> KnownMetric:
    """Accuracy in percent, with inherited weights.

    Args:
        accuracy: the run's prediction (``accuracy.json``).
        score: what the share of right answers is called.
    """
    how = HOW[type(accuracy.error)].format(score=score.mean)
    return KnownMetric("accuracy", "%", accuracy.metric, accuracy.error, f"accuracy.json: {how}", is_best_high=True)


@dataclass(frozen=True, eq=False)
class ForecastError:
    """Standard errors of expected latencies, as errors of a further measurement of the SubNet.

    Attributes:
        sums: latencies by the table of operators, ms.
        forecast: what the run's measurements say of such sums.
    """

    sums: Metric
    forecast: LatencyForecast

    @property
    def space(self) -> Space:
        """The variables."""
        return self.sums.space

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard errors ``[n]`` in ms, for choice indices ``[n, variables]``."""
        rows = np.array(subnets, dtype=np.int64, ndmin=2)
        pairs = zip(rows, self.sums.predict(rows).tolist(), strict=True)
        found = [self.forecast.of(SubNet.from_array(self.space, row), value) for row, value in pairs]
        return np.array([each.median_ms * each.scale for each in found])


def known_metrics(accuracy: KnownMetric, predictions: Predictions, forecast: LatencyForecast) -> dict[str, KnownMetric]:
    """The metrics of a run, by name.

    Energy is left out where the device has no sensor; latency, energy and memory are left out without a device.

    Args:
        accuracy: see ``accuracy_of``.
        predictions: all predictions of the run.
        forecast: of measured latencies.
    """
    metrics = [accuracy]
    if predictions.latency is not None:
        expected = replace(predictions.latency, link=forecast.link())
        metrics.append(KnownMetric("latency", "ms", expected, ForecastError(predictions.latency, forecast), LATENCY))
    for name, metric in predictions.metrics.items():
        unit = "millions" if METRICS[name].unit == "M" else METRICS[name].unit
        metrics.append(KnownMetric(name, unit, metric, None, METRICS[name].source))
    return {metric.name: metric for metric in metrics}
