"""The MLflow store: experiments, runs and what belongs to them. The modules of tracking that import MLflow are few."""

import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from filelock import FileLock

from autotailor.ir.errors import first_line
from autotailor.tracking.address import SETTINGS, Address, patient
from autotailor.tracking.anchors import anchor, artifact_root
from autotailor.tracking.journal import RunKey, milliseconds, public
from autotailor.tracking.keys import legal

os.environ.update({**SETTINGS, **os.environ})  # MLflow reads some of them while it is imported

from mlflow.entities import Experiment, Metric, Param, RunTag
from mlflow.exceptions import ERROR_CODE_TO_HTTP_STATUS, MlflowException
from mlflow.tracking import MlflowClient
from requests.exceptions import ConnectionError as NoConnection
from requests.exceptions import HTTPError, RequestException, Timeout
from sqlalchemy.exc import DatabaseError

MAX_PARAM = 6000
MAX_TAG = 8000
PARAMS_PER_BATCH = 100
METRICS_PER_BATCH = 1000
PARENT = "mlflow.parentRunId"
JOURNAL = "autotailor.journal"
ORIGIN = "autotailor.origin"
KIND = "mlflow.experimentKind"
"""Tag of an experiment; without it, MLflow 3 opens an experiment as one of agents and prompts."""
MODEL_TRAINING = "custom_model_development"
LATER = (401, 403, 404, 407, 408, 425, 429)
"""Statuses between 400 and 499 that another day may mend: a password, a proxy's page, too many requests."""

Entity = TypeVar("Entity", Metric, Param, RunTag)


def refused_for_good(error: Exception) -> bool:
    """Whether MLflow would refuse the same write again: because of an invalid key or value, or a deleted run.

    A store that is locked, full or damaged is no such reason, and neither is a proxy's page that says that nothing is
    here: the write may succeed later.
    """
    cause = error.__cause__
    if isinstance(cause, (ValueError, TypeError, OverflowError)) and not isinstance(cause, RequestException):
        return True  # a value that SQLite cannot hold
    if isinstance(error, HTTPError) and error.response is not None:  # a file was refused, for instance for its size
        return 400 <= error.response.status_code < 500 and error.response.status_code not in LATER
    if not isinstance(error, MlflowException) or type(cause) is DatabaseError:
        return False
    if error.error_code == "ENDPOINT_NOT_FOUND":  # MLflow says RESOURCE_DOES_NOT_EXIST of a run that is gone
        return False
    return ERROR_CODE_TO_HTTP_STATUS.get(error.error_code, 500) in (400, 404)


def is_silent(error: BaseException) -> bool:
    """Whether an error says that the server has not answered at all; one that answers with an error is not silent."""
    return any(isinstance(cause, (NoConnection, Timeout, ConnectionError)) for cause in _causes(error))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error and what it followed from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


class Store:
    """One store. A SQLite file has the artifacts in ``mlruns`` beside it; a server keeps them where it likes."""

    def __init__(
        self, address: Address, lock: Path, tell: Callable[[str], None] = print, origin: Callable[[], str] = str
    ) -> None:
        """Opens the store. A missing SQLite file is created, completely or not at all; others are not asked yet.

        Args:
            address: of the store.
            lock: file that locks the creation of the store, of an experiment and of a run, so that none is made twice.
            tell: takes a sentence about each entry that is left out because MLflow refuses it.
            origin: names the folder of results. On a server, where several people may run the same configuration, a
                parent run belongs to one origin.
        """
        self.lock = FileLock(lock)
        self.is_local = address.database is not None
        self._uri, self._root, self._tell, self._origin = address.uri, None, tell, origin
        self._client: MlflowClient | None = None
        if address.database is None:
            return
        with self.lock:
            self._root = artifact_root(address.database)
            if not address.database.exists():
                _create(address.database)
            elif anchor(address.database):
                tell(f"{address.database} was moved: the addresses of its artifacts now point to {self._root}")
            self._client = MlflowClient(self._uri)

    @property
    def client(self) -> MlflowClient:
        """MLflow's client. Its creation asks a database on another machine, and may fail."""
        if self._client is None:
            self._client = MlflowClient(self._uri)
        return self._client

    def experiment(self, model: str) -> str:
        """Identifier of the model's experiment, which is created if missing, and restored if deleted."""
        with self.lock:
            experiment: Experiment | None = self.client.get_experiment_by_name(model)
            if experiment is None:
                return self._create_experiment(model)
            if experiment.lifecycle_stage == "deleted":
                self.client.restore_experiment(experiment.experiment_id)
            if KIND not in experiment.tags:
                self.client.set_experiment_tag(experiment.experiment_id, KIND, MODEL_TRAINING)
            return str(experiment.experiment_id)

    def _create_experiment(self, model: str) -> str:
        """A new experiment, or the one that another machine has created in this moment."""
        location = (self._root / model).as_uri() if self._root else None
        tags = {KIND: MODEL_TRAINING, "mlflow.note.content": f"SubNets of {model} for devices and budgets"}
        try:
            return str(self.client.create_experiment(model, artifact_location=location, tags=tags))
        except MlflowException as error:
            experiment: Experiment | None = self.client.get_experiment_by_name(model)
            if error.error_code != "RESOURCE_ALREADY_EXISTS" or experiment is None:
                raise
            return str(experiment.experiment_id)

    def parent(self, run: RunKey) -> str:
        """Identifier of the parent run of (model, device, configuration), which is created if missing."""
        experiment = self.experiment(run.model)
        key = {"device": run.device, "config_hash": run.config_hash, "autotailor.kind": "parent"}
        if not self.is_local:
            key[ORIGIN] = self._origin()
        with self.lock:
            run_id = self._find(experiment, key)
            if run_id is None:
                name = f"{run.device} ({run.config_hash})"  # the experiment has the name of the model
                tags = {**key, "model": run.model, **_source("workflow", run.commit)}
                run_id = str(self.client.create_run(experiment, run_name=name, tags=tags).info.run_id)
        self._log_params(run_id, run.params)  # a repetition after a crash changes nothing
        return run_id

    def begin(self, parent: str, commit: str) -> None:
        """Marks a parent run as running, and with the commit that it runs."""
        for key, value in _source("workflow", commit).items():
            self.client.set_tag(parent, key, value)
        self.client.update_run(parent, status="RUNNING")

    def child(self, run: RunKey, start: Mapping[str, Any], journal: str) -> tuple[str, str]:
        """Identifiers of the child run of one journal and of its parent; a journal never makes two runs."""
        parent = self.parent(run)
        experiment = self.experiment(run.model)
        with self.lock:
            run_id = self._find(experiment, {JOURNAL: journal})
            if run_id is None:
                run_id = self._create_child(experiment, parent, run, start, journal)
        self._log_params(run_id, start["params"])  # a repetition after a crash changes nothing
        return run_id, parent

    def _create_child(self, experiment: str, parent: str, run: RunKey, start: Mapping[str, Any], journal: str) -> str:
        """A new run, marked with its parent and its journal."""
        told = {legal(key): str(value)[:MAX_TAG] for key, value in public(start["tags"]).items() if key}
        rule = start["tags"].get("rule", "rule")
        named = {"model": run.model, "device": run.device, **_source(rule, start["tags"].get("git_commit", ""))}
        tags = {**named, **told, PARENT: parent, JOURNAL: journal, "autotailor.kind": "child"}
        created = self.client.create_run(experiment, start_time=start["time"], run_name=rule, tags=tags)
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
        with patient():
            self.client.log_artifact(run_id, str(path))

    def end(self, run_id: str, status: str, time: int | None = None) -> None:
        """Sets the final status and the end time of a run."""
        self.client.set_terminated(run_id, status=status, end_time=time or milliseconds())

    def _find(self, experiment: str, tags: Mapping[str, str]) -> str | None:
        """Identifier of the first run that carries all tags.

        MLflow's conditions have no way to write an apostrophe, so that such a value is compared here.
        """
        condition = " and ".join(f"tags.`{key}` = '{value}'" for key, value in tags.items() if "'" not in value)
        runs = self.client.search_runs([experiment], condition)
        ids = (run.info.run_id for run in runs if tags.items() <= run.data.tags.items())
        return next(map(str, ids), None)

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
                    self._tell(f"{batch[0].key!r} is left out, because MLflow refuses it: {first_line(error)}")
                else:
                    self._log(batch, 1, log)


def _source(name: str, commit: str) -> dict[str, str]:
    """Tags that MLflow's pages show as the source of a run."""
    tags = {"mlflow.source.name": f"autotailor {name}", "mlflow.source.type": "LOCAL"}
    if commit and commit != "unknown":
        tags |= {"mlflow.source.git.commit": commit.removesuffix("-dirty"), "git_commit": commit}
    return tags


def _create(database: Path) -> None:
    """Creates the tables in a temporary file and renames it, so that a crash leaves no incomplete store."""
    database.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".mlflow.", dir=database.parent) as folder:
        temporary = Path(folder) / database.name
        MlflowClient(f"sqlite:///{temporary}").search_experiments(max_results=1)
        temporary.replace(database)
