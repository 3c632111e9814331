"""A whole pipeline on an MLflow server with PostgreSQL: what a client of the server finds."""

import json

import mlflow
import numpy as np
import onnxruntime
import pytest

from autotailor.tracking.address import VARIABLE
from stages import STAGES
from tracked_runs import COUNTED, DEVICE, MODEL, Project, doubles

pytestmark = [pytest.mark.server, pytest.mark.timeout(3600)]
RULES = " ".join((*STAGES, "polish"))
RULES_OF_MACS = "search polish export measure report"


def test_the_experiment_is_one_of_model_training_with_a_run_for_each_device(project: Project) -> None:
    experiment = project.client.get_experiment(project.experiment)
    assert (experiment.name, experiment.tags["mlflow.experimentKind"]) == (MODEL, "custom_model_development")
    parents = {run.data.tags["device"]: run for run in project.runs(autotailor__kind="parent")}
    assert set(parents) == {DEVICE, COUNTED}
    for device, rules in ((DEVICE, RULES), (COUNTED, RULES_OF_MACS)):
        parent = parents[device]
        children = project.runs(**{"mlflow__parentRunId": parent.info.run_id})
        assert sorted(run.info.run_name for run in children) == sorted(rules.split())
        assert {run.info.status for run in (parent, *children)} == {"FINISHED"}
        for run in (parent, *children):
            told = run.data.tags
            assert (told["model"], told["device"], told["config_hash"]) == (
                MODEL,
                device,
                parent.data.tags["config_hash"],
            )
            assert told["git_commit"].removesuffix("-dirty") == told["mlflow.source.git.commit"]
        assert parent.data.params["finetune.epochs"] == "2"


def test_metrics_are_curves_of_the_rule_and_sections_of_the_parent(project: Project) -> None:
    (finetune,) = project.runs(rule="finetune")
    losses = {point.step: point.value for point in project.client.get_metric_history(finetune.info.run_id, "loss")}
    assert set(losses) == {0, 1}
    parent = project.client.get_run(finetune.data.tags["mlflow.parentRunId"])
    assert parent.data.metrics["finetune/loss"] == losses[1]
    assert {"finetune/images_per_second", "measure/budget_01/accuracy_measured"} <= parent.data.metrics.keys()
    assert not [key for key in finetune.data.metrics if key == "epoch"]
    machine = project.client.get_metric_history(finetune.info.run_id, "system/cpu_utilization_percentage")
    assert len(machine) >= 2
    (measure,) = project.runs(rule="measure", device=DEVICE)
    summary = measure.data.metrics
    assert summary["budget_01/latency_ms_measured"] > 0
    figures = {each.path for each in project.client.list_artifacts(project.runs(rule="report")[0].info.run_id)}
    assert {"report.html", "configuration.json"} <= figures


def test_splits_are_datasets_of_the_rules_that_use_them(project: Project) -> None:
    used = {
        run.data.tags["rule"]: {each.tags[0].value: each.dataset for each in run.inputs.dataset_inputs}
        for run in project.runs(device=DEVICE)
        if "rule" in run.data.tags and run.inputs
    }
    assert set(used["finetune"]) == {"training", "validation"}
    assert set(used["measure"]) == {"training", "test"}
    assert used["finetune"]["training"].digest == used["measure"]["training"].digest
    profile = json.loads(used["finetune"]["training"].profile)
    assert (used["finetune"]["training"].name, profile["images"], profile["classes"]) == ("digits", 512, 10)


@pytest.mark.parametrize("device", [DEVICE, COUNTED])
def test_every_export_is_a_registered_model_that_computes_what_the_export_does(
    project: Project, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, project.server.uri)
    registered = project.versions(device)
    assert set(registered) == project.exports(device)
    (measure,) = project.runs(rule="measure", device=device)
    for name, (version,) in registered.items():
        known = (version.tags["model"], version.tags["device"], version.tags["config_hash"], version.run_id)
        assert known == (MODEL, device, measure.data.tags["config_hash"], measure.info.run_id)
        assert version.tags["git_commit"] == measure.data.tags["git_commit"]
        assert float(version.tags["accuracy_measured"]) == measure.data.metrics[f"{name}/accuracy_measured"]
        assert project.best(version) == str(version.version)
        export = project.folder / "results" / MODEL / device / "exports" / name / "model.onnx"
        session = onnxruntime.InferenceSession(export.read_bytes())
        for address in (f"models:/{version.name}@best", f"models:/{version.name}/latest"):
            model = mlflow.pyfunc.load_model(address)
            image = model.input_example[session.get_inputs()[0].name]
            (expected,) = session.run(None, {session.get_inputs()[0].name: image})
            assert np.array_equal(model.predict(image)[session.get_outputs()[0].name], expected)
            assert model.metadata.signature.inputs.input_names() == [session.get_inputs()[0].name]


def test_nothing_stands_there_twice(project: Project) -> None:
    project.wait_until_published()
    assert doubles(project) == []
