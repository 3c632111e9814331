"""A person's detector as an ONNX file and pictures with boxes, by the guide's commands, down to verified exports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

import boxed
import checkouts
import documents
from autotailor import config, data
from autotailor.data.splits import DataSplits
from autotailor.task import average_precision
from autotailor.task.decoders.centres import centres

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the commands
GUIDE = checkouts.ROOT / "docs" / "guides" / "detection.md"
SMALL = (
    *("finetune.epochs=0", "sensitivity.evaluations=8", "sensitivity.validate_subnets=3", "export.budgets=2"),
    *("polish.rounds=[{candidates: 1, epochs: 1, images: 480}]", "polish.joint.epochs=0"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of ``autotailor new``, beside which a person's detector and pictures with boxes lie."""
    folder = tmp_path_factory.mktemp("detection")
    boxed.export(boxed.train(boxed.write_notes(folder / "notes")), folder / "notes.onnx")
    assert checkouts.shell("python -m autotailor new project", folder).returncode == 0
    for command in documents.run_by(GUIDE, "test_detection"):
        less = "".join(f" '{each}'" for each in SMALL) if " run " in command else ""
        done = checkouts.shell(f"python -m {command}{less}", folder / "project")
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    return folder / "project"


@pytest.fixture(scope="module")
def results(project: Path) -> Path:
    return project / "results" / "notes" / "macs"


@pytest.fixture(scope="module")
def summary(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "summary.csv").set_index("name")


@pytest.fixture(scope="module")
def splits(project: Path) -> DataSplits:
    """The data of the run."""
    section = config.compose(project / "conf", "notes", "macs", [])["data"]
    return data.load({**section, "root": str(project.parent / "notes"), "cache": ""})


def scored(path: Path, splits: DataSplits) -> float:
    """mAP of an ONNX file on the test pictures, percent."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (image,) = session.get_inputs()
    side, rows = image.shape[-1], []
    for images, targets in splits.test.batches(1):
        small = torch.nn.functional.interpolate(images, [side, side], mode="bilinear", antialias=True)
        (said,) = centres(tuple(map(torch.from_numpy, session.run(None, {image.name: small.numpy()}))), side)
        found = torch.cat([said["boxes"] / side, said["scores"][:, None], said["labels"][:, None]], 1)[None].double()
        rows.append(average_precision.rows(found, targets, *average_precision.matched(found, targets.double())))
    return 100 * average_precision.of_set(torch.cat(rows).numpy())[0]


def test_the_guides_commands_lead_to_verified_exports(results: Path, summary: pd.DataFrame) -> None:
    assert len(documents.run_by(GUIDE, "test_detection")) == 2
    exports = sorted(path.name for path in (results / "exports").iterdir())
    assert exports == ["budget_01", "budget_02", "largest"]
    for name in exports:
        assert json.loads((results / "exports" / name / "verification.json").read_text())["passed"]
    assert summary.loc["budget_01", "macs_m"] < 0.8 * summary.loc["original", "macs_m"]


def test_the_summary_says_the_map_of_the_files(results: Path, summary: pd.DataFrame, splits: DataSplits) -> None:
    files = {"original": results.parent / "model.onnx"}
    files |= {name: results / "exports" / name / "model.onnx" for name in ("largest", "budget_01", "budget_02")}
    for name, path in files.items():
        # A match at the edge of a threshold turns on the last digits: one of 26 pictures is worth 0.05 points.
        assert summary.loc[name, "accuracy_measured"] == pytest.approx(scored(path, splits), abs=0.2), name
    assert summary.loc["original", "accuracy_measured"] > 20
    assert (summary["accuracy_standard_error"] > 0).all()
    largest = summary.loc["largest"]
    assert 0 <= largest["accuracy_change_standard_error"] < largest["accuracy_standard_error"]


def test_a_person_reads_of_map_and_of_picture_ap(project: Path, results: Path) -> None:
    model = (project / "conf" / "model" / "notes.yaml").read_text(encoding="utf-8")
    assert "decode: autotailor.task.decoders.centres:centres" in model
    card = (results / "exports" / "budget_01" / "README.md").read_text(encoding="utf-8")
    assert "| mAP, measured (%) |" in card
    assert "A network that finds objects with 3 outputs" in card
    assert np.all([name in card for _, name in boxed.DIGITS.values()])
    report = (results / "report.html").read_text(encoding="utf-8")
    assert "picture AP predicted (%)" in report
    assert "mAP over MACs" in report
