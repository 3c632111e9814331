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
    """Whether MLflow would refuse the same write again: because of an invalid key or value, or a deleted run.

    A store that is locked, full or damaged is no such reason: the write may succeed later.
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
        """Opens the store, and creates it if missing; an interrupted creation leaves no file.

        Args:
            database: the SQLite file.
            lock: file that locks the creation of the store, of an experiment and of a run, so that none is made twice.
            tell: takes a sentence about each entry that is left out because MLflow refuses it.
        """
        self._lock = FileLock(lock)
        self._root = artifact_root(database)
        self._tell = tell
        with self._lock:
            if not database.exists():
                _create(database)
            elif anchor(database):
                tell(f"{database} was moved: the addresses of its artifacts now point to {self._root}")
            self.client = MlflowClient(store_uri(database))

    def experiment(self, model: str) -> str:
        """Identifier of the model's experiment, which is created if missing, and restored if deleted."""
        with self._lock:
            found: Experiment | None = self.client.get_experiment_by_name(model)
            if found is None:
                return str(self.client.create_experiment(model, artifact_location=(self._root / model).as_uri()))
            if found.lifecycle_stage == "deleted":
                self.client.restore_experiment(found.experiment_id)
            return str(found.experiment_id)

    def parent(self, run: RunKey) -> str:
        """Identifier of the parent run of (model, device, configuration), which is created if missing."""
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
        self._log_params(found, start["params"])  # a repetition after a crash changes nothing
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
        """Writes metrics of a run; NaN is left out, because MLflow cannot store it."""
        metrics = [Metric(legal(key), value, time, step) for key, value in values.items() if value == value]
        self._log(metrics, METRICS_PER_BATCH, lambda batch: self.client.log_batch(run_id, metrics=batch))

    def log_artifact(self, run_id: str, path: Path) -> None:
        """Copies a file to the run's artifacts; a file that is gone or may not be read is left out."""
        if not path.is_file():
            return
        if not os.access(path, os.R_OK):
            self._tell(f"{path} is not kept with the run: this user may not read it")
            return
        self.client.log_artifact(run_id, str(path))

    def end(self, run_id: str, status: str, time: int | None = None) -> None:
        """Sets the final status and the end time of a run."""
        self.client.set_terminated(run_id, status=status, end_time=time or milliseconds())

    def _find(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """Identifier of the first run that carries all tags."""
        condition = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        runs = self.client.search_runs([experiment], condition, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def _log_params(self, run_id: str, params: Mapping[str, Any]) -> None:
        """Writes the parameters of a run, without private ones."""
        entries = [Param(legal(key), str(value)[:MAX_PARAM]) for key, value in sorted(public(params).items())]
        self._log(entries, PARAMS_PER_BATCH, lambda batch: self.client.log_batch(run_id, params=batch))

    def _log(self, entities: Sequence[Entity], size: int, log: Callable[[Sequence[Entity]], object]) -> None:
        """Writes entities in batches; where MLflow refuses a batch, one by one without the refused entities."""
        for first in range(0, len(entities), size):
            batch = entities[first : first + size]
            try:
                log(batch)
            except MlflowException as error:
                if not refused_for_good(error):
                    raise
                if len(batch) == 1:
                    self._tell(f"{batch[0].key!r} is left out, because MLflow refuses it: {_first_line(error)}")
                else:
                    self._log(batch, 1, log)


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _create(database: Path) -> None:
    """Creates the tables in a temporary file and renames it, so that a crash leaves no incomplete store."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow.", dir=database.parent) as folder:
        temporary = Path(folder) / database.name
        MlflowClient(store_uri(temporary)).search_experiments(max_results=1)
        temporary.replace(database)
