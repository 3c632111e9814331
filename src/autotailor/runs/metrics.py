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
        baseline: accuracy of the largest SubNet on the validation set, percent.
        standard_error: of the baseline, points.
    """

    rows: pd.DataFrame
    baseline: float
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


def accuracy_of(space: Space, sensitivities: Sensitivities, score: Score) -> KnownMetric:
    """Accuracy in percent, with inherited weights (paper, eq. 3)."""
    rows = sensitivities.rows
    squared = rows.assign(accuracy_drop=np.square(rows["standard_error"]))
    return KnownMetric(
        "accuracy",
        "%",
        accuracy_metric(space, rows, sensitivities.baseline),
        DropError(accuracy_metric(space, squared, 0.0), sensitivities.standard_error),
        f"sensitivity.csv: {score.name} of the largest SubNet on the validation set minus the drops of the SubNet's "
        "modifications, with inherited weights; standard errors as if independent",
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
