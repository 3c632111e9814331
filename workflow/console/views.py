"""The two ways to show a run: a live display on a terminal, and lines in a file or a pipe."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from typing import TextIO

from rich.console import Group
from rich.live import Live
from rich.text import Text

from autotailor.commands.terminal import say, terminal
from autotailor.progress.record import DONE, FAILED, KILLERS, has_told
from autotailor.progress.status import RUNNING
from console.plan import Job, Plan, duration


class View(ABC):
    """Shows what happens to the jobs of a plan."""

    plan: Plan

    def open(self, plan: Plan) -> None:
        """The first job is about to begin."""
        self.plan = plan

    @abstractmethod
    def say(self, text: str, style: str = "") -> None:
        """A message that stays; ``style`` is one of rich's."""

    @abstractmethod
    def begun(self, job: Job, message: str) -> None:
        """A job has begun."""

    @abstractmethod
    def done(self, job: Job, result: str) -> None:
        """A job is done."""

    def failed(self, job: Job, lines: list[str], is_logged: bool = True) -> None:
        """A job has failed; ``lines`` are the last ones of its log, or else of what was printed since it began."""
        where = f"its log, {job.log}, ends with:" if lines and is_logged else f"its log, {job.log}, is empty"
        if lines and not is_logged:
            where += "; what was printed since it began ends with:"
        if job.is_killed and not has_told(job.rule, lines):
            where = f"its process was killed, {KILLERS}; {where}"
        self.say(f"✗ {self.plan.label(job)} failed after {duration(job.seconds)}; {where}", "bold red")
        for line in lines:
            self.say(f"    {line}")

    def stopped(self, job: Job) -> None:
        """A signal has ended a job: a person's or a batch system's."""
        self.say(f"‖ {self.plan.label(job)} was stopped after {duration(job.seconds)}", "yellow")

    @abstractmethod
    def close(self) -> None:
        """The run is over."""


class Lines(View):
    """One line for each stage that begins or ends."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def say(self, text: str, style: str = "") -> None:
        say(text, file=self._stream)

    def begun(self, job: Job, message: str) -> None:
        usual = f" (took {duration(job.usual)} the last time)" if job.usual else ""
        self.say(f"{time.strftime('%H:%M:%S')} {message or self.plan.label(job)}{usual}")

    def done(self, job: Job, result: str) -> None:
        said = f"; {result}" if result else ""
        ended = f"{self.plan.count(DONE)} of {len(self.plan.jobs)}"
        self.say(f"{time.strftime('%H:%M:%S')} {self.plan.label(job)}: done in {duration(job.seconds)} ({ended}){said}")

    def close(self) -> None:
        self._stream.flush()


class Display(View):
    """A line for each finished stage, and below them the running stages with their progress and the time left."""

    def __init__(self, stream: TextIO) -> None:
        self._console = terminal(file=stream, highlight=False)
        self._live: Live | None = None

    def open(self, plan: Plan) -> None:
        super().open(plan)
        self._live = Live(
            console=self._console,
            get_renderable=self._now,
            refresh_per_second=2,
            transient=True,
            vertical_overflow="crop",
        )
        self._live.start()

    def say(self, text: str, style: str = "") -> None:
        self._console.print(Text(text, style))

    def begun(self, job: Job, message: str) -> None:
        if self._live is not None:
            self._live.refresh()

    def done(self, job: Job, result: str) -> None:
        self._console.print(self._line("✓", "green", job, result))

    def close(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _line(self, mark: str, style: str, job: Job, text: str) -> Text:
        """One line that fits: mark, name, time, and as much of the text as there is room for."""
        width = max((len(self.plan.label(each)) for each in self.plan.jobs), default=0)
        spent = (f"{duration(job.seconds):>7}", "dim")
        line = Text.assemble((f"{mark} ", style), f"{self.plan.label(job):<{width}} ", spent, f"  {text}")
        line.truncate(self._console.width, overflow="ellipsis")
        return line

    def _now(self) -> Group:
        lines = []
        for job in self.plan.jobs:
            if job.state == RUNNING:
                record = job.record
                lines.append(self._line("▸", "cyan", job, (record.now if record else "") or "starts"))
        return Group(*lines, Text(self._summary(), "dim", no_wrap=True, overflow="ellipsis"))

    def _summary(self) -> str:
        failed = self.plan.count(FAILED)
        parts = [
            f"{self.plan.count(DONE)} of {len(self.plan.jobs)} stages done",
            f"{duration(time.time() - self.plan.begun)} so far",
            self.plan.left(),
        ]
        return " · ".join([*parts, *([f"{failed} failed"] if failed else [])])
