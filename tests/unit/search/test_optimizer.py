"""The search as a whole."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from autotailor.ir.space.link import LOGIT
from autotailor.ir.space.metric import Metric, Term
from autotailor.ir.space.subnet import largest, smallest
from autotailor.ir.space.variable import Modification, Space, Variable
from autotailor.search import (
    Objectives,
    SearchConfig,
    SearchError,
    SearchResult,
    never_faster,
    search,
    without,
)
from autotailor.search.elimination import exact_front
from autotailor.search.optimizer import hypervolume_ratio

QUICK = SearchConfig(population=40, generations=30)


def test_front_rises_and_reaches_both_ends(objectives: Objectives, result: SearchResult) -> None:
    assert (np.diff(result.front.cost) > 0).all()
    assert (np.diff(result.front.accuracy) > 0).all()
    assert result.front.subnets[-1] == largest(objectives.space)
    assert result.front.cost[0] <= objectives.cost.predict(smallest(objectives.space).to_array())[0]


def test_the_front_is_the_whole_one_so_that_each_budget_has_its_best(objectives: Objectives) -> None:
    """Also where the front has more SubNets than budgets are compared at."""
    found = search(objectives, replace(QUICK, points=5))
    best = exact_front(objectives).front
    assert len(best) > 5
    for row, cost in enumerate(best.cost):
        assert found.front.accuracy[found.front.position(float(cost))] == best.accuracy[row]


def test_the_yardstick(result: SearchResult) -> None:
    assert result.exact is not None
    assert result.yardstick.slack == 0
    assert result.yardstick.hypervolume_ratio is not None
    assert 0.97 < result.yardstick.hypervolume_ratio <= 1 + 1e-9
    assert hypervolume_ratio(result.exact.front, result.exact.front) == 1
    assert set(result.front.found_by) <= {"genetic", "exact", "both"}


def test_a_link_changes_values_and_no_subnet_of_the_front(objectives: Objectives) -> None:
    plain = replace(
        objectives.accuracy,
        constant=3.0,
        terms=tuple(replace(t, table=t.table / 10) for t in objectives.accuracy.terms),
    )
    fronts = []
    for accuracy in (plain, replace(plain, link=LOGIT)):
        found = search(replace(objectives, accuracy=accuracy), QUICK)
        assert found.exact is not None
        fronts.append((found.front, found.exact.front, found.genetic))
    for plain, linked in zip(*fronts, strict=True):
        np.testing.assert_array_equal(plain.indices, linked.indices)
        np.testing.assert_allclose(linked.accuracy, LOGIT.value(plain.accuracy))


def test_the_same_seed_gives_the_same_bytes(objectives: Objectives, result: SearchResult, tmp_path: Path) -> None:
    result.write(tmp_path / "a.csv", tmp_path / "a.json")
    search(objectives, QUICK).write(tmp_path / "b.csv", tmp_path / "b.json")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert not list(tmp_path.glob(".*"))


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


def test_a_table_with_holes_is_refused(objectives: Objectives) -> None:
    broken = Metric(
        "latency", "ms", objectives.space, (Term(("stage1.width",), np.array([1, np.nan, 0]), label="conv"),)
    )
    with pytest.raises(SearchError, match="metric latency, term 'conv'"):
        search(Objectives(objectives.accuracy, broken))


def test_metrics_of_two_spaces_are_refused(objectives: Objectives, residual_space, objectives_of) -> None:
    with pytest.raises(SearchError, match="another space"):
        Objectives(objectives.accuracy, objectives_of(residual_space(1, 1, 0)).cost)


@pytest.fixture(name="named")
def named_fixture() -> Objectives:
    """A block with three alternatives, of which one is slower than the original, and more accurate by mistake."""
    operator = Variable("block1.operator", "operator", ("original", "low_rank:0.5", "depthwise", "same"), 0, least=1)
    width = Variable("width", "width", (0.5, 1.0), 1)
    space = Space((operator, width))
    cost = Metric("latency", "ms", space, (
        Term(("block1.operator",), np.array([3.0, 2.0, 3.5, 3.0])), Term(("width",), np.array([1.0, 2.0]))
    ))  # fmt: skip
    accuracy = Metric("accuracy", "%", space, (
        Term(("block1.operator",), np.array([80.0, 79.0, 82.0, 81.0])), Term(("width",), np.array([-5.0, 0.0]))
    ))  # fmt: skip
    return Objectives(accuracy, cost)


def test_alternatives_that_are_never_faster_are_left_out(named: Objectives) -> None:
    slow = never_faster(named.cost)
    assert {modification.choice: value for modification, value in slow.items()} == {"depthwise": 5.5, "same": 5.0}
    result = search(Objectives(named.accuracy, without(named.cost, slow)), QUICK)
    found = {str(subnet["block1.operator"]) for subnet in result.front.subnets}
    assert found == {"original", "low_rank:0.5"}
    assert result.front.cost[-1] == pytest.approx(5.0)
    assert without(named.cost, {}).predict(np.array([[2, 1]]))[0] == pytest.approx(5.5)


def test_what_was_left_out_stands_beside_the_yardstick(named: Objectives, tmp_path: Path) -> None:
    result = search(named, QUICK)
    result.write(tmp_path / "a.csv", tmp_path / "a.json", never_faster=never_faster(named.cost))
    assert json.loads((tmp_path / "a.json").read_text())["never_faster"] == [
        "depthwise of block1.operator", "same of block1.operator",
    ]  # fmt: skip


def test_alternatives_that_no_subnet_on_the_front_has_are_listed(named: Objectives, tmp_path: Path) -> None:
    worse = Term(("block1.operator",), np.array([0.0, 0.0, -50.0, 0.0]))
    accuracy = replace(named.accuracy, terms=(*named.accuracy.terms, worse))
    for said, slow, expected in (
        (named.accuracy, [], None),
        (accuracy, [], ["depthwise of block1.operator"]),
        (accuracy, [Modification("block1.operator", "depthwise")], None),
    ):
        search(Objectives(said, named.cost), QUICK).write(tmp_path / "a.csv", tmp_path / "a.json", {}, slow)
        assert json.loads((tmp_path / "a.json").read_text()).get("never_on_front") == expected
