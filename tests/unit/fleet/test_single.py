from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fleets
from autotailor.fleet.runs import within
from autotailor.fleet.single import SINGLE, best_single, rows_of_budgets, single_subnets


@pytest.mark.parametrize("seed", range(3))
def test_the_single_subnet_is_the_best_that_keeps_the_budgets_of_all_devices(seed: int, tmp_path: Path) -> None:
    """Against all SubNets, one by one; the mean of the accuracies is that of one device's best at least."""
    fleet, known = fleets.fleet(tmp_path, seed)
    for budgets in rows_of_budgets(fleet).values():
        found = best_single(fleet, budgets)
        best = -np.inf
        for model in fleets.MODELS:
            runs = {device: known[model, device].run for device in budgets}
            every = known[model, "host"].everything
            limits = {device: run.forecast.limit(budgets[device]) for device, run in runs.items()}
            inside = np.all([run.objectives.cost.predict(every) <= limits[d] for d, run in runs.items()], axis=0)
            accuracies = np.array([run.objectives.accuracy.predict(every) for run in runs.values()])[:, inside]
            if inside.any():
                best = max(best, *(accuracies.mean(axis=0)[row.argmax()] for row in accuracies))
        assert (found.mean if found else -np.inf) == pytest.approx(best)


def test_the_loss_is_what_the_single_subnet_lacks_on_each_device(tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path, 2)
    table = single_subnets(fleet)
    assert list(table) == list(SINGLE)
    for row in table.dropna(subset=["single_subnet"]).to_dict("records"):
        own = []
        for model in fleets.MODELS:
            each = known[model, row["device"]]
            cost, accuracy = (
                m.predict(each.everything) for m in (each.run.objectives.cost, each.run.objectives.accuracy)
            )
            own += list(accuracy[cost <= each.run.forecast.limit(row["budget"])])
        assert row["own_accuracy"] == pytest.approx(max(own))
        assert row["loss"] == pytest.approx(max(own) - row["single_accuracy"])
        assert row["loss"] >= -1e-9


def test_budgets_that_nothing_keeps_leave_the_single_subnet_empty(tmp_path: Path) -> None:
    fleet, _ = fleets.fleet(tmp_path)
    assert best_single(fleet, dict.fromkeys(fleets.DEVICES, 1e-3)) is None


def test_a_budget_that_was_raised_to_the_cheapest_subnet_is_kept_by_it_however_it_was_rounded(tmp_path: Path) -> None:
    """The rule search raises a budget that nothing meets; its file leads back to a limit that is 1e-16 off."""
    fleet, known = fleets.fleet(tmp_path)
    for model, device in known:
        run = known[model, device].run
        table = pd.read_csv(run.folder.file("candidates.csv"))
        cheapest = run.pareto.cost[0]
        raised = cheapest / run.forecast.limit(1.0)  # the bias of these forecasts is the same at all latencies
        while run.forecast.limit(raised) >= cheapest:
            raised = float(np.nextafter(raised, 0.0))
        assert run.forecast.limit(raised) == pytest.approx(cheapest, rel=1e-14)
        table.loc[table["budget"] == "budget_01", "budget_ms"] = raised
        table.to_csv(run.folder.file("candidates.csv"), index=False)
        assert within(run, raised) == 0
        assert within(run, raised * (1 - 1e-6)) is None
    rows = single_subnets(fleet)
    found = rows[rows["budgets"] == f"{fleets.MODELS[0]} budget_01"]
    assert len(found) == len(fleets.DEVICES)
    assert found["own_subnet"].notna().all()
    assert (found["loss"].dropna() >= 0).all()
