"""The whole pipeline on the second default network, small: every rule runs for real once, with augmented images."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest

import autotailor
from autotailor.runs import RunError
from autotailor.serving.files import open_pool
from stages import STAGES

ROOT = Path(__file__).parents[2]
MODEL, DEVICE = "mobilenet_digits", "host"
SMALL = [
    "model.pretrain.epochs=1",
    "finetune.epochs=1",
    "finetune.accept_chance=true",  # one epoch teaches next to nothing
    "finetune.panel.every=0",
    "data.train_images=256",
    "data.evaluation_images=100",
    "finetune.calibration.images=128",
    "model.space.resolution=[24]",
    "model.space.width=[]",
    "device.min_minutes=0",
    "device.max_minutes=5",
    "device.precision_target=0.5",
    "device.drift=10",  # other tests run beside this one
    "search.population=20",
    "search.generations=5",
    "search.evaluations=2",
    "sensitivity.evaluations=6",
    "sensitivity.validate_subnets=4",
    "polish.joint.epochs=1",
    "polish.rounds=[{candidates:2,epochs:1},{candidates:1,epochs:1}]",
    "confirm.rounds=2",
    "confirm.seconds=0.1",
    "confirm.repeated=2",
    "export.budgets=1",
    "validate.subnets=4",
    "validate.rounds=2",
    "validate.attempts=1",
    "measure.seconds=0.2",
]
AUGMENTED = [
    "model.pretrain.augmentation.policy=trivialaugment",
    "model.pretrain.augmentation.mixup=0.2",
    "finetune.augmentation.policy=randaugment",
    "finetune.augmentation.magnitude=5",
    "finetune.augmentation.erasing=0.25",
    "finetune.augmentation.cutmix=1",
    "finetune.loss=loss_of_mine:shares_alone",
]
LOSS = """
from torch.nn import functional

def shares_alone(logits, labels, teacher, config):
    asked = config.augmentation
    assert (asked.policy, asked.magnitude, asked.erasing, asked.cutmix) == ("randaugment", 5, 0.25, 1)
    assert labels.shape == logits.shape
    return functional.cross_entropy(logits, labels)
"""


COUNTED = [
    *(override for override in SMALL if not override.startswith(("device.", "export.", "validate.", "polish."))),
    "polish=none",
    "search.candidates=2",
    'export.budgets=["50%",{macs: 3.4M, parameters: 85%}]',
]


def command(*arguments: str, overrides: Sequence[str] = SMALL, device: str = DEVICE) -> list[str]:
    chosen = json.dumps([*overrides, *AUGMENTED])
    config = ["--config", f"model={MODEL}", f"device={device}", f"overrides={chosen}"]
    snakefile = ["--snakefile", str(ROOT / "Snakefile"), "--profile", str(ROOT / "profiles" / "default")]
    return [sys.executable, str(ROOT / "workflow" / "launch.py"), *snakefile, *arguments, *config]


def environment() -> dict[str, str]:
    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory where the pipeline was killed once, started again, and has ended."""
    directory = tmp_path_factory.mktemp("run")
    (directory / "loss_of_mine.py").write_text(LOSS)
    first = subprocess.Popen(
        command(), cwd=directory, env=environment(), start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not (directory / "results" / MODEL / "pretrained.pt").exists() and time.monotonic() < deadline:
        time.sleep(0.5)
    os.killpg(first.pid, signal.SIGKILL)
    first.wait()
    done = subprocess.run(
        command(), cwd=directory, env=environment(), capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    return directory


@pytest.fixture(scope="module")
def results(finished: Path) -> Path:
    return finished / "results" / MODEL


@pytest.mark.timeout(900)
def test_every_artifact_of_the_contract_is_there(results: Path) -> None:
    shared = ["pretrained.pt", "model.onnx", "space.json", "supernet.pt", "sensitivity.csv"]
    tables = ["operators.csv", "confirmed.csv", "lut.csv", "validation.csv", "pareto.csv", "summary.csv", "report.html"]
    exports = [
        "subnet.json",
        "model.onnx",
        "model.ncnn.param",
        "model.ncnn.bin",
        "model.pt2",
        "verification.json",
        "README.md",
    ]
    missing = [name for name in shared if not (results / name).is_file()]
    missing += [name for name in tables if not (results / DEVICE / name).is_file()]
    for export in (results / DEVICE / "exports").iterdir():
        missing += [f"{export.name}/{name}" for name in exports if not (export / name).is_file()]
    assert not missing
    assert len(list((results / DEVICE / "exports").iterdir())) == 2


def test_a_configuration_augments_pretraining_and_finetuning(results: Path) -> None:
    """The loss stands in the user's folder and takes labels that are shares of classes only."""
    for name in ("pretrain", "finetune"):
        history = pd.read_csv(results / f"{name}_history.csv")
        assert len(history) == 1
        assert history["loss"].notna().all()


def test_nothing_is_left_to_do(finished: Path) -> None:
    done = subprocess.run(
        command("-n"), cwd=finished, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )
    assert "Nothing to be done" in done.stdout + done.stderr


def test_exported_subnets_compute_what_their_verification_says(results: Path) -> None:
    for export in (results / DEVICE / "exports").iterdir():
        verification = json.loads((export / "verification.json").read_text())
        assert verification["passed"]
        assert len(verification["comparisons"]) == 3
        assert all(c["max_relative_error"] < 1e-4 for c in verification["comparisons"])
        session = onnxruntime.InferenceSession(str(export / "model.onnx"))
        x = np.ones(session.get_inputs()[0].shape, dtype=np.float32)
        assert session.run(None, {"input": x})[0].shape == (1, 10)


def test_the_lut_holds_every_operator_once(results: Path) -> None:
    operators = pd.read_csv(results / DEVICE / "operators.csv")
    lut = pd.read_csv(results / DEVICE / "lut.csv")
    measured = lut[lut["operator_id"].isin(operators["id"])]
    assert sorted(measured["operator_id"]) == sorted(operators["id"])
    assert (measured["latency_ms"] > 0).all()


def test_predictions_of_the_front_come_from_the_tables(results: Path) -> None:
    """The front's latencies, recomputed by hand from the LUT."""
    from autotailor.profiling import LUT, DeviceConfig, fusion_rules

    net = autotailor.load(results / "supernet.pt")
    fusion = fusion_rules(DeviceConfig.from_section({"name": "test"}))
    latencies = LUT.read(results / DEVICE / "lut.csv").latencies()
    pareto = pd.read_csv(results / DEVICE / "pareto.csv")
    assert (pareto["accuracy_predicted"].diff().dropna() > 0).all()
    assert (pareto["latency_ms_predicted"].diff().dropna() > 0).all()
    for _, row in pareto.head(3).iterrows():
        subnet = autotailor.SubNet.from_json(net.space, row["assignment"])
        standalone = autotailor.SuperNet.of(net.slice(subnet), {})
        total = sum(latencies[place.features[()].id] for place in standalone.places(fusion))
        assert row["subnet"] == subnet.id
        assert row["latency_ms_predicted"] == pytest.approx(total)


def test_tables_say_what_predict_says_that_the_device_is_expected_to_take(results: Path) -> None:
    run = autotailor.open_run(results / DEVICE)
    pareto = pd.read_csv(results / DEVICE / "pareto.csv").set_index("subnet")["latency_ms_expected"]
    named = run.summary.set_index("name")["latency_ms_expected"].drop("original")
    tried = pd.read_csv(results / DEVICE / "candidates.csv").set_index("subnet")["latency_ms_expected"]
    for table in (pareto.head(3), named, tried.head(3)):
        for asked, expected in table.items():
            assert expected == pytest.approx(run.predict(str(asked)).predicted["latency"].value)


def test_predicted_accuracies_have_the_errors_of_the_model(results: Path) -> None:
    """What the rule search has learnt is read again, in the rule measure and in questions to the run."""
    run = autotailor.open_run(results / DEVICE)
    summary = run.summary.set_index("name").drop(index="original")
    for name, row in summary.iterrows():
        answer = run.predict(str(name))
        found = run.metrics["accuracy"].estimate(answer.subnet)
        assert found.standard_error == pytest.approx(row["accuracy_predicted_standard_error"])
        assert found.standard_error > 0
        assert "learnt from evaluated SubNets" in found.source
        assert "evaluated on the validation set" in answer.predicted["accuracy"].source


def test_every_rule_has_a_run_in_the_store(finished: Path) -> None:
    with sqlite3.connect(finished / "mlflow.db") as store:
        rules = {row[0] for row in store.execute("select value from tags where key = 'rule'")}
        parents = store.execute(
            "select count(*) from tags where key = 'autotailor.kind' and value = 'parent'"
        ).fetchone()[0]
    assert rules == {*STAGES, "polish"}
    assert parents == 1


def test_the_store_has_models_datasets_and_metrics_of_the_machine(finished: Path) -> None:
    with sqlite3.connect(finished / "mlflow.db") as store:

        def column(query: str) -> set[object]:
            return {row[0] for row in store.execute(query)}

        assert column("select value from experiment_tags where key = 'mlflow.experimentKind'") == {
            "custom_model_development"
        }
        exports = {path.name for path in (finished / "results" / MODEL / DEVICE / "exports").iterdir()}
        assert column("select name from model_versions") >= {f"{MODEL}-{DEVICE}-{name}" for name in exports}
        assert column("select alias from registered_model_aliases") == {"best"}
        assert column("select value from input_tags") == {"training", "validation", "test"}
        keys = column("select key from latest_metrics")
    assert {"system/cpu_utilization_percentage", "finetune/images_per_second", "loss"} <= keys
    assert not list((finished / "results" / ".tracking" / "journals").iterdir())


@pytest.fixture(scope="module")
def counted(finished: Path, results: Path) -> Path:
    """The results of a second run without a device, whose budgets limit MACs."""
    arguments = command("--quiet", "rules", overrides=COUNTED, device="macs")
    done = subprocess.run(
        arguments, cwd=finished, env=environment(), capture_output=True, text=True, timeout=550, check=False
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    ran = {path.stem for path in (finished / "logs" / MODEL / "macs").glob("*.log")}
    assert ran == {"search", "polish", "export", "measure", "report"}
    return results / "macs"


def test_a_race_without_a_joint_training_before_it_depends_on_none(counted: Path, results: Path) -> None:
    """Runs of before, which knew no joint training, can be kept."""
    host = results / DEVICE
    alone, both = (json.loads((f / "provenance" / "polish.json").read_text())["lineage"] for f in (counted, host))
    assert both.keys() - alone.keys() >= {"polish_joint", "polish_joint_content"}


def test_without_a_device_budgets_limit_macs(counted: Path, results: Path) -> None:
    pareto, candidates, summary = (pd.read_csv(counted / f"{name}.csv") for name in ("pareto", "candidates", "summary"))
    for table in (pareto, candidates, summary):
        assert [name for name in table if re.search("latency|_ms|_mb_|energy", name)] == []
    net = autotailor.load(results / "supernet.pt")
    whole = float(net.macs().predict(net.largest().to_array())[0])
    assert candidates.groupby("budget")["budget_macs_m"].first().tolist() == pytest.approx([whole / 2, 3.4])
    assert (candidates["macs_m"] <= candidates["budget_macs_m"]).all()
    limited = candidates[candidates["budget"] == "budget_02"]
    allowed = 0.85 * float(net.parameters().predict(net.largest().to_array())[0])
    assert limited["parameters_budget"].to_numpy() == pytest.approx(allowed)
    assert (limited["parameters_predicted"] <= allowed * (1 + 1e-9)).all()
    for _, row in pareto.iterrows():
        subnet = autotailor.SubNet.from_json(net.space, row["assignment"])
        assert row["macs_m"] == pytest.approx(sum(autotailor.SuperNet.of(net.slice(subnet), {}).macs().predict([[]])))
    macs = summary.set_index("name")["macs_m"]
    assert macs["largest"] == macs["original"] == pytest.approx(whole)
    assert macs["budget_01"] <= whole / 2
    assert all(json.loads(path.read_text())["passed"] for path in counted.glob("exports/*/verification.json"))
    assert len(list(counted.glob("exports/*/model.onnx"))) == 3


def test_questions_to_a_run_without_a_device_are_answered_in_macs(counted: Path, tmp_path: Path) -> None:
    run = autotailor.open_run(counted)
    assert set(run.metrics) == {"accuracy", "parameters", "macs"}
    assert set(run.unknown_metrics) == {"latency", "energy", "peak_memory"}
    assert [agreement.metric for agreement in run.agreements()] == ["accuracy"]
    assert set(run.predict("budget_01").measured) == {"accuracy"}
    front = run.front()
    assert front.x == "macs"
    assert front.is_exact
    answer = run.export("2.5M", tmp_path / "one", polish=False)
    assert answer.predicted["macs"].value <= 2.5
    assert (answer.budget, answer.unit, answer.meets_budget) == (2.5, "millions", True)
    with pytest.raises(RunError, match="device=macs counts MACs and stands for no device; leave address out"):
        run.export("2.5M", tmp_path / "two", access={"address": "127.0.0.1"})


def test_the_report_opens_by_itself(results: Path) -> None:
    text = (results / DEVICE / "report.html").read_text()
    assert not re.search(
        r"""(?:src|href)=["']?(?!#)[^ >]*:|@import|url\((?!#)""", re.sub(r"(?s)<script.*?</script>", "", text)
    )
    assert not re.search(r"<script[^>]* src=", text)
    assert "data-source=" in text


def test_a_pool_of_the_run_is_made_and_stays(finished: Path, results: Path) -> None:
    """Members are measured on the device, read by NumPy alone, and agree with the SuperNet."""
    target, folder = f"results/{MODEL}/{DEVICE}/pool", results / DEVICE / "pool"
    for arguments, said in (([target], "members in"), (["-n", target], "Nothing to be done")):
        done = subprocess.run(
            command(*arguments, overrides=[*SMALL, "pool.members=4", "pool.rounds=2", "pool.epochs=1"]),
            cwd=finished, env=environment(), capture_output=True, text=True, timeout=550, check=False,
        )  # fmt: skip
        assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
        assert said in done.stdout + done.stderr
    pool, document = open_pool(folder), json.loads((folder / "pool.json").read_text())
    pareto = pd.read_csv(results / DEVICE / "pareto.csv", dtype={"subnet": str})
    assert 1 < len(pool.index.members) <= 4
    for member, described in zip(pool.index.members, document["members"], strict=True):
        assert described["subnet"] in set(pareto["subnet"])
        assert described["verification"]["max_relative_error"] <= 1e-4
        assert described["accuracy"]["from"] == "evaluation"
        assert described["latency_ms"]["measured"] == pytest.approx(member.latency_ms)
        assert len(pool.pieces(member)) > 10
    assert json.loads((results / DEVICE / "provenance" / "make_pool.json").read_text())["outputs"]["pool/pool.txt"]
    training = json.loads((results / DEVICE / "pool_training.json").read_text())
    assert document["training"] == training
    assert set(training["accuracy_validation"]) == {described["subnet"] for described in document["members"]}
    assert training["images"] == 256
