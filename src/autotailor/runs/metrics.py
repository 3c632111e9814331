"""The metrics that a finished run can predict, with their standard errors."""

from collections.abc import Mapping

from autotailor.ir.supernet import SuperNet
from autotailor.measurement.summary import Predictions
from autotailor.prediction import Accuracy, DropError, ModelError
from autotailor.profiling import LUT, DeviceConfig, fusion_rules
from autotailor.runs.known_metric import KnownMetric
from autotailor.search.metrics import METRICS
from autotailor.task.scores import Score

LATENCY = "lut.csv: sum over the SubNet's operators; in the standard error, a row that is used k times counts k times"
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


def known_metrics(
    net: SuperNet, accuracy: KnownMetric, predictions: Predictions, lut: LUT | None, device: DeviceConfig | None
) -> dict[str, KnownMetric]:
    """The metrics of a run, by name.

    Energy is left out where the device has no sensor; latency, energy and memory are left out without a device.

    Args:
        net: the run's SuperNet.
        accuracy: see ``accuracy_of``.
        predictions: all predictions of the run.
        lut: latencies of the operators on the device; None without a device.
        device: of the run; None without a device.
    """
    metrics = [accuracy]
    if predictions.latency is not None and lut is not None and device is not None:
        errors = net.latency_error(lut.standard_errors(), fusion_rules(device))
        metrics.append(KnownMetric("latency", "ms", predictions.latency, errors, LATENCY))
    for name, metric in predictions.metrics.items():
        unit = "millions" if METRICS[name].unit == "M" else METRICS[name].unit
        metrics.append(KnownMetric(name, unit, metric, None, METRICS[name].source))
    return {metric.name: metric for metric in metrics}
