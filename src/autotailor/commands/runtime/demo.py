"""``autotailor runtime demo POOL``: a pool under load that the command makes, drawn live and on a page afterwards.

The live picture shows what is active, the latency against the deadline, and the accuracy paid. On a terminal it is
drawn anew some times a second. Elsewhere one line is printed for each phase.
"""

from __future__ import annotations

import argparse
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from autotailor.commands.runtime.place import add_pool, pool_folder
from autotailor.commands.terminal import given_path, say, terminal
from autotailor.serving.demo.drive import Phase
from autotailor.serving.demo.trace import Sample, summed
from autotailor.serving.service import Service

SECONDS = 16.0
PAGE, TRACE = "runtime.html", "runtime.csv"

PAUSE_S = 0.25
RECENT_S = 1.0
WIDTH = 48
BARS = "▁▂▃▄▅▆▇█"


def add_actions(actions: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds ``demo``."""
    parser = actions.add_parser(
        "demo",
        help="see a pool under load",
        description="Runs a pool on one core of this machine while processes compete for it: none, one, three, none. "
        f"Draws live which member is active, latency against the deadline and accuracy paid; then writes {PAGE} and "
        f"{TRACE}, one line for each inference. It takes as long as --seconds says; its processes always end.",
    )
    add_pool(parser)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of all phases together")
    parser.add_argument(
        "--burdens", default="0,1,3,0", metavar="N,N,...", help="competing processes in each phase, at most 16"
    )
    parser.add_argument(
        "--kind",
        choices=("compute", "memory"),
        default="compute",
        help="what they do: compute on the same core, or copy memory",
    )
    parser.add_argument(
        "--deadline-ms",
        type=float,
        metavar="MS",
        help="of one inference (default: 1.5 times what the largest takes here)",
    )
    parser.add_argument("--rate", type=float, default=0.0, help="inferences a second (default: without a pause)")
    parser.add_argument(
        "--output", type=given_path, default=Path(), metavar="FOLDER", help="of page and trace (default: .)"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Runs the demonstration.

    Raises:
        PoolError: the pool cannot be read, or an option is invalid.
    """
    from autotailor.artifacts import atomic
    from autotailor.commands.runtime.page import write_page
    from autotailor.serving import Service
    from autotailor.serving.demo.drive import (
        ROOM,
        Burdens,
        drive,
        phases,
        pictures_for,
        pinned_to_one_core,
        unloaded_ms,
    )
    from autotailor.serving.demo.trace import write_csv

    plan = phases(options.seconds, burdens_of(options.burdens))
    check_rate(options.rate)
    make_folder(options.output)
    folder, samples = pool_folder(options.pool), []
    with pinned_to_one_core() as core, Burdens(options.seconds + 60, options.kind) as burdens:
        deadline_ms = options.deadline_ms
        if deadline_ms is None:
            with Service.of(folder) as service:
                deadline_ms = ROOM * unloaded_ms(service, pictures_for(service)[0])
        with Service.of(folder, deadline_ms) as service:
            with Live(service, plan) as live:
                for sample in drive(service, burdens, plan, pictures_for(service), options.rate):
                    samples.append(sample)
                    live.show(sample)
            status = service.status()
    with atomic(options.output / TRACE) as temporary:
        write_csv(samples, temporary)
    write_page(samples, status, core, options.output / PAGE)
    say(f"page: {options.output / PAGE}, trace: {options.output / TRACE}")


def check_rate(rate: float) -> None:
    """Raises PoolError unless a number of inferences a second is finite and not negative."""
    from autotailor.serving import PoolError

    if not 0 <= rate < float("inf"):
        raise PoolError(f"--rate {rate:g}: expected inferences a second, or 0 for no pause between them")


def make_folder(folder: Path) -> None:
    """Makes the folder of page and trace before the demonstration, which nobody wants to see twice.

    Raises:
        PoolError: the folder cannot be made.
    """
    from autotailor.serving import PoolError

    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PoolError(f"--output {folder}: the folder cannot be made ({error.strerror}); name another one") from error


def burdens_of(text: str) -> tuple[int, ...]:
    """``0,1,3,0``.

    Raises:
        PoolError: the text is no list of numbers from 0 to 16.
    """
    from autotailor.serving import PoolError
    from autotailor.serving.demo.drive import MOST

    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and int(word) <= MOST for word in words):
        raise PoolError(
            f"--burdens {text}: expected numbers from 0 to {MOST} with commas between them, such as 0,1,3,0"
        )
    return tuple(int(word) for word in words)


class Live:
    """Shows samples as they come; a context manager that leaves the last picture on the terminal."""

    def __init__(self, service: Service, plan: Sequence[Phase], console: Console | None = None) -> None:
        self._service, self._plan = service, plan
        self._console = console or terminal()
        self._recent: deque[Sample] = deque()
        self._phase: list[Sample] = []
        self._history: deque[float] = deque(maxlen=WIDTH)
        self._drawn = 0.0
        self._live = RichLive(console=self._console, auto_refresh=False, transient=False)

    def __enter__(self) -> Live:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end_phase()
        if self._console.is_terminal:
            self._live.stop()

    def show(self, sample: Sample) -> None:
        """Takes an inference, and draws where it is time to."""
        if self._phase and self._phase[-1].burdens != sample.burdens:
            self._end_phase()
        self._phase.append(sample)
        if not self._console.is_terminal:
            return
        self._recent.append(sample)
        now = time.monotonic()
        if now - self._drawn >= PAUSE_S:
            self._drawn = now
            while self._recent and self._recent[0].seconds < sample.seconds - RECENT_S:
                self._recent.popleft()
            self._live.update(self.picture(), refresh=True)

    def picture(self) -> Group:
        """The picture of the last second."""
        recent = summed(list(self._recent))
        last = self._recent[-1]
        self._history.append(recent.p95_ms / last.deadline_ms)
        total = sum(phase.seconds for phase in self._plan)
        head = Text(f"{last.burdens} competing · {last.seconds:4.1f} of {total:.0f} s", style="bold")
        members = Table(box=None, padding=(0, 2, 0, 0))
        for heading in ("member", "accuracy", ""):
            members.add_column(heading)
        counts = self._service.status()["counters"]["by_member"]
        for name, accuracy in zip(self._service.names, self._service.accuracies, strict=True):
            is_active = name == last.member
            mark = "◀ active" if is_active else f"{counts[name]} inferences" if counts[name] else ""
            members.add_row(name, f"{accuracy:.2f} %", mark, style="bold green" if is_active else "dim")
        lost = max(self._service.accuracies) - recent.accuracy
        return Group(
            head,
            members,
            Text(f"latency   median {recent.median_ms:.3g} ms, 95 % within {recent.p95_ms:.3g} ms, "
                 f"deadline {last.deadline_ms:.3g} ms"),
            Text(f"late      {recent.late:.1%} of the last second", style="red" if recent.late > 0.05 else "green"),
            Text(f"accuracy  {recent.accuracy:.2f} %, {lost:.2f} points below the best"),
            Text(f"load      operators {last.slowdown:.2f} times as slow, waiting {last.waiting:.0%}"),
            self._line(),
        )  # fmt: skip

    def _line(self) -> Text:
        """The 95 % quantile over the deadline, through time; what is above the deadline is red."""
        text = Text("p95/deadline  ")
        for ratio in self._history:
            level = int(np.clip(ratio / 2 * len(BARS), 0, len(BARS) - 1))
            text.append(BARS[level], style="red" if ratio > 1 else "green")
        return text

    def _end_phase(self) -> None:
        if not self._phase:
            return
        whole = summed(self._phase)
        self._phase = []
        self._console.print(
            f"{whole.burdens} competing: {whole.inferences} inferences, median {whole.median_ms:.3g} ms, 95 % within "
            f"{whole.p95_ms:.3g} ms, {whole.late:.1%} late, accuracy {whole.accuracy:.2f} %, mostly {whole.member}",
            highlight=False,
            soft_wrap=True,
        )
