"""What a run shows, on a terminal and in a pipe, from the events of Snakemake and the records of its rules."""

import errno
import io
import json
import logging
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autotailor.progress.record import Record, record_of, write_note

ROOT = Path(__file__).parents[2]
RULES = ("pretrain", "finetune")


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The package ``workflow/console``, in a folder of its own."""
    monkeypatch.syspath_prepend(str(ROOT / "workflow"))
    monkeypatch.chdir(tmp_path)
    from console import handler, plan, views

    yield SimpleNamespace(handler=handler, plan=plan, views=views)
    for name in [name for name in sys.modules if name.partition(".")[0] == "console"]:
        del sys.modules[name]


def log(rule: str) -> str:
    return f"logs/m/{rule}.log"


def workflow() -> Any:
    rules = [SimpleNamespace(name=name) for name in ("default", *RULES)]
    jobs = [SimpleNamespace(rule=rule, log=[log(rule.name)], wildcards_dict={"model": "m"}) for rule in rules[1:]]
    jobs.append(SimpleNamespace(rule=rules[0], log=[], wildcards_dict={}))
    return SimpleNamespace(rules=rules, dag=SimpleNamespace(needrun_jobs=lambda: reversed(jobs)))


def event(name: str, message: str = "", level: int = logging.INFO, **about: Any) -> logging.LogRecord:
    record = logging.LogRecord("snakemake", level, "", 0, message, None, None)
    vars(record).update(event=name or None, **about)
    return record


def begun(number: int) -> logging.LogRecord:
    rule = RULES[number]
    return event("job_info", jobid=number, log=[log(rule)], rule_msg=f"{rule}: of m")


@pytest.fixture
def handled(console: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A handler that writes into a text, and leaves the console of the tests to them."""
    text = io.StringIO()
    monkeypatch.setattr(sys, "stderr", text)
    handler = console.handler.Handler(workflow(), logging.Formatter())

    def stay() -> None:
        handler._kept = [(99, 99)]
        handler._view.open(handler._plan)

    monkeypatch.setattr(handler, "_open", stay)
    monkeypatch.setattr(console.handler.os, "dup2", lambda *_: None)
    return SimpleNamespace(handler=handler, text=text)


def test_a_run_is_a_line_for_each_stage_that_begins_or_ends(handled: Any) -> None:
    emit = handled.handler.emit
    for message in ("Building DAG of jobs...", "Select jobs to execute...", "Using shell: /bin/sh"):
        emit(event("", message))
    emit(event("run_info", "Job stats:"))
    emit(begun(0))
    record = Record("pretrain", begun=time.time(), ended=time.time(), outcome="done", result="accuracy 94.5 %",
                    warnings=("the loss jumped: lower lr",))  # fmt: skip
    write_note(record_of(log("pretrain")), record)
    emit(event("job_finished", job_id=0))
    emit(begun(1))
    emit(event("job_finished", job_id=1))
    handled.handler.close()
    lines = [line.partition(" ")[2] if line[2:3] == ":" else line for line in handled.text.getvalue().splitlines()]
    assert lines == [
        "pretrain: of m",
        "! pretrain: the loss jumped: lower lr",
        "pretrain: done in 0:00 (1 of 2); accuracy 94.5 %",
        "finetune: of m",
        "finetune: done in 0:00 (2 of 2)",
        "All 2 stages are done in 0:00.",
    ]
    assert json.loads(Path("logs/run.json").read_text())["outcome"] == "done"


def test_one_stage_is_not_called_several(console: Any) -> None:
    assert console.handler.all_done(1, "0:07") == "The stage is done in 0:07."
    assert console.handler.all_done(2, "0:07") == "All 2 stages are done in 0:07."


def test_a_failed_stage_shows_the_end_of_its_log_and_how_to_go_on(handled: Any) -> None:
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    Path(log("pretrain")).parent.mkdir(parents=True, exist_ok=True)
    Path(log("pretrain")).write_text("epoch 1\n\nError in rule pretrain: lower lr\n")
    emit(event("error", "RuleException: a command failed", logging.ERROR, exception="RuleException"))
    emit(event("job_error", jobid=0))
    emit(event("", "Exiting because a job execution failed. Look below for error messages", logging.ERROR))
    handled.handler.close()
    said = handled.text.getvalue()
    assert "pretrain failed after 0:00; its log, logs/m/pretrain.log, ends with:" in said
    assert "    Error in rule pretrain: lower lr" in said
    assert "the same command goes on there" in said
    assert "RuleException" not in said
    assert "Exiting" not in said
    assert json.loads(Path("logs/run.json").read_text())["outcome"] == "failed"


def said_of_a_failure(handled: Any, logged: str) -> str:
    """What the console says of a stage that has noted its first epoch, left a log and failed."""
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    write_note(record_of(log("pretrain")), Record("pretrain", begun=time.time(), said="epoch 1"))
    Path(log("pretrain")).write_text(logged)
    emit(event("job_error", jobid=0))
    handled.handler.close()
    said: str = handled.text.getvalue()
    return said


def test_a_stage_whose_process_was_killed_is_said_to_be(handled: Any) -> None:
    said = said_of_a_failure(handled, "epoch 1\n")
    assert "pretrain failed after 0:00; its process was killed, by somebody, by a time limit, or because memory" in said
    assert "its log, logs/m/pretrain.log, ends with:\n    epoch 1\n" in said


def test_results_that_may_not_be_written_are_a_sentence_with_the_remedy(handled: Any) -> None:
    said = "Write-protected output files for rule export:\n    output: a, b\n    affected files:\n        a\n        b"
    handled.handler.emit(event("error", said, logging.ERROR, exception="ProtectedOutputException"))
    assert handled.text.getvalue() == (
        "autotailor: a and 1 more may not be written, because the file, its folder or the disk is read-only; "
        "give access to it, and give the same command again\n"
    )


def test_a_disk_that_is_full_leaves_the_console_to_the_message_of_the_rule(
    console: Any, handled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(console.plan.Plan, "write", full)
    said = said_of_a_failure(handled, "Error in rule pretrain: no space is left there\n")
    assert "    Error in rule pretrain: no space is left there\nThe run failed after" in said
    assert "was killed" not in said
    assert "Traceback" not in said


def test_a_failed_stage_with_an_empty_log_shows_nothing_that_stages_before_it_printed(
    console: Any, handled: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    output, emit = Path("output.txt"), handled.handler.emit
    monkeypatch.setattr(console.handler, "OUTPUT", output)
    emit(event("run_info"))
    emit(begun(0))
    output.write_text("108 SubNets\n")
    emit(event("job_finished", job_id=0))
    emit(begun(1))
    emit(event("job_error", jobid=1))
    emit(begun(1))
    output.write_text("108 SubNets\nIllegal instruction\n")
    emit(event("job_error", jobid=1))
    handled.handler.close()
    said = handled.text.getvalue()
    assert said.count("finetune failed after 0:00; its log, logs/m/finetune.log, is empty") == 2
    assert "is empty; what was printed since it began ends with:\n    Illegal instruction\n" in said
    assert "108 SubNets" not in said


def test_a_failed_stage_shows_what_a_cluster_says_of_its_job(handled: Any) -> None:
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    refused = (
        "SLURM sbatch failed. The error message was 'sbatch: error: no such node'.\n    sbatch call:\n        sbatch"
    )
    emit(event("job_error", jobid=0, rule_msg=refused))
    emit(begun(1))
    emit(event("job_error", jobid=1, rule_msg=None))
    handled.handler.close()
    lines = [line for line in handled.text.getvalue().splitlines() if line.startswith(("!", " "))]
    assert lines == ["! pretrain: SLURM sbatch failed. The error message was 'sbatch: error: no such node'."]


def test_a_stage_that_a_signal_has_ended_was_stopped_and_has_not_failed(handled: Any) -> None:
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    now = time.time()
    write_note(record_of(log("pretrain")), Record("pretrain", begun=now, ended=now, outcome="stopped"))
    emit(event("job_error", jobid=0))
    emit(event("error", "WorkflowError:\nAt least one job did not complete successfully.", logging.ERROR))
    handled.handler.close()
    lines = handled.text.getvalue().splitlines()[1:]
    assert lines[0] == "‖ pretrain was stopped after 0:00"
    assert lines[1].startswith("The run was stopped after 0:00, with 0 of 2 stages done.")
    assert len(lines) == 2
    document = json.loads(Path("logs/run.json").read_text())
    assert (document["outcome"], [job["state"] for job in document["jobs"]]) == ("stopped", ["stopped", "waiting"])


@pytest.mark.parametrize("begins", [True, False])
def test_a_stage_that_a_signal_has_ended_before_it_could_say_so_was_stopped(
    handled: Any, begins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As while a rule imports PyTorch: its process has no word of its own yet, but this one has heard of the signal."""
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    if begins:
        write_note(record_of(log("pretrain")), Record("pretrain", begun=time.time()))
    monkeypatch.setattr("autotailor.project.termination._ARRIVED", {2})
    emit(event("job_error", jobid=0))
    emit(begun(1))
    now = time.time()
    write_note(record_of(log("finetune")), Record("finetune", begun=now, ended=now, outcome="failed"))
    emit(event("job_error", jobid=1))
    handled.handler.close()
    said = handled.text.getvalue()
    assert "‖ pretrain was stopped after 0:00" in said
    assert "✗ finetune failed after 0:00" in said


def test_a_stage_whose_last_word_is_the_interrupt_was_stopped_even_before_this_process_heard_of_it(
    handled: Any, console: Any
) -> None:
    emit = handled.handler.emit
    emit(event("run_info"))
    emit(begun(0))
    console.handler.OUTPUT.parent.mkdir(parents=True, exist_ok=True)
    console.handler.OUTPUT.write_text('  File "<frozen importlib._bootstrap>", line 1176\nKeyboardInterrupt\n')
    emit(event("job_error", jobid=0))
    handled.handler.close()
    said = handled.text.getvalue()
    assert "‖ pretrain was stopped after 0:00" in said
    assert "importlib" not in said


def test_what_is_not_known_to_be_noise_is_shown(handled: Any) -> None:
    handled.handler.emit(event("", "Nothing to be done (all requested files are present and up to date)."))
    handled.handler.emit(event("", "autotailor: these rules run again", logging.WARNING))
    handled.handler.emit(event("error", "MissingInputException", logging.ERROR, exception="MissingInputException"))
    handled.handler.emit(event("", "of a debugger", logging.DEBUG))
    assert [line.split()[0] for line in handled.text.getvalue().splitlines()] == [
        "Nothing", "autotailor:", "MissingInputException",
    ]  # fmt: skip


def test_the_time_left_is_that_of_the_last_run_as_far_as_it_is_known(console: Any) -> None:
    write_note(record_of(log("pretrain")), Record("pretrain", begun=100.0, ended=160.0, outcome="done"))
    plan = console.plan.Plan([console.plan.Job(rule, log(rule)) for rule in RULES])
    assert plan.left() == "about 1:00 left, and 1 stage for the first time"
    plan.jobs[0].state, plan.jobs[0].begun = "running", time.time() - 45
    assert plan.left() == "about 0:15 left, and 1 stage for the first time"
    plan.jobs[0].state = "done"
    assert plan.left() == "time left not known: the first run of these stages"
    plan.jobs[1].state = "done"
    assert plan.left() == "about 0:00 left"


@pytest.mark.parametrize("width", [80, 120])
def test_a_terminal_shows_the_running_stages_with_their_progress_in_lines_that_fit(width: int, console: Any) -> None:
    from rich.console import Console

    stream = io.StringIO()
    display = console.views.Display(stream)
    display._console = Console(file=stream, width=width, force_terminal=True, color_system=None)
    plan = console.plan.Plan([console.plan.Job(rule, log(rule)) for rule in RULES])
    job = plan.jobs[0]
    job.state, job.begun = "running", time.time() - 65
    write_note(record_of(job.log), Record("pretrain", begun=time.time(), said="epoch 3 of 9", step="x" * 200))
    display.plan = plan
    display._console.print(display._now())
    running, summary = stream.getvalue().splitlines()
    assert running.startswith("▸ pretrain    1:05  epoch 3 of 9 · xxx")
    assert summary.startswith("0 of 2 stages done · 0:00 so far")
    assert max(len(running), len(summary)) <= width


def test_several_devices_stand_behind_the_rules_names(console: Any) -> None:
    jobs = [
        console.plan.Job("search", f"logs/m/{device}/search.log", {"model": "m", "device": device})
        for device in ("host", "phone")
    ]
    plan = console.plan.Plan(jobs)
    assert [plan.label(job) for job in jobs] == ["search m/host", "search m/phone"]


@pytest.mark.parametrize("asked", ["verbose", "debug_dag", "printshellcmds", "dryrun", "quiet"])
def test_snakemakes_own_output_stays_where_it_is_asked_for(asked: str, console: Any) -> None:
    own = logging.StreamHandler()
    own.name = "DefaultStreamHandler"
    logger = logging.Logger("snakemake")
    logger.addHandler(own)
    settings = dict.fromkeys(["verbose", "debug_dag", "printshellcmds", "dryrun"], False) | {"quiet": set()}
    about = SimpleNamespace(
        output_settings=SimpleNamespace(**{**settings, asked: {"all"} if asked == "quiet" else True}),
        logger_manager=SimpleNamespace(logger=logger),
    )
    console.handler.attach(about)
    assert logger.handlers == [own]
