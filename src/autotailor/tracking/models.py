"""Exported SubNets as models of MLflow, registered as MODEL-DEVICE-EXPORT, such as ``resnet_digits-host-budget_02``.

Every step can be repeated: a publisher that was killed leaves a model that the next one finds by its key and completes.
The newest version is ``models:/NAME/latest``, a name that MLflow keeps for itself. The alias ``best`` is the most
accurate version that keeps the newest version's limits.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from mlflow.entities import LoggedModel, LoggedModelOutput, LoggedModelStatus, Metric
from mlflow.entities.model_registry import ModelVersion
from mlflow.exceptions import MlflowException
from mlflow.models import Model
from mlflow.models.signature import ModelSignature
from mlflow.tracking import MlflowClient
from mlflow.types import Schema, TensorSpec

from autotailor.artifacts import digest as digest_of
from autotailor.artifacts import file_digest
from autotailor.tracking.address import patient
from autotailor.tracking.journal import ExportedModel, RunKey
from autotailor.tracking.keys import legal

if TYPE_CHECKING:
    import onnx

KEY, DIGEST, LIMITS = "autotailor.key", "autotailor.digest", "autotailor.limits"
BEST = "best"
MEASURED = "_measured"
ACCURACY = f"accuracy{MEASURED}"
ONE_FILE = 1_900_000_000  # bytes; a protobuf message holds 2 GB
PROVIDERS = ["CPUExecutionProvider"]  # those that verification has compared


@dataclass(frozen=True)
class Owner:
    """Whose model it is.

    Attributes:
        experiment: identifier of the model's experiment.
        run_id: of the run that measured the model.
        run: the parent run.
        journal: name of the journal, which makes the key of the model unique.
    """

    experiment: str
    run_id: str
    run: RunKey
    journal: str


def publish(client: MlflowClient, owner: Owner, exported: ExportedModel, time: int) -> str:
    """Keeps an exported SubNet as a model and registers it, once however often it is called.

    A file that is equal to the newest version's is that version, with the values that were measured now.

    Args:
        client: of the store; its address must also be in ``MLFLOW_TRACKING_URI``, where MLflow's registry looks.
        owner: whose model it is.
        exported: the model.
        time: of the measurement, milliseconds since the epoch.

    Returns:
        The registered version's address, ``models:/NAME/VERSION``.
    """
    key, digest = f"{owner.journal}/{exported.name}", file_digest(exported.onnx)
    tags = _tags(owner, exported) | {KEY: key, DIGEST: digest}
    name = _register(client, owner.run, exported.name)
    versions = _versions(client, name)
    version = next((each for each in versions if each.tags.get(KEY) == key), None)
    if version is None and versions and versions[0].tags.get(DIGEST) == digest:
        version = versions[0]
    model = client.get_logged_model(_model_id(version)) if version else _kept(client, owner, exported, tags)
    _link(client, owner, model, exported, time)
    if version is None:
        source = f"models:/{model.model_id}"
        version = client.create_model_version(
            name, source, owner.run_id, tags=tags, await_creation_for=0, model_id=model.model_id
        )
    else:
        for tag, value in tags.items():
            if version.tags.get(tag) != value:
                client.set_model_version_tag(name, version.version, tag, value)
    _choose(client, name)
    return f"models:/{name}/{version.version}"


def registered_name(run: RunKey, export: str) -> str:
    """Name in the registry; what MLflow does not accept in names becomes an underscore."""
    return re.sub(r"[/:%\"'\\]", "_", f"{run.model}-{run.device}-{export}")


def best_of(versions: Sequence[ModelVersion]) -> ModelVersion:
    """The most accurate version that keeps the newest version's limits on the same data; the newest if none does.

    Args:
        versions: the newest first.
    """
    newest = versions[0]
    limits = json.loads(newest.tags.get(LIMITS, "{}"))

    def counts(version: ModelVersion) -> bool:
        same = version.tags.get("data") == newest.tags.get("data")
        return same and all(_value(version, key, np.inf) <= limit for key, limit in limits.items())

    able = [version for version in versions if counts(version)] or [newest]
    return max(able, key=lambda version: (_value(version, ACCURACY, -np.inf), int(version.version)))


def _value(version: ModelVersion, key: str, missing: float) -> float:
    return float(version.tags.get(key, missing))


def _choose(client: MlflowClient, name: str) -> None:
    """Sets the alias of the best version."""
    best = best_of(_versions(client, name)).version
    if str(client.get_registered_model(name).aliases.get(BEST)) != str(best):
        client.set_registered_model_alias(name, BEST, best)


def _versions(client: MlflowClient, name: str) -> list[ModelVersion]:
    """All versions of a registered model, the newest first."""
    versions = list(client.search_model_versions(f"name = '{name}'", max_results=10_000))
    return sorted(versions, key=lambda version: int(version.version), reverse=True)


def _register(client: MlflowClient, run: RunKey, export: str) -> str:
    """Adds an export to the registry, unless the registry has it; returns its name there.

    Where another export has the same name, as `a-b` for `c` has that of `a` for `b-c`, a digest makes the name its own.
    """
    tags = {"model": run.model, "device": run.device, "export": export}
    name = registered_name(run, export)
    if not _is_ours(client, name, tags):
        name = f"{name}-{digest_of(tags)}"
        _is_ours(client, name, tags)
    return name


def _is_ours(client: MlflowClient, name: str, tags: Mapping[str, str]) -> bool:
    """Whether the registry has a name with these tags; it is registered with them where nobody has it."""
    export = f"{tags['export']} of {tags['model']} for {tags['device']}"
    try:
        client.create_registered_model(
            name, dict(tags), f"{export}. `models:/{name}@best` is its most accurate version."
        )
    except MlflowException as error:
        if error.error_code != "RESOURCE_ALREADY_EXISTS":
            raise
        registered = client.get_registered_model(name).tags
        return all(registered.get(key, value) == value for key, value in tags.items())
    return True


def _tags(owner: Owner, exported: ExportedModel) -> dict[str, str]:
    """What a version is found and compared by: what was measured, and what has a limit; the model has the rest."""
    run = owner.run
    identity = {"model": run.model, "device": run.device, "export": exported.name, "config_hash": run.config_hash}
    told = {key: value for key, value in exported.metrics.items() if key.endswith(MEASURED) or key in exported.limits}
    values = {legal(key): repr(float(value)) for key, value in told.items()}
    commit = {"git_commit": run.commit} if run.commit else {}
    return {**identity, **commit, **exported.tags, **values, LIMITS: json.dumps(dict(exported.limits), sort_keys=True)}


def _model_id(version: ModelVersion) -> str:
    return str(version.model_id or str(version.source).removeprefix("models:/"))


def _kept(client: MlflowClient, owner: Owner, exported: ExportedModel, tags: dict[str, str]) -> LoggedModel:
    """The model with its files; one that a killed publisher has begun is completed."""
    condition = f"tags.`{KEY}` = '{tags[KEY]}'"
    models = client.search_logged_models([owner.experiment], condition, max_results=1)
    model = (
        models[0]
        if models
        else client.create_logged_model(owner.experiment, exported.name, owner.run_id, tags, model_type="onnx")
    )
    if model.status == LoggedModelStatus.READY:
        return model
    with tempfile.TemporaryDirectory(prefix="autotailor-model-") as folder:
        directory = Path(folder) / "model"
        _write(directory, exported, Model(model_id=model.model_id, run_id=owner.run_id))
        with patient():
            client.log_model_artifacts(model.model_id, str(directory))
    return client.finalize_logged_model(model.model_id, LoggedModelStatus.READY)


def _write(directory: Path, exported: ExportedModel, description: Model) -> None:
    """Writes the files of a model: ONNX, signature, an input and what Python needs to run it."""
    import mlflow.onnx
    import onnx

    network, example = onnx.load(str(exported.onnx)), np.load(exported.example)
    signature = ModelSignature(_schema(network.graph.input), _schema(network.graph.output))
    mlflow.onnx.save_model(
        network,
        str(directory),
        mlflow_model=description,
        signature=signature,
        input_example={network.graph.input[0].name: example},
        pip_requirements=mlflow.onnx.get_default_pip_requirements(),
        onnx_execution_providers=PROVIDERS,
        save_as_external_data=exported.onnx.stat().st_size > ONE_FILE,
    )


def _schema(values: Iterable[onnx.ValueInfoProto]) -> Schema:
    """Names, types and shapes of an ONNX graph's inputs or outputs; a size that is not fixed is -1."""
    from onnx.helper import tensor_dtype_to_np_dtype

    def spec(value: onnx.ValueInfoProto) -> TensorSpec:
        tensor = value.type.tensor_type
        sizes = tuple(size.dim_value if size.HasField("dim_value") else -1 for size in tensor.shape.dim)
        return TensorSpec(np.dtype(tensor_dtype_to_np_dtype(tensor.elem_type)), sizes, value.name)

    return Schema([spec(value) for value in values])


def _link(client: MlflowClient, owner: Owner, model: LoggedModel, exported: ExportedModel, time: int) -> None:
    """Makes the model an output of the run, and writes what was measured to the model."""
    outputs = client.get_run(owner.run_id).outputs
    if model.model_id not in {output.model_id for output in (outputs.model_outputs if outputs else [])}:
        client.log_outputs(owner.run_id, [LoggedModelOutput(model.model_id, step=0)])
    metrics = [
        Metric(legal(key), value, time, 0, model_id=model.model_id, run_id=owner.run_id)
        for key, value in exported.metrics.items()
    ]
    client.log_batch(owner.run_id, metrics=metrics)
