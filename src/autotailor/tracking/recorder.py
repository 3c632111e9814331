"""The recorder: one process that opens the store and writes what the rules' journals say.

``start`` waits until the store and the parent run exist, so that no rule runs before them and nothing of it
disturbs a measurement. The recorder ends when ``stop`` asks for it or when the process that started it is gone,
after it has read all journals. Tracking is never a reason to lose work: a recorder that cannot do its job says so,
and the journals wait for the next one.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil

from autotailor.artifacts import atomic
from autotailor.tracking.journal import JOURNALS, RunKey

if TYPE_CHECKING:
    from autotailor.tracking.store import Store

POLL_SECONDS = 0.5
START_TIMEOUT = 120.0
STOP_TIMEOUT = 60.0


def start(database: Path, folder: Path, run: RunKey) -> bool:
    """Starts the recorder and waits until the store and the parent run exist.

    Args:
        database: the SQLite file of the store.
        folder: the tracking folder, for journals and locks.
        run: the parent run.

    Returns:
        Whether it runs; if not, its log says why, and the journals wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"ready-{os.getpid()}"
    ready.unlink(missing_ok=True)
    (folder / f"stop-{os.getpid()}").unlink(missing_ok=True)
    order = {"database": str(database.resolve()), "folder": str(folder.resolve()), "run": asdict(run)}
    command = [sys.executable, "-m", "autotailor.tracking", str(os.getpid()), json.dumps(order, default=str)]
    with (folder / "recorder.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    deadline = time.monotonic() + START_TIMEOUT
    while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return ready.exists()


def stop(folder: Path, status: str) -> None:
    """Asks the recorder of this process to close the parent run with a status and waits until it has ended."""
    ready = folder / f"ready-{os.getpid()}"
    if not ready.exists():
        return
    (folder / f"stop-{os.getpid()}").write_text(status, encoding="utf-8")
    recorder = int(ready.read_text(encoding="utf-8") or 0)
    deadline = time.monotonic() + STOP_TIMEOUT
    while ready.exists() and alive(recorder) and time.monotonic() < deadline:
        time.sleep(0.1)


def alive(pid: int) -> bool:
    """Whether a process of this machine runs; one that has ended but was not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def follow(owner: int, database: Path, folder: Path, run: RunKey) -> None:
    """The recorder's life: open, follow the journals, close."""
    from autotailor.tracking.store import Store

    store = Store(database, folder / "store.lock")
    parent = store.parent(run)
    store.client.update_run(parent, status="RUNNING")
    ready, asked = folder / f"ready-{owner}", folder / f"stop-{owner}"
    with atomic(ready) as temporary:
        temporary.write_text(str(os.getpid()), encoding="utf-8")
    reader = Reader(store, folder / JOURNALS)
    try:
        while alive(owner) and not asked.exists():
            reader.read()
            time.sleep(POLL_SECONDS)
        reader.read()
        store.end(parent, asked.read_text(encoding="utf-8") if asked.exists() else "KILLED")
    finally:
        asked.unlink(missing_ok=True)
        ready.unlink(missing_ok=True)


class Reader:
    """Reads journals line by line and removes those that have ended, or whose rule was killed."""

    def __init__(self, store: Store, folder: Path) -> None:
        """Reads the journals of ``folder`` into ``store``."""
        self._store = store
        self._folder = folder
        self._done: dict[Path, int] = {}
        self._runs: dict[Path, tuple[str, str, str]] = {}

    def read(self) -> None:
        """Writes every complete line that has not been written yet."""
        for path in sorted(self._folder.glob("*.jsonl")):
            lines = path.read_text(encoding="utf-8").split("\n")[:-1]
            ended = False
            for line in lines[self._done.get(path, 0) :]:
                ended = self._apply(path, json.loads(line)) or ended
            self._done[path] = len(lines)
            if not ended and lines and _orphaned(json.loads(lines[0])):
                self._store.end(self._runs[path][0], "KILLED")
                ended = True
            if ended:
                path.unlink(missing_ok=True)
                self._done.pop(path, None)

    def _apply(self, path: Path, line: dict[str, Any]) -> bool:
        """Writes one line; True when it was the last."""
        if line["event"] == "start":
            child, parent = self._store.child(RunKey(**line["run"]), line, path.stem)
            self._runs[path] = child, parent, line["tags"].get("rule", "rule")
            return False
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


def _orphaned(start: dict[str, Any]) -> bool:
    """Whether the rule that started a journal on this machine is gone."""
    return bool(start["host"] == platform.node()) and not alive(int(start["pid"]))
