"""The forecast of measured latencies: what it learns, and the limit that a budget becomes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.space.subnet import SubNet, largest
from autotailor.search import Objectives, SearchError
from autotailor.search.robust.forecast import TYPICAL, USED, LatencyForecast, forecast, read_forecast

CONFIDENCE = 0.95


def validation(bias: float, slope: float, spread: float, noise: float, seed: int, rows: int = 20) -> pd.DataFrame:
    """Measured SubNets around 1 ms whose true bias is ``bias`` there, and grows by ``slope``."""
    random = np.random.default_rng(seed)
    predicted = np.exp(random.uniform(-1.0, 1.0, rows))
    logs = np.log(predicted) * (1 + slope) + bias + random.normal(0, spread, rows)
    first, last = random.normal(0, noise, (2, rows))
    columns = (predicted, np.exp(logs + (first + last) / 2), np.abs(last - first), np.full(rows, 0.01))
    return pd.DataFrame(dict(zip(USED, columns, strict=True)))


@pytest.fixture(scope="module")
def subnet(objectives: Objectives) -> SubNet:
    return largest(objectives.space)


class OwnError:
    """A SubNet's own standard error in the LUT, ms."""

    def __init__(self, error: float) -> None:
        self.error = error

    def predict(self, subnets: np.ndarray) -> np.ndarray:
        return np.full(1, self.error)


@settings(deadline=None, max_examples=40)
@given(
    bias=st.floats(-0.3, 0.3),
    slope=st.floats(-0.9, 0.9),
    spread=st.floats(0.001, 0.3),
    noise=st.floats(0, 0.5),
    seed=st.integers(0, 99),
    rows=st.integers(0, 30),
    confidence=st.floats(0.5, 0.999),
)
def test_a_larger_budget_admits_a_larger_prediction_and_the_limit_is_the_quantile_turned_round(
    subnet: SubNet, bias: float, slope: float, spread: float, noise: float, seed: int, rows: int, confidence: float
) -> None:
    found = forecast(validation(bias, slope, spread, noise, seed, rows), confidence)
    budgets = np.geomspace(0.05, 20, 50)
    limits = np.array([found.limit(float(budget)) for budget in budgets])
    assert (np.diff(limits) > 0).all()
    upper = [found.of(subnet, limit).quantile(confidence) for limit in limits]
    np.testing.assert_allclose(upper, budgets, rtol=1e-9)
    share = found.of(subnet, float(limits[0])).probability(float(budgets[0]))
    assert share == pytest.approx(confidence, abs=1e-6)


def test_without_arguments_a_budget_is_compared_with_the_prediction(subnet: SubNet) -> None:
    same = LatencyForecast()
    assert [same.limit(0.3), same.expected(0.3), same.of(subnet, 0.3).quantile(0.99)] == [0.3, 0.3, 0.3]
    assert [same.of(subnet, 0.3).probability(budget) for budget in (0.3, 0.29)] == [1.0, 0.0]


@pytest.mark.parametrize(("bias", "slope", "spread", "noise"), [(0.15, 0.1, 0.03, 0.005), (0.0, 0.0, 0.01, 0.04)])
def test_new_subnets_meet_their_budget_about_as_often_as_asked(
    subnet: SubNet, bias: float, slope: float, spread: float, noise: float
) -> None:
    """400 devices with these errors; on each the limit of one budget is measured in a later session."""
    met = []
    for seed in range(400):
        found = forecast(validation(bias, slope, spread, noise, seed), CONFIDENCE)
        random = np.random.default_rng([1, seed])
        budget = float(np.exp(random.uniform(-0.8, 0.8)))
        logs = np.log(found.limit(budget)) * (1 + slope) + bias + random.normal(0, np.hypot(spread, noise))
        met.append(np.exp(logs) <= budget)
    assert 0.93 <= np.mean(met) <= 0.995


def test_the_bias_of_large_subnets_is_not_put_on_small_ones() -> None:
    found = forecast(validation(0.1, 0.1, 0.002, 0.002, 0), CONFIDENCE)
    assert found.expected(np.exp(-0.9)) == pytest.approx(np.exp(-0.9 + 0.01), rel=0.015)
    assert found.expected(np.exp(0.9)) == pytest.approx(np.exp(0.9 + 0.19), rel=0.015)


def test_a_row_whose_rounds_disagree_counts_less() -> None:
    table = validation(0.0, 0.0, 0.002, 0.0, 0)
    table.loc[3, "measured_ms"] *= 1.5
    trusted = forecast(table, CONFIDENCE)
    disturbed = forecast(table.assign(noise_floor=np.where(table.index == 3, 0.6, 0.0)), CONFIDENCE)
    assert disturbed.offset == pytest.approx(0.0, abs=0.002)
    assert trusted.offset > 0.015
    assert disturbed.spread < trusted.spread / 5


def test_without_a_validation_the_usual_spread_is_assumed(subnet: SubNet, tmp_path: Path) -> None:
    path = tmp_path / "validation.csv"
    pd.DataFrame(columns=list(USED)).to_csv(path, index=False)
    found = read_forecast(path, CONFIDENCE)
    assert (found.offset, found.slope, found.spread) == (0.0, 0.0, TYPICAL)
    assert found.limit(1.0) == pytest.approx(np.exp(-1.6449 * TYPICAL), rel=1e-4)
    assert found.of(subnet, 1.0).probability(1.05) - found.of(subnet, 1.0).probability(1 / 1.05) == pytest.approx(
        0.95, abs=0.01
    )


def test_a_subnet_that_the_lut_knows_badly_gets_a_wider_forecast(subnet: SubNet) -> None:
    table = validation(0.0, 0.0, 0.01, 0.001, 0)
    usual, unsure = (forecast(table, CONFIDENCE, OwnError(error)).of(subnet, 1.0) for error in (0.01, 0.1))
    assert usual.quantile(0.95) == pytest.approx(forecast(table, CONFIDENCE).of(subnet, 1.0).quantile(0.95))
    assert unsure.scale**2 - usual.scale**2 == pytest.approx(0.1**2 - 0.01**2)


def test_a_measurement_moves_the_forecast_by_its_precision(subnet: SubNet) -> None:
    found = replace(forecast(validation(0.0, 0.0, 0.03, 0.001, 0), CONFIDENCE), noise=0.0)
    exact = found.after(subnet, 1.0, 1.2, 1e-9)
    assert (exact.median_ms, exact.scale) == (pytest.approx(1.2), pytest.approx(0.0, abs=1e-8))
    worthless = found.after(subnet, 1.0, 1.2, 1e3)
    assert (worthless.median_ms, worthless.scale) == (
        pytest.approx(found.expected(1.0)),
        pytest.approx(found.of(subnet, 1.0).scale),
    )
    assert replace(found, noise=0.01).after(subnet, 1.0, 1.2, 1e-9).scale > 0.01


@pytest.mark.parametrize("text", ["", "subnet,predicted_ms\na,1\n", f"{','.join(USED)}\n1,-1,0,0\n"])
def test_a_file_that_is_no_table_of_measured_subnets_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "validation.csv").write_text(text)
    with pytest.raises(SearchError, match="run the rule validate"):
        read_forecast(tmp_path / "validation.csv", CONFIDENCE)
