"""Signals to Snakemake alone also reach the rules that it runs, so that these keep their progress and end.

After SIGTERM, which batch systems and containers send to one process alone, Snakemake begins no further job and waits
for the running ones. A training may last for hours, and whoever has sent SIGTERM kills after seconds. So SIGTERM goes
on to trainings, which write a checkpoint. Other rules end soon, and Snakemake counts them as done.

After SIGINT, Snakemake waits for the running jobs, too, but counts none of them as done: whatever a rule does from then
on is done again by the next run. So SIGINT goes on to all rules. A terminal sends Ctrl-C to the rules itself, and they
hear of it once.
"""

import os
import re
import signal
import threading
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue
from types import FrameType

import psutil

from autotailor.project.repeats import Repeats
from autotailor.stages import STAGES

SCRIPT = re.compile(r"\.snakemake/scripts/[^/]*\.(\w+)\.py$")
"""Where Snakemake puts the script of a rule that it runs; the group is the script's name."""
TERMINAL = "/dev/tty"
_ARRIVED: set[int] = set()
"""The signals that have told this process to end."""


def hand_on_signals() -> None:
    """From now on SIGTERM is also sent to the trainings among this process's descendants, and SIGINT to all rules.

    The handlers that were there before act as well. That of SIGTERM must be the one that Snakemake sets before it calls
    ``onstart``. SIGINT stays ignored where it is.
    """
    _hand_on_termination()
    if callable(signal.getsignal(signal.SIGINT)):
        _hand_on_interrupt()


def was_told_to_end() -> bool:
    """Whether SIGTERM or SIGINT has come since ``hand_on_signals``."""
    return bool(_ARRIVED)


def _hand_on_termination() -> None:
    """From now on the handler of SIGTERM that is there acts, and then SIGTERM goes on to trainings.

    A thread does both. Snakemake's handler waits for a lock that the interrupted main thread may hold, as does one that
    a second SIGTERM interrupts, and in the main thread it would wait for ever.
    """
    before, repeats = signal.getsignal(signal.SIGTERM), Repeats()
    arrived = SimpleQueue[tuple[int, FrameType | None]]()

    def hand_on() -> None:
        while True:
            number, frame = arrived.get()
            if callable(before):
                before(number, frame)
            if repeats.count(number):
                _send(signal.SIGTERM, trainings(psutil.Process().children(recursive=True)))

    def take(number: int, frame: FrameType | None) -> None:
        _ARRIVED.add(number)
        arrived.put((number, frame))

    threading.Thread(target=hand_on, name="termination", daemon=True).start()
    signal.signal(signal.SIGTERM, take)


def _hand_on_interrupt() -> None:
    """From now on SIGINT goes on to rules that nobody but this process tells of it, before its handler here acts."""
    before, repeats = signal.getsignal(signal.SIGINT), Repeats()

    def hand_on(number: int, frame: FrameType | None) -> None:
        _ARRIVED.add(number)
        if not repeats.count(number):
            return
        if not has_terminal():
            _send(signal.SIGINT, rules(psutil.Process().children(recursive=True)))
        if callable(before):
            before(number, frame)  # raises KeyboardInterrupt

    signal.signal(signal.SIGINT, hand_on)


def _send(number: signal.Signals, processes: Sequence[psutil.Process]) -> None:
    for process in processes:
        with suppress(psutil.Error):  # the process has ended meanwhile
            process.send_signal(number)


def has_terminal() -> bool:
    """Whether this process is in the foreground of a terminal, which sends Ctrl-C to all processes there."""
    try:
        terminal = os.open(TERMINAL, os.O_RDONLY | os.O_NOCTTY)
    except OSError:  # this process has no terminal
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def trainings(processes: Sequence[psutil.Process]) -> list[psutil.Process]:
    """The processes that run the script of a rule that trains, see ``rules``."""
    return rules(processes, [name for name, stage in STAGES.items() if stage.trains])


def rules(processes: Sequence[psutil.Process], names: Sequence[str] = ()) -> list[psutil.Process]:
    """The processes that run the script of a rule, one for each script.

    Of processes that train together, only the one that has started the others is among them: it hands SIGTERM on, and
    a second SIGTERM would end the others before they have written their checkpoint.

    Args:
        processes: the processes.
        names: of the rules' scripts; none for all.
    """
    by_pid = {process.pid: process for process in processes if _runs(process, names)}
    return [process for process in by_pid.values() if not by_pid.keys() & {p.pid for p in _ancestors(process)}]


def _runs(process: psutil.Process, names: Sequence[str]) -> bool:
    """Whether a process runs one of some scripts, all of them without ``names``."""
    try:
        arguments = process.cmdline()
    except psutil.Error:  # the process has ended, or is another user's
        return False
    match = SCRIPT.search(arguments[-1]) if len(arguments) > 1 and "python" in arguments[0] else None
    return match is not None and (not names or match[1] in names)


def _ancestors(process: psutil.Process) -> list[psutil.Process]:
    try:
        return process.parents()
    except psutil.Error:
        return []
