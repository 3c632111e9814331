"""SubNets are found by every name that a run gives them, and those of other spaces are refused."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import autotailor
from autotailor.runs import Run, RunError


@pytest.fixture(scope="module")
def run(finished_run: Path) -> Run:
    return autotailor.open_run(finished_run)


def test_exports_and_both_ends_are_found_by_name(run: Run) -> None:
    assert run.subnets.find("largest") == run.net.largest()
    assert run.subnets.find("smallest") == run.net.smallest()
    assert list(run.subnets.exported) == ["largest", "budget_01", "budget_02"]
    assert run.subnets.find("budget_02") == run.subnets.exported["budget_02"]


@pytest.mark.parametrize("table", ["pareto.csv", "candidates.csv", "accuracy_validation.csv"])
def test_ids_are_found_in_a_table(table: str, run: Run) -> None:
    row = pd.read_csv(run.folder.file(table), dtype={"subnet": str}).iloc[-1]
    assert run.subnets.find(row["subnet"]).to_json() == row["assignment"]


def test_an_assignment_may_be_given_as_a_mapping_as_json_and_in_a_file(run: Run, tmp_path: Path) -> None:
    wanted = run.net.smallest()
    file = tmp_path / "subnet.json"
    for content in (wanted.assignment, {"id": wanted.id, "assignment": wanted.assignment}):
        file.write_text(json.dumps(content))
        assert run.subnets.find(content) == run.subnets.find(json.dumps(content)) == run.subnets.find(file) == wanted
        assert run.subnets.find(str(file)) == wanted


def test_a_subnet_of_another_space_is_refused(run: Run, resnet_net: autotailor.SuperNet, tmp_path: Path) -> None:
    other = resnet_net.smallest()
    with pytest.raises(RunError, match=f"SubNet {other.id}: it belongs to another space"):
        run.subnets.find(other)
    file = tmp_path / "other.json"
    file.write_text(json.dumps({"id": other.id, "assignment": other.assignment}))
    with pytest.raises(RunError, match=r"other\.json: this is no SubNet of the run .*space\.json lists its variables"):
        run.subnets.find(file)


def test_an_id_that_does_not_fit_the_assignment_is_refused(run: Run) -> None:
    """A file of another space with the same names of variables: choices that are left out there differ here."""
    with pytest.raises(RunError, match=f"has the id {run.net.largest().id}; name a SubNet of this run"):
        run.subnets.find({"id": "0" * 12, "assignment": {}})


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("budget_09", "SubNet 'budget_09'.*known are smallest, largest, budget_01, budget_02"),
        ("x" * 5000, "there is no file of this name"),
        ("{not json}", "assignment: this is no JSON"),
        ('{"resolution": 7}', "7 is not one of its choices"),
        ({"assignment": [1, 2]}, "expected a JSON object of variables"),
        ('{"stage9.width": 0.5}', r"unknown variable 'stage9\.width'"),
    ],
)
def test_what_is_no_subnet_is_said_with_what_there_is(which: str, words: str, run: Run) -> None:
    with pytest.raises(RunError, match=words):
        run.subnets.find(which)


@pytest.mark.parametrize("which", [None, 1.5, 5, b"largest", ["largest"], object()])
def test_what_cannot_name_a_subnet_is_refused_with_what_can(which: Any, run: Run) -> None:
    with pytest.raises(RunError, match=r"expected a SubNet, a name such as 'largest', .* budget_02$"):
        run.predict(which)


def test_a_file_without_an_object_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "list.json").write_text("[1]")
    with pytest.raises(RunError, match=r"list\.json: expected a JSON object"):
        run.subnets.find(tmp_path / "list.json")


def test_a_file_of_weights_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "model.pt").write_bytes(b"PK\x80\xff")
    with pytest.raises(RunError, match=r"model\.pt: this is no text .*name a file such as subnet\.json"):
        run.subnets.find(tmp_path / "model.pt")
