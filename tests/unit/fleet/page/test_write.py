from pathlib import Path

import pandas as pd

import fleets
from autotailor.fleet.page.write import (
    TABLES,
    answers,
    cost_of_a_device,
    efforts,
    loss_of_a_single,
    minutes,
    number,
    tables,
    write_page,
)
from autotailor.task.scores import ACCURACY


def test_the_page_needs_no_other_file_and_stands_beside_its_tables(tmp_path: Path) -> None:
    fleet, _ = fleets.fleet(tmp_path / "results")
    path = tmp_path / "results" / "fleet" / "all" / "index.html"
    write_page(fleet, path)
    text = path.read_text()
    assert "http" not in text
    for name in (*fleets.MODELS, *fleets.DEVICES):
        assert name in text
    assert text.count("★") == len(fleets.DEVICES) * len(fleets.MODELS) * len(fleets.SHARES)
    for name, table in tables(fleet).items():
        assert name in TABLES
        written = pd.read_csv(path.parent / f"{name}.csv")
        if name == "effort":
            written = written.fillna({"device": ""})
        pd.testing.assert_frame_equal(written, table, check_dtype=False)


def test_numbers_are_short_and_missing_ones_are_a_dash() -> None:
    assert [number(value) for value in (0.0371478, 98.348, 1234.5, float("nan"), None)] == [
        "0.0371",
        "98.3",
        "1234",
        "–",
        "–",
    ]


def best(*rows: tuple[str, float, str, bool]) -> pd.DataFrame:
    return pd.DataFrame([(*row, "ms") for row in rows], columns=["device", "budget", "model", "is_best", "unit"])


def test_one_network_that_is_the_best_everywhere_is_named_once() -> None:
    table = best(
        ("host", 1.0, "a", True), ("host", 1.0, "b", False), ("host", 2.0, "a", True), ("host", 2.0, "b", False)
    )
    assert answers(table, ACCURACY) == ["On host, a is the most accurate network within each of the 2 budgets."]


def test_several_networks_are_named_with_the_budgets_that_they_are_best_within() -> None:
    table = best(("host", 1.0, "a", True), ("host", 2.0, "b", True), ("host", 3.0, "b", True))
    assert answers(table, ACCURACY) == [
        "On host, the most accurate network is a within 1 ms and b within 2, 3 ms.",
    ]


def test_minutes_and_losses_are_said() -> None:
    spent = pd.DataFrame({"": [1.0, 2.0], "host": [1.0, 1.0], "phone": [2.0, 4.0]}, index=["a", "b"])
    assert cost_of_a_device(spent) == (
        "The networks took 3.0 minutes once; one more device took 4.0 minutes on average, from 2.0 (host) to 6.0 "
        "(phone)."
    )
    single = pd.DataFrame({"budgets": ["a", "a", "b"], "device": ["host", "phone", "host"], "loss": [1.0, 3.0, None]})
    assert loss_of_a_single(single) == (
        "One SubNet for all devices loses 2.0 points on average, and at most 3.0 points, on phone. For 1 rows of "
        "budgets no SubNet keeps all of them."
    )
    assert loss_of_a_single(single[2:]) == "No single SubNet keeps the budgets of all devices."


def test_what_a_network_takes_once_counts_once_and_each_device_by_itself(tmp_path: Path) -> None:
    fleet, _ = fleets.fleet(tmp_path)
    table = efforts(fleet)
    assert len(table) == len(fleets.MODELS) * (1 + len(fleets.DEVICES))
    spent = minutes(table)
    for model in fleets.MODELS:
        assert spent.loc[model, ""] == 1.0
        assert spent.loc[model, "host"] == 0.5 * (1 + len("host"))
        assert spent.loc[model, "phone"] == 0.5 * (1 + len("phone"))
