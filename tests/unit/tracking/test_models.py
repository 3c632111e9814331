"""Exported SubNets become models of MLflow that load, and versions that are registered once."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import mlflow
import numpy as np
import onnx
import onnxruntime
import pytest
from mlflow.tracking import MlflowClient

import onnx_text
from autotailor import tracking
from autotailor.tracking.journal import JOURNALS
from autotailor.tracking.reader import Reader
from autotailor.tracking.store import Store
from stored_runs import child_run, opened

RUN = tracking.RunKey("net", "pixel-7", "abc123", {}, "c0ffee")
NAME = "net-pixel-7-budget_02"
IMAGE = np.arange(12, dtype=np.float32).reshape(1, 3, 2, 2)


def exported(folder: Path, accuracy: float, bias: float = 0.0, latency: float = 1.0) -> tracking.ExportedModel:
    """A small network whose file depends on its bias, with what was measured of it."""
    weights = {"fc": np.ones((2, 12), np.float32), "bias": np.array([bias, 1.0], np.float32)}
    body = "f = Flatten (x)  y = Gemm <transB = 1> (f, fc, bias)"
    network = onnx_text.model_of(body, weights, shape=IMAGE.shape, outputs="float[1, 2] y")
    folder.mkdir(exist_ok=True)
    onnx.save(network, str(folder / "model.onnx"))
    np.save(folder / "image.npy", IMAGE)
    values = {"accuracy_measured": accuracy, "latency_ms_measured": latency, "latency_ms_predicted": 0.5}
    limits = {"latency_ms_measured": 2.0}
    files = (folder / "model.onnx", folder / "image.npy")
    return tracking.ExportedModel("budget_02", *files, values, {"weights": "polished"}, limits)


def publish(store: Store, folder: Path, *models: tracking.ExportedModel) -> bool:
    """Publishes models, each from the journal of a rule of its own."""
    for model in models:
        with tracking.child(folder, RUN, {"rule": "measure"}, {}) as run:
            run.model(model)
    return Reader(store, folder / JOURNALS).read()


def versions(client: MlflowClient) -> dict[int, float]:
    """Accuracies of the registered versions."""
    found = client.search_model_versions(f"name = '{NAME}'")
    return {int(version.version): float(version.tags["accuracy_measured"]) for version in found}


def best(client: MlflowClient) -> str:
    return str(client.get_model_version_by_alias(NAME, "best").version)


def test_a_registered_model_gives_the_outputs_of_the_export(store: Store, tmp_path: Path) -> None:
    model = exported(tmp_path / "export", accuracy=90.0)
    assert publish(store, tmp_path, model)
    session = onnxruntime.InferenceSession(model.onnx.read_bytes())
    (expected,) = session.run(None, {"x": IMAGE})
    for address in (f"models:/{NAME}/latest", f"models:/{NAME}@best", f"models:/{NAME}/1"):
        loaded = mlflow.pyfunc.load_model(address)
        assert np.array_equal(loaded.predict(IMAGE)["y"], expected)
    kept = mlflow.onnx.load_model(f"models:/{NAME}/1")
    assert kept.SerializeToString() == onnx.load(str(model.onnx)).SerializeToString()
    signature = loaded.metadata.signature.to_dict()
    assert '"name": "x"' in signature["inputs"]
    assert '"shape": [1, 3, 2, 2]' in signature["inputs"]
    assert '"name": "y"' in signature["outputs"]
    assert np.array_equal(loaded.input_example["x"], IMAGE)
    run = child_run(store, "measure")
    (output,) = run.outputs.model_outputs
    assert store.client.get_logged_model(output.model_id).source_run_id == run.info.run_id
    tags = store.client.get_model_version(NAME, "1").tags
    expected_tags = {"model": "net", "device": "pixel-7", "config_hash": "abc123", "git_commit": "c0ffee"}
    assert expected_tags.items() <= tags.items()
    assert tags["weights"] == "polished"
    assert {key for key in tags if "latency" in key} == {"latency_ms_measured"}
    kept_metrics = {metric.key: metric.value for metric in store.client.get_logged_model(output.model_id).metrics}
    assert kept_metrics["latency_ms_predicted"] == 0.5


def test_best_is_the_most_accurate_that_keeps_the_newest_limits_and_latest_the_newest(
    store: Store, tmp_path: Path
) -> None:
    first = exported(tmp_path / "first", accuracy=90.0, bias=1.0)
    slow = exported(tmp_path / "slow", accuracy=95.0, bias=2.0, latency=3.0)
    third = exported(tmp_path / "third", accuracy=80.0, bias=3.0)
    assert publish(store, tmp_path, first)
    assert publish(store, tmp_path, slow)
    assert publish(store, tmp_path, third)
    assert versions(store.client) == {1: 90.0, 2: 95.0, 3: 80.0}
    assert best(store.client) == "1"
    other_data = replace(exported(tmp_path / "fourth", accuracy=70.0, bias=4.0), tags={"data": "other"})
    assert publish(store, tmp_path, other_data)
    assert best(store.client) == "4"
    latest = mlflow.pyfunc.load_model(f"models:/{NAME}/latest").predict(IMAGE)["y"]
    (expected,) = onnxruntime.InferenceSession(other_data.onnx.read_bytes()).run(None, {"x": IMAGE})
    assert np.array_equal(latest, expected)


def test_an_equal_file_is_the_same_version_with_the_new_values(store: Store, tmp_path: Path) -> None:
    assert publish(store, tmp_path, exported(tmp_path / "export", accuracy=90.0))
    assert publish(store, tmp_path, exported(tmp_path / "again", accuracy=91.0))
    assert versions(store.client) == {1: 91.0}
    assert publish(store, tmp_path, exported(tmp_path / "other", accuracy=80.0, bias=1.0))
    assert publish(store, tmp_path, exported(tmp_path / "back", accuracy=91.0))
    assert versions(store.client) == {1: 91.0, 2: 80.0, 3: 91.0}  # the newest version is always the last export


@pytest.mark.parametrize(("one", "other"), [(("a", "b-c"), ("a-b", "c")), (("a/b", "c"), ("a_b", "c"))])
def test_exports_whose_names_would_be_equal_are_registered_apart(
    store: Store, tmp_path: Path, one: tuple[str, str], other: tuple[str, str]
) -> None:
    model = exported(tmp_path / "export", accuracy=90.0)
    for model_of, device in (one, other, one, other):
        with tracking.child(tmp_path, tracking.RunKey(model_of, device, "abc123"), {"rule": "measure"}, {}) as run:
            run.model(model)
        assert Reader(store, tmp_path / JOURNALS).read()
    registered = store.client.search_registered_models()
    assert sorted((found.tags["model"], found.tags["device"]) for found in registered) == sorted([one, other])
    for found in registered:
        (version,) = store.client.search_model_versions(f"name = '{found.name}'")
        assert (version.tags["model"], version.tags["device"]) == (found.tags["model"], found.tags["device"])


class Killed(BaseException):
    """A publisher that ends here."""


CALLS = (
    *("log_inputs", "create_registered_model", "create_logged_model", "log_model_artifacts", "finalize_logged_model"),
    *("log_outputs", "log_batch", "create_model_version", "set_registered_model_alias", "set_terminated"),
)


def test_a_publisher_that_is_killed_behind_every_call_leaves_no_doubles(store: Store, tmp_path: Path) -> None:
    with tracking.child(tmp_path, RUN, {"rule": "measure"}, {}) as run:
        run.dataset(tracking.Dataset("digits", "test", "content", 100, 10, (3, 24, 24)))
        run.model(exported(tmp_path / "export", accuracy=90.0))

    def kill_behind(call: Callable[..., object]) -> Callable[..., None]:
        def kill(*args: object, **kwargs: object) -> None:
            call(*args, **kwargs)
            raise Killed

        return kill

    for name in CALLS:
        killed = opened(tmp_path)
        setattr(killed.client, name, kill_behind(getattr(killed.client, name)))
        with pytest.raises(Killed):
            Reader(killed, tmp_path / JOURNALS).read()
    assert Reader(store, tmp_path / JOURNALS).read()
    assert versions(store.client) == {1: 90.0}
    assert best(store.client) == "1"
    found = child_run(store, "measure")
    assert (found.info.status, len(found.outputs.model_outputs)) == ("FINISHED", 1)
    assert len(store.client.search_logged_models([found.info.experiment_id])) == 1
    for run_id in (found.info.run_id, store.parent(RUN)):
        (used,) = store.client.get_run(run_id).inputs.dataset_inputs
        assert (used.dataset.name, used.tags[0].value) == ("digits", "test")
    assert np.isfinite(mlflow.pyfunc.load_model(f"models:/{NAME}@best").predict(IMAGE)["y"]).all()


def test_a_file_that_is_replaced_before_it_is_published_is_published_as_it_was(store: Store, tmp_path: Path) -> None:
    model = exported(tmp_path / "export", accuracy=90.0)
    before = model.onnx.read_bytes()
    with tracking.child(tmp_path, RUN, {"rule": "measure"}, {}) as run:
        run.model(model)
    model.onnx.unlink()
    exported(tmp_path / "export", accuracy=90.0, bias=5.0)
    assert Reader(store, tmp_path / JOURNALS).read()
    kept = mlflow.onnx.load_model(f"models:/{NAME}/1")
    assert kept.SerializeToString() == onnx.load_from_string(before).SerializeToString()
    assert not list((tmp_path / JOURNALS).iterdir())


def test_a_model_moves_with_its_store(old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{old / 'mlflow.db'}")
    assert publish(opened(old), tmp_path, exported(tmp_path / "export", accuracy=90.0))
    old.rename(tmp_path / "new")
    opened(tmp_path / "new")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path / 'new' / 'mlflow.db'}")
    assert mlflow.pyfunc.load_model(f"models:/{NAME}@best").predict(IMAGE)["y"].shape == (1, 2)
