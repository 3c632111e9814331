"""Which SubNet a budget of the expected cost is for: against a search over each SubNet and each threshold."""

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch

from autotailor.accuracy import CalibrationConfig
from autotailor.data.splits import TensorEvaluationSet
from autotailor.exits.answers import Costs, Policy
from autotailor.exits.choice import Candidate
from autotailor.exits.config import ExitsConfig
from autotailor.exits.costs import counted
from autotailor.exits.search.screening import Screening, along, best_with_exits, whole_budgets
from autotailor.exits.thresholds import grids, safe
from autotailor.ir.space.subnet import SubNet, stack
from autotailor.ir.supernet import SuperNet
from autotailor.search import AS_PREDICTED, Front, SearchError, costs
from simulated_exits import answers
from tiny_data import splits

PICTURES, MACS = 200, costs()["macs"]
GROUPS = np.arange(PICTURES)


def simulated(net: SuperNet, count: int = 6) -> dict[SubNet, Candidate]:
    """SubNets whose exits are the stronger the more they cost."""
    found, random = {}, np.random.default_rng(0)
    while len(found) < count:
        at = len(found) + 1
        seen = answers(PICTURES, at, (0.2 + 0.1 * at, 0.3 + 0.35 * at))
        costs = Costs((0.4 * at, 0.6 * at), (0.05,))
        found[net.sample(random)] = Candidate(str(at), ("stage1",), costs, seen, seen)
    return found


@pytest.mark.parametrize("expected", [0.8, 1.7, 2.6, 4.2])
def test_no_subnet_with_any_threshold_is_better_on_the_pictures_that_chose(net: SuperNet, expected: float) -> None:
    candidates = simulated(net)
    best = best_with_exits(candidates, GROUPS, expected, np.inf)
    assert best is not None

    def accuracy(each: Candidate) -> float:
        """Of the best thresholds that keep the budget, by looking at each."""
        found = 0.0
        for thresholds in product(*([*grid, None] for grid in grids(each.validation.confidence))):
            policy = Policy(tuple(thresholds), 0.0, 0.0, 0.0, 0.0).on(each.validation, each.costs)
            found = max(found, policy.accuracy if safe(policy, PICTURES) <= expected else 0.0)
        return found

    reached = {subnet: accuracy(each) for subnet, each in candidates.items()}
    assert reached[best] >= max(reached.values()) - 0.02, "folds choose, so that luck on the same pictures does not"
    slower = [subnet for subnet, each in candidates.items() if each.costs.whole > expected]
    assert best in slower or expected > 4, "with exits a SubNet pays that is too slow as a whole"


def test_where_no_exit_is_good_the_best_subnet_within_the_budget_is_chosen(net: SuperNet) -> None:
    bad = answers(PICTURES, 3, (-3.0, 2.0))
    candidates = {
        subnet: replace(each, validation=bad, test=bad) if each.costs.whole > 2.5 else each
        for subnet, each in simulated(net).items()
    }
    best = best_with_exits(candidates, GROUPS, 2.5, np.inf)
    assert best is not None
    assert candidates[best].costs.whole <= 2.5
    assert best_with_exits(candidates, GROUPS, 0.1, np.inf) is None


def macs_front(net: SuperNet) -> Front:
    random, macs = np.random.default_rng(1), net.macs()
    rows = stack(sorted({net.sample(random) for _ in range(60)}, key=lambda each: macs.predict(each.to_array())[0]))
    cost = macs.predict(rows)
    kept = np.unique(cost, return_index=True)[1]
    found_by = ("exact",) * len(kept)
    return Front(net.space, rows[kept], np.arange(len(kept)), cost[kept], found_by=found_by, kind=MACS)


def test_subnets_are_spread_over_the_costs_from_the_budget_to_the_largest(net: SuperNet) -> None:
    front = macs_front(net)
    least = float(np.quantile(front.cost, 0.5))
    found = along(front, least, 8)
    spent = net.macs().predict(stack(found))
    assert found[-1] == net.largest()
    assert 4 <= len(found) <= 9
    assert (np.diff(spent) > 0).all()
    assert spent[0] <= least * (1 + 1e-6) < spent[1]


def test_a_budget_of_the_expected_cost_becomes_one_of_a_whole_network(net: SuperNet, tmp_path: Path) -> None:
    random = torch.Generator().manual_seed(0)
    held = TensorEvaluationSet(torch.randn(40, 3, 32, 32, generator=random), np.arange(40) % 5, np.arange(40))
    data, config = replace(splits(), validation=held, test=held), ExitsConfig(after=("stage1",))
    calibration = CalibrationConfig(images=16, batch_size=8)
    screening = Screening(
        net, data, config, calibration, lambda _, network: counted(network), tmp_path, accelerator="cpu"
    )
    front = macs_front(net)
    whole = float(net.macs().predict(net.largest().to_array())[0])
    asked = {"budget_01": {"expected": "60%"}, "budget_02": {"expected": "60%", "worst": "60%"}}
    found = whole_budgets(asked, front, whole, MACS, AS_PREDICTED, screening)
    spent = net.macs().predict(stack(along(front, 0.6 * whole)))
    for limit in found.values():
        assert min(abs(spent - limit)) == pytest.approx(0.0, abs=1e-6 * whole)
    assert list(found) == list(asked)
    with pytest.raises(SearchError, match="budget_03: no SubNet, with exits or without, keeps an expected MACs of"):
        whole_budgets({"budget_03": {"expected": 1e-6}}, front, whole, MACS, AS_PREDICTED, screening)
