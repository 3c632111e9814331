"""What a run is doing, or why it ended: read from ``logs/run.json``, the records of its stages, and their logs.

A run that was started and has not begun its first stage is read from its note, see ``starting``.
"""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from autotailor.ir.errors import AutoTailorError
from autotailor.progress.record import (
    DONE,
    FAILED,
    KILLERS,
    STOPPED,
    Record,
    has_told,
    last_lines,
    read_record,
    record_of,
)
from autotailor.progress.starting import Starting, is_alive, starting

RUN = Path("logs/run.json")
LOCKS = Path(".snakemake/locks")
STARTING, WAITING, RUNNING, KILLED = "starting", "waiting", "running", "killed"


class ProgressError(AutoTailorError):
    """No run has left a trace."""


@dataclass(frozen=True)
class StageStatus:
    """One stage of a run.

    Attributes:
        rule: name of the rule.
        model, device: that the rule runs for; "" where it does not depend on them.
        state: waiting, running, done, failed, stopped or killed.
        seconds: that it has run; None before it began.
        now: its last progress while it runs, and what it has found when it is done.
        warnings: its warnings.
        log: path of its log.
        last_lines: of the log, where the stage has failed.
    """

    rule: str
    model: str
    device: str
    state: str
    seconds: float | None
    now: str
    warnings: tuple[str, ...]
    log: str
    last_lines: tuple[str, ...]


@dataclass(frozen=True)
class Status:
    """A run.

    Attributes:
        state: starting, running, done, failed, stopped (by a person or a batch system), or killed.
        sentence: the state in one sentence.
        begun, ended: seconds since 1970; ended is None while the run goes on, and where nobody recorded its end.
        stages: in the order of the workflow; none while the run is starting.
        remedy: what to do; "" where there is nothing to do.
    """

    state: str
    sentence: str
    begun: float
    ended: float | None
    stages: tuple[StageStatus, ...]
    remedy: str

    @property
    def failures(self) -> list[StageStatus]:
        """The stages that did not end well."""
        return [stage for stage in self.stages if stage.state in (FAILED, KILLED)]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return asdict(self)


def read_status(folder: Path, model: str | None = None, device: str | None = None) -> Status:
    """The status of the last run in a folder, or of one that is starting.

    Args:
        folder: in which the run was started.
        model: only stages of this model; None for all.
        device: only stages of this device and those that depend on no device; None for all.

    Raises:
        ProgressError: there was no run, or none of the model and device.
    """
    started = starting(folder)
    try:
        content = json.loads((folder / RUN).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        if started is not None:
            return _starting(started)
        raise ProgressError(
            f"{folder / RUN}: no run has left its progress here; give the folder in which the run was started as "
            "--folder, or start a run: autotailor run model=NAME device=NAME, or in a clone snakemake --config "
            "model=NAME device=NAME. A run that ended before its first stage has said why where it was started"
        ) from error
    if started is not None and started.begun > content["begun"]:
        return _starting(started)
    alive = is_alive(content["pid"], content["host"], content["begun"])
    stages = tuple(
        _stage(folder, job, alive)
        for job in content["jobs"]
        if model in (None, job["wildcards"].get("model"))
        and (device is None or job["wildcards"].get("device", device) == device)
    )
    if not stages:
        names = sorted({"/".join(job["wildcards"].values()) for job in content["jobs"]})
        raise ProgressError(
            f"{folder / RUN}: the last run has no stages of {' and '.join(filter(None, (model, device)))}; it has "
            f"{', '.join(names)}"
        )
    state = content["outcome"] or (RUNNING if alive else KILLED)
    return Status(
        state=state,
        sentence=_sentence(state, content, stages),
        begun=content["begun"],
        ended=content["ended"],
        stages=stages,
        remedy=_remedy(folder, state, stages),
    )


def _starting(started: Starting) -> Status:
    """The status of a run that has not begun its first stage."""
    sentence = (
        f"A run is starting since {_clock(started.begun)} ({_ago(started.begun)}): Snakemake reads the workflow, and "
        "data, accelerator and device are checked; its first stage has not begun."
    )
    return Status(STARTING, sentence, started.begun, None, (), "")


def _stage(folder: Path, job: Mapping[str, Any], alive: bool) -> StageStatus:
    """One stage, from the job in ``run.json`` and the record beside its log."""
    path = folder / record_of(job["log"])
    record = read_record(path)
    if record and (job["begun"] is None or record.begun < job["begun"] - 1):
        record = None  # of an earlier run
    state, ended = job["state"], record.outcome if record else ""
    if state == WAITING and ended == DONE:  # Snakemake did not wait for it, and runs it again
        state = STOPPED
    elif state == RUNNING or (state == WAITING and job["begun"]):
        state = ended or (RUNNING if alive and state == RUNNING else KILLED)
    elif state == FAILED and record and not ended and not has_told(job["rule"], last_lines(folder / job["log"])):
        state = KILLED
    seconds = _seconds(job["begun"], record, state == RUNNING, path)
    failed = state in (FAILED, KILLED)
    return StageStatus(
        rule=job["rule"],
        model=job["wildcards"].get("model", ""),
        device=job["wildcards"].get("device", ""),
        state=state,
        seconds=seconds,
        now="" if record is None or failed else record.result if state == DONE else record.now,
        warnings=record.warnings if record else (),
        log=job["log"],
        last_lines=tuple(last_lines(folder / job["log"])) if failed else (),
    )


def _seconds(begun: float | None, record: Record | None, runs: bool, path: Path) -> float | None:
    """How long a stage has run; until its last word, where it was killed."""
    if begun is None or (record is None and not runs):
        return None
    if record is None:
        return time.time() - begun
    return record.seconds if runs or record.ended is not None else max(0.0, path.stat().st_mtime - record.begun)


def _sentence(state: str, content: Mapping[str, Any], stages: tuple[StageStatus, ...]) -> str:
    """The state of a run in one sentence."""
    done = sum(stage.state == DONE for stage in stages)
    share = f"{done} of {len(stages)} stages are done"
    begun = _clock(content["begun"])
    if state == RUNNING:
        names = ", ".join(stage.rule for stage in stages if stage.state == RUNNING) or "nothing at this moment"
        return f"The run is at work since {begun} ({_ago(content['begun'])}): {share}, and running is {names}."
    if state == DONE:
        return f"The run of {begun} is finished: {share}."
    if state == FAILED:
        names = (
            ", ".join(stage.rule for stage in stages if stage.state in (FAILED, KILLED)) or "a stage of another device"
        )
        return f"The run of {begun} failed in {names}: {share}."
    how = "was stopped by a person or a batch system" if state == STOPPED else "was killed, or its machine went down"
    return f"The run of {begun} {how}: {share}."


def _remedy(folder: Path, state: str, stages: Sequence[StageStatus]) -> str:
    """What to do with a run in this state."""
    if state in (RUNNING, DONE):
        return ""
    again = "Start the same command again: what is done is kept, and it goes on there."
    ends = {stage.state for stage in stages}
    if state == FAILED and KILLED in ends and FAILED not in ends:
        again = f"The stage was killed, {KILLERS}. {again}"
    elif state == FAILED:
        again = f"Do what the message says, then start the same command again: what is done is kept. {DOCUMENTS}"
    locked = any((folder / LOCKS).glob("*")) if (folder / LOCKS).is_dir() else False
    return f"{again} (The locks of the killed run are removed by it.)" if locked else again


DOCUMENTS = "docs/troubleshooting.md in the sources of autotailor lists the messages."


def _clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))


def _ago(moment: float) -> timedelta:
    return timedelta(seconds=round(time.time() - moment))
