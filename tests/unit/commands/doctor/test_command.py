"""``python -m autotailor doctor``: its exit codes and arguments."""

import json
import re
from pathlib import Path

import pytest

from autotailor.__main__ import main

CONF = Path(__file__).parents[4] / "conf"


def test_a_failure_is_exit_code_1_with_its_remedy(capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--device", "orin", "--conf", str(CONF), "device.address=127.0.0.1:1"])
    said = capsys.readouterr()
    assert code == 1
    assert "failed: reachable" in said.err
    assert "device.address right" in " ".join(said.out.split())


def test_programs_read_the_findings_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    command = ["doctor", "--device", "orin", "--conf", str(CONF), "--json", "device.address=127.0.0.1:1"]
    assert main(command) == 1
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert (found["schema_version"], found["device"]) == (1, "orin")
    failed = [check for check in found["checks"] if check["verdict"] == "failed"]
    assert [check["check"] for check in failed] == ["reachable"]
    assert "device.address right" in failed[0]["remedy"]
    assert "failed: reachable" in said.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--device", "toaster", "--conf", str(CONF)], r"unknown device 'toaster'.*host"),
        (["--device", "host", "--conf", str(CONF), "device.thread=2"], r"device\.thread"),
        (["device.threads=1", "--device", "host", "--conf", str(CONF), "device.thread=2"], r"device\.thread"),
        (["--device", "host", "--conf", "nowhere"], r"--conf nowhere: no such folder"),
    ],
    ids=["device", "override", "overrides around options", "folder"],
)
def test_bad_arguments_are_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", *arguments]) == 1
    assert re.search(words, capsys.readouterr().err)
