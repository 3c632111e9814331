"""Predictions of a finished run, against its tables read by hand."""

import math
from collections import Counter
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest

import autotailor
from autotailor.ir.space.link import IDENTITY
from autotailor.ir.space.subnet import sample_distinct, stack
from autotailor.ir.space.variable import Modification
from autotailor.profiling import fusion_rules
from autotailor.profiling.networks.validation import NOT_MEASURED
from autotailor.runs import Run
from autotailor.runs.metrics import known_metrics
from autotailor.runs.prediction import expectation_agreement, latency_agreement
from autotailor.search import LatencyForecast, further_metrics
from autotailor.search.robust.learning import forecast
from autotailor.statistics import kendall_tau_error


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


def test_latency_is_what_the_sum_of_operators_lets_expect_on_the_device(run: Run) -> None:
    subnet = run.subnets.find("budget_02")
    found = run.predict(subnet).predicted["latency"]
    lut = pd.read_csv(run.folder.file("lut.csv")).set_index("operator_id")
    places = run.net.places(fusion_rules(run.device))
    counts = Counter(feature.id for place in places if (feature := place.feature(subnet)) is not None)
    assert max(counts.values()) > 1
    total = sum(k * lut.loc[id_, "latency_ms"] for id_, k in counts.items())
    assert found.value == pytest.approx(run.forecast.expected(total))
    next_time = run.forecast_after_sessions.of(subnet, total)
    assert found.standard_error == pytest.approx(next_time.median_ms * next_time.scale)
    assert found.source.endswith(f"; the sum was {total:.4g} ms")
    assert (found.unit, found.source.partition(":")[0]) == ("ms", "lut.csv")


def test_where_subnets_take_longer_than_their_sums_all_are_expected_to(run: Run) -> None:
    sums = run.predictions.latency
    off = LatencyForecast(offset=math.log(1.1), spread=0.02)
    expected = known_metrics(run.metrics["accuracy"], run.predictions, off)["latency"].estimate(run.net.smallest())
    assert expected.value == pytest.approx(1.1 * float(sums.predict(run.net.smallest().to_array())[0]))
    assert expected.standard_error == pytest.approx(0.02 * expected.value)
    assert run.objectives.cost.link == IDENTITY, "searches work on sums"


def test_accuracy_and_its_error_come_from_the_drops(run: Run) -> None:
    subnet = next(each for each in sample_distinct(run.net.space, 50, Random(0)) if each not in run.evaluated)
    found = run.predict(subnet).predicted["accuracy"]
    rows = pd.read_csv(run.folder.file("sensitivity.csv")).set_index(["variable", "choice"])
    drops = [rows.loc[(name, choice)] for name, choice in subnet.assignment.items()]
    assert found.value == pytest.approx(95.0 - sum(drop["accuracy_drop"] for drop in drops))
    assert found.standard_error == pytest.approx(math.sqrt(0.4**2 + sum(d["standard_error"] ** 2 for d in drops)))
    assert (found.unit, found.source.partition(":")[0]) == ("%", "accuracy.json")


def test_the_accuracy_of_an_evaluated_subnet_is_what_was_found_and_its_source_says_so(run: Run) -> None:
    candidates = pd.read_csv(run.folder.file("candidates.csv"), dtype={"subnet": str}).iloc[0]
    found = run.predict(candidates["subnet"]).predicted["accuracy"]
    assert (found.value, found.standard_error) == (candidates["accuracy_validation"], candidates["standard_error"])
    assert found.source.startswith("candidates.csv: evaluated on the validation set, with inherited weights; the pred")
    rows = pd.read_csv(run.folder.file("sensitivity.csv"))
    row = rows[(rows["accuracy_drop"] > 0) & ~rows["variable"].isin(["resolution"])].iloc[0]
    alone = run.net.largest().transform(Modification(row["variable"], row["choice"]))
    found = run.evaluated[alone]
    if found.source.startswith("sensitivity.csv"):
        assert found.value == pytest.approx(95.0 - row["accuracy_drop"])
        assert found.standard_error == pytest.approx(math.hypot(0.4, row["standard_error"]))


def test_an_exported_subnet_has_its_measurements_beside_the_predictions(run: Run) -> None:
    found = run.predict("budget_02")
    row = run.summary.set_index("name").loc["budget_02"]
    assert (found.names, found.weights) == (("budget_02",), "polished")
    assert found.measured["accuracy"].value == row["accuracy_measured"]
    assert found.measured["latency"].standard_error == row["latency_ms_standard_error"]
    assert "peak_memory" not in found.measured, "the table's cell is empty"
    unmeasured = run.predict("smallest" if run.net.smallest() not in run.subnets.exported.values() else {})
    assert set(unmeasured.predicted) == {"accuracy", "latency", "peak_memory", "parameters", "macs"}


def test_a_metric_that_nothing_measures_is_left_out_with_a_reason(run: Run) -> None:
    assert "energy" not in run.metrics
    assert "no power sensor" in run.unknown_metrics["energy"]


def test_limits_of_a_budget_are_those_that_the_rule_search_predicts(run: Run) -> None:
    budgets = [{"latency": "50%", "peak_memory": 1, "parameters": 1}, {"latency": 1, "macs": 1, "energy": 1}]
    energies = {operator.id: 0.1 for operator in run.net.operators(fusion=fusion_rules(run.device))}
    known = {name: run.lut.column(name) for name in ("resident_weight_mb", "workspace_mb")}
    assert set(further_metrics(run.net, budgets)) == {"parameters", "macs"}
    assert set(further_metrics(run.net, 3, fusion_rules(run.device), run.lut.column)) == set()
    found = further_metrics(run.net, budgets, fusion_rules(run.device), (known | {"energy_mj": {}}).get)
    assert set(found) == set(run.further) == {"peak_memory", "parameters", "macs"}
    rows = stack([run.subnets.find(name) for name in ("budget_01", "largest")])
    for name, metric in found.items():
        assert metric.predict(rows) == pytest.approx(run.further[name].predict(rows))
    found = further_metrics(run.net, budgets, fusion_rules(run.device), (known | {"energy_mj": energies}).get)
    places = len(run.net.places(fusion_rules(run.device)))
    assert found["energy"].predict(rows)[1] == pytest.approx(0.1 * places)


def test_agreements_are_those_of_the_tables(run: Run) -> None:
    latency, expected, accuracy = run.agreements()
    table = pd.read_csv(run.folder.file("validation.csv"))
    assert latency.mean_error == pytest.approx(table["relative_error"].mean())
    assert latency.root_mean_square_error == pytest.approx(math.sqrt((table["relative_error"] ** 2).mean()))
    assert (latency.subnets, latency.unit) == (expected.subnets, expected.unit) == (4, "share")
    errors = []
    for row in table.index:
        others, own = table.drop(index=row), table.loc[row]
        errors.append(forecast(others, 0.95).expected(own["predicted_ms"]) / own["measured_ms"] - 1)
    assert expected.root_mean_square_error == pytest.approx(math.sqrt(np.mean(np.square(errors))))
    assert (accuracy.mean_error, accuracy.unit) == (pytest.approx(-1.0), "points")
    assert (accuracy.kendall_tau, accuracy.kendall_tau_error) == (1.0, 0.0)
    assert latency.kendall_tau_error == pytest.approx(kendall_tau_error(table["predicted_ms"], table["measured_ms"]))


def test_tables_without_rows_have_no_agreement() -> None:
    assert latency_agreement(NOT_MEASURED) is None
    assert expectation_agreement(NOT_MEASURED) is None
