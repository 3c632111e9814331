"""A person's segmentation network and pictures with masks, by the guide's commands, down to verified exports."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch

import checkouts
import documents
import masked
from autotailor import config, data
from autotailor.data.splits import DataSplits

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the commands
GUIDE = checkouts.ROOT / "docs" / "guides" / "segmentation.md"
SMALL = ("finetune.epochs=0", "sensitivity.evaluations=8", "polish.rounds=[{candidates: 1, epochs: 1, images: 480}]")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which a person has put a module with the network, its checkpoint and pictures with masks."""
    project = checkouts.make(tmp_path_factory.mktemp("segmentation") / "autotailor")
    shutil.copy(masked.__file__, project / "mine.py")
    trained = masked.train(masked.write_notes(project / "notes"))
    (project / "models").mkdir()
    torch.save(trained.state_dict(), project / "models" / "notes.pt")
    said = []
    for command in documents.run_by(GUIDE, "test_segmentation"):
        less = f" 'overrides=[{','.join(SMALL)}]'" if command.startswith("snakemake") else ""
        done = checkouts.shell(command + less, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
        said.append(done.stdout + done.stderr)
    (project / "said.txt").write_text("".join(said))
    return project


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
    return data.load({**section, "root": str(project / "notes"), "cache": ""})


def miou(path: Path, splits: DataSplits) -> float:
    """mIoU of an ONNX file on the test pictures, percent, from a table of all pixels."""
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    (image,) = session.get_inputs()
    table, classes = np.zeros((5, 4)), len(masked.CLASSES)
    for images, targets in splits.test.batches(16):
        if images.shape[-1] != image.shape[-1]:
            images = torch.nn.functional.interpolate(images, image.shape[2:], mode="bilinear", antialias=True)
        maps = np.concatenate([session.run(None, {image.name: each[None].numpy()})[0] for each in images])
        large = torch.nn.functional.interpolate(torch.from_numpy(maps), targets.shape[1:], mode="bilinear")
        known = np.where(targets.numpy() == masked.IGNORED, classes, targets.numpy())
        np.add.at(table, (known.ravel(), large.argmax(1).numpy().ravel()), 1)
    table = table[:classes]
    return float(100 * np.mean(np.diag(table) / (table.sum(0) + table.sum(1) - np.diag(table))))


def test_the_guides_commands_lead_to_verified_exports(results: Path, summary: pd.DataFrame) -> None:
    assert len(documents.run_by(GUIDE, "test_segmentation")) == 2
    exports = sorted(path.name for path in (results / "exports").iterdir())
    assert exports == ["budget_01", "budget_02", "largest"]
    for name in exports:
        assert json.loads((results / "exports" / name / "verification.json").read_text())["passed"]
    assert summary.loc["budget_01", "macs_m"] < 0.8 * summary.loc["original", "macs_m"]


def test_the_summary_says_the_miou_of_the_files(results: Path, summary: pd.DataFrame, splits: DataSplits) -> None:
    files = {"original": results.parent / "model.onnx"}
    files |= {name: results / "exports" / name / "model.onnx" for name in ("largest", "budget_01", "budget_02")}
    for name, path in files.items():
        assert summary.loc[name, "accuracy_measured"] == pytest.approx(miou(path, splits), abs=0.02), name
    assert summary.loc["original", "accuracy_measured"] > 60
    assert (summary["accuracy_standard_error"] > 0).all()
    largest = summary.loc["largest"]
    assert 0 <= largest["accuracy_change_standard_error"] < largest["accuracy_standard_error"]


def test_polished_subnets_stay_near_the_original(summary: pd.DataFrame) -> None:
    polished = summary[summary["weights"] == "polished"]
    assert len(polished) > 0
    assert (polished["accuracy_measured"] > polished["accuracy_inherited"] - 2).all()


def test_a_person_reads_of_miou_and_of_picture_iou(project: Path, results: Path) -> None:
    card = (results / "exports" / "budget_01" / "README.md").read_text(encoding="utf-8")
    assert "| mIoU, measured (%) |" in card
    assert "A network that gives each pixel a class with 1 output" in card
    assert "in this order `paper`, `zero`, `one`, `seven`" in card
    report = (results / "report.html").read_text(encoding="utf-8")
    assert "picture IoU predicted (%)" in report
    assert "mIoU over MACs" in report
    said = (project / "said.txt").read_text() + (project / ".snakemake" / "autotailor" / "output.txt").read_text()
    assert "picture IoU of the largest" in said
    assert "mIoU %" in checkouts.shell("python workflow/finish.py notes macs", project).stdout
