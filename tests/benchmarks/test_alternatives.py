"""Predictors of ``benchmarks/latency_predictor.py``: the table's predictions with the bias that runs learn."""

import numpy as np
from predictors.alternatives import with_forecast

COUNT = 50


def latencies() -> np.ndarray:
    return np.exp(np.random.default_rng(0).uniform(-1.0, 1.0, COUNT))


def test_a_bias_of_all_subnets_is_taken_away() -> None:
    predicted = latencies()
    found = with_forecast(predicted, 1.1 * predicted, np.full(COUNT, 0.01))
    np.testing.assert_allclose(found, 1.1 * predicted, rtol=1e-6)


def test_no_subnet_is_predicted_from_its_own_measurement() -> None:
    predicted, floor = latencies(), np.full(COUNT, 0.01)
    measured = predicted.copy()
    measured[7] *= 3.0
    before, after = with_forecast(predicted, predicted, floor), with_forecast(predicted, measured, floor)
    np.testing.assert_allclose(after[7], before[7], rtol=1e-12)
    assert (after != before).any()
