"""Progress on standard error: a bar on a terminal, a line every 30 seconds elsewhere, nothing for short work."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from autotailor.progress import step

MOMENT_SECONDS = 1.0
LINE_SECONDS = 30.0


@contextmanager
def progress(title: str, total: int) -> Iterator[Callable[[], None]]:
    """Shows the progress of a loop.

    Args:
        title: what the loop does, for the bar or the lines.
        total: number of steps.

    Yields:
        A function that the loop calls after each step.
    """
    if not sys.stderr.isatty():
        yield _lines(title, total)
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True)
    task = bar.add_task(title, total=total)
    started, shown = time.monotonic(), False

    done = 0

    def advance() -> None:
        nonlocal shown, done
        done += 1
        step(f"{title} {done:,} of {total:,}")
        if not shown and time.monotonic() - started > MOMENT_SECONDS:
            bar.start()
            shown = True
        bar.advance(task)

    try:
        yield advance
    finally:
        bar.stop()


def _lines(title: str, total: int) -> Callable[[], None]:
    done, printed = 0, time.monotonic()

    def advance() -> None:
        nonlocal done, printed
        done += 1
        step(f"{title} {done:,} of {total:,}")
        if time.monotonic() - printed > LINE_SECONDS:
            printed = time.monotonic()
            print(f"{title}: {done:,} of {total:,}", file=sys.stderr, flush=True)

    return advance
