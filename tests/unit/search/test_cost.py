"""A search that minimises another metric than latency: names of columns, units of budgets, and what is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.ir.space.subnet import largest
from autotailor.prediction import Measured
from autotailor.search import (
    LATENCY,
    Front,
    Objectives,
    SearchConfig,
    SearchError,
    budget_limits,
    choose,
    cost_of_device,
    costs,
    read_candidates,
    search,
)
from autotailor.search.front import non_dominated

CONFIG = SearchConfig(population=20, generations=5, candidates=3, seed=1)
PARAMETERS = costs()["parameters"]


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    with_latency = objectives_of(residual_space(2, 2, 1), seed=1)
    return Objectives(with_latency.accuracy, with_latency.further[0], with_latency.further)


def test_a_device_costs_latency_unless_its_configuration_says_otherwise() -> None:
    assert cost_of_device({"name": "host", "transport": "local"}) is LATENCY
    assert LATENCY.is_measured
    assert cost_of_device({"name": "macs", "cost": "macs"}) == costs()["macs"]
    assert [name for name, cost in costs().items() if not cost.is_measured] == ["macs", "parameters"]
    with pytest.raises(SearchError, match=r"device mine: device\.cost: unknown cost 'flops'; known are macs, p"):
        cost_of_device({"name": "mine", "cost": "flops"})


def test_the_search_finds_the_front_of_the_cost_that_it_is_given(objectives: Objectives) -> None:
    found = search(objectives, CONFIG)
    assert found.exact is not None
    rows = found.exact.front.indices
    np.testing.assert_array_equal(found.exact.front.cost, objectives.cost.predict(rows))
    assert len(non_dominated(objectives.cost.predict(rows), objectives.accuracy.predict(rows))) == len(rows)
    assert found.yardstick.to_dict()["slack_parameters_m"] == 0.0
    assert "slack_ms" not in found.yardstick.to_dict()


def test_tables_name_the_cost_and_hold_it_once(objectives: Objectives, tmp_path: Path) -> None:
    front = search(objectives, CONFIG).front
    front.write(tmp_path / "pareto.csv")
    columns = list(pd.read_csv(tmp_path / "pareto.csv").columns)
    assert columns == ["subnet", "accuracy_predicted", "parameters_m", "found_by", "assignment"]
    again = Front.read(tmp_path / "pareto.csv", objectives.space, PARAMETERS)
    np.testing.assert_array_equal(again.cost, front.cost)
    assert again.kind is PARAMETERS

    alone = Measured.alone(90.0, 1.0)
    choice = choose(objectives, front, ["80%"], lambda subnets: {s.id: alone for s in subnets}, CONFIG)
    choice.write(tmp_path / "candidates.csv")
    table = pd.read_csv(tmp_path / "candidates.csv")
    assert "latency_ms_predicted" not in table
    assert (table["parameters_m"] <= table["budget_parameters_m"]).all()
    assert set(read_candidates(tmp_path / "candidates.csv", objectives.space).contests) == {"budget_01"}


def test_budgets_are_numbers_shares_and_counts(objectives: Objectives) -> None:
    front = search(objectives, CONFIG).front
    whole = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    limits = budget_limits(objectives, front, ["50%", 3.5, "900k", "3.5M", "1.2G"])
    assert list(limits.values()) == pytest.approx([whole / 2, 3.5, 0.9, 3.5, 1200.0])
    for budget in ("30/s", "3 m", "0M"):
        with pytest.raises(SearchError, match=r"positive number of M, .* or a count such as '300M'"):
            budget_limits(objectives, front, [budget])
    with pytest.raises(SearchError, match=r"budget_01 of 0.001 M: every SubNet .* has parameters of at least .* M"):
        front.at(0.001, "budget_01")
