"""The metrics that a finished run can predict, with their standard errors."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.data.labels import Score
from autotailor.ir.space.metric import FloatArray, Metric
from autotailor.ir.space.variable import Space
from autotailor.ir.supernet import SuperNet
from autotailor.measurement.summary import Predictions
from autotailor.profiling import LUT, DeviceConfig, fusion_rules
from autotailor.runs.known_metric import KnownMetric
from autotailor.sensitivity import accuracy_metric

LATENCY = "lut.csv: sum over the SubNet's operators; in the standard error, a row that is used k times counts k times"
ENERGY = "lut.csv: power above idle of each kind of operator times its latency, summed"
MEMORY = "lut.csv and the graph: resident weights, plus the largest sum of live activations and scratch memory"
GRAPH = "the graph"


@dataclass(frozen=True)
class Sensitivities:
    """Measured accuracy drops.

    Attributes:
        rows: ``sensitivity.csv``.
        standard_error: of the accuracy of the largest SubNet, from which the drops are taken, points.
    """

    rows: pd.DataFrame
    standard_error: float


@dataclass(frozen=True, eq=False)
class DropError:
    """Standard error of a predicted accuracy: those of the baseline and of the drops add in quadrature.

    Attributes:
        variance: sum of the squared standard errors of a SubNet's drops, points², negated.
        baseline: standard error of the baseline, points.
    """

    variance: Metric
    baseline: float

    @property
    def space(self) -> Space:
        """The variables."""
        return self.variance.space

    def predict(self, subnets: npt.ArrayLike) -> FloatArray:
        """Standard error ``[n]`` in points, for choice indices ``[n, variables]``."""
        return np.asarray(np.sqrt(self.baseline**2 - self.variance.predict(subnets)), dtype=np.float64)


def accuracy_of(metric: Metric, sensitivities: Sensitivities | None, score: Score) -> KnownMetric:
    """Accuracy in percent, with inherited weights.

    Args:
        metric: the run's prediction (``accuracy.json``).
        sensitivities: the drops that the prediction is the sum of (paper, eq. 3), whose standard errors are known; None
            where the prediction was learnt from evaluations, of which the run keeps no posterior.
        score: what the share of right answers is called.
    """
    if sensitivities is None:
        what = f"{score.name} learnt from evaluated SubNets, on the validation set, with inherited weights"
        return KnownMetric("accuracy", "%", metric, None, f"accuracy.json: {what}", is_best_high=True)
    rows = sensitivities.rows
    squared = rows.assign(accuracy_drop=np.square(rows["standard_error"]))
    return KnownMetric(
        "accuracy",
        "%",
        metric,
        DropError(accuracy_metric(metric.space, squared, 0.0), sensitivities.standard_error),
        f"accuracy.json: {score.name} of the largest SubNet on the validation set minus the drops of the SubNet's "
        "modifications (sensitivity.csv), with inherited weights; standard errors as if independent",
        is_best_high=True,
    )


def known_metrics(
    net: SuperNet, accuracy: KnownMetric, found: Predictions, lut: LUT, device: DeviceConfig
) -> dict[str, KnownMetric]:
    """The metrics of a run, by name; energy is left out where the device has no sensor."""
    errors = net.latency_error(lut.standard_errors(), fusion_rules(device))
    metrics = [
        accuracy,
        KnownMetric("latency", "ms", found.latency, errors, LATENCY),
        KnownMetric("memory", "MiB", found.memory, None, MEMORY),
        KnownMetric("parameters", "millions", found.parameters, None, GRAPH),
        KnownMetric("macs", "millions", found.macs, None, GRAPH),
    ]
    if found.energy is not None:
        metrics.insert(2, KnownMetric("energy", "mJ", found.energy, None, ENERGY))
    return {metric.name: metric for metric in metrics}
