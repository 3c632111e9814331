"""Turns Snakemake's messages into what a person wants to know of a run."""

from __future__ import annotations

import atexit
import itertools
import logging
import os
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from autotailor.ir.errors import printable
from autotailor.progress.record import DONE, FAILED, STOPPED, last_lines
from autotailor.progress.status import RUNNING, WAITING
from autotailor.project import termination
from console.plan import Job, Plan, duration
from console.views import Display, Lines, View

OUTPUT = Path(".snakemake/autotailor/output.txt")
"""What the jobs print beside their logs, libraries written in C included."""
NOISE = (
    "Assuming unrestricted shared filesystem usage",
    "Building DAG of jobs",
    "Using shell:",
    "Group jobs: inactive",
    "Conda environments: ignored",
    "Singularity containers: ignored",
    "Select jobs to execute",
    "Execute ",
    "Complete log",
    "Elapsed time",
    "Shutting down, this might take some time",
    "Exiting because a job execution failed",
    "At least one job did not complete",
    "WorkflowError:\nAt least one job did not complete",
)
"""How messages begin that say nothing of this run, or say again what the display says."""
SILENT = {
    "workflow_started",
    "job_started",
    "resources_info",
    "progress",
    "shellcmd",
    "group_info",
    "rulegraph",
    "debug_dag",
}


def attach(workflow: Any) -> None:
    """Puts a ``Handler`` in the place of the one with which Snakemake writes to the console.

    Nothing changes for dry runs, with ``--verbose``, ``--debug-dag``, ``--printshellcmds`` or ``--quiet all``.
    """
    settings, logger = workflow.output_settings, workflow.logger_manager.logger
    asked = settings.verbose or settings.debug_dag or settings.printshellcmds or settings.dryrun
    silent = any(str(part).rpartition(".")[2].lower() == "all" for part in settings.quiet or ())
    own = [handler for handler in logger.handlers if handler.name == "DefaultStreamHandler"]
    if asked or silent or not own:
        return
    handler = Handler(workflow, own[0].formatter)
    logger.addHandler(handler)
    for replaced in own:
        logger.removeHandler(replaced)
    atexit.register(handler.close)


class Handler(logging.Handler):
    """Follows the events of a run, and shows them."""

    def __init__(self, workflow: Any, formatter: logging.Formatter | None) -> None:
        super().__init__()
        self.name = "autotailor"
        self.setFormatter(formatter)
        self._workflow, self._stream, self._jobs = workflow, sys.stderr, dict[int, Job]()
        self._view: View = Lines(self._stream)
        self._plan: Plan | None = None
        self._kept: list[tuple[int, int]] = []
        self._printed: dict[int, int] = {}  # bytes that all jobs had printed when a job began

    def emit(self, record: logging.LogRecord) -> None:
        try:
            self._take(str(getattr(record, "event", None) or ""), record)
        except Exception:
            self.handleError(record)

    def _take(self, event: str, record: logging.LogRecord) -> None:
        if event == "job_info":
            self._begun(record)
        elif event == "job_finished":
            self._finished(vars(record)["job_id"])
        elif event == "job_error":
            self._failed(vars(record)["jobid"], vars(record).get("rule_msg") or "")
        elif event == "run_info" and self._plan is None:
            self._plan = Plan(planned(self._workflow))
        elif event == "error" and vars(record).get("exception") == "RuleException" and self._jobs:
            pass  # that a rule's process ended with an error, which the rule's log says better
        elif event == "error" and vars(record).get("exception") == "ProtectedOutputException":
            self._view.say(write_protected(self.format(record)), "red")
        elif event not in {*SILENT, "run_info"} and not str(record.msg).startswith(NOISE):
            self._say(record)

    def _say(self, record: logging.LogRecord) -> None:
        """A message of Snakemake or of the workflow that the display does not know."""
        text = printable(self.format(record)).strip()
        style = {logging.WARNING: "yellow", logging.ERROR: "red"}.get(record.levelno, "")
        if text and record.levelno >= logging.INFO:
            self._view.say(text, style)

    def _begun(self, record: logging.LogRecord) -> None:
        about = vars(record)
        job = self._plan.of(about["log"][0]) if self._plan and about["log"] else None
        if job is not None:
            if not self._kept:
                self._open()
            self._jobs[about["jobid"]] = job
            self._printed[about["jobid"]] = OUTPUT.stat().st_size if OUTPUT.exists() else 0
            job.state, job.begun = RUNNING, time.time()
            self._view.begun(job, about["rule_msg"] or "")
            self._write()

    def _finished(self, number: int) -> None:
        if number in self._jobs:
            job, record = self._jobs[number], self._jobs[number].record
            job.state = DONE
            self._warn(job)
            self._view.done(job, record.result if record else "")
            self._write()

    def _failed(self, number: int, why: str) -> None:
        """A job has failed; ``why`` is what a cluster says: its log says nothing of a time limit or a refused job."""
        if number in self._jobs:
            job = self._jobs[number]
            logged = last_lines(Path(job.log))
            lines = logged or last_lines(OUTPUT, self._printed[number])
            # The job may end before this process's own handler of the signal has had its turn.
            is_told = termination.was_told_to_end() or [line.strip() for line in lines[-1:]] == ["KeyboardInterrupt"]
            is_stopped = job.is_stopped or (job.is_silent and is_told)
            job.state = STOPPED if is_stopped else FAILED
            self._warn(job)
            for line in itertools.takewhile(lambda line: not line.startswith(" "), why.splitlines()):
                self._view.say(f"! {job.rule}: {line}", "yellow")  # indented lines repeat the command
            if is_stopped:
                self._view.stopped(job)
            else:
                self._view.failed(job, lines, is_logged=bool(logged))
            self._write()

    def _warn(self, job: Job) -> None:
        """Shows the warnings of a job that has ended."""
        record = job.record
        for text in record.warnings if record else ():
            self._view.say(f"! {job.rule}: {text}", "yellow")

    def _write(self) -> None:
        if self._plan is not None:
            _keep(self._plan)

    def _open(self) -> None:
        """Takes the console from the jobs, which print into a file from now on, and opens the view."""
        assert self._plan is not None
        OUTPUT.parent.mkdir(parents=True, exist_ok=True)
        sys.stdout.flush()
        sys.stderr.flush()
        with OUTPUT.open("wb") as output:
            self._kept = [(number, os.dup(number)) for number in (1, 2)]
            for number, _ in self._kept:
                os.dup2(output.fileno(), number)
        self._stream = _text(self._kept[1][1])
        self._view = (Display if self._stream.isatty() else Lines)(self._stream)
        sys.stdout, sys.stderr = _text(self._kept[0][1]), self._stream
        self._view.open(self._plan)

    def close(self) -> None:
        """Says how the run has ended, and gives the console back."""
        super().close()
        plan, self._plan = self._plan, None
        self._view.close()
        if plan is not None and self._kept:
            self._end(plan)
        sys.stdout.flush()
        sys.stderr.flush()
        for number, kept in self._kept:
            os.dup2(kept, number)
        self._kept = []

    def _end(self, plan: Plan) -> None:
        outcome = FAILED if plan.count(FAILED) else DONE if plan.count(DONE) == len(plan.jobs) else STOPPED
        for job in plan.jobs:
            job.state = WAITING if job.state == RUNNING else job.state
        _keep(plan, outcome)
        spent = duration(time.time() - plan.begun)
        if outcome == DONE:
            self._view.say(all_done(len(plan.jobs), spent), "green")
        else:
            what = "failed" if outcome == FAILED else "was stopped"
            self._view.say(
                f"The run {what} after {spent}, with {plan.count(DONE)} of {len(plan.jobs)} stages done. What is done "
                "is kept, and the same command goes on there. `autotailor status` says this again.",
                "bold",
            )


def planned(workflow: Any) -> list[Job]:
    """The jobs that a run needs, in the order in which the workflow lists their rules."""
    order = {rule.name: number for number, rule in enumerate(workflow.rules)}
    needed = sorted((job for job in workflow.dag.needrun_jobs() if job.log), key=lambda job: order[job.rule.name])
    return [Job(job.rule.name, str(job.log[0]), dict(job.wildcards_dict)) for job in needed]


def all_done(stages: int, spent: str) -> str:
    """The last line of a run that has done all its stages, in a time such as ``6:06``."""
    return f"All {stages} stages are done in {spent}." if stages > 1 else f"The stage is done in {spent}."


def _keep(plan: Plan, outcome: str = "") -> None:
    """Writes how the run stands; a full or read-only disk ends the run elsewhere, with a better message."""
    with suppress(OSError):
        plan.write(outcome)


def write_protected(said: str) -> str:
    """Snakemake's list of files that may not be written, as a sentence with the remedy."""
    files = [line.strip() for line in said.partition("affected files:")[2].splitlines() if line.strip()]
    others = f" and {len(files) - 1} more" if files[1:] else ""
    return (
        f"autotailor: {files[0] if files else 'a result'}{others} may not be written, because the file, its folder or "
        "the disk is read-only; give access to it, and give the same command again"
    )


def _text(descriptor: int) -> TextIO:
    """A stream of text on a file descriptor, which stays open with the process."""
    return os.fdopen(descriptor, "w", encoding="utf-8", errors="replace", buffering=1, closefd=False)
