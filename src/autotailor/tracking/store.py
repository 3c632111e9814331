"""The MLflow store: the only module that imports MLflow."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock
from mlflow.entities import Experiment, Metric, Param, RunTag
from mlflow.tracking import MlflowClient

from autotailor.tracking.journal import RunKey, milliseconds

MAX_PARAM = 6000
PARENT = "mlflow.parentRunId"
JOURNAL = "autotailor.journal"


def store_uri(database: Path) -> str:
    """Address of the SQLite store."""
    return f"sqlite:///{database.resolve()}"


class Store:
    """One SQLite store, with the artifacts in ``mlruns`` beside it."""

    def __init__(self, database: Path, lock: Path) -> None:
        """Opens the store; creates it whole or not at all.

        Args:
            database: the SQLite file.
            lock: lock file for what must not happen twice: creating the store, an experiment, a parent run.
        """
        self._lock = FileLock(lock)
        self._root = database.resolve().parent / "mlruns"
        with self._lock:
            if not database.exists():
                _create(database)
            self.client = MlflowClient(store_uri(database))

    def experiment(self, model: str) -> str:
        """Identifier of the model's experiment, created when there is none."""
        with self._lock:
            found: Experiment | None = self.client.get_experiment_by_name(model)
            if found is not None:
                return str(found.experiment_id)
            return str(self.client.create_experiment(model, artifact_location=(self._root / model).as_uri()))

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
        found = self._find(experiment, {JOURNAL: journal})
        if found is not None:
            return found, parent
        tags = {**start["tags"], PARENT: parent, JOURNAL: journal, "autotailor.kind": "child"}
        created = self.client.create_run(
            experiment, start_time=start["time"], run_name=start["tags"].get("rule", "rule"), tags=tags
        )
        self._log_params(created.info.run_id, start["params"])
        return str(created.info.run_id), parent

    def log_metrics(self, run_id: str, values: Mapping[str, float], time: int, step: int) -> None:
        """Metrics of a run; values that are not numbers are left out, MLflow cannot hold them."""
        metrics = [Metric(key, value, time, step) for key, value in values.items() if value == value]
        self.client.log_batch(run_id, metrics=metrics)

    def log_artifact(self, run_id: str, path: Path) -> None:
        """Copies a file to the run's artifacts, if it is still there."""
        if path.exists():
            self.client.log_artifact(run_id, str(path))

    def end(self, run_id: str, status: str, time: int | None = None) -> None:
        """Sets the final status and the end."""
        self.client.set_terminated(run_id, status=status, end_time=time or milliseconds())

    def tag(self, run_id: str, tags: Mapping[str, str]) -> None:
        """Sets tags."""
        self.client.log_batch(run_id, tags=[RunTag(key, value) for key, value in tags.items()])

    def _find(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """Identifier of the first run that carries all tags."""
        condition = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items())
        runs = self.client.search_runs([experiment], condition, max_results=1)
        return str(runs[0].info.run_id) if runs else None

    def _log_params(self, run_id: str, params: Mapping[str, Any]) -> None:
        """Parameters, in MLflow's batches of at most 100."""
        entries = [Param(key, str(value)[:MAX_PARAM]) for key, value in sorted(params.items())]
        for first in range(0, len(entries), 100):
            self.client.log_batch(run_id, params=entries[first : first + 100])


def _create(database: Path) -> None:
    """Creates the tables in a temporary file that then takes the store's name: a crash leaves no half store."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow.", dir=database.parent) as folder:
        temporary = Path(folder) / database.name
        MlflowClient(store_uri(temporary)).search_experiments(max_results=1)
        temporary.replace(database)
