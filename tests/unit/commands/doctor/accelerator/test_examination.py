"""The checks of an accelerator, rehearsed on the processor; no GPU has run them."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from autotailor.__main__ import main
from autotailor.commands.doctor.accelerator import evaluating, examination
from autotailor.commands.doctor.accelerator.lab import TINY, Lab, lab
from autotailor.commands.doctor.accelerator.training import Numbers
from autotailor.commands.doctor.finding import Verdict


def test_every_check_can_be_made_on_the_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "found.json"
    assert main(["doctor", "--accelerator", "cpu", "--tiny", "--output", str(output)]) == 0
    found = {each["name"]: each for each in json.loads(output.read_text())["checks"]}
    assert list(found) == list(examination.CHECKS)
    assert {name for name, each in found.items() if each["verdict"] != "ok"} == {"tests"}
    assert found["step"]["numbers"]["gradient_difference"] == 0.0
    assert found["memory"]["numbers"]["divided_into"] == 4
    assert found["resumption"]["numbers"]["bit_equal"] == "yes"
    assert "resumption" in capsys.readouterr().out


def test_a_check_that_fails_tells_its_error_and_the_next_one_follows(tmp_path: Path) -> None:
    def broken(of: Lab) -> Numbers:
        raise RuntimeError("no kernel image\nis available")

    checks = {"first": broken, "second": lambda of: {"number": 1.5}, "third": lambda of: None}
    first, second, third = examination.examine(lab(TINY, "cpu", tmp_path), checks)
    assert (first.verdict, first.error) == (Verdict.FAILED, "RuntimeError: no kernel image is available")
    assert "in broken" in first.trace
    assert second.finding().detail.startswith("number 1.5")
    assert third.verdict is Verdict.UNAVAILABLE


def test_a_check_that_fails_gives_an_exit_code_and_names_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def only(of: Lab) -> Mapping[str, float]:
        raise RuntimeError("no kernel image")

    monkeypatch.setattr(examination.examine, "__defaults__", ({"step": only},))
    output = tmp_path / "found.json"
    assert main(["doctor", "--accelerator", "cpu", "--tiny", "--output", str(output)]) == 1
    assert "accelerator cpu failed: step" in capsys.readouterr().err
    assert json.loads(output.read_text())["checks"][0]["verdict"] == "failed"


def test_checks_behind_the_time_are_left_out_and_count_as_failed(tmp_path: Path) -> None:
    late = Lab(TINY.__class__(**{**vars(TINY), "minutes": -1.0}), lab(TINY, "cpu", tmp_path).device, tmp_path)
    (part,) = examination.examine(late, {"first": lambda of: {}})
    assert (part.verdict, part.error.partition(":")[0]) == (Verdict.FAILED, "left out")


def test_without_cuda_the_tests_that_need_it_are_not_run(tmp_path: Path) -> None:
    assert evaluating.tests(lab(TINY, "cpu", tmp_path)) is None


def test_doctor_wants_a_device_or_an_accelerator(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["doctor"])
    assert "--accelerator" in capsys.readouterr().err
