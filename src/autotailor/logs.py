"""Where messages go: this package's to the console and the log, those of libraries to the console only as warnings."""

from __future__ import annotations

import logging

OWN = frozenset({"autotailor", "root"})
"""First parts of the names of the loggers that this package and the scripts of its rules speak through."""


def is_for_the_console(record: logging.LogRecord) -> bool:
    """Whether a user should read a message while a rule runs: what libraries tell of their work is for the log."""
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] in OWN


def send_to(path: str | None) -> None:
    """Sends messages from level INFO on to the console, and to a file, which is begun anew.

    Args:
        path: of the file; None: there is none.
    """
    console = logging.StreamHandler()
    console.addFilter(is_for_the_console)
    handlers: list[logging.Handler] = [console]
    if path:
        handlers.append(logging.FileHandler(path, mode="w", encoding="utf-8"))
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=handlers, force=True)
    logging.captureWarnings(True)
