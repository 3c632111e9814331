"""``python -m autotailor export``."""

import json
import shlex
from pathlib import Path

import pytest

from autotailor.__main__ import main
from autotailor.commands.export import read_budget
from autotailor.reporting import ReportInputs
from autotailor.reporting.explorer import command
from autotailor.reporting.inputs import Tables


def test_json_is_the_answer_that_lies_in_the_folder(
    finished_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    command = ["export", str(finished_run), "--budget", "60%", "--output", str(tmp_path / "new"), "--no-polish"]
    command += ["--limit", "peak_memory=80%", "--limit", "parameters=0.9M"]
    assert main([*command, "--no-measure", "--json"]) == 0
    answer = json.loads(capfd.readouterr().out)
    assert answer == json.loads((tmp_path / "new" / "export.json").read_text())
    assert (answer["weights"], answer["meets_budget"], answer["budget"]["unit"]) == ("inherited", None, "ms")
    assert set(answer["limits"]) == {"peak_memory", "parameters"}
    assert answer["asked"].endswith("%, peak_memory 80%, parameters 0.9M")
    for name, limit in answer["limits"].items():
        spent = answer["predicted"][name]
        assert spent["value"] <= limit["value"] * (1 + 1e-9)
    assert main([*command, "--no-measure"]) == 1, "a finished export is never overwritten"
    assert "never overwrites" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--budget", "1%"], "every SubNet of this space has latency of at least"),
        (["--budget", "soon"], "expected a positive number of ms, or a share"),
        (["--budget", "60%"], "add --no-measure"),
        (["--budget", "60%", "--limit", "energy=3"], "does not say energy; energy needs a sensor"),
        (["--budget", "60%", "--limit", "peak_memory"], "expected METRIC=VALUE such as 'peak_memory=4'"),
        (["--budget", "60%", "--limit", "latency=2"], "such as 'peak_memory=4', each metric once"),
        (["--subnet", "budget_99"], "has no SubNet and there is no file of this name; known are smallest, largest"),
        (["--expected", "60%"], "the run has no exits"),
        (["--expected", "60%", "--limit", "energy=3"], "--limit chooses among SubNets: leave it out"),
        (["--expected", "60%", "--address", "1.2.3.4"], "--expected measures nothing: leave --address out"),
        (["--budget", "60%", "--worst", "3"], "--worst stands beside --expected: leave it out, or ask for both"),
        (["--subnet", "largest", "--limit", "parameters=1M"], "--limit chooses among SubNets: leave it out"),
    ],
)
def test_what_cannot_be_exported_ends_with_an_error_and_no_files(
    arguments: list[str], words: str, finished_run: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(finished_run), "--output", str(tmp_path / "new"), "--json", *arguments]) == 1
    said = capfd.readouterr()
    assert said.out == ""
    assert words in said.err
    assert not (tmp_path / "new" / "model.onnx").exists()


def test_budgets_are_read_as_milliseconds_or_left_to_the_search() -> None:
    assert [read_budget(text) for text in ("0.09", "48%")] == [0.09, "48%"]


def test_the_command_of_the_report_exports_the_subnet_as_the_run_did(
    finished_run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    inputs = ReportInputs("resnet_digits", "host", finished_run / "pareto.csv", finished_run / "summary.csv")
    words = shlex.split(command(Tables(inputs), "budget_02"))
    assert words[0] == "autotailor"
    monkeypatch.chdir(tmp_path)
    assert main([*words[1:], "--no-measure"]) == 0
    said = capfd.readouterr().out
    answer = json.loads((tmp_path / "more" / "budget_02" / "export.json").read_text())
    chosen = json.loads((finished_run / "polish.json").read_text())
    assert answer["assignment"] == chosen["subnets"]["budget_02"]
    assert (answer["weights"], answer["budget"], answer["meets_budget"]) == ("polished", None, None)
    assert answer["accuracy_validation"]["polished"] == chosen["accuracy_validation"]["budget_02"]["polished"]
    assert f"SubNet {answer['subnet']} (polished)" in said
    assert "budget of" not in said
    assert not (tmp_path / "more" / "budget_02" / "candidates.csv").exists()
