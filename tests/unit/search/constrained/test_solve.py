"""The best SubNet under constraints equals brute force, under all combinations of constraints."""

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

from autotailor.ir.space.link import LOGIT
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.subnet import canonical, largest
from autotailor.search import Constraint, Objectives, SearchError, solve

NAMES = ("latency", "latency@phone", "parameters", "peak_memory")
COMBINATIONS = [names for size in range(1, 5) for names in itertools.combinations(NAMES, size)]


@pytest.fixture(name="objectives", scope="module")
def objectives_fixture(residual_space, objectives_of) -> Objectives:
    return objectives_of(residual_space(2, 2, 1), seed=3)


@pytest.fixture(name="constraints", scope="module")
def constraints_fixture(objectives: Objectives, objectives_of, memory_of) -> dict[str, Constraint]:
    phone = objectives_of(objectives.space, seed=8).cost
    (parameters,) = objectives.further
    memory = memory_of(objectives.space, parameters)
    found = [Constraint(objectives.cost), Constraint(phone, "latency@phone"), Constraint(parameters)]
    return {constraint.key: constraint for constraint in (*found, Constraint(memory))}


@pytest.fixture(name="everything", scope="module")
def everything_fixture(objectives: Objectives) -> np.ndarray:
    grid = itertools.product(*(range(len(variable.choices)) for variable in objectives.space))
    return np.unique(canonical(objectives.space, np.array(list(grid))), axis=0)


def excesses(chosen: Sequence[Constraint], rows: np.ndarray, limits: Mapping[str, float]) -> np.ndarray:
    """The largest cost over its budget, for each of some SubNets."""
    return np.max([c.metric.predict(rows) / limits[c.key] for c in chosen], axis=0)


@pytest.mark.parametrize("names", COMBINATIONS, ids="+".join)
def test_equals_brute_force(
    names: tuple[str, ...], objectives: Objectives, constraints: dict[str, Constraint], everything: np.ndarray
) -> None:
    chosen = [constraints[name] for name in names]
    whole = {c.key: float(c.metric.predict(largest(objectives.space).to_array())[0]) for c in chosen}
    asked = [dict.fromkeys(names, f"{share}%") for share in (75, 55, 2)]
    for budgets, solution in zip(asked, solve(objectives.accuracy, chosen, asked), strict=True):
        limits = {name: whole[name] * float(budgets[name][:-1]) / 100 for name in names}
        excess = excesses(chosen, everything, limits)
        raised = max(1.0, float(excess.min()))
        best = objectives.accuracy.predict(everything)[excess <= raised * (1 + 1e-9)].max()
        assert solution.raised == pytest.approx(raised)
        assert solution.meets == (excess.min() <= 1)
        assert solution.value == pytest.approx(best)
        assert solution.gap == pytest.approx(0, abs=1e-5)
        for constraint in chosen:
            spent = constraint.metric.predict(solution.subnet.to_array())[0]
            assert solution.spent[constraint.key] == pytest.approx(spent)
            assert spent <= limits[constraint.key] * raised * (1 + 1e-6)


def test_a_link_changes_the_values_and_not_the_choice(objectives: Objectives) -> None:
    plain = objectives.accuracy
    linked = Metric("accuracy", "%", plain.space, plain.terms, 3.0, LOGIT)
    budgets = [{"latency": "60%"}]
    (a,), (b,) = (solve(metric, [Constraint(objectives.cost)], budgets) for metric in (plain, linked))
    assert a.subnet == b.subnet
    assert b.value == pytest.approx(linked.predict(a.subnet.to_array())[0])
    assert b.bound == pytest.approx(b.value)


def test_budgets_as_throughput_and_left_out(objectives: Objectives, constraints: dict[str, Constraint]) -> None:
    latency = float(objectives.cost.predict(largest(objectives.space).to_array())[0])
    chosen = [constraints["latency"], constraints["parameters"]]
    rate, number, share = solve(
        objectives.accuracy, chosen, [{"latency": f"{2000 / latency:.9f}/s"}, {"latency": latency / 2}, {}]
    )
    assert rate.subnet == number.subnet
    assert share.value == pytest.approx(objectives.accuracy.predict(share.subnet.to_array())[0])
    assert share.spent["latency"] > number.spent["latency"]


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ({"memory": 3.0}, "budgets name memory, expected some of latency, parameters"),
        ({"latency": -1.0}, "expected a positive number of ms, .* or a throughput such as '30/s'"),
        (
            {"parameters": "30/s"},
            "expected a positive number of M, or a share .* such as '50%', or a count such as '300M'",
        ),
        ({"latency": "0/s"}, "expected a positive number of ms"),
    ],
)
def test_wrong_budgets_are_refused(
    budgets: dict[str, float | str], message: str, objectives: Objectives, constraints: dict[str, Constraint]
) -> None:
    with pytest.raises(SearchError, match=message):
        solve(objectives.accuracy, [constraints["latency"], constraints["parameters"]], [budgets])


def test_two_constraints_of_one_name_are_refused(objectives: Objectives) -> None:
    with pytest.raises(SearchError, match="distinct names; give each a name"):
        solve(objectives.accuracy, [Constraint(objectives.cost)] * 2, [])
