"""The recorder: one process that opens the store and writes the rules' journals into the store.

``start`` waits until the store and the parent run exist, so that the work of creating them disturbs no measurement. The
recorder ends after ``stop``, or when the process that started the recorder has ended; before, it reads all journals. A
failure of the recorder fails no rule: the recorder's log gives the reason, and the journals wait for the next recorder.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from autotailor.artifacts import atomic
from autotailor.tracking.journal import JOURNALS, RunKey
from autotailor.tracking.private import public
from autotailor.tracking.reader import Reader, alive

POLL_SECONDS = 0.5
START_TIMEOUT = 120.0
STOP_TIMEOUT = 60.0
LAST_SECONDS = 30.0  # for lines that still wait at the end; the next recorder writes the rest


def start(database: Path, folder: Path, run: RunKey) -> bool:
    """Starts the recorder and waits until the store and the parent run exist.

    Args:
        database: the SQLite file of the store.
        folder: the tracking folder, for journals and locks.
        run: the parent run.

    Returns:
        Whether the recorder runs. If it does not, ``recorder.log`` gives the reason, and the journals wait.
    """
    folder.mkdir(parents=True, exist_ok=True)
    ready = folder / f"ready-{os.getpid()}"
    ready.unlink(missing_ok=True)
    (folder / f"stop-{os.getpid()}").unlink(missing_ok=True)
    order = {
        "database": str(database.resolve()),
        "folder": str(folder.resolve()),
        "run": {**asdict(run), "params": public(run.params)},
    }
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


def follow(owner: int, database: Path, folder: Path, run: RunKey) -> None:
    """Runs the recorder: opens the store, follows the journals, and closes the parent run at the end."""
    from autotailor.tracking.store import Store

    store = Store(database, folder / "store.lock", _tell)
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
        deadline = time.monotonic() + LAST_SECONDS
        while not reader.read() and time.monotonic() < deadline:
            time.sleep(POLL_SECONDS)
        store.end(parent, asked.read_text(encoding="utf-8") if asked.exists() else "KILLED")
    finally:
        asked.unlink(missing_ok=True)
        ready.unlink(missing_ok=True)


def _tell(sentence: str) -> None:
    """Prints one line into the recorder's log."""
    print(sentence, flush=True)
