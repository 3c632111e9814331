"""Early exits of a finished run: what predictions say of them, and what is chosen for budgets, against brute force."""

import json
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import autotailor
from autotailor.__main__ import main
from autotailor.exits.answers import Costs, ExitError, Policy
from autotailor.exits.chain import Chain
from autotailor.exits.choice import Candidate, by_budget
from autotailor.exits.costs import WithExits
from autotailor.exits.files import write_description, write_files
from autotailor.exits.heads import find_exits, initial
from autotailor.exits.heads import with_exits as headed
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


def with_files(run: Path, name: str) -> WithExits:
    """Writes the files of an export of ``with_exits``: the run's largest SubNet with random heads."""
    net = autotailor.open_run(run).net
    graph, random = net.slice(net.largest()), np.random.default_rng(0)
    places = find_exits(net, net.largest(), graph, EXITS, "probe")
    heads = [initial(place, "probe", net.num_classes, random) for place in places]
    network = WithExits(headed(graph, places, heads), places)
    pictures = random.normal(size=(2, *graph.shapes[graph.input][1:])).astype(np.float32)
    write_files(network, net.names, run / "exits" / name, pictures, None, 1e-4)
    said = {"confidence": "probability", "probabilities": False, "classes": [], "guaranteed": None, "budgets": {}}
    write_description(run / "exits" / name, said | {"exits": {exit_: {} for exit_ in EXITS}})
    return network


def test_the_files_of_a_choice_are_copied_with_its_thresholds_and_run_by_them(
    copied_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with_exits(copied_run)
    wanted = autotailor.open_run(copied_run).choose_exits("60%", "110%")
    with_files(copied_run, wanted.name)
    place = tmp_path / "new"
    command = ["export", str(copied_run), "--expected", "60%", "--worst", "110%", "--output", str(place)]
    assert main([*command, "--json"]) == 0
    assert json.loads(capfd.readouterr().out)["exits"] == json.loads(json.dumps(wanted.to_dict()))
    assert not (place / "answers.npz").exists()
    chain = Chain(place)
    image = np.zeros((3, *autotailor.open_run(copied_run).net.input_shape[2:]), np.float32)
    sure = chain(image).exit
    assert sure == Chain(copied_run / "exits" / wanted.name, thresholds=wanted.thresholds)(image).exit
    with pytest.raises(ExitError, match="no thresholds for 'guaranteed', but for nothing"):
        Chain(copied_run / "exits" / wanted.name)
    assert main(command) == 1
    assert "never overwrites" in capfd.readouterr().err


def test_where_exits_gain_nothing_the_files_are_those_of_the_export(copied_run: Path, tmp_path: Path) -> None:
    with_exits(copied_run)
    run = autotailor.open_run(copied_run)
    chosen = run.choose_exits("100%")
    assert not chosen.thresholds
    with pytest.raises(RunError, match=rf"exports/{chosen.name} is missing; run autotailor again"):
        run.export_exits(tmp_path / "new", "100%")
    assert not (tmp_path / "new").exists()
    (copied_run / "exports" / chosen.name).mkdir(parents=True)
    (copied_run / "exports" / chosen.name / "model.onnx").write_bytes(b"its own")
    run.export_exits(tmp_path / "new", "100%")
    assert (tmp_path / "new" / "model.onnx").read_bytes() == b"its own"


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
