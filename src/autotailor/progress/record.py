"""The record of a rule's last run, ``logs/MODEL/RULE.progress.json``: when it began, how far it is, how it ended."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

SUFFIX = ".progress.json"
DONE, FAILED, STOPPED = "done", "failed", "stopped"
TAIL = 12
"""Lines of a log that are shown where its rule has failed."""
KILLERS = "by somebody, by a time limit, or because memory ran out"
"""Who ends a process that cannot say so: its record has no outcome."""


def has_told(rule: str, lines: Iterable[str]) -> bool:
    """Whether the end of a log says why a rule has failed; on a full disk its record cannot say that it ended."""
    return any(line.lstrip().startswith(f"Error in rule {rule}") for line in lines)


@dataclass(frozen=True)
class Record:
    """One run of a rule.

    Attributes:
        rule: name of the rule.
        log: path of the rule's log, from the folder of the run.
        pid: of the process that runs the rule.
        host: name of the machine of that process.
        begun: when the rule began, seconds since 1970.
        ended: when it ended; None while it runs, and where it was killed.
        outcome: ``done``, ``failed`` or ``stopped`` (by a person or a batch system); "" before the end.
        said: the last message.
        step: how far a loop has come; "" outside of loops.
        result: what a person wants to know of the finished rule.
        warnings: the warnings, in their order.
        before: seconds of the last run that was finished; None where there was none.
    """

    rule: str
    log: str = ""
    pid: int = 0
    host: str = ""
    begun: float = 0.0
    ended: float | None = None
    outcome: str = ""
    said: str = ""
    step: str = ""
    result: str = ""
    warnings: tuple[str, ...] = ()
    before: float | None = None

    @property
    def seconds(self) -> float:
        """How long the rule has run until now or until its end."""
        return max(0.0, (time.time() if self.ended is None else self.ended) - self.begun)

    @property
    def usual_seconds(self) -> float | None:
        """How long a whole run of the rule takes, from the last finished one; None where there was none."""
        return self.seconds if self.outcome == DONE else self.before

    @property
    def now(self) -> str:
        """The progress in one line: the last message, and how far the loop has come."""
        return " · ".join(part for part in (self.said.partition("\n")[0], self.step) if part)


def record_of(log: str | Path) -> Path:
    """Path of the record that belongs to a rule's log."""
    return Path(log).with_suffix(SUFFIX)


def read_record(path: Path) -> Record | None:
    """The record in a file; None where there is none, or none that this version can read."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        names = {field.name for field in fields(Record)}
        values = {key: value for key, value in content.items() if key in names}
        return Record(**{**values, "warnings": tuple(values.get("warnings", ()))})
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def last_lines(path: Path, start: int = 0) -> list[str]:
    """The end of a text file, without empty lines and what stands before a byte; nothing where there is none."""
    try:
        lines = path.read_bytes()[start:].decode(errors="replace").splitlines()
    except OSError:
        return []
    return [line for line in lines if line.strip()][-TAIL:]


def write_note(path: Path, note: DataclassInstance | Mapping[str, Any]) -> None:
    """Writes a dataclass, or a dictionary, as JSON; a reader sees the old note or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(json.dumps(note if isinstance(note, Mapping) else asdict(note)) + "\n", encoding="utf-8")
    temporary.replace(path)
