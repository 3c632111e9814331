"""Early exits of a finished run: what predictions say of them, and what is chosen for budgets, against brute force."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import autotailor
from autotailor.exits.answers import Costs, Policy
from autotailor.exits.choice import Candidate, by_budget
from autotailor.exits.thresholds import grids, safe
from autotailor.runs import RunError
from simulated_exits import answers

EXITS, PICTURES = ("stage1", "stage2"), 300
COSTS = {"largest": Costs((2.0, 3.0, 5.0), (0.2, 0.3)), "budget_01": Costs((1.0, 1.5, 2.5), (0.1, 0.15))}
STRENGTH = {"largest": (0.8, 1.6, 2.6), "budget_01": (0.2, 0.4, 0.6)}


def with_exits(folder: Path) -> dict[str, Candidate]:
    """Writes what the rule ``exits`` would of simulated answers; returns the candidates by name."""
    groups = np.arange(PICTURES)
    found = {
        name: Candidate(name, EXITS, COSTS[name], *(answers(PICTURES, seed, strength) for seed in (1, 2)), COSTS[name])
        for name, strength in STRENGTH.items()
    }
    networks = {}
    for name, each in found.items():
        (folder / "exits" / name).mkdir(parents=True)
        seen = {"validation": each.validation, "test": each.test}
        arrays = {f"{split}_{key}": getattr(own, key) for split, own in seen.items() for key in ("confidence", "right")}
        np.savez(folder / "exits" / name / "answers.npz", **arrays, validation_groups=groups, test_groups=groups)
        parts = {"segments": list(each.costs.segments), "heads": list(each.costs.heads)}
        networks[name] = {"exits": {exit_: {} for exit_ in EXITS}, **parts, "energy": parts}
    said = {"schema_version": 1, "unit": "ms", "costs": "measured on the device", "networks": networks}
    said["budgets"] = by_budget(list(found.values()), groups, groups, (0.6, 0.8, 1.0))
    (folder / "exits.json").write_text(json.dumps(said))
    return found


def test_predictions_of_an_export_have_expected_and_worst_latency(copied_run: Path) -> None:
    with_exits(copied_run)
    run = autotailor.open_run(copied_run)
    assert run.exits is not None
    row = run.exits.said["budgets"]["60 %"]["with"]
    found = run.predict(row["name"]).predicted
    assert found["latency.expected at 60 %"].value == row["expected"]
    assert found["latency.worst at 60 %"].value == row["worst"] == found["energy.worst at 60 %"].value
    assert found["accuracy at 60 %"].standard_error == row["accuracy_error"]
    assert "measured on the device" in found["latency.expected at 60 %"].source
    others = [name for name in run.subnets.exported if name not in COSTS]
    assert not any("expected" in name for name in run.predict(others[0]).predicted)


def brute(candidates: dict[str, Candidate], expected: float, worst: float) -> float:
    """The accuracy on the validation set of the best thresholds of one SubNet, by looking at each combination."""
    best = 0.0
    for each in candidates.values():
        steps = [[*grid, None] for grid in grids(each.validation.confidence)]
        for thresholds in product(*steps):
            policy = Policy(tuple(thresholds), 0.0, 0.0, 0.0, 0.0).on(each.validation, each.costs)
            if safe(policy, PICTURES) <= expected and policy.furthest(each.costs) <= worst:
                best = max(best, policy.accuracy)
    return best


@pytest.mark.parametrize(("expected", "worst"), [(6.0, np.inf), (9.0, 5.3), (9.0, 10.6)])
def test_a_budget_of_both_costs_is_kept_by_the_best_thresholds_there_are(
    copied_run: Path, expected: float, worst: float
) -> None:
    found = {"largest": with_exits(copied_run)["largest"]}
    said = json.loads((copied_run / "exits.json").read_text())
    said["networks"].pop("budget_01")
    (copied_run / "exits.json").write_text(json.dumps(said))
    run = autotailor.open_run(copied_run)
    chosen = run.choose_exits(expected, None if np.isinf(worst) else worst)
    policy = Policy(tuple(chosen.thresholds.values()), 0.0, 0.0, 0.0, 0.0)
    seen = policy.on(found["largest"].validation, COSTS["largest"])
    assert seen.accuracy == pytest.approx(brute(found, expected, worst))
    assert safe(seen, PICTURES) <= expected
    assert chosen.predicted["latency.worst"].value <= worst
    assert sum(chosen.leave.values()) == pytest.approx(1)


def test_what_nothing_keeps_and_what_is_not_there_is_refused(copied_run: Path) -> None:
    run = autotailor.open_run(copied_run)
    assert run.exits is None
    with pytest.raises(RunError, match="the run has no exits"):
        run.choose_exits("60%")
    with_exits(copied_run)
    with pytest.raises(RunError, match=r"the first answer of all takes 1\.1"):
        autotailor.open_run(copied_run).choose_exits("5%")


def test_exits_that_were_made_for_other_exports_are_left_out(copied_run: Path) -> None:
    with_exits(copied_run)
    record = copied_run / "provenance" / "exits.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text(
        json.dumps({"schema_version": 1, "rule": "exits", "inputs": {"polish.json": "0" * 64}, "outputs": {}})
    )
    assert autotailor.open_run(copied_run).exits is None
