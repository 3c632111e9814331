"""The MLflow store: the only module that imports MLflow."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from autotailor.tracking.anchors import anchor, artifact_root
from autotailor.tracking.journal import RunKey, milliseconds
from autotailor.tracking.keys import legal
from autotailor.tracking.private import public

os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")  # MLflow reads it while it is imported

from mlflow.entities import Experiment, Metric, Param, RunTag
from mlflow.exceptions import ERROR_CODE_TO_HTTP_STATUS, MlflowException
from mlflow.tracking import MlflowClient
from sqlalchemy.exc import DatabaseError

MAX_PARAM = 6000
MAX_TAG = 8000
PARAMS_PER_BATCH = 100
METRICS_PER_BATCH = 1000
PARENT = "mlflow.parentRunId"
JOURNAL = "autotailor.journal"

Entity = TypeVar("Entity", Metric, Param, RunTag)


def store_uri(database: Path) -> str:
    """Address of the SQLite store."""
    return f"sqlite:///{database.resolve()}"


def refused_for_good(error: Exception) -> bool:
    """Whether MLflow would refuse the same again: a bad key or value, a run that is deleted.

    A store that is locked, full or damaged is no reason to drop what was to be written.
    """
    cause = error.__cause__
    if isinstance(cause, (ValueError, TypeError, OverflowError)):  # a value that SQLite cannot hold
        return True
    if not isinstance(error, MlflowException) or type(cause) is DatabaseError:
        return False
    return ERROR_CODE_TO_HTTP_STATUS.get(error.error_code, 500) in (400, 404)


class Store:
    """One SQLite store, with the artifacts in ``mlruns`` beside it."""

    def __init__(self, database: Path, lock: Path, tell: Callable[[str], None] = print) -> None:
        """Opens the store; creates it whole or not at all.

        Args:
            database: the SQLite file.
            lock: lock file for what must not happen twice: creating the store, an experiment, a run.
            tell: takes a sentence about what MLflow refused and the store left out.
        """
        self._lock = FileLock(lock)
        self._root = artifact_root(database)
        self._tell = tell
        with self._lock:
            if not database.exists():
                _create(database)
            elif anchor(database):
                tell(f"{database} was moved here: its runs look for their artifacts in {self._root} now")
            self.client = MlflowClient(store_uri(database))

    def experiment(self, model: str) -> str:
        """Identifier of the model's experiment, created when there is none, restored where it was deleted."""
        with self._lock:
            found: Experiment | None = self.client.get_experiment_by_name(model)
            if found is None:
                return str(self.client.create_experiment(model, artifact_location=(self._root / model).as_uri()))
            if found.lifecycle_stage == "deleted":
                self.client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)

    def parent(self, run: RunKey) -> str:
        """Identifier of the parent run of (model, device, configuration), created when there is none."""
        experiment = self.experiment(run.model)
        tags = {"device": run.device, "config_hash": run.config_hash, "autotailor.kind": "parent"}
        with self._lock:
            found = self._find(experiment, tags)
            if found is not None:
                return found
            name = f"{run.model} on {run.device} ({run.config_hash})"
            created = self.client.create_run(experiment, run_name=name, tags=tags)
            self._log_params(created.info.run_id, run.params)
            return str(created.info.run_id)

    def child(self, run: RunKey, start: Mapping[str, Any], journal: str) -> tuple[str, str]:
        """Identifiers of the child run of one journal and of its parent; a journal never makes two runs."""
        parent = self.parent(run)
        experiment = self.experiment(run.model)
        with self._lock:
            found = self._find(experiment, {JOURNAL: journal})
            if found is None:
                found = self._create_child(experiment, parent, start, journal)
        self._log_params(found, start["params"])  # again after a crash: the same values change nothing
        return found, parent

    def _create_child(self, experiment: str, parent: str, start: Mapping[str, Any], journal: str) -> str:
        """A new run, marked with its parent and its journal."""
        told = {legal(key): str(value)[:MAX_TAG] for key, value in public(start["tags"]).items() if key}
        tags = {**told, PARENT: parent, JOURNAL: journal, "autotailor.kind": "child"}
        created = self.client.create_run(
            experiment, start_time=start["time"], run_name=start["tags"].get("rule", "rule"), tags=tags
        )
        return str(created.info.run_id)

    def log_metrics(self, run_id: str, values: Mapping[str, float], time: int, step: int) -> None:
        """Metrics of a run; values that are not numbers are left out, MLflow cannot hold them."""
        metrics = [Metric(legal(key), value, time, step) for key, value in values.items() if value == value]
        self._log(metrics, METRICS_PER_BATCH, lambda batch: self.client.log_batch(run_id, metrics=batch))

    def log_artifact(self, run_id: str, path: Path) -> None:
        """Copies a file to the run's artifacts, if it is still there and may be read."""
        if not path.is_file():
            return
        if not os.access(path, os.R_OK):
            self._tell(f"{path} may not be read: it is not kept with the run")
            return
        self.client.log_artifact(run_id, str(path))

    def end(self, run_id: str, status: str, time: int | None = None) -> None:
        """Sets the final status and the end."""
        self.client.set_terminated(run_id, status=status, end_time=time or milliseconds())

    def _find(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """Identifier of the first run that carries all tags."""
        condition = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        runs = self.client.search_runs([experiment], condition, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def _log_params(self, run_id: str, params: Mapping[str, Any]) -> None:
        """Parameters that others may see."""
        entries = [Param(legal(key), str(value)[:MAX_PARAM]) for key, value in sorted(public(params).items())]
        self._log(entries, PARAMS_PER_BATCH, lambda batch: self.client.log_batch(run_id, params=batch))

    def _log(self, entities: Sequence[Entity], size: int, log: Callable[[Sequence[Entity]], object]) -> None:
        """Writes in batches; of a batch that MLflow refuses, everything but what it refuses."""
        for first in range(0, len(entities), size):
            batch = entities[first : first + size]
            try:
                log(batch)
            except MlflowException as error:
                if not refused_for_good(error):
                    raise
                if len(batch) == 1:
                    self._tell(f"MLflow refuses {batch[0].key!r}, it is left out: {_first_line(error)}")
                else:
                    self._log(batch, 1, log)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _create(database: Path) -> None:
    """Creates the tables in a temporary file that then takes the store's name: a crash leaves no half store."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow.", dir=database.parent) as folder:
        temporary = Path(folder) / database.name
        MlflowClient(store_uri(temporary)).search_experiments(max_results=1)
        temporary.replace(database)
