"""Writes the record of the rule that this process runs, at most once a second."""

from __future__ import annotations

import contextlib
import logging
import os
import socket
import threading
import time
from dataclasses import replace
from pathlib import Path

from autotailor.logs import OWN
from autotailor.progress.record import DONE, FAILED, STOPPED, Record, read_record, record_of, write_note

SECONDS = 1.0
"""Time between two writes: a person does not read faster, and a file system of a cluster is not troubled."""
_current: Recorder | None = None


class Recorder(logging.Handler):
    """Takes the messages and the steps of a rule; a thread writes the record where it has changed."""

    def __init__(self, log: str | Path, rule: str) -> None:
        super().__init__(logging.INFO)
        self._path = record_of(log)
        last = read_record(self._path)
        before = last.usual_seconds if last else None
        self._record = Record(rule, str(log), os.getpid(), socket.gethostname(), time.time(), before=before)
        self._changed, self._over = True, threading.Event()
        self._thread = threading.Thread(target=self._write_often, daemon=True)

    def start(self) -> Recorder:
        """Writes the first record, and takes the messages of this process from now on."""
        global _current
        _current = self
        self._write()
        self._thread.start()
        logging.getLogger().addHandler(self)
        return self

    def emit(self, record: logging.LogRecord) -> None:
        """Takes messages and warnings of this package.

        Warnings of libraries stay in the log: they speak to who calls the library, and no user of this package can act
        on them.
        """
        if record.name.partition(".")[0] not in OWN:
            return
        text = record.getMessage().removeprefix(f"{self._record.rule}: ")  # whoever shows it names the rule before it
        if logging.WARNING <= record.levelno < logging.ERROR:
            self._set(warnings=tuple(dict.fromkeys((*self._record.warnings, text))))  # the log has each repetition
        else:
            self._set(said=text)

    def step(self, text: str) -> None:
        """Takes how far a loop has come."""
        self._set(step=text)

    def finish(self, result: str) -> None:
        """The rule is done; ``result`` is what a person wants to know of it."""
        self._end(DONE, result)

    def stop(self) -> None:
        """A signal has ended the rule: a person's or a batch system's."""
        self._end(STOPPED, "")

    def fail(self) -> None:
        """The rule has failed, unless its end was told already."""
        if not self._over.is_set():
            self._end(FAILED, "")

    def _set(self, **values: object) -> None:
        self._record = replace(self._record, **values)  # type: ignore[arg-type]
        self._changed = True

    def _end(self, outcome: str, result: str) -> None:
        global _current
        _current = None
        logging.getLogger().removeHandler(self)
        self._set(outcome=outcome, result=result, ended=time.time())
        self._over.set()
        self._thread.join()
        self._write()

    def _write_often(self) -> None:
        while not self._over.wait(SECONDS):
            self._write()

    def _write(self) -> None:
        if self._changed:
            self._changed = False
            with contextlib.suppress(OSError):  # a full disk ends the rule elsewhere, with a better message
                write_note(self._path, self._record)


def begin(log: str | Path, rule: str) -> Recorder:
    """Begins the record of a rule, into which this process's messages and steps go until its end."""
    return Recorder(log, rule).start()


def step(text: str) -> None:
    """Says how far a loop has come; outside of a rule nothing happens."""
    if _current is not None:
        _current.step(text)
