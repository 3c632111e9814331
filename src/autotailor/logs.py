"""Logging: all messages go to the log; the console shows this package's messages and the libraries' warnings."""

import io
import logging
import sys
import threading
import time
from collections.abc import Callable

from autotailor.ir.errors import printable

OWN = frozenset({"autotailor", "root"})
"""First parts of the names of the loggers of this package and of the rules' scripts."""


def is_for_the_console(record: logging.LogRecord) -> bool:
    """Whether the console shows a message: a warning of any logger, or any message of this package."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OWN


def send_to(path: str | None, mode: str = "w") -> None:
    """Sends messages of level INFO and above to the console and to a file.

    Args:
        path: of the file; None writes no file.
        mode: ``w`` overwrites the file, ``a`` goes on behind its end.
    """
    console = logging.StreamHandler()
    shape = _Printable("%(message)s")
    console.addFilter(is_for_the_console)
    handlers: list[logging.Handler] = [console]
    if path:
        # names of files may hold bytes that are no UTF-8
        handlers.append(logging.FileHandler(path, mode=mode, encoding="utf-8", errors="backslashreplace"))
    for handler in handlers:
        handler.setFormatter(shape)
    logging.basicConfig(level=logging.INFO, handlers=handlers, force=True)
    logging.captureWarnings(True)


class _Printable(logging.Formatter):
    """Messages name files, classes and tensors of other people."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class Sparing(logging.Filter):
    """Lets at most ``most`` lines of a logger pass in ``seconds``; the next line that passes says how many did not.

    Args:
        most: number of lines.
        seconds: length of the period, which begins with a line.
        clock: in seconds.
    """

    def __init__(self, most: int = 10, seconds: float = 60.0, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._most, self._seconds, self._clock = most, seconds, clock
        self._begin, self._passed, self._left_out = -seconds, 0, 0
        self._guard = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a line passes."""
        with self._guard:
            now = self._clock()
            if now - self._begin >= self._seconds:
                self._begin, self._passed = now, 0
            self._passed += 1
            if self._passed > self._most:
                self._left_out += 1
                return False
            if self._left_out:
                record.msg, record.args = f"{record.getMessage()} ({self._left_out:,} lines left out before)", ()
                self._left_out = 0
            return True


def silence() -> None:
    """Shows no messages: another process of the same rule shows them."""
    logging.basicConfig(level=logging.CRITICAL, handlers=[logging.NullHandler()], force=True)
    logging.captureWarnings(True)


def print_what_the_output_knows() -> None:
    """Characters that the encoding of the output lacks become question marks, where they would end the program."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
