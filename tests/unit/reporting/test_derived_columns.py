"""Derived numbers, each against one worked out by hand."""

import dataclasses
import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from autotailor.reporting import ReportInputs
from autotailor.reporting.derived_columns import DERIVATIONS
from autotailor.reporting.inputs import Tables
from autotailor.search.robust.learning import expected_from_others, forecast


def compute(name: str, inputs: ReportInputs, row: str = "") -> float:
    return DERIVATIONS[name].compute(Tables(inputs), row)


def test_latency_predictor(inputs: ReportInputs) -> None:
    frame = pd.DataFrame(
        {
            "subnet": list("abcde"),
            "predicted_ms": [1.04, 2.16, 3.0, 4.0, 6.0],
            "measured_ms": [1.0, 2.0, 3.0, 4.0, 5.0],
            "relative_error": [0.04, 0.08, 0.0, 0.0, 0.2],
            "noise_floor": [0.01, 0.02, 0.03, 0.04, 0.05],
            "raw_error": [0.04, -0.08, 0.5, 0.0, 0.2],
        }
    )
    frame.to_csv(inputs.validation, index=False)
    assert compute("latency_within_5", inputs) == pytest.approx(3 / 5)
    assert compute("latency_within_10", inputs) == pytest.approx(4 / 5)
    assert compute("latency_expected_within_5", inputs) < 3 / 5
    assert compute("latency_median_error", inputs) == pytest.approx(0.04)
    assert compute("latency_raw_error", inputs) == pytest.approx(0.08)
    assert compute("latency_bias", inputs) == pytest.approx(0.064)
    assert compute("latency_noise_floor", inputs) == pytest.approx(0.03)
    assert compute("latency_tau", inputs) == pytest.approx(1)
    assert compute("latency_subnets", inputs) == 5


def test_expected_latencies_follow_from_what_the_others_were_off_by(inputs: ReportInputs) -> None:
    predicted = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    frame = pd.DataFrame({"subnet": list("abcde"), "predicted_ms": predicted, "measured_ms": 1.2 * predicted})
    frame = frame.assign(relative_error=1 / 1.2 - 1, noise_floor=0.01, raw_error=0.0)
    frame.loc[4, "measured_ms"] = 9.0
    frame.to_csv(inputs.validation, index=False)
    assert compute("latency_within_5", inputs) == 0
    one, others = frame.loc[4], frame.drop(index=4)
    expected = forecast(others.assign(lut_error=0.0), 0.5).expected(5.0)
    assert (expected_from_others(frame) or [])[4] == pytest.approx(expected)
    assert abs(expected / one["measured_ms"] - 1) > 0.05
    frame.loc[4, "measured_ms"] = 6.0
    frame.to_csv(inputs.validation, index=False)
    assert compute("latency_expected_within_5", inputs) == 1


def test_accuracy_predictor(inputs: ReportInputs) -> None:
    frame = pd.DataFrame({"subnet": list("abc"), "predicted": [1, 3, 2], "measured": [1.0, 2, 4]}).assign(
        predicted_standard_error=0.1, standard_error=0.1, own_standard_error=0.1
    )
    frame.to_csv(inputs.accuracy_validation, index=False)
    assert compute("accuracy_tau", inputs) == pytest.approx(1 / 3)
    assert compute("accuracy_mean_error", inputs) == pytest.approx(1.0)
    assert compute("accuracy_bias", inputs) == pytest.approx(-1 / 3)


def test_accuracy_predictor_beside_what_it_could_be(inputs: ReportInputs) -> None:
    n = 20
    share = np.linspace(0.8, 0.95, n)
    odds = np.log(share / (1 - share))
    away = np.where(np.arange(n) < 16, 0.11, 0.5) * np.resize([1, -1], n)
    off = 1 / (1 + np.exp(-(odds + away + 0.3)))  # a shift of 0.3 that all have in common
    frame = pd.DataFrame({"subnet": [f"{i:02d}" for i in range(n)], "predicted": 100 * off, "measured": 100 * share})
    frame["predicted_standard_error"] = 100 * off * (1 - off) * 0.08
    frame["own_standard_error"] = 100 * share * (1 - share) * 0.06
    frame["standard_error"] = 1.0
    frame.to_csv(inputs.accuracy_validation, index=False)
    assert compute("accuracy_coverage", inputs) == pytest.approx(16 / 20)
    assert compute("accuracy_coverage_error", inputs) == pytest.approx(math.sqrt(0.16 / 20))
    assert compute("accuracy_tau_by_chance", inputs) == pytest.approx(0.1622, abs=1e-4)
    assert compute("accuracy_tau", inputs) < compute("accuracy_ceiling", inputs) < 1
    assert 0 < compute("accuracy_tau_error", inputs) < 0.2
    frame.head(3).to_csv(inputs.accuracy_validation, index=False)
    for name in ("accuracy_coverage", "accuracy_coverage_error", "accuracy_tau_by_chance", "accuracy_tau_error"):
        assert math.isnan(compute(name, inputs)), name


def test_speedup_is_against_the_original(inputs: ReportInputs) -> None:
    assert Tables(inputs).compared.reference == "original"
    assert compute("speedup", inputs, "budget_02") == pytest.approx(2.08 / 0.948)
    assert compute("accuracy_change", inputs, "budget_02") == pytest.approx(91.4 - 93.8)
    assert compute("accuracy_change_error", inputs, "budget_02") == 0.35


def test_a_run_that_recorded_no_paired_error_has_that_of_independent_test_sets(inputs: ReportInputs) -> None:
    assert inputs.summary
    frame = pd.read_csv(inputs.summary).drop(columns="accuracy_change_standard_error")
    frame.to_csv(inputs.summary, index=False)
    assert compute("accuracy_change_error", inputs, "budget_02") == pytest.approx(math.hypot(0.4, 0.5))


def test_budgets_are_counted_as_measured(inputs: ReportInputs) -> None:
    assert (compute("budgets_met", inputs), compute("budgets_measured", inputs)) == (2, 3)
    assert compute("over_budget", inputs, "budget_01") == pytest.approx(0.395 / 0.38 - 1)
    assert compute("over_budget", inputs, "budget_02") == pytest.approx(0.948 / 1.0 - 1)


def test_without_the_original_the_largest_is_the_reference(inputs: ReportInputs) -> None:
    pd.read_csv(inputs.summary).query("name != 'original'").to_csv(inputs.summary, index=False)
    assert Tables(inputs).compared.reference == "largest"


def test_the_featured_subnet(inputs: ReportInputs) -> None:
    assert Tables(inputs).compared.featured == "budget_02"
    summary = pd.read_csv(inputs.summary)
    summary.query("name not in ('budget_01', 'budget_02')").to_csv(inputs.summary, index=False)
    assert Tables(inputs).compared.featured == "budget_03"


def test_advantage_over_scaled_networks(inputs: ReportInputs) -> None:
    frame = pd.DataFrame(
        {
            "name": ["scaled_0.5", "scaled_0.5", "scaled_0.75"],
            "subnets": ["budget_02", "budget_02", "budget_03"],
            "seed": [0, 1, 0],
            "latency_ms_measured": [0.8, 1.0, 1.9],
            "accuracy_measured": [88.0, 90.0, 93.0],
        }
    )
    frame.to_csv(inputs.compare, index=False)
    assert compute("scaled_accuracy", inputs, "budget_02") == pytest.approx(89)
    assert compute("advantage", inputs, "budget_02") == pytest.approx(91.4 - 89)
    assert math.isnan(compute("advantage", inputs, "budget_01"))


def test_shares(inputs: ReportInputs) -> None:
    tables = Tables(inputs)
    rows = tables.needed("contributors").index
    total = sum(compute("contribution", inputs, row) for row in rows if row.startswith("largest|"))
    assert total == pytest.approx(1)
    assert sum(compute("stage_share", inputs, row) for row in tables.needed("timings").index) == pytest.approx(1)
    assert compute("total_seconds", inputs) == pytest.approx(448.2)


def test_lut(inputs: ReportInputs, tmp_path: Path) -> None:
    (tmp_path / "lut.csv").write_text("operator_id,latency_ms,standard_error\na,1,0.1\nb,2,0.1\nanchor,4,0.1\n")
    (tmp_path / "operators.csv").write_text("id,kind,feature,places\na,Conv,{},3\nb,Conv,{},1\n")
    assert compute("lut_operators", inputs) == 2
    assert compute("lut_precision", inputs) == pytest.approx(0.05)


def test_absent_tables_give_nan(inputs: ReportInputs) -> None:
    assert math.isnan(compute("latency_tau", dataclasses.replace(inputs, validation=None)))


def test_the_race_and_what_came_before(inputs: ReportInputs) -> None:
    assert compute("budget_candidates", inputs, "budget_02") == 2
    assert compute("budget_confirmed", inputs, "budget_01") == 0
    assert compute("budget_confirmed", inputs, "budget_02") == 2
    assert compute("round_entrants", inputs, "1|budget_02") == 2
    assert compute("round_entrants", inputs, "2|budget_03") == 0
