"""Journals: the events of one rule, one JSON object per line. Writing a journal does not need MLflow."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from autotailor.tracking.private import public

JOURNALS = "journals"


@dataclass(frozen=True)
class RunKey:
    """The identity of a parent run.

    Attributes:
        model: name of the model and of the experiment.
        device: name of the device.
        config_hash: hash of the whole configuration.
        params: the whole configuration, flattened.
    """

    model: str
    device: str
    config_hash: str
    params: Mapping[str, Any] = field(default_factory=dict)


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


class Child:
    """The child run of one rule; every call appends one line to its journal."""

    def __init__(self, path: Path) -> None:
        """Opens the journal for appending."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self._stream = path.open("a", encoding="utf-8")

    def _append(self, event: str, **content: Any) -> None:
        line = {"event": event, "time": milliseconds(), **content}
        self._stream.write(json.dumps(line, default=str) + "\n")
        self._stream.flush()

    def start(self, run: RunKey, tags: Mapping[str, str], params: Mapping[str, Any]) -> None:
        """Writes the identity of the run: the parent's key, tags, and the rule's parameters, flattened."""
        host = {"pid": os.getpid(), "host": platform.node()}
        parent = {**asdict(run), "params": public(run.params)}
        self._append("start", **host, run=parent, tags=public(tags), params=public(params))

    def metrics(self, values: Mapping[str, float], step: int = 0) -> None:
        """Writes metrics; metrics that form a curve have a step."""
        self._append("metrics", values={key: float(value) for key, value in values.items()}, step=step)

    def artifact(self, path: Path) -> None:
        """Writes the path of a finished file that is kept with the run."""
        self._append("artifact", path=str(path.resolve()))

    def end(self, status: str) -> None:
        """Writes the final status, ``FINISHED`` or ``FAILED``, and closes the journal."""
        self._append("end", status=status)
        self._stream.close()


@contextmanager
def child(folder: Path, run: RunKey, tags: Mapping[str, str], params: Mapping[str, Any]) -> Iterator[Child]:
    """Starts the child run of a rule, and ends it as ``FAILED`` where the block raises, else as ``FINISHED``.

    Args:
        folder: the tracking folder, see ``recorder.start``.
        run: the parent.
        tags: rule, wildcards, git commit, configuration hash.
        params: the rule's parameters, flattened.
    """
    name = f"{milliseconds()}-{tags.get('rule', 'run')}-{uuid.uuid4().hex}.jsonl"
    writer = Child(folder / JOURNALS / name)
    writer.start(run, tags, params)
    status = "FAILED"
    try:
        yield writer
        status = "FINISHED"
    finally:
        writer.end(status)
