"""Reads journals into the store, each line once.

A journal whose first line is ``begin`` belongs to a parent run; ``start`` begins that of a rule's child run.
Several recorders may follow the same journals, when two models run in one folder or when a recorder was killed. Only
one recorder reads at a time, and a file beside each journal holds the number of lines that are in the store. If a
recorder is killed after it wrote a line and before it noted the number, the next recorder writes the line again. This
does no harm, because a journal never makes two runs, MLflow keeps the same metric of the same time only once, and
datasets and models are looked for before they are made.
"""

from __future__ import annotations

import json
import platform
import shutil
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import psutil
from filelock import FileLock

from autotailor.tracking.journal import FILES, Dataset, ExportedModel, RunKey

if TYPE_CHECKING:
    from autotailor.tracking.store import Store

Content = TypeVar("Content", Dataset, ExportedModel)
PROGRESS = ".done"
ASIDE = ".refused"
KILLED = json.dumps({"event": "end", "status": "KILLED", "time": None})
ABANDONED = 60.0
"""Seconds after which a journal without a first line has lost its writer: it was killed, or the disk was full."""
SYSTEM = "system/"
"""Prefix of the metrics that MLflow shows as the machine's."""


@dataclass(frozen=True)
class _Owner:
    """The run that a journal belongs to: a rule's child run, or a parent run, which has neither parent nor rule."""

    run: RunKey
    run_id: str
    parent: str = ""
    rule: str = ""


class Reader:
    """Reads journals line by line and removes those that have ended, or whose rule was killed."""

    def __init__(self, store: Store, folder: Path) -> None:
        """Reads the journals of ``folder`` into ``store``."""
        self._store = store
        self._folder = folder
        self._lock = FileLock(folder.parent / "reader.lock")
        self._runs: dict[Path, _Owner] = {}
        self._trouble: dict[Path, str] = {}
        self.is_away = not store.is_local
        """Whether the server has not taken all of the last attempt, or was not asked yet."""

    def read(self) -> bool:
        """Writes every complete line that has not been written yet.

        After a temporary failure (a locked store, a full disk), the rest of the journal waits for the next call. Where
        a server is silent, the other journals wait, too. A line that MLflow refuses permanently is left out, with a
        message on the console.

        Returns:
            Whether no line waits.
        """
        done = True
        if not self._folder.is_dir():  # the lock would make the folder of a user who has deleted the results
            return done
        with self._lock:
            for path in sorted(self._folder.glob("*.jsonl")):
                try:
                    self._follow(path)
                    self._trouble.pop(path, None)
                except Exception as error:
                    done = False
                    self._complain(path, error)
                    if self._is_silent(error):
                        break
        self.is_away = not done and not self._store.is_local
        return done

    def _follow(self, path: Path) -> None:
        """Writes the new lines of one journal, and removes the journal after its last line."""
        lines = _lines(path)
        if not lines and time.time() - path.stat().st_mtime > ABANDONED:
            path.unlink(missing_ok=True)
        if not lines or self._journal(path, lines[0]) is None:
            return
        orphaned = _orphaned(json.loads(lines[0]))
        lines = _lines(path)  # again: a writer that has ended before now adds no line to these
        note = path.with_suffix(PROGRESS)
        noted = note.read_text(encoding="utf-8") if note.exists() else ""
        done = int(noted) if noted.isdecimal() else 0
        for number, line in enumerate(lines[done:], start=done + 1):
            self._write(path, number, line)
            note.write_text(str(number), encoding="utf-8")
        ended = _is_end(lines[-1])  # also where a recorder was killed behind the last line
        if orphaned and not ended:
            self._write(path, len(lines) + 1, KILLED)
        if orphaned or ended:
            shutil.rmtree(path.with_suffix(FILES), ignore_errors=True)
            path.unlink(missing_ok=True)
            note.unlink(missing_ok=True)
            self._runs.pop(path, None)

    def _journal(self, path: Path, first: str) -> _Owner | None:
        """The run of a journal; None where the journal's first line makes no run."""
        if path not in self._runs:
            try:
                start = json.loads(first)
                run = RunKey(**start["run"])
                _orphaned(start)
                self._runs[path] = self._owner(run, start, path.stem)
            except Exception as error:
                if not self._hopeless(error):
                    raise
                aside = path.with_suffix(ASIDE)
                print(f"{path.name} cannot be made into a run and was renamed to {aside.name}: {error}", flush=True)
                path.replace(aside)
                path.with_suffix(PROGRESS).unlink(missing_ok=True)
                return None
        return self._runs[path]

    def _owner(self, run: RunKey, start: dict[str, Any], journal: str) -> _Owner:
        """The parent run or the child run that a first line begins; both are created if missing."""
        if start["event"] == "begin":
            parent = self._store.parent(run)
            self._store.begin(parent, run.commit)
            return _Owner(run, parent)
        rule = str(start["tags"].get("rule", "rule"))
        child, parent = self._store.child(run, start, journal)
        return _Owner(run, child, parent, rule)

    def _write(self, path: Path, number: int, text: str) -> None:
        """Writes one line, or prints why it is left out."""
        try:
            self._apply(path, json.loads(text))
        except Exception as error:
            if not self._hopeless(error):
                raise
            print(f"line {number} of {path.name} is left out: {type(error).__name__}: {error}", flush=True)

    def _apply(self, path: Path, line: dict[str, Any]) -> None:
        """Writes one line."""
        owner, time = self._runs[path], line["time"]
        match line["event"]:
            case "metrics":
                self._store.log_metrics(owner.run_id, line["values"], time, line["step"])
                values = {_of_parent(owner.rule, key): value for key, value in line["values"].items()}
                self._store.log_metrics(owner.parent, values, time, line["step"])
            case "artifact":
                self._store.log_artifact(owner.run_id, self._folder / line["path"])
            case "dataset":
                self._log_dataset(owner, _content(Dataset, line))
            case "model":
                self._publish(owner, path.stem, _content(ExportedModel, line), time)
            case "end":
                self._store.end(owner.run_id, line["status"], time)

    def _log_dataset(self, owner: _Owner, used: Dataset) -> None:
        """Writes a split into the inputs of the child and of the parent."""
        from autotailor.tracking.inputs import log_dataset

        for run_id in (owner.run_id, owner.parent):
            log_dataset(self._store.client, run_id, used)

    def _publish(self, owner: _Owner, journal: str, line: ExportedModel, time: int) -> None:
        """Keeps and registers a model; a model whose files are gone is left out."""
        from autotailor.tracking import models

        line = replace(line, onnx=self._folder / line.onnx, example=self._folder / line.example)
        if not (line.onnx.is_file() and line.example.is_file()):
            print(f"{line.name} of {journal} is not registered, because its files are gone", flush=True)
            return
        publisher = models.Owner(self._store.experiment(owner.run.model), owner.run_id, owner.run, journal)
        with self._store.lock:
            models.publish(self._store.client, publisher, line, time)

    def _is_silent(self, error: Exception) -> bool:
        """Whether a server has not answered."""
        from autotailor.tracking.store import is_silent

        return not self._store.is_local and is_silent(error)

    def _hopeless(self, error: Exception) -> bool:
        """Whether another attempt would fail, too: the line is invalid, or MLflow refuses its content."""
        from autotailor.tracking.store import refused_for_good

        return isinstance(error, (ValueError, TypeError, KeyError, AttributeError)) or refused_for_good(error)

    def _complain(self, path: Path, error: Exception) -> None:
        """Prints an error that keeps a journal waiting, once for each new error, and its origin except for silence."""
        text = f"{type(error).__name__}: {error}"
        if self._trouble.get(path) != text:
            self._trouble[path] = text
            print(f"{path.name} waits: {text}", flush=True)
            if not self._is_silent(error):
                traceback.print_exception(error)


def _of_parent(rule: str, key: str) -> str:
    """Name of a rule's metric in the parent run; MLflow shows names with one beginning together.

    The machine's metrics keep their names, by which MLflow shows them.
    """
    return key if key.startswith(SYSTEM) else f"{rule}/{key}"


def _content(kind: type[Content], line: dict[str, Any]) -> Content:
    """What a line holds of a dataclass."""
    return kind(**{field.name: line[field.name] for field in fields(kind)})  # type: ignore[arg-type]


def alive(pid: int) -> bool:
    """Whether a process of this machine runs; a zombie (ended, but not waited for) does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def _lines(path: Path) -> list[str]:
    """The complete lines of a journal."""
    return path.read_text(encoding="utf-8", errors="replace").split("\n")[:-1]


def _is_end(line: str) -> bool:
    """Whether a line says that the run has ended."""
    with suppress(ValueError, AttributeError):
        return bool(json.loads(line).get("event") == "end")
    return False


def _orphaned(start: dict[str, Any]) -> bool:
    """Whether the process that started a journal ran on this machine and has ended."""
    return bool(start["host"] == platform.node()) and not alive(int(start["pid"]))
