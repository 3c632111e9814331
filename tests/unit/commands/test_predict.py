"""``python -m autotailor predict``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import autotailor
from autotailor.__main__ import main


def test_json_is_one_object_and_all_of_the_answer(finished_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(finished_run), "--subnet", "budget_02", "--subnet", "smallest", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    wanted = [autotailor.open_run(finished_run).predict(name).to_dict() for name in ("budget_02", "smallest")]
    assert answer["subnets"] == json.loads(json.dumps(wanted))
    assert answer["run"] == {"model": "resnet_digits", "device": "host"}
    assert [each["metric"] for each in answer["agreement"]] == ["latency", "accuracy"]
    assert list(answer["unknown"]) == ["energy"]


def test_people_see_every_export_with_units_and_sources(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(finished_run)]) == 0
    printed = capsys.readouterr().out
    assert [name for name in ("largest", "budget_01", "budget_02") if f"({name}" in printed] == [
        "largest", "budget_01", "budget_02",
    ]  # fmt: skip
    assert "latency from lut.csv" in printed
    assert "energy is not known" in printed


def test_an_unknown_subnet_ends_with_an_error_and_prints_no_answer(
    finished_run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(finished_run), "--subnet", "budget_09", "--json"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "autotailor: SubNet 'budget_09'" in said.err
