"""Small runs of the whole pipeline that are recorded on an MLflow server, and what must stand there once."""

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mlflow.entities import Run
from mlflow.entities.model_registry import ModelVersion
from mlflow.tracking import MlflowClient

from autotailor.tracking.address import SETTINGS, VARIABLE
from autotailor.tracking.journal import JOURNALS
from stored_runs import user_environment
from tracking_servers import MlflowServer, wait_for

ROOT = Path(__file__).parents[1]
MODEL, DEVICE, COUNTED = "resnet_digits", "host_onnxruntime", "macs"
SHARED = (
    "model.pretrain.epochs=1", "finetune.epochs=2", "finetune.accept_chance=true", "finetune.panel.every=0",
    "data.train_images=512", "data.evaluation_images=200", "finetune.calibration.images=128",
    "model.space.resolution=[24]", "model.space.width=[]", "sensitivity.evaluations=6",
    "sensitivity.validate_subnets=4", "search.population=20", "search.generations=5", "search.evaluations=2",
)  # fmt: skip
MEASURED = (
    "device.min_minutes=0", "device.max_minutes=5", "device.precision_target=0.5", "device.drift=10",
    "polish.joint.epochs=0",
    "polish.rounds=[{candidates:2,epochs:1},{candidates:1,epochs:1}]", "validate.subnets=4", "validate.rounds=2",
    "validate.attempts=1", "measure.seconds=0.2",
)  # fmt: skip
UNMEASURED = ("polish=none", "search.candidates=2")
BUDGETS = 'export.budgets=["{}%"]'
HOUR = 3600.0


@dataclass
class Project:
    """A folder in which runs are started that a server records.

    Attributes:
        folder: where the runs are started.
        server: where they are recorded.
    """

    folder: Path
    server: MlflowServer
    environment: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**user_environment(), **SETTINGS, "PATH": path, VARIABLE: self.server.uri}
        self.environment["MLFLOW_SYSTEM_METRICS_SAMPLING_INTERVAL"] = "2"

    @property
    def client(self) -> MlflowClient:
        """MLflow's client of the server."""
        return MlflowClient(self.server.uri)

    @property
    def journals(self) -> Path:
        """The folder of the journals."""
        return self.folder / "results" / ".tracking" / JOURNALS

    @property
    def experiment(self) -> str:
        """Identifier of the network's experiment."""
        found = self.client.get_experiment_by_name(MODEL)
        assert found is not None
        return str(found.experiment_id)

    def start(self, device: str, overrides: Sequence[str]) -> subprocess.Popen[str]:
        """Starts a run."""
        config = ["--config", f"model={MODEL}", f"device={device}", f"overrides={json.dumps([*SHARED, *overrides])}"]
        command = [sys.executable, str(ROOT / "workflow" / "launch.py"), "--snakefile", str(ROOT / "Snakefile")]
        command += ["--profile", str(ROOT / "profiles" / "default"), *config]
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, text=True, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def finish(self, run: subprocess.Popen[str]) -> str:
        """Waits for the end of a run, which must be a good one; gives what the run has said."""
        said, _ = run.communicate(timeout=HOUR)
        assert run.returncode == 0, said[-6000:]
        return said

    def publish(self, kill_after: int | None = None) -> int:
        """Publishes what waits, and kills the publisher after it has noted so many more lines; gives its status."""
        before = self.written()
        publisher = subprocess.Popen(
            [sys.executable, "-m", "autotailor.tracking", "publish"], cwd=self.folder, env=self.environment
        )
        if kill_after is not None:
            wait_for(
                lambda: self.written() >= before + kill_after or publisher.poll() is not None, "lines that are written"
            )
            publisher.send_signal(signal.SIGKILL)
        return publisher.wait(HOUR)

    def written(self) -> int:
        """Lines of journals that wait that are on the server, and of those that were done all."""
        notes = sum(int(note.read_text() or 0) for note in self.journals.glob("*.done"))
        return notes - 1000 * len(list(self.journals.glob("*.jsonl")))

    def wait_until_published(self) -> None:
        """Waits until no journal waits: the recorder outlives a run whose server was away."""
        log = self.journals.parent / "recorder.log"
        wait_for(lambda: not list(self.journals.glob("*.jsonl")), f"the recorder, see {log}")

    def runs(self, **tags: str) -> list[Run]:
        """The runs that carry all tags."""
        condition = " and ".join(f"tags.`{key.replace('__', '.')}` = '{value}'" for key, value in tags.items())
        return list(self.client.search_runs([self.experiment], condition, max_results=1000))

    def versions(self, device: str) -> dict[str, list[ModelVersion]]:
        """Versions of the registered models of a device, by the names of their exports."""
        found: dict[str, list[ModelVersion]] = {}
        for model in self.client.search_registered_models():
            if model.tags["device"] == device:
                condition = f"name = '{model.name}'"
                found[model.tags["export"]] = list(self.client.search_model_versions(condition))
        return found

    def best(self, version: ModelVersion) -> str:
        """The version that the alias ``best`` names, of the registered model of a version."""
        return str(self.client.get_registered_model(version.name).aliases["best"])

    def exports(self, device: str) -> set[str]:
        """Names of the exports in the folder of results."""
        return {path.name for path in (self.folder / "results" / MODEL / device / "exports").iterdir()}


def tailored_for_two_devices(project: Project) -> None:
    """Tailors the network for a device, and then, with the same weights, for a budget of MACs."""
    project.finish(project.start(DEVICE, MEASURED))
    project.finish(project.start(COUNTED, (*UNMEASURED, BUDGETS.format(50))))


def doubles(project: Project) -> list[str]:
    """What stands on the server more than once: runs of a journal, points of a metric, models, versions of a model."""
    found = Counter(f"run {run.data.tags['autotailor.journal']}" for run in project.runs(autotailor__kind="child"))
    for run in project.runs():
        for key in run.data.metrics:
            history = project.client.get_metric_history(run.info.run_id, key)
            name = f"{run.info.run_name} {run.info.run_id} {key}"
            found.update(f"{name} at {each.timestamp}, step {each.step}, {each.value}" for each in history)
        used = run.inputs.dataset_inputs if run.inputs else []
        found.update(f"{run.info.run_id} uses {each.dataset.name} {each.dataset.digest}" for each in used)
        made = run.outputs.model_outputs if run.outputs else []
        found.update(f"{run.info.run_id} made {each.model_id}" for each in made)
    models = project.client.search_logged_models([project.experiment], max_results=1000)
    found.update(f"model {model.tags['autotailor.key']}" for model in models)
    for version in project.client.search_model_versions(max_results=10_000):
        found[f"version {version.name} of {version.tags['autotailor.key']}"] += 1
    return sorted(name for name, count in found.items() if count > 1)
