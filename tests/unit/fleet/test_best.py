import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import fleets
from autotailor.fleet.best import BEST, FRONT, best_within, exports, united_front
from autotailor.ir.space.subnet import SubNet


@pytest.mark.parametrize("seed", range(3))
def test_the_united_front_is_what_no_subnet_of_any_network_beats(seed: int, tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path, seed)
    table = united_front(fleet)
    assert list(table) == list(FRONT)
    for device in fleets.DEVICES:
        points = [
            (cost, accuracy, model)
            for model in fleets.MODELS
            for cost, accuracy in zip(
                known[model, device].run.objectives.cost.predict(known[model, device].everything),
                known[model, device].run.objectives.accuracy.predict(known[model, device].everything),
                strict=True,
            )
        ]
        best = sorted(
            (c, a, m) for c, a, m in points if not any((x <= c and y > a) or (x < c and y >= a) for x, y, _ in points)
        )
        rows = table[table["device"] == device]
        assert [m for _, _, m in best] == list(rows["model"])
        assert rows["cost_predicted"].to_numpy() == pytest.approx([c for c, _, _ in best])
        assert rows["accuracy_predicted"].to_numpy() == pytest.approx([a for _, a, _ in best])
    first = table.iloc[0]
    subnet = SubNet.from_assignment(fleets.space(first["model"]), json.loads(first["assignment"]))
    assert subnet.id == first["subnet"]


@pytest.mark.parametrize("seed", range(3))
def test_within_each_budget_the_best_of_every_network_is_found(seed: int, tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path, seed)
    table = best_within(fleet)
    assert list(table) == list(BEST)
    assert len(table) == len(fleets.DEVICES) * len(fleets.MODELS) * len(fleets.MODELS) * len(fleets.SHARES)
    for row in table.to_dict("records"):
        each = known[row["model"], row["device"]]
        cost, accuracy = (m.predict(each.everything) for m in (each.run.objectives.cost, each.run.objectives.accuracy))
        inside = cost <= each.run.forecast.limit(row["budget"])
        if inside.any():
            assert row["accuracy_predicted"] == pytest.approx(accuracy[inside].max())
        else:
            assert np.isnan(row["accuracy_predicted"])
    for _, rows in table.groupby(["device", "budget"]):
        assert rows["is_best"].sum() == 1
        assert rows.loc[rows["is_best"], "accuracy_predicted"].item() == rows["accuracy_predicted"].max()


def test_the_best_export_is_the_most_accurate_that_was_measured_within_the_budget(tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path, 1)
    table = best_within(fleet)
    for (device, budget), rows in table.groupby(["device", "budget"]):
        inside = [
            row["accuracy_measured"]
            for model in fleets.MODELS
            for row in known[model, device].run.summary.to_dict("records")
            if row["latency_ms_measured"] <= budget and row["name"] != "original"
        ]
        marked = rows[rows["is_best_export"]]
        assert len(marked) == (1 if inside else 0)
        if inside:
            assert marked["export_accuracy"].item() == max(inside)


def test_exports_are_within_a_share_of_what_was_measured_with_them(tmp_path: Path) -> None:
    """Where the session that measured exports was slower, so is the budget that is a share, which summary.csv says."""
    fleet, known = fleets.fleet(tmp_path, 1)
    before = best_within(fleet)
    for pair in known:
        run = known[pair].run
        told = pd.read_csv(run.folder.file("candidates.csv")).set_index("budget")["budget_ms"]
        run.summary["budget_ms"] = 1.5 * run.summary["name"].map(told)
        run.summary["latency_ms_measured"] *= 1.5
    after = best_within(fleet)
    pd.testing.assert_series_equal(after["export"], before["export"])
    assert after["export"].notna().any()
    assert exports(fleet)["budget"].dropna().tolist() == pytest.approx(
        [1.5 * budget.value for model, device in fleet.runs for budget in fleet.budgets(model, device)]
    )


def test_a_budget_that_two_networks_ask_for_is_compared_once(tmp_path: Path) -> None:
    fleet, known = fleets.fleet(tmp_path)
    for model in fleets.MODELS:
        path = known[model, "host"].run.folder.path / "candidates.csv"
        path.write_text("budget,budget_ms\nbudget_01,0.7\nbudget_01,0.7\nbudget_02,1.2\n")
    assert [(b.model, b.name, b.value) for b in fleet.on_device("host")] == [
        ("first", "budget_01", 0.7),
        ("first", "budget_02", 1.2),
    ]
