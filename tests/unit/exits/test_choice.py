from dataclasses import replace

import numpy as np
import pytest

from autotailor.exits.answers import Answers, Costs
from autotailor.exits.choice import Candidate, Chooser, by_budget, choose, failure_auroc, folds, read_limits
from simulated_exits import answers

COSTS = Costs((2.0, 3.0, 5.0), (0.2, 0.3))
GROUPS = np.arange(400)


def candidate(name: str, scale: float, strength: tuple[float, ...]) -> Candidate:
    costs = Costs(tuple(scale * each for each in COSTS.segments), tuple(scale * each for each in COSTS.heads))
    return Candidate(name, ("stage1", "stage2"), costs, answers(400, 1, strength), answers(400, 2, strength))


def test_pictures_of_one_base_picture_are_in_one_fold() -> None:
    groups = np.repeat(np.arange(40), 3)
    found = folds(120, groups)
    assert set(found) == set(range(5))
    assert all(len(set(found[groups == group])) == 1 for group in range(40))


def test_subnet_and_exits_are_chosen_together() -> None:
    large, small = candidate("large", 1.0, (0.8, 1.6, 2.6)), candidate("small", 0.4, (0.2, 0.4, 0.6))
    rows = by_budget([large, small], GROUPS, GROUPS, (0.3, 0.6, 1.0))
    assert rows["30 %"]["without"] is None
    row = rows["60 %"]
    assert (row["with"]["name"], row["without"]["name"]) == ("large", "small")
    assert row["with"]["expected"] < row["budget"] < row["with"]["worst"]
    assert row["gain"] > 2 * row["gain_error"] > 0
    assert sum(row["with"]["leave"].values()) == pytest.approx(1)
    assert set(row["with"]["leave"]) == {"stage1", "stage2", "last"}


def test_a_budget_of_the_worst_cost_is_kept_and_a_tight_one_is_answered_by_nobody() -> None:
    both = [candidate("large", 1.0, (0.8, 1.6, 2.6)), candidate("small", 0.4, (0.2, 0.4, 0.6))]
    assert read_limits({"expected": "60%"}, 10.0, "ms") == (pytest.approx(6.0), np.inf)
    rows = by_budget(both, GROUPS, GROUPS, (), {"a": (6.0, 10.5), "b": (6.0, 4.1), "c": (6.0, 0.1)})
    assert list(rows) == ["a", "b", "c"]
    assert rows["a"]["with"]["name"] == "large"
    assert 4.1 < rows["a"]["with"]["worst"] <= 10.5
    assert rows["b"]["with"]["worst"] <= 4.1
    assert rows["b"]["with"]["accuracy_folds"] < rows["a"]["with"]["accuracy_folds"]
    assert rows["c"]["with"] is None
    assert rows["a"]["budget"] == pytest.approx(6.0)


def test_without_use_for_exits_the_subnet_alone_is_chosen() -> None:
    poor = candidate("poor", 1.0, (-3.0, -3.0, 2.0))
    row = by_budget([poor], GROUPS, GROUPS, (1.0,))["100 %"]
    assert row["with"]["leave"]["last"] == 1
    assert row["gain"] == 0
    same = Answers(np.zeros((400, 2)), np.ones((400, 3)))  # exits are as good as the end
    both = replace(poor, validation=same, test=same)
    choice = choose([Chooser(each, GROUPS) for each in (both, both.alone)], 10.0)
    assert choice is not None
    assert choice.candidate.exits == ()


def test_confidence_that_ranks_right_answers_first_has_an_auroc_of_one() -> None:
    right = np.array([1.0, 1, 0, 0])
    assert failure_auroc(np.array([0.9, 0.8, 0.3, 0.2]), right) == 1
    assert failure_auroc(np.array([0.5, 0.5, 0.5, 0.5]), right) == 0.5
    assert np.isnan(failure_auroc(np.array([0.5, 0.5, 0.5, 0.5]), np.ones(4)))
