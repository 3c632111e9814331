from __future__ import annotations

import pandas as pd

from autotailor.fleet.page.sentences import answers, cost_of_a_device, loss_of_a_single
from autotailor.task.scores import ACCURACY


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
