"""The live picture of a demonstration: what is active, latency against the deadline, accuracy paid.

On a terminal the picture is drawn anew some times a second. Elsewhere one line is printed for each phase.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence

import numpy as np
from rich.console import Console, Group
from rich.live import Live as RichLive
from rich.table import Table
from rich.text import Text

from autotailor.commands.terminal import terminal
from autotailor.serving.demo.drive import Phase
from autotailor.serving.demo.trace import Sample, summed
from autotailor.serving.service import Service

PAUSE_S = 0.25
RECENT_S = 1.0
WIDTH = 48
BARS = "▁▂▃▄▅▆▇█"


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
