"""Fronts: what they hold, and how they are written and thinned."""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotailor.search import (
    Front,
    LatencyForecast,
    Objectives,
    SearchError,
    SearchResult,
)
from autotailor.search.front import non_dominated


def test_pareto_csv(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    result.front.write(tmp_path / "pareto.csv")
    table = pd.read_csv(tmp_path / "pareto.csv")
    columns = [
        "subnet",
        "accuracy_predicted",
        "latency_ms_predicted",
        "latency_ms_expected",
        "parameters_m",
        "found_by",
        "assignment",
    ]
    assert list(table.columns) == columns
    assert table["subnet"].tolist() == [s.id for s in result.front.subnets]
    again = Front.read(tmp_path / "pareto.csv", objectives.space)
    np.testing.assert_array_equal(again.indices, result.front.indices)
    np.testing.assert_array_equal(again.cost, result.front.cost)


def test_pareto_csv_says_what_a_device_is_expected_to_take(
    objectives: Objectives, result: SearchResult, tmp_path: Path
) -> None:
    forecast = LatencyForecast(offset=0.2, slope=0.1, centre=0.5)
    result.write(tmp_path / "pareto.csv", link=forecast.link())
    table = pd.read_csv(tmp_path / "pareto.csv")
    assert table["latency_ms_expected"].tolist() == pytest.approx([*map(forecast.expected, result.front.cost)])
    again = Front.read(tmp_path / "pareto.csv", objectives.space)
    np.testing.assert_array_equal(again.cost, result.front.cost)
    assert set(again.further) == {"parameters_m"}


def test_a_front_has_at_most_as_many_rows_as_budgets(result: SearchResult) -> None:
    spread = result.front.spread(7)
    assert len(spread) <= 7
    assert spread.cost[0] == result.front.cost[0]
    assert spread.cost[-1] == result.front.cost[-1]


def test_a_budget_below_reach(objectives: Objectives, result: SearchResult) -> None:
    with pytest.raises(
        SearchError, match=r"budget_01 of 0.001 ms: every SubNet .* latency of at least .* raise the budget"
    ):
        result.front.at(0.001, "budget_01")


@settings(max_examples=200, deadline=None)
@given(cheapest=st.floats(1e-6, 1e6))
def test_the_budget_that_a_refusal_names_can_be_kept(result: SearchResult, cheapest: float) -> None:
    front = replace(result.front, cost=result.front.cost - result.front.cost[0] + cheapest)
    with pytest.raises(SearchError) as refused:
        front.at(0.5 * cheapest)
    said = re.search(r"of at least (\S+) ms", str(refused.value))
    assert said is not None
    assert front.position(float(said[1])) >= 0
    assert float(said[1]) <= 1.001001 * cheapest


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40))
def test_non_dominated(points: list[tuple[int, int]]) -> None:
    latency, accuracy = np.array(points, dtype=float).T
    rows = non_dominated(latency, accuracy)
    assert (np.diff(latency[rows]) > 0).all()
    assert (np.diff(accuracy[rows]) > 0).all()
    for a, b in itertools.product(range(len(points)), rows):
        assert not (latency[a] <= latency[b] and accuracy[a] > accuracy[b])
        assert not (latency[a] < latency[b] and accuracy[a] >= accuracy[b])
    assert all(((latency[rows] <= x) & (accuracy[rows] >= y)).any() for x, y in points)
