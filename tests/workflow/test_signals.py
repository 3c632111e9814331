"""A person's activity recognition on windows of a sensor, by the guide's commands, down to verified exports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import yaml

import checkouts
import documents
import moving
import signal_cards
from autotailor import config, data
from autotailor.data.splits import DataSplits

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the commands
GUIDE = checkouts.ROOT / "docs" / "guides" / "signals.md"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with a person's windows and network."""
    project = checkouts.make(tmp_path_factory.mktemp("signals") / "autotailor")
    (project / "models").mkdir()
    moving.write_network(moving.write_windows(project / "windows.npz"), project / "models" / "activity.onnx")
    for command in documents.run_by(GUIDE, "test_the_guides_commands"):
        done = checkouts.shell(command.replace("device=host recipe=quick", "device=macs"), project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    return project


@pytest.fixture(scope="module")
def exports(project: Path) -> Path:
    return project / "results" / "activity" / "macs" / "exports"


@pytest.fixture(scope="module")
def splits(project: Path) -> DataSplits:
    """The data of the run."""
    section = config.compose(project / "conf", "activity", "macs", ["data.fractions=[0.6,0.2,0.2]"])["data"]
    return data.load({**section, "root": str(project / "windows.npz")})


def right(path: Path, splits: DataSplits) -> float:
    """Percent of the test windows that an ONNX file is right about; the windows as the file takes them."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (window,) = session.get_inputs()
    found = []
    for images, labels in splits.test.batches(1):
        shown = images.numpy() if len(window.shape) == 4 else images.numpy()[:, :, 0]
        found.append(session.run(None, {window.name: shown})[0].argmax() == int(labels))
    return 100 * float(np.mean(found))


def test_the_guides_commands_lead_to_verified_exports(project: Path, exports: Path) -> None:
    assert len(documents.run_by(GUIDE, "test_the_guides_commands")) == 2
    written = yaml.safe_load((project / "conf" / "model" / "activity.yaml").read_text())
    assert written["data"]["layout"] == "first"
    assert sorted(path.name for path in exports.iterdir()) == ["budget_01", "largest"]
    for folder in exports.iterdir():
        assert json.loads((folder / "verification.json").read_text())["passed"]


def test_both_files_are_as_right_as_the_summary_says(exports: Path, splits: DataSplits) -> None:
    summary = pd.read_csv(exports.parent / "summary.csv").set_index("name")
    assert summary.loc["original", "accuracy_measured"] > 80
    assert summary.loc["budget_01", "accuracy_measured"] > 70
    assert summary.loc["budget_01", "macs_m"] < 0.55 * summary.loc["original", "macs_m"]
    for name in ("largest", "budget_01"):
        for file in ("model.onnx", "model.given.onnx"):
            assert right(exports / name / file, splits) == pytest.approx(summary.loc[name, "accuracy_measured"])


def test_recordings_in_folders_are_read_by_the_rules_and_known_by_the_network(project: Path, exports: Path) -> None:
    """Down to the sensitivities, behind which recordings are windows as those of arrays are."""
    moving.write_recordings(project / "windows.npz", project / "recordings")
    inspect, run = documents.run_by(GUIDE, "test_recordings")
    for command in (
        inspect,
        f"{run.replace('device=host recipe=quick', 'device=macs')} -- results/recorded/sensitivity.csv",
    ):
        done = checkouts.shell(command, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    section = config.compose(project / "conf", "recorded", "macs", ["data.fractions=[0.6,0.2,0.2]"])["data"]
    assert (section["kind"], section["length"]) == ("series", moving.LENGTH)
    found = data.load({**section, "root": str(project / "recordings")})
    assert len(found.train) + len(found.validation) + len(found.test) == 960
    assert right(exports / "largest" / "model.given.onnx", found) > 80
    assert len(pd.read_csv(project / "results" / "recorded" / "sensitivity.csv")) > 3


def test_no_person_is_in_two_parts(splits: DataSplits) -> None:
    assert not {*splits.validation.groups.tolist()} & {*splits.test.groups.tolist()}
    assert len(splits.train) + len(splits.validation) + len(splits.test) == 960


def test_the_cards_program_answers_for_a_signal(project: Path, exports: Path) -> None:
    folder = exports / "budget_01"
    said = signal_cards.printed(folder, project / "windows.npz", 7)
    with np.load(project / "windows.npz") as archive:
        wanted = archive["x"][7]
    session = onnxruntime.InferenceSession(str(folder / "model.given.onnx"), providers=["CPUExecutionProvider"])
    answer = session.run(None, {session.get_inputs()[0].name: wanted[None]})[0].argmax()
    assert said.splitlines()[-1] == f"answer: {answer}"
    assert "A classifier with 4 outputs, for signals of [6, 64] numbers." in (folder / "README.md").read_text()
