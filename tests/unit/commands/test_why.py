"""``python -m autotailor why``."""

import json
from pathlib import Path

import pytest

from autotailor.__main__ import main


def test_json_has_the_steps_with_their_sources(finished_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(finished_run), "budget_02", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert [step["title"] for step in answer["steps"]] == [
        *("Front", "Candidates", "Confirmation", "Weights", "Measurement"),
    ]
    for fact in (fact for step in answer["steps"] for fact in step["facts"]):
        place = fact["source"]["file"]
        assert (finished_run / place).is_file()


def test_people_read_sentences_and_the_files(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(finished_run), "budget_01"]) == 0
    printed = capsys.readouterr().out
    assert "budget_01 is SubNet" in printed
    assert "candidates.csv" in printed
    assert "confirmed.csv" in printed


def test_an_unknown_name_ends_with_an_error(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", str(finished_run), "budget_09"]) == 1
    assert "known are largest, budget_01, budget_02" in capsys.readouterr().err
