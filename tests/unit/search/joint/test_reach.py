"""Budgets of several limits: what is read, what is chosen, and what takes the place of what nothing meets."""

import itertools
import logging
from pathlib import Path

import numpy as np
import pytest

from autotailor.ir.metrics.memory import PeakMemory
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import IntArray, SubNet, canonical, largest
from autotailor.prediction import Measured
from autotailor.search import (
    LATENCY,
    ExactFront,
    LatencyForecast,
    Objectives,
    SearchConfig,
    SearchError,
    best_at,
    check_budgets,
    choose,
    exact_front,
)
from autotailor.search.budgets import nearest_limit
from autotailor.search.choice import Accuracies, read_candidates
from autotailor.search.constrained.solver import Solver
from autotailor.search.joint.limits import Limits, limits_of
from autotailor.search.joint.reach import Reach
from autotailor.search.metrics import named_in

CONFIG = SearchConfig(candidates=3)
FORECASTS = {
    "as predicted": LatencyForecast(),
    "unsure": LatencyForecast(0.95, 0.02, 0.1, -1.0, 0.03, 0.01, 0.02, 20.0),
}


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(2, 2, 1), seed=4)


@pytest.fixture(name="further", scope="module")
def further_fixture(objectives: Objectives, memory_of) -> dict[str, Metric | PeakMemory]:
    (parameters,) = objectives.further
    return {"parameters": parameters, "peak_memory": memory_of(objectives.space, parameters)}


@pytest.fixture(name="exact", scope="module")
def exact_fixture(objectives: Objectives) -> ExactFront:
    return exact_front(objectives)


@pytest.fixture(name="everything", scope="module")
def everything_fixture(objectives: Objectives) -> IntArray:
    grid = itertools.product(*(range(len(variable.choices)) for variable in objectives.space))
    return np.unique(canonical(objectives.space, np.array(list(grid))), axis=0)


def as_predicted(objectives: Objectives):
    """A measurement of accuracies that finds what is predicted."""

    def measure(subnets: list[SubNet]) -> Accuracies:
        values = {s.id: float(objectives.accuracy.predict(s.to_array())[0]) for s in subnets}
        return {id_: Measured(value, 0.1, value, 0.1) for id_, value in values.items()}

    return measure


@pytest.mark.parametrize("forecast", FORECASTS.values(), ids=FORECASTS)
def test_the_choice_is_the_most_accurate_subnet_within_all_limits(
    forecast: LatencyForecast, objectives: Objectives, further, exact: ExactFront, everything: IntArray, tmp_path: Path
) -> None:
    budgets = [{"latency": "90%", "peak_memory": "70%"}, {"latency": "70%", "parameters": "75%"}, "80%"]
    choice = choose(objectives, exact.front, budgets, as_predicted(objectives), CONFIG, forecast, further)
    whole = {n: float(m.predict(largest(objectives.space).to_array())[0]) for n, m in further.items()}
    slowest = forecast.expected(float(objectives.cost.predict(largest(objectives.space).to_array())[0]))
    cases = (("budget_01", 0.9, "peak_memory", 0.7), ("budget_02", 0.7, "parameters", 0.75))
    for name, share, metric, part in cases:
        kept = objectives.cost.predict(everything) <= forecast.limit(share * slowest) * (1 + 1e-9)
        kept &= further[metric].predict(everything) <= part * whole[metric]
        best = objectives.accuracy.predict(everything[kept]).max()
        assert objectives.accuracy.predict(choice.subnets[name].to_array())[0] == pytest.approx(best)
    choice.write(tmp_path / "candidates.csv")
    read = read_candidates(tmp_path / "candidates.csv", objectives.space)
    for name, share, metric, part in cases:
        assert choice.subnets[name] in read.contests[name]
        assert read.limits[name] == pytest.approx(share * slowest)
        for subnet in read.contests[name]:
            assert further[metric].predict(subnet.to_array())[0] <= part * whole[metric] * (1 + 1e-9)
    assert len(read.contests["budget_03"]) > len(read.contests["budget_02"])


@pytest.mark.parametrize("forecast", FORECASTS.values(), ids=FORECASTS)
def test_a_budget_that_nothing_meets_is_raised_as_little_as_possible_with_a_warning(
    forecast: LatencyForecast,
    objectives: Objectives,
    further,
    exact: ExactFront,
    everything: IntArray,
    caplog: pytest.LogCaptureFixture,
) -> None:
    least = further["parameters"].predict(everything).min()
    budgets = [{"latency": "95%", "parameters": 0.5}]
    with caplog.at_level(logging.WARNING):
        choice = choose(objectives, exact.front, budgets, as_predicted(objectives), CONFIG, forecast, further)
    (subnet,) = choice.subnets.values()
    assert "budget_01: no SubNet keeps" in caplog.text
    assert "parameters 0.5 M at once; the nearest budget that one keeps is" in caplog.text
    assert choice.table["parameters_budget"].to_numpy() == pytest.approx(least)
    assert further["parameters"].predict(subnet.to_array())[0] == pytest.approx(least)
    slowest = forecast.expected(float(objectives.cost.predict(largest(objectives.space).to_array())[0]))
    assert choice.table["budget_ms"].to_numpy() == pytest.approx(0.95 * slowest * least / 0.5)


@pytest.mark.parametrize("slope", [-0.5, -0.2, 0.0, 0.2])
@pytest.mark.parametrize(("of_cost", "of_parameters"), [(0.6, 3.0), (1.1, 0.5), (0.5, 0.9)])
def test_no_smaller_raise_can_be_kept(
    slope: float,
    of_cost: float,
    of_parameters: float,
    objectives: Objectives,
    further,
    exact: ExactFront,
    everything: IntArray,
) -> None:
    """Brute force over all SubNets, where networks of other sizes are off by other factors."""
    cost, parameters = objectives.cost.predict(everything), further["parameters"].predict(everything)
    forecast = LatencyForecast(confidence=0.95, slope=slope, centre=float(np.log(cost.mean())), spread=0.03)
    budget, limit = of_cost * float(cost.min()), of_parameters * float(parameters.min())
    limits = Limits(("parameters",), (further["parameters"],), (limit,))
    raised = Reach(objectives, exact.front, CONFIG, forecast).nearest(budget, limits).raised

    def is_kept(factor: float) -> bool:
        within = cost <= nearest_limit(exact.front, budget * factor, forecast)
        return bool((within & (parameters <= limit * factor)).any())

    assert is_kept(raised * (1 + 1e-9))
    assert raised == 1.0 or not is_kept(raised * 0.995)


def test_the_search_along_the_front_keeps_all_limits(objectives: Objectives, further, exact: ExactFront) -> None:
    budgets = [{"latency": "90%", "peak_memory": "70%"}, "50%"]
    rows = best_at(objectives.cost, budgets, CONFIG, further=further)(objectives.accuracy)
    memory = further["peak_memory"]
    assert memory.predict(rows[:1])[0] <= 0.7 * memory.predict(largest(objectives.space).to_array())[0]
    half = 0.5 * float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    assert (rows[1] == exact.front.indices[exact.front.position(half)]).all()


@pytest.mark.parametrize(
    ("budget", "words"),
    [
        ({"latency": 1, "energy": 3}, r"the device's table \(lut.csv\) does not say energy; energy needs a sensor"),
        ({"parameters": 3}, "expected a limit of latency among its limits"),
        ({"latency": 1, "size": 3}, "unknown size; known are latency, energy, peak_memory, parameters, macs"),
        ({"latency": 1, "parameters": -3}, "expected a positive number of M"),
    ],
)
def test_limits_that_make_no_sense_are_refused(budget: dict[str, float], words: str, further) -> None:
    with pytest.raises(SearchError, match=words):
        limits_of(budget, LATENCY, further)


def test_names_of_limits_are_collected() -> None:
    budgets = [{"latency": 1.0, "energy": "50%"}, "30/s", 4.0]
    check_budgets(budgets, LATENCY)
    assert named_in(budgets) == {"latency", "energy"}
    assert named_in(3) == set()


@pytest.mark.parametrize(
    ("budget", "has_exits", "words"),
    [
        ({"latency.expected": "60%"}, False, "pictures leave early only in a run with model.space.exits"),
        ({"latency.worst": 3}, True, "expected latency.expected"),
        ({"latency.expected": 3, "parameters": 1}, True, "and latency.worst or nothing beside it"),
        ({"latency.expected": -3}, True, "expected a positive number of ms"),
        ({"macs.expected": 3}, True, "unknown macs.expected"),
    ],
)
def test_budgets_of_exits_that_make_no_sense_are_refused(
    budget: dict[str, object], has_exits: bool, words: str
) -> None:
    with pytest.raises(SearchError, match=words):
        check_budgets([budget], LATENCY, has_exits)  # type: ignore[list-item]
    check_budgets([{"latency.expected": "60%", "latency.worst": 3}, "50%"], LATENCY, has_exits=True)


def test_budgets_with_limits_of_the_same_metrics_share_the_tables(
    objectives: Objectives, further, exact: ExactFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []

    def counted(*args, **options) -> Solver:
        made.append(args)
        return Solver(*args, **options)

    monkeypatch.setattr("autotailor.search.joint.reach.Solver", counted)
    reach = Reach(objectives, exact.front, CONFIG)
    for name, value in (("parameters", 1.5), ("parameters", 2.5), ("peak_memory", 1.0)):
        reach.nearest(float(exact.front.cost[-1]), Limits((name,), (further[name],), (value,)))
    assert len(made) == 2
