"""The answer of a run in one sentence, each case against the words that a person should read."""

from typing import Any

import pandas as pd
import pytest

from autotailor.reporting import answer
from autotailor.search import costs
from autotailor.task.scores import AGREEMENT


def summary(
    ratio: float = 2.0, change: float = 2.0, latency_error: float = 0.001, accuracy_error: float = 0.3, **more: Any
) -> pd.DataFrame:
    """The original at 1 ms and 90 %, and one SubNet ``ratio`` times as fast and ``change`` points more accurate."""
    columns: dict[str, list[Any]] = {
        "name": ["largest", "budget_01", "original"],
        "latency_ms_expected": [1.0, 1 / ratio, 1.0],
        "latency_ms_measured": [1.0, 1 / ratio, 1.0],
        "latency_ms_standard_error": [latency_error] * 3,
        "budget_ms": [None, 0.5, None],
        "budget_met": [None, True, None],
        "accuracy_predicted": [90.0, 90.0 + change, None],
        "accuracy_measured": [90.0, 90.0 + change, 90.0],
        "accuracy_standard_error": [accuracy_error] * 3,
        "macs_m": [10.0, 10.0 / ratio, 10.0],
    }
    return pd.DataFrame(columns | more)


@pytest.mark.parametrize(
    ("case", "said"),
    [
        (
            {"ratio": 2.12, "change": 2.0},
            "is 2.1 times as fast as your network on `host` and 2.0 ±0.4 points more accurate.",
        ),
        (
            {"ratio": 14.2, "change": -3.0},
            "is 14 times as fast as your network on `host` but 3.0 ±0.4 points less accurate.",
        ),
        ({"ratio": 1.06}, "is 1.06 times as fast as your network on `host` and 2.0 ±0.4 points more accurate."),
        (
            {"change": -0.8, "accuracy_error": 0.4},
            "is 2.0 times as fast as your network on `host` and as accurate within the error of the test set "
            "(−0.8 ±0.6 points).",
        ),
        (
            {"change": -8.3, "accuracy_error": 5.0, "accuracy_change_standard_error": [4.0, 4.3, None]},
            "is 2.0 times as fast as your network on `host` and as accurate as far as so few test pictures can tell "
            "(−8.3 ±4.3 points).",
        ),
        (
            {"change": -0.8, "accuracy_error": 0.4, "accuracy_change_standard_error": [0.1, 0.2, None]},
            "is 2.0 times as fast as your network on `host` but 0.8 ±0.2 points less accurate.",
        ),
        ({"ratio": 0.5}, "takes 2.0 times as long as your network on `host` and is 2.0 ±0.4 points more accurate."),
        (
            {"ratio": 1.05, "latency_error": 0.05},
            "is about as fast as your network on `host` and 2.0 ±0.4 points more accurate.",
        ),
        (
            {"latency_ms_measured": [None] * 3},
            "is predicted to be 2.0 times as fast as your network on `host` and 2.0 ±0.4 points more accurate.",
        ),
        ({"accuracy_measured": [None] * 3}, "is 2.0 times as fast as your network on `host`."),
        (
            {"name": ["other", "budget_01", "largest"]},
            "is 2.0 times as fast as the largest SubNet on `host` and 2.0 ±0.4 points more accurate.",
        ),
    ],
    ids=[
        *(
            "faster and better",
            "much faster and worse",
            "a little faster",
            "as accurate",
            "few pictures",
            "worse beyond the paired error",
        ),
        *("slower", "as fast"),
        *("latencies not measured", "accuracies not measured", "no original"),
    ],
)
def test_the_sentence_says(case: dict[str, Any], said: str) -> None:
    found = answer(summary(**case), "host")
    assert found.sentence == f"`budget_01` {said}"
    assert found.subnet == "budget_01"


@pytest.mark.parametrize(
    ("case", "caveat"),
    [
        ({"latency_ms_measured": [None] * 3}, "predicted from the table of operators, and not measured on `host`"),
        ({"accuracy_measured": [None] * 3}, "The accuracy is predicted"),
        (
            {"ratio": 1.05, "latency_error": 0.05},
            "too noisy to tell whether the SubNet is faster or slower: 1.05 ±0.08",
        ),
        ({"latency_error": 0.06}, "The measurements are noisy: 2.0 ±0.3 times as fast"),
        (
            {"change": -8.3, "accuracy_change_standard_error": [4.0, 4.3, None]},
            "too few pictures to tell less than 9 points of accuracy from none",
        ),
        (
            {"budget_met": [None, False, None], "budget_ms": [None, 0.4, None]},
            "1 of 1 budgets is missed when measured: `budget_01` by 25.0 %.",
        ),
    ],
    ids=["latencies not measured", "accuracies not measured", "cannot be judged", "noisy", "few pictures", "missed"],
)
def test_what_weakens_the_sentence_is_told(case: dict[str, Any], caveat: str) -> None:
    (found,) = answer(summary(**case), "host").caveats
    assert caveat in found


def test_a_quiet_run_whose_budgets_are_met_has_no_caveats() -> None:
    assert answer(summary(), "host").caveats == ()


def test_a_subnet_that_misses_its_budget_is_featured_only_where_all_do() -> None:
    table = pd.concat([summary(), summary(3.0, 5.0, name=["a", "budget_02", "b"]).iloc[[1]]], ignore_index=True)
    assert answer(table, "host").subnet == "budget_02"
    table["budget_met"] = [None, True, None, False]
    assert answer(table, "host").subnet == "budget_01"
    table["budget_met"] = [None, False, None, False]
    assert answer(table, "host").subnet == "budget_02"


def test_budgets_that_have_one_subnet_are_told() -> None:
    one = {"subnet": ["l", "s", None], "weights": ["inherited", "polished", None]}
    looser = summary(name=["a", "budget_02", "b"], **one | {"budget_ms": [None, 0.7, None]}).iloc[[1]]
    table = pd.concat([summary(**one), looser], ignore_index=True)
    said = "`budget_02` is the same SubNet as `budget_01`: on the validation set no {} candidate had a higher accuracy."
    assert answer(table, "host").caveats == (said.format("slower"),)
    assert answer(table, "macs", cost=costs()["macs"]).caveats[1:] == (said.format("larger"),)
    table["weights"] = ["inherited", "polished", None, "inherited"]
    assert answer(table, "host").caveats == ()


def test_budgets_that_have_one_subnet_for_another_reason_do_not_name_candidates() -> None:
    one = {"subnet": ["l", "s", None], "weights": ["inherited", "polished", None], "budget_ms": [None, 1.0, None]}
    table = pd.concat([summary(**one), summary(name=["a", "budget_02", "b"], **one).iloc[[1]]], ignore_index=True)
    assert answer(table, "host").caveats == ("`budget_02` is the same SubNet as `budget_01`: the budgets are equal.",)
    whole = summary(1.0, 0.0, **one | {"subnet": ["l", "l", None]})
    table = pd.concat([whole, whole.iloc[[1]].assign(name="budget_02", budget_ms=2.0)], ignore_index=True)
    assert answer(table, "host").caveats == (
        "`budget_01` has the architecture of your network, and takes as long.",
        "`budget_02` is the same SubNet as `budget_01`, the largest one.",
    )


def test_many_missed_budgets_are_counted_and_few_are_named() -> None:
    rows = [summary(name=["a", f"budget_{i:02d}", "b"], budget_met=[None, i == 9, None]).iloc[[1]] for i in range(10)]
    (found,) = answer(pd.concat([*rows, summary().iloc[[2]]], ignore_index=True), "host").caveats
    assert "9 of 10 budgets are missed" in found
    assert "budget_02` by 0.0 % and 6 more." in found
    assert "budget_03" not in found


def test_a_run_of_before_without_budgets_met_has_an_answer() -> None:
    found = answer(summary().drop(columns=["budget_ms", "budget_met"]), "host")
    assert found.sentence.startswith("`budget_01` is 2.0 times as fast")
    assert found.caveats == ()


def test_without_a_device_macs_are_compared_and_latency_is_not_spoken_of() -> None:
    table = summary().drop(columns=["latency_ms_expected", "latency_ms_measured", "latency_ms_standard_error"])
    found = answer(table.drop(columns=["budget_ms", "budget_met"]), "macs", cost=costs()["macs"])
    assert found.sentence == "`budget_01` needs 50 % of the MACs of your network and is 2.0 ±0.4 points more accurate."
    assert found.caveats == ("Latency is unknown: the run counted MACs and had no device.",)
    worse = answer(table.assign(accuracy_measured=[90.0, 87.0, 90.0]), "macs", cost=costs()["macs"])
    assert worse.sentence.endswith("of the MACs of your network but is 3.0 ±0.4 points less accurate.")


def test_without_labels_the_share_of_same_answers_is_told() -> None:
    found = answer(summary(change=-2.0, accuracy_measured=[100.0, 97.5, 100.0]), "host", AGREEMENT)
    assert found.sentence == (
        "`budget_01` is 2.0 times as fast as your network on `host` and gives the same answer as your network for "
        "97.5 % ±0.3 of the test pictures."
    )
    assert "accura" not in " ".join(found.caveats)
    assert found.caveats == (AGREEMENT.meaning,)


@pytest.mark.parametrize(("rows", "name"), [([0, 2], "largest"), ([2], "original")])
def test_a_run_without_budgets_says_what_there_is(rows: list[int], name: str) -> None:
    found = answer(summary().iloc[rows].reset_index(drop=True), "host")
    assert found.subnet == name
    assert f"`{name}`" in found.sentence
