"""Scores of predictions against the test set."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from autotailor.prediction import Outcomes
from autotailor.statistics import coverage, kendall_tau
from evaluated.predictors import Prediction

FloatArray = npt.NDArray[np.float64]
TOP, GROUPS, GROUP = 5, 100, 200


def scores(prediction: Prediction, test: Outcomes, ceiling: float) -> dict[str, float]:
    """Scores of one predictor.

    Args:
        prediction: for the SubNets of ``test``.
        test: the held-out SubNets, evaluated on the test set.
        ceiling: Kendall's tau between accuracies on the validation set and on the test set.

    Returns:
        ``tau``; ``tau_over_ceiling``; ``top5``, the share of groups whose best SubNet on the test set is among the five
        with the best predictions; ``error``, mean absolute error in points of the predicted drop against the largest
        SubNet; ``shift``, mean of predicted minus measured log-odds; ``coverage``, the share of drops within the 80 %
        interval, up to this shift. The interval counts the noise that each SubNet has beside the shift on the test set.
        The shift is mostly the noise that all SubNets share, a single draw for all of them that differs between sets.
    """
    truth = test.target
    tau = kendall_tau(prediction.values, truth)
    found = {
        "tau": tau,
        "tau_over_ceiling": tau / ceiling,
        "top5": top(prediction.values, truth),
        "error": float(np.mean(np.abs(_percent(prediction.values, test) - _percent(truth, test)))),
        "shift": float(np.mean(prediction.values - truth)),
        "coverage": float("nan"),
    }
    if prediction.variance is not None:
        deviation = np.sqrt(prediction.variance + test.beside_shift)
        found["coverage"] = coverage(prediction.values - truth, deviation)
    return found


def top(predicted: FloatArray, truth: FloatArray) -> float:
    """Share of random groups whose best SubNet is among the five with the best predictions.

    Groups are drawn with replacement, because they are as large as the set of held-out SubNets, up to ``GROUP``.
    """
    random = np.random.default_rng(0)
    hits = []
    for _ in range(GROUPS):
        group = np.unique(random.choice(len(truth), min(GROUP, len(truth))))
        best = np.argsort(-predicted[group], kind="stable")[:TOP]
        hits.append(truth[group].max() <= truth[group][best].max())
    return float(np.mean(hits))


def _percent(log_odds: FloatArray, test: Outcomes) -> FloatArray:
    return np.asarray(100.0 / (1.0 + np.exp(-(log_odds + test.baseline))))
