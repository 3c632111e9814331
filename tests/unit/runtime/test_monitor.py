"""The monitor: quantiles of what was predicted, and steps of the load."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.runtime import Monitor

SPLIT = np.array([3.0, 1.0, 0.5])
MS = float(SPLIT.sum())


def after(monitor: Monitor, slowdowns: list[float]) -> Monitor:
    for slowdown in slowdowns:
        monitor = monitor.observed(SPLIT, MS * slowdown, MS)
    return monitor


def test_the_quantile_is_one_that_the_share_of_latencies_met() -> None:
    monitor = after(Monitor(), [1.0] * 18 + [1.5, 1.0])
    assert len(monitor.residuals) == 20
    for q in (0.5, 0.8, 0.95, 0.99):
        assert np.mean([residual <= monitor.quantile(q) for residual in (*monitor.residuals, 1.0)]) >= q
    assert monitor.quantile(0.5) < 1.05
    assert monitor.quantile(0.99) == pytest.approx(1.5)


def test_nothing_is_known_before_the_first_inference() -> None:
    assert Monitor().quantile(0.95) == 1.0
    assert Monitor().predicted_ms(SPLIT[None])[0] == pytest.approx(MS)


def test_a_step_of_the_load_is_followed_at_its_second_inference() -> None:
    monitor = after(after(Monitor(), [1.0] * 30), [3.0] * 2)
    assert monitor.predicted_ms(SPLIT[None])[0] == pytest.approx(3 * MS, rel=0.01)
    assert monitor.quantile(0.95) == 1.0


def test_a_single_outlier_is_no_step() -> None:
    monitor = after(after(Monitor(), [1.0] * 30), [3.0, 1.0])
    assert monitor.predicted_ms(SPLIT[None])[0] < 1.5 * MS
    assert len(monitor.residuals) > 2


def test_an_inference_that_is_only_noted_counts_for_the_quantile_alone() -> None:
    monitor = after(Monitor(), [1.0] * 20)
    noted = monitor.noted(1.4)
    assert noted.residuals == (*monitor.residuals, 1.4)
    assert noted.quantile(0.99) == 1.4
    assert noted.predicted_ms(SPLIT[None])[0] == monitor.predicted_ms(SPLIT[None])[0]
