"""``accuracy_validation.csv``: predicted against measured accuracy of random SubNets on the test set."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pandas as pd

from autotailor.data.splits import DataSplits
from autotailor.ir.space.link import points_of_log_odds
from autotailor.ir.space.metric import FloatArray
from autotailor.ir.space.subnet import SubNet, sample_distinct, stack
from autotailor.ir.supernet import SuperNet
from autotailor.prediction.evaluations.outcome import Outcome
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.prediction.model import AccuracyModel
from autotailor.sensitivity.config import SensitivityConfig, SensitivityError
from autotailor.sensitivity.measurement import Sensitivity, evaluate, predicted_accuracy
from autotailor.statistics import accuracy, accuracy_drop
from autotailor.task.registry import score_of

COLUMNS = (
    "subnet",
    "assignment",
    "predicted",
    "predicted_standard_error",
    "measured",
    "standard_error",
    "own_standard_error",
)


def validation_subnets(net: SuperNet, config: SensitivityConfig) -> tuple[SubNet, ...]:
    """Random SubNets for ``validate_accuracy``: distinct, uniform over the space, drawn from ``config.seed``."""
    return sample_distinct(net.space, config.validate_subnets, np.random.default_rng(config.seed))


def validate_accuracy(
    net: SuperNet,
    data: DataSplits,
    predictor: Sensitivity | AccuracyModel,
    subnets: Sequence[SubNet],
    config: SensitivityConfig,
    journal: Path,
) -> pd.DataFrame:
    """Compares predicted and measured accuracy of whole SubNets on the test set.

    The prediction begins with the *test* accuracy of the largest SubNet, and what it learnt comes from the *validation*
    set, so that the comparison tests the prediction and not the difference between two sets of images.

    Returns:
        subnet (id), assignment (JSON), predicted (percent), predicted_standard_error (points, of the predicted drop
        against the largest SubNet), measured (percent), standard_error (points, of the measured drop against the
        largest SubNet: paired, clustered by base image), own_standard_error (points, the part of it that the SubNet
        has for itself: the rest moves all SubNets alike).
    """
    if not subnets:
        raise SensitivityError("validate_accuracy needs at least one SubNet")
    base = net.largest()
    evaluations = evaluate(net, data, data.test, [base, *subnets], config, journal, f"{score_of(data).mean} validation")
    groups, values = data.test.groups, evaluations[base.id].values
    predicted, errors = _predicted(net, predictor, subnets, values)
    own = _own_errors(net, subnets, evaluations, groups)
    rows = [
        (
            subnet.id,
            subnet.to_json(),
            float(value),
            float(error),
            accuracy(evaluations[subnet.id].values, groups)[0],
            accuracy_drop(values, evaluations[subnet.id].values, groups)[1],
            own.get(subnet, 0.0),
        )
        for subnet, value, error in zip(subnets, predicted, errors, strict=True)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _predicted(
    net: SuperNet, predictor: Sensitivity | AccuracyModel, subnets: Sequence[SubNet], reference: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Predictions ``[n]`` in percent, and the standard errors of the drops ``[n]`` in points."""
    rows = stack(subnets)
    if isinstance(predictor, AccuracyModel):
        return predictor.metric(reference).predict(rows), predictor.metric_errors(rows, known_level=True)
    prediction = predicted_accuracy(net.space, predictor.rows, 100.0 * float(reference.mean()), 0.0)
    assert prediction.error is not None
    return prediction.metric.predict(rows), prediction.error.predict(rows)


def _own_errors(
    net: SuperNet, subnets: Sequence[SubNet], evaluations: Mapping[str, Outcome], groups: npt.NDArray[np.int64]
) -> dict[SubNet, float]:
    """Standard error of each measurement beside the shift of all, points; not of the largest one."""
    if not set(subnets) - {net.largest()}:
        return {}
    outcomes = Outcomes.of(net.space, subnets, evaluations, groups)
    errors = points_of_log_odds(100.0 * outcomes.values.mean(axis=1)) * np.sqrt(outcomes.beside_shift)
    return dict(zip(outcomes.subnets, errors.tolist(), strict=True))
