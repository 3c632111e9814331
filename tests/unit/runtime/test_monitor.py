"""The monitor: quantiles of CPU time, steps of the load, and waiting that is added."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.runtime import Monitor, PoolError

SPLIT = np.array([3.0, 1.0, 0.5])
MS = float(SPLIT.sum())


def after(monitor: Monitor, slowdowns: list[float], waited_ms: float = 0.0) -> Monitor:
    for slowdown in slowdowns:
        monitor = monitor.observed(SPLIT, MS * slowdown + waited_ms, MS * slowdown)
    return monitor


def test_the_quantile_is_one_that_the_share_of_cpu_times_met() -> None:
    monitor = after(Monitor(), [1.0] * 18 + [1.5, 1.0])
    assert len(monitor.residuals) == 20
    for q in (0.5, 0.8, 0.95, 0.99):
        assert np.mean([residual <= monitor.quantile(q) for residual in (*monitor.residuals, 1.0)]) >= q
    assert monitor.quantile(0.5) < 1.05
    assert monitor.quantile(0.99) == pytest.approx(1.5)


def test_nothing_is_known_before_the_first_inference() -> None:
    assert Monitor().quantile(0.95) == 1.0
    assert Monitor().predicted_ms(SPLIT[None])[0] == pytest.approx(MS)
    assert Monitor().bounds_ms(SPLIT[None], 0.95)[0] == pytest.approx(MS)


def test_a_step_of_the_cpu_time_is_followed_at_its_second_inference() -> None:
    monitor = after(after(Monitor(), [1.0] * 30), [3.0] * 2)
    assert monitor.predicted_ms(SPLIT[None])[0] == pytest.approx(3 * MS, rel=0.01)
    assert monitor.quantile(0.95) == 1.0


def test_a_single_outlier_is_no_step_and_teaches_the_load_model_nothing() -> None:
    before = after(Monitor(), [1.0] * 30)
    monitor = after(before, [3.0])
    assert monitor.load is before.load
    assert monitor.residuals[-1] == pytest.approx(3.0)
    assert after(monitor, [1.0]).predicted_ms(SPLIT[None])[0] == pytest.approx(MS)


def test_waiting_is_added_to_the_cpu_time_and_is_no_factor_of_it() -> None:
    monitor = after(Monitor(), [1.0] * 40, waited_ms=6.0)
    tiny, twice = SPLIT / 1000, 2 * SPLIT
    assert monitor.cpu_ms(SPLIT[None])[0] == pytest.approx(MS)
    bounds = monitor.bounds_ms(np.array([tiny, SPLIT, twice]), 0.95)
    assert bounds[1] == pytest.approx(MS + 6.0, rel=0.15)
    assert bounds[2] == pytest.approx(2 * (MS + 6.0), rel=0.15)
    assert bounds[0] < 0.2 * bounds[1]
    assert monitor.predicted_ms(SPLIT[None])[0] == pytest.approx(MS + 6.0)


def test_one_late_inference_is_an_accident_and_a_few_are_not() -> None:
    calm = after(Monitor(), [1.0] * 60)
    assert after(calm, [1.0], waited_ms=6.0).bounds_ms(SPLIT[None], 0.95)[0] == pytest.approx(MS)
    assert after(calm, [1.0] * 4, waited_ms=6.0).bounds_ms(SPLIT[None], 0.95)[0] >= MS + 3.0


def test_an_inference_that_is_only_noted_counts_for_the_quantiles_alone() -> None:
    monitor = after(Monitor(), [1.0] * 20)
    noted = monitor.noted(1.4, 1.4 * MS, 1.4 * MS)
    assert noted.residuals == (*monitor.residuals, 1.4)
    assert noted.quantile(0.99) == 1.4
    assert noted.waits.cpu_ms == (*monitor.waits.cpu_ms, 1.4 * MS)
    assert noted.predicted_ms(SPLIT[None])[0] == monitor.predicted_ms(SPLIT[None])[0]


@pytest.mark.parametrize(("wall", "cpu"), [(0.0, 1.0), (1.0, 0.0), (float("nan"), 1.0)])
def test_impossible_times_are_refused(wall: float, cpu: float) -> None:
    with pytest.raises(PoolError, match="positive times"):
        Monitor().observed(SPLIT, wall, cpu)
