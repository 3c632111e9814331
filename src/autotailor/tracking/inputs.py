"""Datasets of runs in MLflow: each split is a dataset of its own, and the run says what it used the split for."""

import hashlib
import json

from mlflow.entities import Dataset as DatasetEntity
from mlflow.entities import DatasetInput, InputTag
from mlflow.tracking import MlflowClient
from mlflow.utils.mlflow_tags import MLFLOW_DATASET_CONTEXT

from autotailor.tracking.journal import Dataset, public

DIGITS = 16
MAX_SOURCE = 60_000  # MLflow keeps 65535 characters


def log_dataset(client: MlflowClient, run_id: str, used: Dataset) -> None:
    """Writes a split into the inputs of a run; the same split is an input once.

    The digest is that of the description and the split, so that equal digests mean equal images.
    """
    description = str(public({"data": used.description})["data"])
    digest = hashlib.sha256(f"{used.split} {used.description}".encode()).hexdigest()[:DIGITS]
    inputs = client.get_run(run_id).inputs
    logged = inputs.dataset_inputs if inputs else []
    if any((each.dataset.name, each.dataset.digest) == (used.name, digest) for each in logged):
        return
    source = {"tags": {"mlflow.source.name": "autotailor.data.load", "data": description[:MAX_SOURCE]}}
    entity = DatasetEntity(
        used.name,
        digest,
        source_type="code",
        source=json.dumps(source),
        schema=json.dumps(_schema(used)),
        profile=json.dumps({"images": used.images, "classes": used.classes, "resolution": used.image[-1]}),
    )
    client.log_inputs(run_id, [DatasetInput(entity, [InputTag(MLFLOW_DATASET_CONTEXT, used.split)])])


def _schema(used: Dataset) -> dict[str, object]:
    """The shapes of images and labels, as MLflow's NumPy datasets describe them."""
    image = {"dtype": "float32", "shape": [-1, *used.image]}
    label = {"dtype": "int64", "shape": [-1]}
    return {
        "mlflow_tensorspec": {
            "features": json.dumps([{"type": "tensor", "tensor-spec": image}]),
            "targets": json.dumps([{"type": "tensor", "tensor-spec": label}]),
        }
    }
