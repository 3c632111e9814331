"""``python -m autotailor front``."""

import json
from pathlib import Path

import pytest

import autotailor
from autotailor.__main__ import main


def test_json_is_one_object_and_all_of_the_answer(finished_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["front", str(finished_run), "--y", "accuracy", "--limit", "latency<=0.1", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    wanted = autotailor.open_run(finished_run).front("latency", "accuracy", ["latency<=0.1"]).to_dict()
    assert answer == {"schema_version": 1, **json.loads(json.dumps(wanted))}
    assert (answer["exact"], answer["limits"]) == (True, ["latency<=0.1"])
    assert answer["metrics"]["latency"]["unit"] == "ms"
    assert all(point["latency"]["standard_error"] > 0 for point in answer["points"])


def test_people_see_both_metrics_first(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["front", str(finished_run), "--x", "macs", "--y", "accuracy"]) == 0
    heading, *_ = (line for line in capsys.readouterr().out.splitlines() if line.startswith("SubNet"))
    assert heading.split()[1:5] == ["macs", "millions", "accuracy", "%"]


def test_a_limit_that_nothing_keeps_ends_with_an_error(finished_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["front", str(finished_run), "--limit", "latency<=0.001", "--json"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "loosen the limits" in said.err
