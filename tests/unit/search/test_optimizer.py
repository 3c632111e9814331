"""The search as a whole."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import largest, smallest
from autotailor.search import (
    Front,
    Objectives,
    SearchConfig,
    SearchError,
    SearchResult,
    budget_names,
    latency_budgets,
    read_budgets,
    search,
    write_budgets,
)
from autotailor.search.beam import beam_search
from autotailor.search.genetic import genetic_front
from autotailor.search.optimizer import hypervolume_ratio

QUICK = SearchConfig(population=40, generations=30)


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(3, 2, 1), seed=1)


@pytest.fixture(name="result", scope="module")
def result_fixture(objectives: Objectives) -> SearchResult:
    return search(objectives, QUICK)


def test_front_rises_and_reaches_both_ends(objectives: Objectives, result: SearchResult) -> None:
    assert (np.diff(result.front.latency) > 0).all()
    assert (np.diff(result.front.accuracy) > 0).all()
    assert result.front.subnets[-1] == largest(objectives.space)
    assert result.front.latency[0] <= objectives.latency.predict(smallest(objectives.space).to_array())[0]


def test_the_yardstick(result: SearchResult) -> None:
    assert result.exact is not None
    assert result.yardstick.slack_ms == 0
    assert result.yardstick.hypervolume_ratio is not None
    assert 0.97 < result.yardstick.hypervolume_ratio <= 1 + 1e-9
    assert hypervolume_ratio(result.exact.front, result.exact.front) == 1
    assert set(result.front.found_by) <= {"genetic", "exact", "both"}


def test_the_genetic_search_beats_its_start(objectives: Objectives) -> None:
    found = Front.of(objectives, beam_search(objectives, QUICK.beam_width), "beam")
    assert hypervolume_ratio(found, genetic_front(objectives, QUICK)) < 1


def test_the_same_seed_gives_the_same_bytes(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    result.write(tmp_path / "a.csv", tmp_path / "a.json")
    search(objectives, QUICK).write(tmp_path / "b.csv", tmp_path / "b.json")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert not list(tmp_path.glob(".*"))


def test_pareto_csv(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    result.front.write(tmp_path / "pareto.csv")
    table = pd.read_csv(tmp_path / "pareto.csv")
    columns = [
        "subnet",
        "accuracy_predicted",
        "latency_ms_predicted",
        "parameters_m",
        "found_by",
        "assignment",
    ]
    assert list(table.columns) == columns
    assert table["subnet"].tolist() == [s.id for s in result.front.subnets]
    again = Front.read(tmp_path / "pareto.csv", objectives.space)
    np.testing.assert_array_equal(again.indices, result.front.indices)
    np.testing.assert_array_equal(again.latency, result.front.latency)


def test_a_front_has_at_most_as_many_rows_as_budgets(result: SearchResult) -> None:
    spread = result.front.spread(7)
    assert len(spread) <= 7
    assert spread.latency[0] == result.front.latency[0]
    assert spread.latency[-1] == result.front.latency[-1]


def test_without_the_exact_front(objectives: Objectives) -> None:
    result = search(objectives, SearchConfig(population=20, generations=3, exact="never"))
    assert result.exact is None
    assert result.yardstick.hypervolume_ratio is None
    assert result.yardstick.reason == "search.exact=never"


def test_too_coupled_a_space_still_gives_a_front(objectives: Objectives) -> None:
    result = search(objectives, SearchConfig(population=20, generations=3, exact_table=5))
    assert "search.exact_table" in result.yardstick.reason
    assert len(result.front) > 1
    with pytest.raises(SearchError, match="exact_table"):
        search(objectives, SearchConfig(population=20, generations=3, exact_table=5, exact="always"))


def test_a_space_smaller_than_the_population(residual_space, objectives_of) -> None:
    objectives = objectives_of(residual_space(1, 1, 0, resolutions=2))
    assert search(objectives, QUICK).yardstick.hypervolume_ratio == pytest.approx(1)


def test_budgets_spread_over_the_reachable_range(objectives: Objectives, result: SearchResult) -> None:
    budgets = latency_budgets(objectives, result.front, 3)
    assert tuple(budgets) == budget_names(3) == ("budget_01", "budget_02", "budget_03")
    for name, budget in budgets.items():
        assert objectives.latency.predict(result.front.at(budget, name).to_array())[0] <= budget
    assert budgets["budget_01"] == result.front.latency[0]


def test_budgets_in_ms_and_as_a_share(objectives: Objectives, result: SearchResult) -> None:
    whole = objectives.latency.predict(largest(objectives.space).to_array())[0]
    assert latency_budgets(objectives, result.front, ["50%", 1.5]) == {
        "budget_01": whole / 2,
        "budget_02": 1.5,
    }


def test_a_budget_below_reach(objectives: Objectives, result: SearchResult) -> None:
    with pytest.raises(SearchError, match=r"budget_01 of 0.001 ms: the fastest SubNet .* raise the budget"):
        result.front.at(0.001, "budget_01")


@pytest.mark.parametrize("budget", ["half", -1.0, float("nan"), True])
def test_a_budget_that_is_none(objectives: Objectives, result: SearchResult, budget: object) -> None:
    with pytest.raises(SearchError, match="positive number of ms"):
        latency_budgets(objectives, result.front, [budget])  # type: ignore[list-item]


def test_front_json(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    budgets = latency_budgets(objectives, result.front, 2)
    subnets = {name: result.front.at(budget, name) for name, budget in budgets.items()}
    write_budgets(tmp_path / "front.json", subnets)
    document = json.loads((tmp_path / "front.json").read_text())
    assert document["subnets"] == {n: s.assignment for n, s in subnets.items()}
    assert read_budgets(tmp_path / "front.json", objectives.space) == subnets


def test_a_table_with_holes_is_refused(objectives: Objectives) -> None:
    broken = Metric(
        "latency", "ms", objectives.space, (Term(("stage1.width",), np.array([1, np.nan, 0]), label="conv"),)
    )
    with pytest.raises(SearchError, match="metric latency, term 'conv'"):
        search(Objectives(objectives.accuracy, broken))


def test_metrics_of_two_spaces_are_refused(objectives: Objectives, residual_space, objectives_of) -> None:
    with pytest.raises(SearchError, match="another space"):
        Objectives(objectives.accuracy, objectives_of(residual_space(1, 1, 0)).latency)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"populaton": 3}, r"unknown keys \['populaton'\]; known are"),
        ({"population": 1}, "search.population: expected an integer >= 4, not 1"),
        ({"exact": "sometimes"}, "expected one of auto, always, never"),
    ],
)
def test_a_wrong_configuration(section: dict[str, object], message: str) -> None:
    with pytest.raises(SearchError, match=message):
        SearchConfig.from_section(section)


def test_the_configuration_file_names_every_parameter() -> None:
    from omegaconf import OmegaConf

    path = Path(__file__).parents[3] / "conf" / "search" / "default.yaml"
    section = OmegaConf.to_container(OmegaConf.merge({"seed": 0}, OmegaConf.create({"search": OmegaConf.load(path)})))
    assert isinstance(section, dict)
    parameters = {**section["search"], "seed": 0}
    assert SearchConfig.from_section(parameters) == SearchConfig()
    assert set(parameters) - {"name"} == set(SearchConfig.__dataclass_fields__)
