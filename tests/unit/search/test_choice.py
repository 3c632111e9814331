"""The choice among the candidates of all budgets."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import autotailor
from autotailor.ir.junctions import OPERATOR
from autotailor.ir.space.metric import Term
from autotailor.ir.space.subnet import SubNet, canonical, largest, sample_distinct, smallest, stack
from autotailor.ir.space.variable import Space, Variable
from autotailor.prediction import Measured
from autotailor.prediction.evaluations.chance import CLEAR, paired_errors, uncontradicted
from autotailor.search import (
    Front,
    LatencyForecast,
    Objectives,
    SearchConfig,
    SearchError,
    candidates,
    choose,
    exact_front,
    search,
)
from autotailor.search.alternatives import without_alternatives
from autotailor.search.candidates import NARROWED, trivial
from autotailor.search.choice import columns, read_candidates
from autotailor.search.cost import LATENCY
from autotailor.statistics import accuracy_drop

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
    """Random posteriors, but for one star with the highest; the others are measured as more accurate than the star.

    Remembers what it was asked for.
    """

    def __init__(self, star: SubNet) -> None:
        self.star, self.asked = star, []

    def __call__(self, subnets: Sequence[SubNet]) -> dict[str, Measured]:
        self.asked.append(list(subnets))
        rng = np.random.default_rng(0)
        others = {s.id: Measured(99.5, 0.5, float(rng.uniform(50, 60)), 0.4) for s in subnets}
        return {id_: Measured(99.0, 0.1, 98.0, 0.1) if id_ == self.star.id else m for id_, m in others.items()}


def test_the_best_posterior_is_chosen_also_from_tighter_budgets(
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
        assert list(np.diff(objectives.cost.predict(stack(subnets))) >= 0) == [True] * (len(subnets) - 1)
        assert max(subnets, key=lambda s: found.accuracies[s.id].posterior) == choice.subnets[name]
        assert found.limits[name] == limit
    assert set(found.contests["budget_01"]) < set(found.contests["budget_02"])


@pytest.mark.parametrize("confidence", [0.5, 0.95])
@pytest.mark.parametrize("spread", [0.0, 0.04])
def test_the_choice_is_the_most_accurate_of_all_subnets_that_meet_the_budget_as_surely_as_asked(
    residual_space, objectives_of, confidence: float, spread: float
) -> None:
    """Brute force over a small space: every SubNet's own probability of meeting each budget."""
    objectives = objectives_of(residual_space(1, 2, 1), seed=2)
    everyone = [SubNet.from_array(objectives.space, row) for row in _all(objectives)]
    forecast = LatencyForecast(confidence, offset=0.1, slope=0.2, centre=-1.0, spread=spread, noise=0.01, degrees=20.0)
    latencies = objectives.cost.predict(stack(everyone))
    budgets = [forecast.expected(float(ms)) for ms in np.quantile(latencies, [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])]
    one = replace(CONFIG, candidates=1)
    choice = choose(objectives, exact_front(objectives).front, budgets, _exactly(objectives), one, forecast)
    for budget, chosen in zip(budgets, choice.subnets.values(), strict=True):
        sure = [
            subnet
            for subnet, ms in zip(everyone, latencies, strict=True)
            if forecast.of(subnet, float(ms)).probability(budget) >= confidence - 1e-9
        ]
        assert 0 < len(sure) < len(everyone)
        best = max(float(objectives.accuracy.predict(subnet.to_array())[0]) for subnet in sure)
        assert objectives.accuracy.predict(chosen.to_array())[0] == pytest.approx(best)
        assert chosen in sure


def test_a_subnet_that_the_lut_knows_badly_is_passed_over(
    objectives: Objectives, front: Front, budgets: list[float]
) -> None:
    (first,) = choose(
        objectives, front, budgets[1:], _exactly(objectives), CONFIG, LatencyForecast(0.95, noise=0.01)
    ).subnets.values()
    forecast = LatencyForecast(0.95, noise=0.01, errors=_BadlyKnown(first, 0.2))
    (found,) = choose(objectives, front, budgets[1:], _exactly(objectives), CONFIG, forecast).subnets.values()
    one = replace(CONFIG, candidates=1)
    (alone,) = choose(objectives, front, budgets[1:], _exactly(objectives), one, forecast).subnets.values()
    assert first not in (found, alone)
    rows = [row.tolist() for row in front.indices]
    assert rows.index(alone.to_array().tolist()) == rows.index(first.to_array().tolist()) - 1


def test_where_nothing_is_sure_to_meet_a_budget_the_fastest_is_taken_and_a_warning_says_how_sure(
    objectives: Objectives, front: Front, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    forecast = LatencyForecast(0.95, spread=0.05)
    choice = choose(objectives, front, [1.01 * float(front.cost[0])], _exactly(objectives), CONFIG, forecast)
    assert choice.subnets["budget_01"].to_array().tolist() == front.indices[0].tolist()
    assert "budget_01: no SubNet is sure" in caplog.text
    assert "probability of 57.8 %, and 95 % are asked for" in caplog.text
    choice.write(tmp_path / "candidates.csv")
    found = read_candidates(tmp_path / "candidates.csv", objectives.space)
    assert found.contests["budget_01"] == [choice.subnets["budget_01"]]


def test_the_tightest_of_a_number_of_budgets_is_one_that_the_fastest_subnet_keeps(
    objectives: Objectives, front: Front, caplog: pytest.LogCaptureFixture
) -> None:
    forecast = LatencyForecast(0.95, offset=0.2, spread=0.05)
    choice = choose(objectives, front, 3, _exactly(objectives), CONFIG, forecast)
    tightest = choice.table[choice.table["budget"] == "budget_01"]
    assert (tightest["upper_ms"] <= tightest["budget_ms"] * (1 + 1e-9)).all()
    assert not caplog.records


def _exactly(objectives: Objectives) -> Callable[[Sequence[SubNet]], dict[str, Measured]]:
    """A measurement that finds what is predicted."""
    return lambda subnets: {
        s.id: Measured.alone(float(objectives.accuracy.predict(s.to_array())[0]), 0.1) for s in subnets
    }


def _all(objectives: Objectives) -> np.ndarray:
    grid = np.indices([len(v.choices) for v in objectives.space]).reshape(len(objectives.space), -1).T
    return np.unique(canonical(objectives.space, grid), axis=0)


class _BadlyKnown:
    """Standard errors of the LUT that are 0 but for one SubNet."""

    def __init__(self, subnet: SubNet, error: float) -> None:
        self.row, self.error = subnet.to_array(), error

    def predict(self, subnets: np.ndarray) -> np.ndarray:
        return np.where((np.array(subnets, ndmin=2) == self.row).all(axis=1), self.error, 0.0)


def test_what_the_run_has_evaluated_is_chosen_where_it_meets_the_budget_and_is_better(
    objectives: Objectives, front: Front, budgets: list[float], tmp_path: Path
) -> None:
    """The predictions know nothing of it: it is on no front, and no candidate of the search."""
    drawn = sample_distinct(objectives.space, 200, np.random.default_rng(5))
    offered = choose(objectives, front, budgets, _exactly(objectives), CONFIG).table["subnet"].tolist()
    latency = dict(zip(drawn, objectives.cost.predict(stack(drawn)).tolist(), strict=True))
    star = next(s for s in drawn if s.id not in offered and budgets[0] < latency[s] <= budgets[1])
    choice = choose(objectives, front, budgets, Measurement(star), CONFIG, evaluated=drawn)
    assert choice.subnets["budget_02"] == star
    assert latency[choice.subnets["budget_01"]] <= budgets[0], "it does not meet the tighter budget"
    choice.write(tmp_path / "candidates.csv")
    contests = read_candidates(tmp_path / "candidates.csv", objectives.space).contests
    assert star in contests["budget_02"], "it competes to be polished"
    assert star not in contests["budget_01"]
    new = set(choice.table.loc[choice.table["budget"] == "budget_02", "subnet"]) - set(offered)
    assert len(new) <= CONFIG.candidates, "what is measured on the device stays few"


def test_what_a_person_tries_first_competes_in_every_search(
    objectives: Objectives, front: Front, budgets: list[float]
) -> None:
    plain = trivial(objectives.space)
    assert {s.assignment["resolution"] for s in plain} == set(objectives.space["resolution"].choices)
    for subnet in plain:
        limit = 1.01 * float(objectives.cost.predict(subnet.to_array())[0])
        assert choose(objectives, front, [limit], Measurement(subnet), CONFIG).subnets == {"budget_01": subnet}


def test_one_width_for_all_layers_is_among_it(resnet_net: autotailor.SuperNet) -> None:
    space = resnet_net.space
    *others, least = trivial(space)
    narrow = [subnet for subnet in [*others, least] if len(subnet.modifications) > 1]
    for step, subnet in enumerate(narrow, 1):
        for variable in space:
            below = min(step, variable.default) if variable.kind in NARROWED else 0
            assert variable.index(subnet[variable.name]) == variable.default - below
    assert all(least[variable.name] == variable.choices[0] for variable in space if variable.kind in NARROWED)
    assert len(narrow) == max(variable.default for variable in space if variable.kind in NARROWED)


def test_the_best_subnet_without_alternatives_competes(residual_space, objectives_of) -> None:
    """Alternatives that are all predicted to cost less and lose nothing hide the given blocks from the front."""
    space = residual_space(2, 2, 1)
    operator = Variable("block0.operator", OPERATOR, ("original", "shrunk:0.5"), 0, least=1)
    plain = objectives_of(space)
    whole = Space((*space, operator))
    better = Term((operator.name,), np.array([0.0, 1.0]))
    faster = Term((operator.name,), np.array([0.1, 0.0]))
    objectives = Objectives(
        replace(plain.accuracy, space=whole, terms=(*plain.accuracy.terms, better)),
        replace(plain.cost, space=whole, terms=(*plain.cost.terms, faster)),
    )
    front = search(objectives, CONFIG).front
    assert {subnet[operator.name] for subnet in front.subnets} == {"shrunk:0.5"}
    budget = 0.6 * float(objectives.cost.predict(largest(whole).to_array())[0])
    rows = np.array(list(itertools.product(*(range(len(v.choices)) for v in space), [0])))
    rows = canonical(whole, rows[objectives.cost.predict(rows) <= budget])
    best = SubNet.from_array(whole, rows[np.argmax(objectives.accuracy.predict(rows))])
    table = choose(objectives, front, [budget], Measurement(best), CONFIG).table
    assert best.id in set(table["subnet"])
    assert table.loc[table["subnet"] == best.id, "chosen"].all(), "it is measured as the best"
    assert without_alternatives(plain, CONFIG) is None


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 2**32 - 1), st.sampled_from([20, 100, 1000]), st.floats(0.0, 30.0), st.floats(0.2, 1.0))
def test_no_choice_is_below_the_best_evaluated_subnet_that_meets_the_budget_by_more_than_chance(
    residual_space, objectives_of, seed: int, images: int, wrong: float, share: float
) -> None:
    """Random accuracies, and posteriors of a model that is wrong by any number of points."""
    random = np.random.default_rng(seed)
    objectives = objectives_of(residual_space(2, 2, 1), seed=seed % 7)
    evaluated = sample_distinct(objectives.space, 25, random)
    hard = random.normal(size=images)
    answers: dict[str, np.ndarray] = {}

    def measure(subnets: Sequence[SubNet]) -> dict[str, Measured]:
        for subnet in subnets:
            answers[subnet.id] = random.normal(1.0, 1.0) + hard + random.normal(0.0, 0.5, images) > 0
        right = np.stack([answers[subnet.id] for subnet in subnets])
        values = 100 * right.mean(axis=1)
        errors = paired_errors(right, np.arange(images))
        believed = values + random.normal(0.0, wrong, len(values))
        found = uncontradicted(believed, values, errors).tolist()
        return {
            s.id: Measured(v, e, p, e) for s, v, e, p in zip(subnets, values.tolist(), errors[:, 0], found, strict=True)
        }

    whole = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    front = Front.of(objectives, stack([*evaluated, smallest(objectives.space)]), "genetic")
    limit = max(share * whole, float(front.cost[0]))
    choice = choose(objectives, front, [limit], measure, replace(CONFIG, candidates=2), evaluated=evaluated)
    (chosen,) = choice.subnets.values()
    for subnet in evaluated:
        if objectives.cost.predict(subnet.to_array())[0] <= limit:
            drop, error = accuracy_drop(answers[subnet.id], answers[chosen.id], np.arange(images))
            assert drop <= CLEAR * max(error, 100 / images) + 1e-9


@pytest.mark.parametrize("text", ["", "budget,subnet\nbudget_01,abc\n", "no table"])
def test_a_file_that_is_no_table_of_candidates_is_refused(objectives: Objectives, text: str, tmp_path: Path) -> None:
    (tmp_path / "candidates.csv").write_text(text)
    with pytest.raises(SearchError, match="no table of candidates of this space"):
        read_candidates(tmp_path / "candidates.csv", objectives.space)
