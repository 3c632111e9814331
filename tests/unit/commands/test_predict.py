"""``python -m autotailor predict``."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import autotailor
from autotailor.__main__ import main
from autotailor.commands import predict
from autotailor.runs.run import Run
from autotailor.task.scores import Score


def test_json_is_one_object_and_all_of_the_answer(finished_run: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(finished_run), "--subnet", "budget_02", "--subnet", "smallest", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    wanted = [autotailor.open_run(finished_run).predict(name).to_dict() for name in ("budget_02", "smallest")]
    assert answer["subnets"] == json.loads(json.dumps(wanted))
    assert answer["run"] == {"model": "resnet_digits", "device": "host"}
    assert [each["metric"] for each in answer["agreement"]] == ["latency", "latency", "accuracy"]
    assert list(answer["unknown"]) == ["energy"]


def test_people_see_every_export_with_units_and_sources(finished_run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(finished_run)]) == 0
    printed = capsys.readouterr().out
    assert [name for name in ("largest", "budget_01", "budget_02") if f"({name}" in printed] == [
        "largest", "budget_01", "budget_02",
    ]  # fmt: skip
    assert "latency from lut.csv" in printed
    assert "energy is not known" in printed


def test_scores_that_are_no_mean_over_pictures_are_told_apart(
    finished_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> bool:
        assert main(["predict", str(finished_run), "--subnet", "budget_02"]) == 0
        return "accuracy as measured, from summary.csv, is mAP; picture AP is another number" in capsys.readouterr().out

    assert not said()
    monkeypatch.setattr(Run, "score", Score("mAP", "best", mean_name="picture AP"))
    assert said()


def test_names_in_a_runs_tables_do_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    subnet = SimpleNamespace(id="s1")
    predict._show([SimpleNamespace(subnet=subnet, names=["[/]\x1b[2J"], weights=None, predicted={}, measured={})])  # type: ignore[list-item]
    assert "SubNet s1 ([/]\\x1b[2J)" in capsys.readouterr().out


def test_a_narrow_terminal_cuts_no_digits(
    finished_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = []
    for columns in ("200", "30"):
        monkeypatch.setenv("COLUMNS", columns)
        assert main(["predict", str(finished_run), "--subnet", "budget_02"]) == 0
        (line,) = (line for line in capsys.readouterr().out.splitlines() if re.match(r"\s*latency +\d", line))
        lines.append(line.split())
    assert lines[0] == lines[1]


def test_what_the_output_cannot_show_and_may_not_read_is_no_traceback(finished_run: Path, tmp_path: Path) -> None:
    ascii_only = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "autotailor", "predict", str(finished_run), "--subnet", "budget_02"]
    done = subprocess.run(command, env=ascii_only, capture_output=True, text=True, timeout=200, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"latency +[\d.]+ +\?[\d.]+", done.stdout)


def test_a_folder_that_may_not_be_read_is_told(
    finished_run: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(finished_run / "lut.csv"))

    monkeypatch.setattr("autotailor.artifacts.file_digest", refused)
    assert main(["predict", str(finished_run)]) == 1
    assert f"autotailor: {finished_run / 'lut.csv'}: cannot be used (Permission denied)" in capsys.readouterr().err


def test_budgets_of_exits_choose_among_exports_and_not_among_named_subnets(
    finished_run: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(finished_run), "--expected", "60%", "--subnet", "budget_02"]) == 1
    assert "--expected and --worst choose among the exports: leave --subnet out" in capsys.readouterr().err


def test_an_unknown_subnet_ends_with_an_error_and_prints_no_answer(
    finished_run: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", str(finished_run), "--subnet", "budget_09", "--json"]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert "autotailor: SubNet 'budget_09'" in said.err
