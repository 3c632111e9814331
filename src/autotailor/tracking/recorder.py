"""The recorder: one process that writes the journals of a run into the store, while the rules run and after them.

``start`` waits until MLflow is imported and a SQLite store exists, so that this work disturbs no measurement. A server
is not waited for: while the server does not answer, journals wait in their folder, and ``stop`` returns at once. The
recorder ends after ``stop``, or when the process that started the recorder has ended; before, it reads all journals. A
failure of the recorder fails no rule: the recorder's log gives the reason, and the journals wait for the next recorder.
"""

import json
import os
import subprocess
import sys
import time
import uuid
from pathlib import Path

from autotailor.artifacts import write_text
from autotailor.tracking.address import SETTINGS, VARIABLE, address
from autotailor.tracking.journal import JOURNALS, Journal, RunKey, journal_path, writer
from autotailor.tracking.reader import Reader, alive

POLL_SECONDS = 0.5
AWAY_SECONDS = 5.0  # between two attempts to reach a server
START_TIMEOUT = 120.0
STOP_TIMEOUT = 60.0
LAST_SECONDS = 30.0  # for lines that still wait at the end; the next recorder writes the rest
AWAY = "away"
NICENESS = 10  # a low priority, so that recording does not disturb measurements


def start(database: Path, folder: Path, *runs: RunKey) -> bool:
    """Starts the recorder and waits until it can record.

    Args:
        database: the SQLite file of the store, unless ``MLFLOW_TRACKING_URI`` names another one.
        folder: the tracking folder, for journals and locks.
        runs: the parent runs.

    Returns:
        Whether the recorder runs. If it does not, ``recorder.log`` gives the reason, and the journals wait.

    Raises:
        TrackingError: the environment names a store that cannot be recorded to.
    """
    where = address(database)
    folder.mkdir(parents=True, exist_ok=True)
    for run in runs:
        journal = Journal(journal_path(folder, _mine()))
        journal.append("begin", **writer(run))
        journal.close()
    ready = folder / f"ready-{os.getpid()}"
    ready.unlink(missing_ok=True)
    (folder / f"stop-{os.getpid()}").unlink(missing_ok=True)
    order = {"database": str(database.resolve()), "folder": str(folder.resolve())}
    command = [sys.executable, "-m", "autotailor.tracking", str(os.getpid()), json.dumps(order)]
    with (folder / "recorder.log").open("a", encoding="utf-8") as log:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**SETTINGS, **os.environ, VARIABLE: where.uri},
        )
    deadline = time.monotonic() + START_TIMEOUT
    while not ready.exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.1)
    return ready.exists()


def stop(folder: Path, status: str) -> bool:
    """Closes the parent runs of this process with a status, and waits until the recorder has written all journals.

    The recorder is not waited for while its server does not take them.

    Returns:
        Whether the store has everything.
    """
    for path in (folder / JOURNALS).glob(f"*-{_mine()}-*.jsonl"):
        Journal(path).end(status)
    ready = folder / f"ready-{os.getpid()}"
    if not ready.exists():
        return _is_published(folder)
    (folder / f"stop-{os.getpid()}").touch()
    deadline = time.monotonic() + STOP_TIMEOUT
    while time.monotonic() < deadline:
        recorder, away = _state(ready)
        if away or not alive(recorder):
            break
        time.sleep(0.1)
    return _is_published(folder)


def _is_published(folder: Path) -> bool:
    """Whether no journal waits."""
    return not any((folder / JOURNALS).glob("*.jsonl"))


def _mine() -> str:
    """The word in the names of this process's parent journals."""
    return f"run{os.getpid()}"


def _state(ready: Path) -> tuple[int, bool]:
    """The recorder's process, 0 where it has ended, and whether its server does not answer."""
    try:
        number, *rest = ready.read_text(encoding="utf-8").split()
    except OSError:
        return 0, False
    return int(number), AWAY in rest


def follow(owner: int, database: Path, folder: Path) -> None:
    """Runs the recorder: opens the store, and follows the journals until ``owner`` has ended or asks for the end."""
    from autotailor.tracking.store import Store

    where = address(database)
    store = Store(where, folder / "store.lock", _tell, lambda: origin(folder))
    reader = Reader(store, folder / JOURNALS)
    if where.is_local:
        reader.read()
    ready, ending = folder / f"ready-{owner}", folder / f"stop-{owner}"
    _note(ready, reader)
    os.nice(NICENESS)
    try:
        while alive(owner) and not ending.exists():
            _read(reader, ready)
            time.sleep(_pause(reader))
        deadline = time.monotonic() + LAST_SECONDS
        while not _read(reader, ready) and time.monotonic() < deadline:
            time.sleep(_pause(reader))
    finally:
        ending.unlink(missing_ok=True)
        ready.unlink(missing_ok=True)


def publish(database: Path, folder: Path) -> bool:
    """Writes the journals that wait, without a run; returns whether none waits any more."""
    from autotailor.tracking.store import Store

    store = Store(address(database), folder / "store.lock", _tell, lambda: origin(folder))
    return Reader(store, folder / JOURNALS).read()


def origin(folder: Path) -> str:
    """A name of the tracking folder, which is made once."""
    path = folder / "origin"
    if not path.exists():
        write_text(path, uuid.uuid4().hex[:12])
    return path.read_text(encoding="utf-8")


def _read(reader: Reader, ready: Path) -> bool:
    """Reads the journals once, and writes down whether the server answers; returns whether no line waits."""
    before = reader.is_away
    done = reader.read()
    if reader.is_away != before:
        _note(ready, reader)
    return done


def _pause(reader: Reader) -> float:
    """Seconds until the journals are read again."""
    return AWAY_SECONDS if reader.is_away else POLL_SECONDS


def _note(ready: Path, reader: Reader) -> None:
    """Writes the file that says that the recorder runs."""
    write_text(ready, f"{os.getpid()} {AWAY if reader.is_away else ''}")


def _tell(sentence: str) -> None:
    """Prints one line into the recorder's log."""
    print(sentence, flush=True)
