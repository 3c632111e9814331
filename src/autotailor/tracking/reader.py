"""Reads journals into the store, each line once.

Several recorders may follow the same journals, when two models run in one folder or when a recorder was killed. Only
one recorder reads at a time, and a file beside each journal holds the number of lines that are in the store. If a
recorder is killed after it wrote a line and before it noted the number, the next recorder writes the line again. This
does no harm, because a journal never makes two runs, and MLflow keeps the same metric of the same time only once.
"""

from __future__ import annotations

import json
import platform
import traceback
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
from filelock import FileLock

from autotailor.tracking.journal import RunKey

if TYPE_CHECKING:
    from autotailor.tracking.store import Store

PROGRESS = ".done"
ASIDE = ".refused"
KILLED = json.dumps({"event": "end", "status": "KILLED", "time": None})


class Reader:
    """Reads journals line by line and removes those that have ended, or whose rule was killed."""

    def __init__(self, store: Store, folder: Path) -> None:
        """Reads the journals of ``folder`` into ``store``."""
        self._store = store
        self._folder = folder
        self._lock = FileLock(folder.parent / "reader.lock")
        self._runs: dict[Path, tuple[str, str, str]] = {}
        self._trouble: dict[Path, str] = {}

    def read(self) -> bool:
        """Writes every complete line that has not been written yet.

        After a temporary failure (a locked store, a full disk), the rest of the journal waits for the next call. A line
        that MLflow refuses permanently is left out, with a message on the console.

        Returns:
            Whether no line waits.
        """
        done = True
        with self._lock:
            for path in sorted(self._folder.glob("*.jsonl")):
                try:
                    self._follow(path)
                    self._trouble.pop(path, None)
                except Exception as error:
                    done = False
                    self._complain(path, error)
        return done

    def _follow(self, path: Path) -> None:
        """Writes the new lines of one journal, and removes the journal after its last line."""
        lines = path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]
        note = path.with_suffix(PROGRESS)
        if not lines or self._journal(path, lines[0]) is None:
            return
        noted = note.read_text(encoding="utf-8") if note.exists() else ""
        done = int(noted) if noted.isdecimal() else 0
        ended = False
        for number, line in enumerate(lines[done:], start=done + 1):
            ended = self._write(path, number, line) or ended
            note.write_text(str(number), encoding="utf-8")
        if not ended and _orphaned(json.loads(lines[0])):
            self._write(path, len(lines) + 1, KILLED)
            ended = True
        if ended:
            path.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
            self._runs.pop(path, None)

    def _journal(self, path: Path, first: str) -> tuple[str, str, str] | None:
        """The child run, its parent and the rule of a journal; None where the journal's first line makes no run."""
        if path not in self._runs:
            try:
                start = json.loads(first)
                run, rule = RunKey(**start["run"]), str(start["tags"].get("rule", "rule"))
                _orphaned(start)
                child, parent = self._store.child(run, start, path.stem)
            except Exception as error:
                if not self._hopeless(error):
                    raise
                aside = path.with_suffix(ASIDE)
                print(f"{path.name} cannot be made into a run and was renamed to {aside.name}: {error}", flush=True)
                path.replace(aside)
                path.with_suffix(PROGRESS).unlink(missing_ok=True)
                return None
            self._runs[path] = child, parent, rule
        return self._runs[path]

    def _write(self, path: Path, number: int, text: str) -> bool:
        """Writes one line, or prints why it is left out; returns whether the line was the last."""
        try:
            return self._apply(path, json.loads(text))
        except Exception as error:
            if not self._hopeless(error):
                raise
            print(f"line {number} of {path.name} is left out: {type(error).__name__}: {error}", flush=True)
            return False

    def _apply(self, path: Path, line: dict[str, Any]) -> bool:
        """Writes one line; returns whether the line was the last."""
        child, parent, rule = self._runs[path]
        match line["event"]:
            case "metrics":
                self._store.log_metrics(child, line["values"], line["time"], line["step"])
                named = {f"{rule}.{key}": value for key, value in line["values"].items()}
                self._store.log_metrics(parent, named, line["time"], line["step"])
            case "artifact":
                self._store.log_artifact(child, Path(line["path"]))
            case "end":
                self._store.end(child, line["status"], line["time"])
                return True
        return False

    def _hopeless(self, error: Exception) -> bool:
        """Whether another attempt would fail, too: the line is invalid, or MLflow refuses its content."""
        from autotailor.tracking.store import refused_for_good

        return isinstance(error, (ValueError, TypeError, KeyError, AttributeError)) or refused_for_good(error)

    def _complain(self, path: Path, error: Exception) -> None:
        """Prints an error that keeps a journal waiting, once for each new error."""
        text = f"{type(error).__name__}: {error}"
        if self._trouble.get(path) != text:
            self._trouble[path] = text
            print(f"{path.name} waits: {text}", flush=True)
            traceback.print_exception(error)


def alive(pid: int) -> bool:
    """Whether a process of this machine runs; a zombie (ended, but not waited for) does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _orphaned(start: dict[str, Any]) -> bool:
    """Whether the process that started a journal ran on this machine and has ended."""
    return bool(start["host"] == platform.node()) and not alive(int(start["pid"]))
