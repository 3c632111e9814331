"""What ``status`` says of runs that work, are done, failed, were stopped or killed."""

import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from autotailor import artifacts
from autotailor.__main__ import main
from autotailor.progress.record import Record, record_of, write_note
from autotailor.progress.starting import NOTE, starting
from autotailor.progress.status import ProgressError, read_status

MODEL, DEVICE = {"model": "m"}, {"model": "m", "device": "d"}


def write(folder: Path, outcome: str, states: dict[str, str], **about: Any) -> None:
    """A run of three stages."""
    jobs = [
        {
            "rule": rule,
            "log": f"logs/m/{rule}.log",
            "wildcards": MODEL if rule == "finetune" else DEVICE,
            "state": state,
            "begun": None if state == "waiting" else 1000.0,
        }
        for rule, state in states.items()
    ]
    content = {"pid": os.getppid(), "host": socket.gethostname(), "begun": time.time(), "ended": None, **about}
    (folder / "logs" / "m").mkdir(parents=True)
    (folder / "logs" / "run.json").write_text(json.dumps(content | {"outcome": outcome, "jobs": jobs}))


def record(folder: Path, rule: str, **values: Any) -> None:
    path = folder / "logs" / "m" / f"{rule}.log"
    write_note(record_of(path), Record(rule, begun=1000.0, **values))


def states(folder: Path, *which: str) -> dict[str, str]:
    return {stage.rule: stage.state for stage in read_status(folder, *which).stages}


def test_a_run_at_work_says_how_far_its_stages_are(tmp_path: Path) -> None:
    write(tmp_path, "", {"finetune": "done", "profile": "running", "search": "waiting"})
    record(tmp_path, "finetune", ended=1060.0, outcome="done", result="largest 96 %")
    record(tmp_path, "profile", said="noisy", step="operators 3 of 9", warnings=("the machine is warm: wait",))
    found = read_status(tmp_path)
    assert found.state == "running"
    assert "running is profile" in found.sentence
    assert [stage.state for stage in found.stages] == ["done", "running", "waiting"]
    assert [stage.now for stage in found.stages] == ["largest 96 %", "noisy · operators 3 of 9", ""]
    assert found.stages[0].seconds == 60
    assert found.stages[1].warnings == ("the machine is warm: wait",)
    assert found.remedy == ""


def test_a_failed_run_names_the_stage_the_end_of_its_log_and_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "failed", {"finetune": "failed", "search": "waiting"}, ended=time.time())
    record(tmp_path, "finetune", ended=1005.0, outcome="failed")
    log = "\n".join([*map(str, range(50)), "\x1b[2J", "Error in rule finetune: lr is too high; lower finetune.lr", ""])
    (tmp_path / "logs" / "m" / "finetune.log").write_text(log)
    assert main(["status", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "\n    \\x1b[2J\n" in said, "a log may quote names that steer a terminal"
    assert "failed in finetune: 0 of 2 stages are done" in said
    assert "    Error in rule finetune: lr is too high; lower finetune.lr" in said
    assert "    30\n" not in said, "only the end of the log"
    assert "start the same command again" in said


def test_a_stage_that_was_killed_is_told_from_one_that_says_why_it_failed(tmp_path: Path) -> None:
    write(tmp_path, "failed", {"finetune": "failed", "search": "waiting"}, ended=time.time())
    record(tmp_path, "finetune", said="epoch 1 of 9")
    found = read_status(tmp_path)
    assert states(tmp_path) == {"finetune": "killed", "search": "waiting"}
    assert "failed in finetune" in found.sentence
    assert found.remedy.startswith(
        "The stage was killed, by somebody, by a time limit, or because memory ran out. Start"
    )


def test_a_stage_that_was_killed_ran_until_its_last_word(tmp_path: Path) -> None:
    write(tmp_path, "failed", {"finetune": "failed"}, ended=time.time())
    record(tmp_path, "finetune", said="epoch 1 of 9")  # begun at 1000
    os.utime(record_of(tmp_path / "logs" / "m" / "finetune.log"), (1060.0, 1060.0))
    assert [stage.seconds for stage in read_status(tmp_path).stages] == [60.0]


def test_a_stage_that_could_not_record_its_end_on_a_full_disk_is_not_called_killed(tmp_path: Path) -> None:
    write(tmp_path, "failed", {"finetune": "failed", "search": "waiting"}, ended=time.time())
    record(tmp_path, "finetune", said="epoch 1 of 9")
    (tmp_path / "logs" / "m" / "finetune.log").write_text("epoch 1\nError in rule finetune: no space is left there\n")
    assert states(tmp_path) == {"finetune": "failed", "search": "waiting"}
    assert read_status(tmp_path).remedy.startswith("Do what the message says")


def test_a_killed_run_is_not_at_work(tmp_path: Path) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    write(tmp_path, "", {"finetune": "running", "search": "waiting"}, pid=gone.pid)
    record(tmp_path, "finetune", said="epoch 1 of 9")
    (tmp_path / ".snakemake" / "locks").mkdir(parents=True)
    (tmp_path / ".snakemake" / "locks" / "0.input.lock").touch()
    found = read_status(tmp_path)
    assert found.state == "killed"
    assert states(tmp_path) == {"finetune": "killed", "search": "waiting"}
    assert "The locks of the killed run are removed by it" in found.remedy


def test_the_run_of_another_machine_is_believed(tmp_path: Path) -> None:
    write(tmp_path, "", {"finetune": "running"}, host="another", pid=1)
    assert read_status(tmp_path).state == "running"


def test_a_record_of_an_earlier_run_does_not_count(tmp_path: Path) -> None:
    write(tmp_path, "", {"finetune": "running"})
    path = tmp_path / "logs" / "m" / "finetune.log"
    write_note(record_of(path), Record("finetune", begun=10.0, ended=20.0, outcome="done", result="old"))
    assert states(tmp_path) == {"finetune": "running"}
    assert read_status(tmp_path).stages[0].now == ""


def test_stages_of_one_model_and_device_are_chosen(tmp_path: Path) -> None:
    write(tmp_path, "done", {"finetune": "done", "search": "done"})
    assert set(states(tmp_path, "m")) == set(states(tmp_path, "m", "d")) == {"finetune", "search"}
    assert set(states(tmp_path, "m", "other")) == {"finetune"}
    with pytest.raises(ProgressError, match="no stages of x; it has m, m/d"):
        read_status(tmp_path, "x")
    write(tmp_path / "pool", "done", {"pool": "done"})
    with pytest.raises(ProgressError, match="no stages of x; it has m/d"):
        read_status(tmp_path / "pool", None, "x")


def test_json_is_one_object(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "done", {"finetune": "done"})
    record(tmp_path, "finetune", ended=1060.0, outcome="done", result="largest 96 %")
    assert main(["status", "--json", "--folder", str(tmp_path)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["state"], found["stages"][0]["now"]) == ("done", "largest 96 %")


def test_a_result_that_was_changed_since_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "done", {"finetune": "done"})
    table = tmp_path / "results" / "m" / "d" / "summary.csv"
    table.parent.mkdir(parents=True)
    table.write_text("1")
    artifacts.Provenance("measure", {}, []).write(table.parent / "provenance" / "measure.json", [table])
    command = ["status", "--folder", str(tmp_path)]
    assert main(command) == 0
    assert "!" not in capsys.readouterr().out
    table.write_text("2")
    assert main(command) == 0
    assert "summary.csv of rule measure is not what the rule wrote" in capsys.readouterr().out
    assert main([*command, "other"]) != 0, "the run has no such model"


NOTING = """
import pathlib, sys
from autotailor.progress.starting import note_start
note_start(pathlib.Path(sys.argv[1]))
print(flush=True)
sys.stdin.read()
"""


def begin(folder: Path) -> subprocess.Popen[bytes]:
    """A process that starts a run."""
    run = subprocess.Popen([sys.executable, "-c", NOTING, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert run.stdout is not None
    run.stdout.readline()
    return run


@pytest.mark.parametrize("had_run", [False, True])
def test_a_run_that_has_not_begun_a_stage_is_starting(had_run: bool, tmp_path: Path) -> None:
    if had_run:
        write(tmp_path, "done", {"finetune": "done"}, begun=time.time() - 60)
    run = begin(tmp_path)
    try:
        found = read_status(tmp_path, "m")
        assert (found.state, found.stages, found.remedy) == ("starting", (), "")
        assert "its first stage has not begun" in found.sentence
    finally:
        run.communicate()
    assert not (tmp_path / NOTE).exists()
    if had_run:
        assert read_status(tmp_path).state == "done"


def test_a_run_that_has_begun_a_stage_or_was_killed_is_not_starting(tmp_path: Path) -> None:
    run = begin(tmp_path)
    noted = (tmp_path / NOTE).read_bytes()
    second = begin(tmp_path)  # Snakemake, which the first process has launched
    second.communicate()
    assert (tmp_path / NOTE).read_bytes() == noted
    write(tmp_path, "", {"finetune": "running"})
    assert read_status(tmp_path).state == "running"
    (tmp_path / "logs" / "run.json").unlink()
    run.kill()
    run.communicate()
    assert (tmp_path / NOTE).exists()
    with pytest.raises(ProgressError, match="no run has left its progress here"):
        read_status(tmp_path)


def test_the_start_on_another_machine_is_believed_for_an_hour(tmp_path: Path) -> None:
    (tmp_path / NOTE).parent.mkdir(parents=True)
    for age, is_believed in ((60.0, True), (7200.0, False)):
        (tmp_path / NOTE).write_text(json.dumps({"pid": 1, "host": "another", "begun": time.time() - age}))
        assert (starting(tmp_path) is not None) == is_believed
    (tmp_path / NOTE).write_text("{")
    assert starting(tmp_path) is None


def test_a_stage_that_a_signal_has_ended_is_stopped_and_not_failed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(tmp_path, "stopped", {"finetune": "stopped", "profile": "waiting", "search": "waiting"}, ended=time.time())
    path = tmp_path / "logs" / "run.json"
    content = json.loads(path.read_text())
    content["jobs"][1]["begun"] = 1000.0
    path.write_text(json.dumps(content))
    record(tmp_path, "finetune", ended=1005.0, outcome="stopped", said="epoch 1 of 9")
    record(tmp_path, "profile", ended=1005.0, outcome="done", result="9 operators")  # and Snakemake did not wait for it
    assert states(tmp_path) == {"finetune": "stopped", "profile": "stopped", "search": "waiting"}
    assert main(["status", "--folder", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "was stopped by a person or a batch system: 0 of 3 stages are done" in said
    assert "‖ finetune stopped   0:00:05  epoch 1 of 9" in said


def test_without_a_run_the_message_says_how_to_start_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["status", "--folder", str(tmp_path)]) == 1
    told = capsys.readouterr().err
    assert "start a run: autotailor run model=NAME" in told
    assert "A run that ended before its first stage has said why where it was started" in told
