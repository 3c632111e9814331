"""The forecast, and when it is used."""

from __future__ import annotations

import numpy as np
import pytest

from autotailor.runtime import Forecast
from autotailor.runtime.forecast import BACKTEST, ORDER, fit


def after(values: list[float]) -> Forecast:
    forecast = Forecast()
    for value in values:
        forecast = forecast.observed(value)
    return forecast


def wave(n: int) -> list[float]:
    """A series that an autoregressive model of order 2 continues exactly."""
    return [float(2 + np.sin(0.6 * i)) for i in range(n)]


def test_the_fit_finds_the_coefficients_of_an_autoregressive_series() -> None:
    x = [1.0, 1.3]
    for _ in range(30):
        x.append(0.4 + 1.2 * x[-1] - 0.5 * x[-2])
    assert fit(x, 2) == pytest.approx([0.4, 1.2, -0.5])


@pytest.mark.parametrize("steps", [1, 3])
def test_a_wave_is_forecast(steps: int) -> None:
    forecast = after(wave(50))
    assert forecast.is_used
    assert forecast.factor(steps) == pytest.approx(wave(50 + steps)[-1] / wave(50)[-1], rel=1e-6)


def test_noise_is_left_to_as_now_as_soon_as_the_backtest_says_so() -> None:
    rng = np.random.default_rng(1)
    walk = np.exp(np.cumsum(rng.normal(0, 0.05, 400)))
    used = [after(list(walk[:n])) for n in range(60, 400, 20)]
    for forecast in used:
        model, as_now = np.sum(forecast.errors, axis=0)
        assert forecast.is_used == (model < as_now)
        assert (forecast.factor() == 1.0) == (not forecast.is_used)
    assert not all(forecast.is_used for forecast in used)


def test_no_forecast_is_used_before_its_backtest_is_complete() -> None:
    first = 4 * ORDER + BACKTEST
    assert not after(wave(first - 1)).is_used
    assert after(wave(first)).is_used


def test_errors_are_those_of_forecasts_made_before_the_value() -> None:
    values = wave(4 * ORDER)
    known = after(values)
    assert known.errors == ()
    late = known.observed(9.0)
    coefficients = fit(values)
    said = coefficients[0] + coefficients[1] * values[-1] + coefficients[2] * values[-2]
    assert late.errors == (pytest.approx(((9.0 - said) ** 2, (9.0 - values[-1]) ** 2)),)
