"""The jobs of a run and their states, which ``logs/run.json`` keeps for ``autotailor status``."""

from __future__ import annotations

import os
import socket
import time
from dataclasses import asdict, dataclass, field

from autotailor.progress import Record, read_record, record_of
from autotailor.progress.record import DONE, FAILED, STOPPED, write_note
from autotailor.progress.status import RUN, RUNNING, WAITING


@dataclass
class Job:
    """One rule for one model and device.

    Attributes:
        rule: name of the rule.
        log: path of its log.
        wildcards: ``model`` and, where the rule depends on it, ``device``.
        state: waiting, running, done, failed or stopped.
        begun: when it began by Snakemake, seconds since 1970.
        usual: seconds of its last finished run; None where there was none.
    """

    rule: str
    log: str
    wildcards: dict[str, str] = field(default_factory=dict)
    state: str = WAITING
    begun: float | None = None
    usual: float | None = None

    @property
    def record(self) -> Record | None:
        """What the running job says of itself; None before its first word."""
        found = read_record(record_of(self.log))
        return found if found and self.begun and found.begun >= self.begun - 1 else None

    @property
    def is_stopped(self) -> bool:
        """Whether a signal has ended the job: a person's or a batch system's."""
        record = self.record
        return record is not None and record.outcome == STOPPED

    @property
    def is_killed(self) -> bool:
        """Whether the failed job was at work and has ended without a word: something has ended its process."""
        return self.record is not None and self.is_silent

    @property
    def is_silent(self) -> bool:
        """Whether the ended job has not said how it ended."""
        record = self.record
        return record is None or not record.outcome

    @property
    def seconds(self) -> float:
        """How long it has run until now."""
        return time.time() - self.begun if self.begun else 0.0

    def seconds_left(self) -> float | None:
        """How long it will still run, if it takes as long as the last time; None where there was no last time."""
        if self.usual is None or self.state in (DONE, FAILED):
            return 0.0 if self.state in (DONE, FAILED) else None
        return max(0.0, self.usual - self.seconds)


class Plan:
    """The jobs of a run, in the order in which the workflow lists their rules."""

    def __init__(self, jobs: list[Job]) -> None:
        self.jobs, self.begun = jobs, time.time()
        for job in jobs:
            last = read_record(record_of(job.log))
            job.usual = last.usual_seconds if last else None
        self.several = len({tuple(sorted(job.wildcards.items())) for job in jobs if "device" in job.wildcards}) > 1

    def label(self, job: Job) -> str:
        """The name of a job: its rule, with model and device where the run has several."""
        return f"{job.rule} {'/'.join(job.wildcards.values())}" if self.several else job.rule

    def of(self, log: str) -> Job | None:
        """The job with a log; None for a job that the plan does not have."""
        return next((job for job in self.jobs if job.log == log), None)

    def count(self, state: str) -> int:
        """How many jobs are in a state."""
        return sum(job.state == state for job in self.jobs)

    def left(self) -> str:
        """The time that is left, as far as earlier runs say it."""
        known = [job.seconds_left() for job in self.jobs]
        unknown = known.count(None)
        total = sum(seconds for seconds in known if seconds is not None)
        if unknown and unknown == len([job for job in self.jobs if job.state in (WAITING, RUNNING)]):
            return "time left not known: the first run of these stages"
        more = f", and {unknown} {'stage' if unknown == 1 else 'stages'} for the first time" if unknown else ""
        return f"about {duration(total)} left{more}"

    def write(self, outcome: str = "") -> None:
        """Writes ``logs/run.json``; a reader sees the old one or the new one."""
        content = {
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "begun": self.begun,
            "ended": time.time() if outcome else None,
            "outcome": outcome,
            "jobs": [asdict(job) for job in self.jobs],
        }
        write_note(RUN, content)


def duration(seconds: float) -> str:
    """``1:05`` or ``1:02:03``."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
