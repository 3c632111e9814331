"""Budgets of latency: how they are spread, stated, refused and written."""

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.ir.space.subnet import largest
from autotailor.search import (
    Objectives,
    SearchError,
    SearchResult,
    budget_limits,
    budget_names,
    budget_shares,
    read_budgets,
    write_budgets,
)
from autotailor.search.budgets import all_of_exits, as_whole, predicted_limit
from autotailor.search.robust.forecast import LatencyForecast

forecasts = st.builds(
    LatencyForecast,
    confidence=st.floats(0.5, 0.999),
    offset=st.floats(-0.5, 0.5),
    slope=st.floats(-0.5, 0.5),
    centre=st.floats(-3.0, 3.0),
    spread=st.floats(0.0, 0.3),
    noise=st.floats(0.0, 0.1),
    degrees=st.floats(1.0, 40.0),
)
"""Of devices on which SubNets take less than predicted, or more."""


def test_budgets_spread_over_the_reachable_range(objectives: Objectives, result: SearchResult) -> None:
    budgets = budget_limits(objectives, result.front, 3)
    assert tuple(budgets) == budget_names(3) == ("budget_01", "budget_02", "budget_03")
    for name, budget in budgets.items():
        assert objectives.cost.predict(result.front.at(budget, name).to_array())[0] <= budget
    assert budgets["budget_01"] == result.front.cost[0]


@settings(deadline=None)
@given(forecast=forecasts)
def test_budgets_over_the_reachable_range_are_met_by_the_cheapest_subnet_whatever_the_forecast(
    objectives: Objectives, result: SearchResult, forecast: LatencyForecast
) -> None:
    limits = budget_limits(objectives, result.front, 3, forecast)
    predicted = [predicted_limit(result.front, limit, name, forecast) for name, limit in limits.items()]
    assert predicted[0] == pytest.approx(result.front.cost[0])
    assert min(predicted) >= result.front.cost[0]


def test_a_budget_below_the_prediction_of_the_cheapest_subnet_is_met_where_networks_run_faster_than_predicted(
    objectives: Objectives, result: SearchResult
) -> None:
    cheapest = float(result.front.cost[0])
    forecast = LatencyForecast(confidence=0.95, offset=-0.25, spread=0.1)
    expected = forecast.expected(cheapest)
    assert predicted_limit(result.front, expected * 1.001, "budget", forecast) == cheapest
    with pytest.raises(SearchError, match="raise the budget"):
        predicted_limit(result.front, expected * 0.999, "budget", forecast)


def test_budgets_in_ms_and_as_a_share(objectives: Objectives, result: SearchResult) -> None:
    whole = objectives.cost.predict(largest(objectives.space).to_array())[0]
    assert budget_limits(objectives, result.front, ["50%", 1.5]) == {
        "budget_01": whole / 2,
        "budget_02": 1.5,
    }


@pytest.mark.parametrize("budget", ["half", -1.0, float("nan"), True, None, b"50%", [1.0]])
def test_a_budget_that_is_none(objectives: Objectives, result: SearchResult, budget: object) -> None:
    with pytest.raises(SearchError, match="positive number of ms"):
        budget_limits(objectives, result.front, [budget])  # type: ignore[list-item]


def test_front_json(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    budgets = budget_limits(objectives, result.front, 2)
    subnets = {name: result.front.at(budget, name) for name, budget in budgets.items()}
    write_budgets(tmp_path / "front.json", subnets)
    document = json.loads((tmp_path / "front.json").read_text())
    assert document["subnets"] == {n: s.assignment for n, s in subnets.items()}
    assert read_budgets(tmp_path / "front.json", objectives.space) == subnets


def test_shares_are_named_as_their_budgets_and_those_with_further_limits_are_left_out() -> None:
    budgets = [1.5, "60%", {"latency": "80 %"}, {"latency": "50%", "peak_memory": 4}, "30/s"]
    assert budget_shares(budgets, "latency") == {"budget_02": 0.6, "budget_03": 0.8}
    assert budget_shares(3, "latency") == {}


def test_budgets_of_exits_become_those_of_whole_networks() -> None:
    early = {"latency.expected": "60%", "latency.worst": 5}
    budgets = ["50%", early, {"latency": 3, "parameters": 1}]
    assert all_of_exits(budgets, "latency") == {"budget_02": {"expected": "60%", "worst": 5}}
    assert all_of_exits(budgets, "macs") == all_of_exits(3, "latency") == {}
    assert as_whole(budgets, {"budget_02": 4.5}) == ["50%", 4.5, {"latency": 3, "parameters": 1}]
    assert as_whole(3, {}) == 3
    assert budget_shares(budgets, "latency") == {"budget_01": 0.5}
