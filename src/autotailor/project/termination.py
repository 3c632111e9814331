"""SIGTERM to Snakemake also reaches the trainings that it runs, so that these write a checkpoint and end.

After SIGTERM, which batch systems and containers send to one process alone, Snakemake begins no further job and waits
for the running ones. A training may last for hours, and whoever has sent SIGTERM kills after seconds.
"""

from __future__ import annotations

import re
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType

import psutil

TRAININGS = ("pretrain", "finetune", "polish", "compare")
"""The rules that train: those whose scripts say ``is_training=True``."""
SCRIPT = re.compile(rf"\.snakemake/scripts/[^/]*\.({'|'.join(TRAININGS)})\.py$")
"""Where Snakemake puts the script of a rule that it runs."""


def hand_on_to_trainings() -> None:
    """From now on SIGTERM is also sent to the trainings among this process's descendants.

    The handler that was there before acts first. It must be the one that Snakemake sets before it calls ``onstart``.

    A thread does both. Snakemake's handler waits for a lock that the interrupted main thread may hold, as does one that
    a second SIGTERM interrupts, and in the main thread it would wait for ever.
    """
    before, arrived = signal.getsignal(signal.SIGTERM), SimpleQueue[tuple[int, FrameType | None]]()

    def hand_on() -> None:
        while True:
            number, frame = arrived.get()
            if callable(before):
                before(number, frame)
            for process in trainings(psutil.Process().children(recursive=True)):
                with suppress(psutil.Error):  # the process has ended meanwhile
                    process.send_signal(signal.SIGTERM)

    threading.Thread(target=hand_on, name="termination", daemon=True).start()
    signal.signal(signal.SIGTERM, lambda number, frame: arrived.put((number, frame)))


def trainings(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """The processes that run the script of a rule that trains.

    Of processes that train together, only the one that has started the others is among them: it hands SIGTERM on, and
    a second SIGTERM would end the others before they have written their checkpoint.
    """
    found = {process.pid: process for process in processes if _trains(process)}
    return [process for process in found.values() if not found.keys() & {p.pid for p in _ancestors(process)}]


def _trains(process: psutil.Process) -> bool:
    try:
        arguments = process.cmdline()
    except psutil.Error:  # the process has ended, or is another user's
        return False
    return len(arguments) > 1 and SCRIPT.search(arguments[-1]) is not None and "python" in arguments[0]


def _ancestors(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.parents()
    except psutil.Error:
        return []
