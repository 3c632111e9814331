"""Journals: the events of one run, one JSON object per line. Writing a journal does not need MLflow.

A journal may wait for days, where the server is away, and the files that it names may have been written anew by then.
Therefore files are kept beside the journal, as hard links, which cost no space (``keep``).

Private facts are removed (``public``): how to reach a device, and the name of the user. Stores and reports are copied
and shared. A device's address, its serial number and the path of its key identify a person's machines and are of no use
to a reader; a path in a home folder contains the user's name.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autotailor.ir.errors import printable

JOURNALS = "journals"
FILES = ".files"
"""Suffix of the folder with a journal's files."""

PRIVATE = frozenset({"address", "serial", "key", "password", "token"})
"""Configuration keys that end in one of these names are left out."""

_HOMES = re.compile(r"(?<![\w.])(/home|/Users)/[^/\s'\"]+")


@dataclass(frozen=True)
class RunKey:
    """The identity of a parent run.

    Attributes:
        model: name of the model and of the experiment.
        device: name of the device.
        config_hash: hash of the whole configuration.
        params: the whole configuration, flattened.
        commit: of the checkout that the workflow belongs to; empty where it is not known.
    """

    model: str
    device: str
    config_hash: str
    params: Mapping[str, Any] = field(default_factory=dict)
    commit: str = ""


@dataclass(frozen=True)
class Dataset:
    """One split of a dataset.

    Attributes:
        name: of the dataset, as in the configuration.
        split: what the images are for: ``training``, ``validation`` or ``test``.
        description: text of the configuration and of the content; equal texts mean equal images.
        images: number of images.
        classes: number of classes.
        image: channels, height and width of the images.
    """

    name: str
    split: str
    description: str
    images: int
    classes: int
    image: tuple[int, ...]


@dataclass(frozen=True)
class ExportedModel:
    """An exported SubNet, to be kept as a model and registered.

    Attributes:
        name: of the export, such as ``budget_02``.
        onnx: the file, which holds its weights.
        example: NumPy file of an input.
        metrics: what was measured and predicted, such as ``latency_ms_measured``.
        tags: what else the model is found by.
        limits: maps metrics to the largest values that the budget allows.
    """

    name: str
    onnx: Path
    example: Path
    metrics: Mapping[str, float]
    tags: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, float] = field(default_factory=dict)


def milliseconds() -> int:
    """Time since the epoch in milliseconds, MLflow's unit."""
    return time.time_ns() // 1_000_000


def git_commit(directory: Path) -> str:
    """Commit of a checkout, with ``-dirty`` where files differ from it; ``unknown`` without git."""
    command = ["git", "-C", str(directory), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip() or "unknown"


class Journal:
    """A file of events; every call appends one line. Several threads may write."""

    def __init__(self, path: Path) -> None:
        """Opens the journal for appending."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._stream = path.open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def append(self, event: str, **content: Any) -> None:
        """Writes one event with its time."""
        line = {"event": event, "time": milliseconds(), **content}
        with self._lock:
            self._stream.write(json.dumps(line, default=str) + "\n")
            self._stream.flush()

    def keep(self, path: Path) -> str:
        """Keeps a file as it is now, and returns its path relative to the folder of the journals.

        A file that is replaced later stays what it was, because the rules replace files instead of overwriting them.
        """
        folder = self.path.with_suffix(FILES)
        folder.mkdir(exist_ok=True)
        kept = folder / f"{len(list(folder.iterdir()))}" / path.name
        kept.parent.mkdir()
        try:
            os.link(path.resolve(), kept)
        except OSError:  # another file system, or one without links
            shutil.copyfile(path, kept)
        return str(kept.relative_to(self.path.parent))

    def end(self, status: str) -> None:
        """Writes the final status, ``FINISHED`` or ``FAILED``, and closes the journal."""
        self.append("end", status=status)
        self.close()

    def close(self) -> None:
        """Closes the file; the run goes on."""
        self._stream.close()


class Child(Journal):
    """The journal of one rule, which becomes a child run."""

    def start(self, run: RunKey, tags: Mapping[str, str], params: Mapping[str, Any]) -> None:
        """Writes the identity of the run: the parent's key, tags, and the rule's parameters, flattened."""
        self.append("start", **writer(run), tags=public(tags), params=public(params))

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Writes metrics; metrics that form a curve have a step."""
        self.append("metrics", values={key: float(value) for key, value in values.items()}, step=step)

    def artifact(self, path: Path) -> None:
        """Keeps a finished file with the run, unless a user has deleted the results, and the journal with them."""
        if path.is_file() and self.path.exists():
            self.append("artifact", path=self.keep(path))

    def dataset(self, used: Dataset) -> None:
        """Writes that the run has used a split of a dataset."""
        self.append("dataset", **asdict(used))

    def model(self, exported: ExportedModel) -> None:
        """Keeps an exported SubNet as a model of the run, which is registered by model, device and name."""
        if not self.path.exists():
            return
        files = {"onnx": self.keep(exported.onnx), "example": self.keep(exported.example)}
        self.append("model", **{**asdict(exported), **files, "tags": public(exported.tags)})


def writer(run: RunKey) -> dict[str, Any]:
    """What the first line of a journal says about its writer and its parent run."""
    return {"pid": os.getpid(), "host": platform.node(), "run": {**asdict(run), "params": public(run.params)}}


def journal_path(folder: Path, rule: str) -> Path:
    """Path of a new journal; journals sort by the times of their starts."""
    return folder / JOURNALS / f"{milliseconds()}-{rule}-{uuid.uuid4().hex}.jsonl"


@contextmanager
def child(folder: Path, run: RunKey, tags: Mapping[str, str], params: Mapping[str, Any]) -> Iterator[Child]:
    """Starts the child run of a rule, and ends it as ``FAILED`` where the block raises, else as ``FINISHED``.

    Args:
        folder: the tracking folder, see ``recorder.start``.
        run: the parent.
        tags: rule, wildcards, git commit, configuration hash.
        params: the rule's parameters, flattened.
    """
    journal = Child(journal_path(folder, tags.get("rule", "run")))
    journal.start(run, tags, params)
    status = "FAILED"
    try:
        yield journal
        status = "FINISHED"
    finally:
        journal.end(status)


def public(section: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration, nested or flattened, without private keys and with ``~`` in place of home folders.

    Args:
        section: plain values; it is not changed.
    """
    return {key: _shown(value) for key, value in section.items() if str(key).rpartition(".")[2] not in PRIVATE}


def _shown(value: Any) -> Any:
    """A value without private keys and home folders."""
    if isinstance(value, Mapping):
        return public(value)
    if isinstance(value, (list, tuple)):
        return [_shown(part) for part in value]
    return printable(_HOMES.sub("~", _without_own_home(value))) if isinstance(value, str) else value


def _without_own_home(text: str) -> str:
    """A text with ``~`` in place of this user's home folder; a home folder of / is not replaced."""
    home = str(Path.home()).rstrip("/")
    return re.sub(rf"(?<![\w.]){re.escape(home)}(?=/|$)", "~", text) if home else text
