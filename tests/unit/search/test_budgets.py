"""Budgets of latency: how they are spread, stated, refused and written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

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


def test_budgets_spread_over_the_reachable_range(objectives: Objectives, result: SearchResult) -> None:
    budgets = budget_limits(objectives, result.front, 3)
    assert tuple(budgets) == budget_names(3) == ("budget_01", "budget_02", "budget_03")
    for name, budget in budgets.items():
        assert objectives.cost.predict(result.front.at(budget, name).to_array())[0] <= budget
    assert budgets["budget_01"] == result.front.cost[0]


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
