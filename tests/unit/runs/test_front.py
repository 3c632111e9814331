"""Fronts of any two metrics, against all SubNets of the space, one by one."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import autotailor
from autotailor.ir.space.subnet import IntArray, canonical
from autotailor.runs import Limit, Run, RunError
from autotailor.runs.front import read_limit
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
    ],
)
def test_a_front_of_two_sums_is_exact(x: str, y: str, limits: list[str], run: Run, everything: IntArray) -> None:
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


def test_a_front_under_a_limit_of_memory_keeps_it_and_is_near_the_best(run: Run, everything: IntArray) -> None:
    found = run.front("latency", "accuracy", ["memory<=0.6"])
    assert not found.is_exact
    assert all(point["memory"].value <= 0.6 for point in found.points)
    rows = everything[run.metrics["memory"].metric.predict(everything) <= 0.6]
    latency, accuracy = values(run, "latency", rows), -values(run, "accuracy", rows)
    assert found.points[0]["latency"].value <= 1.2 * latency.min()
    gaps = [accuracy[latency <= p["latency"].value].max() - p["accuracy"].value for p in found.points]
    assert max(gaps) <= 4.0, "20 individuals, 4 generations"


def test_a_front_with_peak_memory_as_a_metric_holds_no_subnet_that_another_one_beats(run: Run) -> None:
    found = run.front("memory", "accuracy")
    memory, accuracy = ([point[name].value for point in found.points] for name in ("memory", "accuracy"))
    assert memory == sorted(memory)
    assert accuracy == sorted(accuracy)
    assert len(found.points) > 3


@pytest.mark.parametrize(
    ("x", "y", "limits", "words"),
    [
        ("latency", "energy", [], "metric 'energy': the run cannot predict it; known are accuracy, latency"),
        ("latency", "latency", [], "name two different metrics"),
        ("latency", "accuracy", ["size<=1"], "metric 'size'"),
        ("latency", "accuracy", ["memory=1"], "expected METRIC<=NUMBER or METRIC>=NUMBER"),
        ("latency", "accuracy", ["memory<=little"], "expected METRIC<=NUMBER"),
        (
            "latency",
            "accuracy",
            ["latency<=0.001"],
            r"no SubNet was found .* nearest one has latency 0\.\d+ ms",
        ),
    ],
)
def test_questions_without_an_answer_are_refused(x: str, y: str, limits: list[str], words: str, run: Run) -> None:
    with pytest.raises(RunError, match=words):
        run.front(x, y, limits)


def test_limits_bound_from_above_or_below() -> None:
    assert read_limit(" memory <= 2.5") == Limit("memory", 2.5)
    assert read_limit("accuracy>=90") == Limit("accuracy", 90.0, is_lower=True)
    assert read_limit("accuracy>=90").excess(np.array([80.0, 99.0])).tolist() == pytest.approx([1 / 9, 0.0])
    assert read_limit("memory<=2").excess(np.array([1.0, 3.0])).tolist() == [0.0, 0.5]
