"""The choice among the candidates of all budgets."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.ir.space.subnet import SubNet, largest
from autotailor.search import Front, Objectives, SearchConfig, SearchError, candidates, choose, search
from autotailor.search.choice import columns, read_candidates
from autotailor.search.cost import LATENCY

CONFIG = SearchConfig(population=20, generations=5, candidates=4, seed=1)


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(3, 2, 1), seed=1)


@pytest.fixture(scope="module")
def front(objectives: Objectives) -> Front:
    return search(objectives, CONFIG).front


@pytest.fixture(scope="module")
def budgets(objectives: Objectives) -> list[float]:
    largest_ms = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    return [0.5 * largest_ms, 0.7 * largest_ms]


class Measurement:
    """Random accuracies, but for one star; remembers what it was asked for."""

    def __init__(self, star: SubNet) -> None:
        self.star, self.asked = star, []

    def __call__(self, subnets: Sequence[SubNet]) -> dict[str, tuple[float, float]]:
        self.asked.append(list(subnets))
        rng = np.random.default_rng(0)
        return {s.id: (99.0, 0.1) if s == self.star else (float(rng.uniform(50, 60)), 0.5) for s in subnets}


def test_the_best_measured_is_chosen_also_from_tighter_budgets(
    objectives: Objectives, front: Front, budgets: list[float], tmp_path: Path
) -> None:
    star = candidates(objectives, front, budgets[0], CONFIG.candidates, CONFIG.seed)[2]
    choice = choose(objectives, front, budgets, Measurement(star), CONFIG)
    assert choice.subnets == {"budget_01": star, "budget_02": star}
    assert list(choice.table.columns) == list(columns(LATENCY))
    assert choice.table.groupby("budget")["chosen"].sum().tolist() == [1, 1]
    choice.write(tmp_path / "candidates.csv")
    assert pd.read_csv(tmp_path / "candidates.csv")["subnet"].tolist() == choice.table["subnet"].tolist()


def test_every_candidate_is_measured_once(objectives: Objectives, front: Front, budgets: list[float]) -> None:
    measure = Measurement(largest(objectives.space))
    choice = choose(objectives, front, [*budgets, budgets[0]], measure, CONFIG)
    (asked,) = measure.asked
    assert len(set(asked)) == len(asked)
    assert {subnet.id for subnet in asked} == set(choice.table["subnet"])


def test_what_is_chosen_keeps_its_budget(objectives: Objectives, front: Front, budgets: list[float]) -> None:
    choice = choose(objectives, front, budgets, Measurement(largest(objectives.space)), CONFIG)
    for subnet, budget in zip(choice.subnets.values(), budgets, strict=True):
        assert objectives.cost.predict(subnet.to_array())[0] <= budget


def test_a_choice_needs_a_budget_that_can_be_met(objectives: Objectives, front: Front) -> None:
    with pytest.raises(SearchError, match="raise the budget"):
        choose(objectives, front, [1e-9], Measurement(largest(objectives.space)), CONFIG)


def test_a_budget_is_met_by_all_candidates_that_are_fast_enough(
    objectives: Objectives, front: Front, budgets: list[float], tmp_path: Path
) -> None:
    choice = choose(objectives, front, budgets, Measurement(largest(objectives.space)), CONFIG)
    choice.write(tmp_path / "candidates.csv")
    found = read_candidates(tmp_path / "candidates.csv", objectives.space)
    everyone = {subnet for subnets in found.contests.values() for subnet in subnets}
    assert {subnet.id for subnet in everyone} == set(choice.table["subnet"])
    for limit, (name, subnets) in zip(budgets, found.contests.items(), strict=True):
        fast = {s for s in everyone if objectives.cost.predict(s.to_array())[0] <= limit}
        assert set(subnets) == fast
        assert max(subnets, key=lambda s: found.accuracies[s.id]).id == choice.subnets[name].id
    assert set(found.contests["budget_01"]) < set(found.contests["budget_02"])


@pytest.mark.parametrize("text", ["", "budget,subnet\nbudget_01,abc\n", "no table"])
def test_a_file_that_is_no_table_of_candidates_is_refused(objectives: Objectives, text: str, tmp_path: Path) -> None:
    (tmp_path / "candidates.csv").write_text(text)
    with pytest.raises(SearchError, match="no table of candidates of this space"):
        read_candidates(tmp_path / "candidates.csv", objectives.space)
