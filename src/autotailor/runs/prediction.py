"""What a run says about one SubNet, and how well predictions of its kind have agreed with measurements."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from autotailor.ir.space.subnet import SubNet
from autotailor.runs.known_metric import Estimate
from autotailor.search.robust.learning import expected_from_others
from autotailor.statistics import kendall_tau, kendall_tau_error

MEASURED = {
    "latency": ("latency_ms_measured", "latency_ms_standard_error", "ms", "of the exported file, on the device"),
    "peak_memory": ("memory_mb_measured", None, "MiB", "peak of an inference of the exported file, on the device"),
    "accuracy": ("accuracy_measured", "accuracy_standard_error", "%", "of the exported file, on the test set"),
}
"""Metric to its column of ``summary.csv``, the column of its standard error, its unit, and what was measured."""


@dataclass(frozen=True)
class Agreement:
    """Predictions of whole SubNets beside measurements, from a table of the run.

    Attributes:
        metric: name of the metric.
        subnets: number of measured SubNets.
        unit: of the errors: ``share`` of the measured value, or ``points`` of accuracy.
        mean_error: of predicted minus measured.
        root_mean_square_error: of predicted minus measured.
        kendall_tau: rank correlation of predicted and measured; None with fewer than two SubNets.
        kendall_tau_error: its standard error over draws of SubNets (jackknife); None with fewer than four SubNets.
        source: the table.
    """

    metric: str
    subnets: int
    unit: str
    mean_error: float
    root_mean_square_error: float
    kendall_tau: float | None
    kendall_tau_error: float | None
    source: str

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


@dataclass(frozen=True, eq=False)
class Prediction:
    """All that a run knows about one SubNet.

    Attributes:
        subnet: the SubNet.
        names: under which the run exports it.
        predicted: name of a metric to its prediction; metrics that nothing on the device measures are left out.
        measured: name of a metric to its measurement, where the run has exported the SubNet.
        weights: ``inherited`` or ``polished``, of the measured file; empty where the SubNet was not exported.
    """

    subnet: SubNet
    names: tuple[str, ...]
    predicted: Mapping[str, Estimate]
    measured: Mapping[str, Estimate]
    weights: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "subnet": self.subnet.id,
            "names": list(self.names),
            "weights": self.weights or None,
            "assignment": self.subnet.assignment,
            "predicted": {name: estimate.to_dict() for name, estimate in self.predicted.items()},
            "measured": {name: estimate.to_dict() for name, estimate in self.measured.items()},
        }


def measured(row: Mapping[str, Any]) -> dict[str, Estimate]:
    """The measurements in one row of ``summary.csv``; what nothing could measure is left out."""
    estimates = {}
    for name, (column, error_column, unit, what) in MEASURED.items():
        if column not in row:
            continue
        value, error = float(row[column]), float(row[error_column]) if error_column else np.nan
        if np.isfinite(value):
            estimates[name] = Estimate(value, unit, error if np.isfinite(error) else None, f"summary.csv: {what}")
    return estimates


def latency_agreement(validation: pd.DataFrame) -> Agreement | None:
    """Of sums of operators, from ``validation.csv``; None where the device was not available."""
    source = "validation.csv: sums of operators"
    return _agreement("latency", "share", validation["predicted_ms"], validation["measured_ms"], source)


def expectation_agreement(validation: pd.DataFrame) -> Agreement | None:
    """Of expected latencies: what the other SubNets of ``validation.csv`` say of each; None with fewer than three."""
    if (expected := expected_from_others(validation)) is None:
        return None
    source = "validation.csv: each SubNet as expected from the others"
    return _agreement("latency", "share", expected, validation["measured_ms"], source)


def accuracy_agreement(validation: pd.DataFrame) -> Agreement | None:
    """From ``accuracy_validation.csv``; None where no SubNet was measured."""
    source = "accuracy_validation.csv"
    return _agreement("accuracy", "points", validation["predicted"], validation["measured"], source)


def _agreement(metric: str, unit: str, predicted: Any, measured: Any, source: str) -> Agreement | None:
    before, after = np.asarray(predicted, dtype=np.float64), np.asarray(measured, dtype=np.float64)
    if not len(before):
        return None
    errors = before / after - 1.0 if unit == "share" else before - after
    tau = kendall_tau(before, after) if len(before) > 1 else float("nan")
    error = kendall_tau_error(before, after) if len(before) > 1 else float("nan")
    return Agreement(
        metric,
        len(before),
        unit,
        float(errors.mean()),
        float(np.sqrt(np.square(errors).mean())),
        tau if np.isfinite(tau) else None,
        error if np.isfinite(error) else None,
        source,
    )
