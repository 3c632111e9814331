"""The steps that led to an export: which there are, what they say, and which numbers stand behind them."""

import dataclasses

import pandas as pd
import pytest

from autotailor.reporting import ReportError, ReportInputs
from autotailor.reporting.inputs import Tables
from autotailor.reporting.steps import Step, steps


def of(inputs: ReportInputs, name: str) -> dict[str, Step]:
    """The steps by title; of the rounds of the race, the last."""
    return {step.title: step for step in steps(Tables(inputs), name)}


def values(inputs: ReportInputs, step: Step) -> dict[str, object]:
    return {fact.name: fact.to_dict(Tables(inputs))["value"] for fact in step.facts}


def test_a_subnet_that_won_the_race_and_was_not_the_choice_before(inputs: ReportInputs) -> None:
    found = of(inputs, "budget_02")
    assert list(found) == ["Front", "Candidates", "Confirmation", "Race", "Weights", "Measurement"]
    for title in ("Candidates", "Confirmation"):
        assert "Another SubNet was chosen" in found[title].said
        assert values(inputs, found[title])["the SubNet that was chosen"] == f"{21:012x}"
    assert values(inputs, found["Candidates"])["its accuracy, luck taken out"] == 91.2
    assert values(inputs, found["Candidates"])["candidates of the budget"] == 2
    assert values(inputs, found["Race"]) == {
        "round": "2",
        "SubNets of this budget": 1,
        "epochs": 8,
        "images so far": 3000,
        "accuracy before": 91.6,
        "accuracy after, validation set": 92.0,
    }
    assert "weights of its own" in found["Weights"].said
    assert found["Measurement"].said.endswith("It keeps its budget.")


def test_a_choice_that_misses_its_budget(inputs: ReportInputs) -> None:
    found = of(inputs, "budget_01")
    assert "It was chosen" in found["Candidates"].said
    assert found["Confirmation"].said.startswith("It does not meet the budget")
    assert found["Measurement"].said.endswith("It misses its budget.")


def test_weights_that_the_teachers_answers_judged_show_their_distance(inputs: ReportInputs) -> None:
    found = values(inputs, of(inputs, "budget_01")["Race"])
    assert found["distance from the teacher's answers before"] == 0.9
    assert found["distance after"] == 0.4


@pytest.mark.parametrize(("distances", "said"), [((0.4, 0.3), "No SubNet"), ((0.3, 0.4), "Another SubNet")])
def test_a_round_is_told_by_what_judged_it(inputs: ReportInputs, distances: tuple[float, float], said: str) -> None:
    assert inputs.polish is not None
    table = pd.read_csv(inputs.polish, dtype={"subnet": str})
    rival = table["subnet"].iloc[1]
    table = table[table["round"] == 1]
    first = next(step for step in steps(Tables(inputs), "budget_02") if step.title == "Race")
    assert first.said == "No SubNet of this budget came out better."  # by accuracy

    table.loc[table["subnet"] == rival, "divergence"] = distances[1]
    table.loc[table["subnet"] != rival, "divergence"] = distances[0]
    table.to_csv(inputs.polish, index=False)
    (race,) = (step for step in steps(Tables(inputs), "budget_02") if step.title == "Race")
    assert race.said == f"{said} of this budget came nearer to the teacher's answers."


def test_every_number_names_its_file_row_and_column(inputs: ReportInputs) -> None:
    facts = [fact.to_dict(Tables(inputs)) for step in of(inputs, "budget_02").values() for fact in step.facts]
    posterior = next(fact for fact in facts if fact["name"] == "accuracy, luck taken out")
    assert posterior["standard_error"] == 0.4
    assert posterior["source"] == {
        "file": "candidates.csv",
        "row": f"budget_02|{20:012x}",
        "column": "accuracy_posterior",
    }
    assert {fact["source"]["file"] for fact in facts} == {
        *("pareto.csv", "candidates.csv", "confirmed.csv", "polish.csv", "polish.json", "summary.csv"),
    }


def test_the_largest_subnet_has_no_budget_and_no_race(inputs: ReportInputs) -> None:
    assert list(of(inputs, "largest")) == ["Front", "Weights", "Measurement"]


def test_a_subnet_that_was_never_a_candidate_is_told(inputs: ReportInputs) -> None:
    for path in (inputs.candidates, inputs.confirmed, inputs.pareto):
        assert path is not None
        table = pd.read_csv(path, dtype={"subnet": str})
        table[table["subnet"] != f"{20:012x}"].to_csv(path, index=False)
    found = of(inputs, "budget_02")
    assert "not on the front" in found["Front"].said
    assert "did not list" in found["Candidates"].said
    assert "not measured before" in found["Confirmation"].said


def test_without_a_device_nothing_was_confirmed(counted_inputs: ReportInputs) -> None:
    found = of(counted_inputs, "budget_02")
    assert "Confirmation" not in found
    assert "latency" not in " ".join(fact.name for step in found.values() for fact in step.facts)


def test_a_run_of_before_has_fewer_steps(inputs: ReportInputs) -> None:
    less = dataclasses.replace(inputs, candidates=None, confirmed=None, polish=None, chosen=None)
    assert list(of(less, "budget_02")) == ["Front", "Measurement"]


def test_a_name_that_is_no_export_is_refused(inputs: ReportInputs) -> None:
    with pytest.raises(ReportError, match=r"budget_09: the run has no export .* largest, budget_01, budget_02"):
        steps(Tables(inputs), "budget_09")
