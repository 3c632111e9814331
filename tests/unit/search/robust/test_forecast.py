"""The forecast of measured latencies: what it learns, and the limit that a budget becomes."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.space.subnet import SubNet, largest
from autotailor.measurement.sessions import Timed
from autotailor.search import Objectives, SearchConfig, SearchError
from autotailor.search.robust.distribution import Distribution, Variance, total
from autotailor.search.robust.forecast import WORTH, LatencyForecast, Sessions
from autotailor.search.robust.learning import TYPICAL, USED, forecast, read_forecast

CONFIDENCE = 0.95


def validation(bias: float, slope: float, spread: float, noise: float, seed: int, rows: int = 20) -> pd.DataFrame:
    """Measured SubNets around 1 ms whose true bias is ``bias`` there, and grows by ``slope``."""
    random = np.random.default_rng(seed)
    predicted = np.exp(random.uniform(-1.0, 1.0, rows))
    logs = np.log(predicted) * (1 + slope) + bias + random.normal(0, spread, rows)
    first, last = random.normal(0, noise, (2, rows))
    columns = (predicted, np.exp(logs + (first + last) / 2), np.abs(last - first), np.full(rows, 0.01))
    names = [f"subnet {row}" for row in range(rows)]
    return pd.DataFrame({"subnet": names, **dict(zip(USED, columns, strict=True))})


def timing(latency_ms: float, error_ms: float) -> Timed:
    return Timed(latency_ms, error_ms)


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


def in_session(logs: np.ndarray, session_noise: float, rounds: int, random: np.random.Generator) -> np.ndarray:
    """What one session finds of SubNets with these true logarithms of latencies: all are shifted by the same factor."""
    off = random.normal(0, session_noise) + random.normal(0, 0.004, (rounds, len(logs))).mean(0)
    return np.exp(logs + off)


def shares_met(subnet: SubNet, session_noise: float, usual: float) -> tuple[float, float]:
    """Shares of SubNets that meet what was promised, in a third session: before and after the second has measured them.

    Of 30 SubNets the first session validates 20, and the second measures the other ten and two of the first again, as
    the rule ``confirm`` does, on each of 300 devices.
    """
    predicted, names = np.geomspace(0.5, 2.0, 30), [f"subnet {row}" for row in range(30)]
    before, after = [], []
    for seed in range(300):
        random = np.random.default_rng([2, seed])
        random.shuffle(predicted)
        logs = np.log(predicted) + random.normal(0.05, 0.02, 30)
        sessions = [in_session(logs, session_noise, rounds, random) for rounds in (5, 3, 5)]
        floor = np.abs(random.normal(0, 0.004 * np.sqrt(2), 20))
        columns = (predicted[:20], sessions[0][:20], floor, np.full(20, 0.01))
        table = pd.DataFrame({"subnet": names[:20], **dict(zip(USED, columns, strict=True))})
        found = forecast(table, CONFIDENCE, session_noise=usual)
        again = found.after_session(
            {name: timing(ms, 0.0) for name, ms in zip(names[18:], sessions[1][18:], strict=True)}
        )
        for row in (20, 25):
            outlook = again.after(subnet, predicted[row], [timing(sessions[1][row], 0.0023 * sessions[1][row])])
            before.append(sessions[2][row] <= found.of(subnet, predicted[row]).quantile(CONFIDENCE))
            after.append(sessions[2][row] <= outlook.quantile(CONFIDENCE))
    return float(np.mean(before)), float(np.mean(after))


@pytest.mark.parametrize(
    ("session_noise", "usual", "least", "most"),
    [
        pytest.param(0.015, 0.015, 0.93, 0.985, id="as usual"),
        pytest.param(0.005, 0.015, 0.93, 1.0, id="quieter than usual"),
        pytest.param(0.03, 0.015, 0.87, 0.95, id="restless, which two sessions tell in part"),
        pytest.param(0.015, 0.0, 0.6, 0.92, id="not counted"),
    ],
)
def test_budgets_hold_in_a_later_session_as_often_as_asked_where_the_noise_between_sessions_is_known(
    subnet: SubNet, session_noise: float, usual: float, least: float, most: float
) -> None:
    before, after = shares_met(subnet, session_noise, usual)
    assert least <= after <= most
    assert before >= least


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
    pd.DataFrame(columns=["subnet", *USED]).to_csv(path, index=False)
    found = read_forecast(path, SearchConfig(confidence=CONFIDENCE))
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
    exact = found.after(subnet, 1.0, [timing(1.2, 1e-9)])
    assert (exact.median_ms, exact.scale) == (pytest.approx(1.2), pytest.approx(0.0, abs=1e-8))
    worthless = found.after(subnet, 1.0, [timing(1.2, 1e3)])
    assert (worthless.median_ms, worthless.scale) == (
        pytest.approx(found.expected(1.0)),
        pytest.approx(found.of(subnet, 1.0).scale),
    )
    assert replace(found, noise=0.01).after(subnet, 1.0, [timing(1.2, 1e-9)]).scale > 0.01


@pytest.mark.parametrize("text", ["", "subnet,predicted_ms\na,1\n", f"subnet,{','.join(USED)}\na,1,-1,0,0\n"])
def test_a_file_that_is_no_table_of_measured_subnets_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "validation.csv").write_text(text)
    with pytest.raises(SearchError, match="run the rule validate"):
        read_forecast(tmp_path / "validation.csv", SearchConfig())


@given(median=st.floats(0.5, 1.2), scale=st.floats(0.0, 0.3), degrees=st.floats(2.0, 200.0))
def test_what_misses_its_budget_never_reads_as_if_it_were_sure(median: float, scale: float, degrees: float) -> None:
    outlook = Distribution(median, scale, degrees)
    said = float(f"{outlook.percent(1.0):.1f}")
    assert said <= 100 * outlook.probability(1.0) < said + 0.1 + 1e-9


def test_before_any_subnet_was_measured_twice_the_usual_noise_counts() -> None:
    found = Sessions(0.015).joined({"a": 1.0, "b": 2.0}).joined({"c": 1.0})
    assert found.variance == Variance(0.015**2, WORTH)


def test_two_sessions_that_share_a_shift_of_all_subnets_count_as_one_degree_of_freedom() -> None:
    first = {"a": 1.0, "b": 2.0, "c": 3.0}
    found = Sessions(0.015).joined(first).joined({name: 1.04 * ms for name, ms in first.items()}).variance
    assert found.degrees == WORTH + 1
    assert found.value == pytest.approx((WORTH * 0.015**2 + math.log(1.04) ** 2 / 2) / (WORTH + 1))


def test_over_many_sessions_the_variance_between_them_is_found_whatever_is_usual() -> None:
    random = np.random.default_rng(0)
    found = Sessions(0.001)
    for shift in random.normal(0, 0.03, 200):
        found = found.joined({"a": math.exp(shift), "b": 2 * math.exp(shift)})
    assert math.sqrt(found.variance.value) == pytest.approx(0.03, rel=0.15)


def test_sessions_that_count_as_alike_stay_so() -> None:
    assert Sessions().joined({"a": 1.0}).joined({"a": 2.0}).variance.value == 0.0


def test_degrees_of_freedom_of_a_sum_are_those_of_its_least_certain_large_part() -> None:
    assert total((Variance(1.0, 5.0), Variance(0.0, 1.0))) == Variance(1.0, 5.0)
    assert total((Variance(1.0, 6.0), Variance(1.0, 6.0))).degrees == pytest.approx(12.0)
    assert total((Variance(1.0), Variance(3.0))) == Variance(4.0, math.inf)
    assert total(()) == Variance(0.0, math.inf)
