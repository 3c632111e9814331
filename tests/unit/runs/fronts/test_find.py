"""Fronts of any two metrics, against all SubNets of the space, one by one."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autotailor
from autotailor.ir.space.subnet import IntArray, canonical
from autotailor.runs import Limit, Run, RunError
from autotailor.runs.fronts import exact
from autotailor.runs.fronts.answer import read_limit
from autotailor.runs.fronts.find import find_front
from autotailor.search import SearchConfig
from autotailor.search.front import non_dominated


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


@pytest.fixture(scope="module")
def everything(run: Run) -> IntArray:
    """Every SubNet of the space."""
    grid = np.array(list(itertools.product(*(range(len(variable.choices)) for variable in run.net.space))))
    return np.unique(canonical(run.net.space, grid), axis=0)


def values(run: Run, name: str, rows: IntArray) -> np.ndarray:
    found = run.metrics[name].metric.predict(rows)
    return -found if name == "accuracy" else found


@pytest.mark.parametrize(
    ("x", "y", "limits"),
    [
        ("latency", "accuracy", []),
        ("accuracy", "parameters", []),
        ("macs", "latency", []),
        ("latency", "accuracy", ["latency<=0.1", "accuracy>=80"]),
        ("latency", "accuracy", ["latency>=0.05", "accuracy<=90"]),
        ("latency", "accuracy", ["peak_memory<=0.6"]),
        ("parameters", "latency", ["accuracy>=70", "macs<=2"]),
        ("peak_memory", "accuracy", []),
        ("latency", "peak_memory", ["accuracy>=75"]),
    ],
)
def test_a_front_is_exact_and_complete(x: str, y: str, limits: list[str], run: Run, everything: IntArray) -> None:
    found = run.front(x, y, limits)
    assert found.is_exact
    rows = everything
    for limit in map(read_limit, limits):
        rows = rows[limit.excess(run.metrics[limit.metric].metric.predict(rows)) == 0]
    best = non_dominated(values(run, x, rows), -values(run, y, rows))
    wanted = {tuple(np.round([values(run, x, rows)[i], values(run, y, rows)[i]], 7)) for i in best}
    array = np.stack([subnet.to_array() for subnet in found.subnets])
    reached = {tuple(np.round(pair, 7)) for pair in zip(values(run, x, array), values(run, y, array), strict=True)}
    assert reached == wanted if len(best) <= 121 else reached <= wanted
    shown = [point[x].value for point in found.points]
    assert shown == sorted(shown)


def test_without_the_exact_search_a_front_under_a_limit_is_near_the_best(run: Run, everything: IntArray) -> None:
    config = SearchConfig(exact="never", population=40, generations=30)
    found = find_front(run.metrics, ("latency", "accuracy"), (read_limit("peak_memory<=0.6"),), config)
    assert (found.is_exact, found.gap) == (False, None)
    assert all(point["peak_memory"].value <= 0.6 for point in found.points)
    rows = everything[run.metrics["peak_memory"].metric.predict(everything) <= 0.6]
    latency, accuracy = values(run, "latency", rows), -values(run, "accuracy", rows)
    assert found.points[0]["latency"].value <= 1.2 * latency.min()
    gaps = [accuracy[latency <= p["latency"].value].max() - p["accuracy"].value for p in found.points]
    assert max(gaps) <= 4.0, "40 individuals, 30 generations"
    with pytest.raises(RunError, match="front of latency, accuracy, peak_memory: three metrics need an exact search"):
        find_front(run.metrics, ("latency", "accuracy", "peak_memory"), (), config)


def test_a_front_of_three_metrics_holds_subnets_that_no_other_beats(
    run: Run, everything: IntArray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exact, "POINTS", 12)
    monkeypatch.setattr(exact, "LEVELS", 5)
    names = ("latency", "accuracy", "peak_memory")
    found = run.front("latency", "accuracy", ["accuracy>=75"], z="memory")
    costs = np.stack([values(run, name, everything) for name in names], axis=1)
    assert found.is_exact
    assert len(found.points) > 3
    for subnet, point in zip(found.subnets, found.points, strict=True):
        own = np.array([values(run, name, subnet.to_array())[0] for name in names])
        assert not (costs < own - 1e-7).all(axis=1).any()
        assert point["accuracy"].value >= 75
    gap = found.to_dict()["gap"]
    assert (gap["metric"], gap["axis"], found.z) == ("accuracy", "peak_memory", "peak_memory")
    assert 0.0 <= gap["largest"] <= gap["between"] < 25.0
    assert len(gap["levels"]) == 5


@pytest.mark.parametrize(
    ("x", "y", "limits", "words"),
    [
        ("latency", "energy", [], "metric 'energy': the run cannot predict it; known are accuracy, latency"),
        ("latency", "latency", [], "name different metrics"),
        ("latency", "accuracy", ["size<=1"], "metric 'size'"),
        ("latency", "accuracy", ["memory=1"], "expected METRIC<=NUMBER or METRIC>=NUMBER"),
        ("latency", "accuracy", ["peak_memory<=little"], "expected METRIC<=NUMBER"),
        ("latency", "accuracy", ["peak_memory<=nan"], "expected METRIC<=NUMBER"),
        ("latency", "accuracy", [5], "limit 5: expected METRIC<=NUMBER"),
        ("latency", "accuracy", 5, r"limits 5: expected a list such as"),
        ("latency", None, [], "metric None: the run cannot predict it; known are accuracy, latency"),
        (["latency"], "accuracy", [], r"metric \['latency'\]: the run cannot predict it"),
        (
            "latency",
            "accuracy",
            ["latency<=0.001"],
            r"no SubNet was found .* nearest one has latency 0\.\d+ ms",
        ),
    ],
)
def test_questions_without_an_answer_are_refused(x: Any, y: Any, limits: Any, words: str, run: Run) -> None:
    with pytest.raises(RunError, match=words):
        run.front(x, y, limits)


def test_one_limit_may_stand_without_a_list(run: Run) -> None:
    assert run.front("latency", limits="latency<=0.1").limits == run.front("latency", limits=["latency<=0.1"]).limits
    assert run.front("latency", limits=None).limits == ()  # type: ignore[arg-type]


def test_limits_bound_from_above_or_below() -> None:
    assert read_limit(" memory <= 2.5") == read_limit("peak_memory<=2.5") == Limit("peak_memory", 2.5)
    assert read_limit("accuracy>=90") == Limit("accuracy", 90.0, is_lower=True)
    assert read_limit("accuracy>=90").excess(np.array([80.0, 99.0])).tolist() == pytest.approx([1 / 9, 0.0])
    assert read_limit("peak_memory<=2").excess(np.array([1.0, 3.0])).tolist() == [0.0, 0.5]


def test_the_gap_of_a_front_of_latencies_is_one_of_expected_latencies(run: Run, everything: IntArray) -> None:
    names, limits = ("macs", "latency"), (read_limit("accuracy>=75"),)
    found = find_front(run.metrics, names, limits, SearchConfig(points=3))
    rows = everything[limits[0].excess(run.metrics["accuracy"].metric.predict(everything)) == 0]
    latency, macs = values(run, "latency", rows), values(run, "macs", rows)
    assert found.gap is not None
    for point in found.points:
        best = latency[macs <= point["macs"].value + 1e-9].min()
        assert point["latency"].value <= best + found.gap.largest + 1e-9
