"""Pictures with several labels each in a table, and a network with a Sigmoid for each: from two files to exports."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.metrics import label_ranking_average_precision_score
from torch import nn

import checkouts
import strangers
from autotailor import data

pytestmark = pytest.mark.timeout(1500)  # the first test waits for the commands
LABELS = ("square", "ring", "bar", "dots")
COUNT = 320
SMALL = "finetune.epochs=4,model.space.resolution=null,polish=none,export.budgets=[50%]"
COMMANDS = (
    "python -m autotailor inspect models/tags.onnx --data tags/labels.csv --yaml > conf/model/tags.yaml",
    f"snakemake --cores all --config model=tags device=macs 'overrides=[{SMALL}]'",
)


def shape(name: str, side: int, random: np.random.Generator) -> np.ndarray:
    """Whether each pixel belongs to a shape at some place: bool ``[side, side]``."""
    y, x = np.mgrid[:side, :side] - random.uniform(10, side - 10, 2)[:, None, None]
    far = np.maximum(abs(x), abs(y))
    return {
        "square": far < 6,
        "ring": abs(np.hypot(x, y) - 7) < 1.8,
        "bar": (abs(y) < 1.8) & (abs(x) < 10),
        "dots": (far < 8) & (x.astype(int) % 4 < 2) & (y.astype(int) % 4 < 2),
    }[name]


def write(folder: Path) -> None:
    """Writes pictures on which each shape is or is not, and ``labels.csv``."""
    folder.mkdir()
    random = np.random.default_rng(0)
    lines = ["file," + ",".join(LABELS)]
    for number in range(COUNT):
        known = random.random(len(LABELS)) < 0.4
        pixels = random.uniform(130, 255, 3) + random.normal(0, 10, (40, 40, 3))
        for name in np.array(LABELS)[known]:
            pixels[shape(name, 40, random)] = random.uniform(0, 110, 3)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
        lines.append(f"{number}.png," + ",".join(map(str, known.astype(int))))
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def train(folder: Path) -> nn.Module:
    """A network with logits that its owner has trained, in seconds, on all pictures but the last eighth."""
    section = {"name": "tags", "kind": "table", "task": "multilabel", "root": str(folder), "resolution": 40}
    splits = data.load({**section, "crop": 1.0, "mean": [0.5] * 3, "std": [0.25] * 3, "scale": [0.8, 1.0]})
    torch.manual_seed(0)
    network = nn.Sequential(*list(strangers.network())[:-1], nn.Linear(64, len(LABELS)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    for epoch in range(12):
        for images, labels in splits.train.batches(epoch, 32):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(network(images), labels).backward()
            optimizer.step()
    return network.eval()


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout in which somebody has put the network and the pictures, and has run both commands."""
    project = checkouts.make(tmp_path_factory.mktemp("labels") / "autotailor")
    write(project / "tags")
    network = train(project / "tags")
    strangers.export(nn.Sequential(network, nn.Sigmoid()).eval(), project / "models" / "tags.onnx")
    for command in COMMANDS:
        options = " --mean 0.5 0.5 0.5 --std 0.25 0.25 0.25 --yaml" if "inspect" in command else ""
        done = checkouts.shell(command.replace(" --yaml", options) if options else command, project)
        assert done.returncode == 0, f"{command}\n{(done.stdout + done.stderr)[-6000:]}"
    return project


@pytest.fixture(scope="module")
def results(project: Path) -> Path:
    return project / "results" / "tags"


@pytest.fixture(scope="module")
def summary(results: Path) -> pd.DataFrame:
    return pd.read_csv(results / "macs" / "summary.csv").set_index("name")


def test_inspect_writes_the_task_and_the_names_of_the_labels(project: Path) -> None:
    written = (project / "conf" / "model" / "tags.yaml").read_text()
    assert "{override /data: table}" in written
    assert "0 square, 1 ring, 2 bar, 3 dots" in written


def test_the_original_is_as_good_as_scikit_learn_says_of_its_file(project: Path, summary: pd.DataFrame) -> None:
    configuration = json.loads((project / "results" / "tags" / "macs" / "configuration.json").read_text())
    section = configuration["data"]
    test = data.load({**section, "root": str(project / "tags"), "cache": ""}).test
    session = onnxruntime.InferenceSession(str(project / "models" / "tags.onnx"))
    (name,) = (each.name for each in session.get_inputs())
    images = torch.cat([images for images, _ in test.batches(64)]).numpy()
    said = np.concatenate([session.run(None, {name: image[None]})[0] for image in images])
    wanted = 100 * label_ranking_average_precision_score(test.labels, said)
    assert summary.loc["original", "accuracy_measured"] == pytest.approx(wanted, abs=0.05)
    assert wanted > 80


def test_the_search_finds_what_is_measured(results: Path, summary: pd.DataFrame) -> None:
    evaluations = pd.read_csv(results / "evaluations.csv")
    assert len(evaluations) > 6
    assert len(set(evaluations["accuracy"].round(6))) > 4
    half = summary.loc["budget_01"]
    assert half["macs_m"] <= 0.5 * summary.loc["largest", "macs_m"] * (1 + 1e-9)
    assert half["accuracy_measured"] > 60
    assert abs(half["accuracy_predicted"] - half["accuracy_inherited"]) < 25


def test_exports_are_verified_and_keep_the_sigmoid(results: Path) -> None:
    for export in (results / "macs" / "exports").iterdir():
        found = json.loads((export / "verification.json").read_text())
        assert found["passed"]
        assert all(each["same_predictions"] == 1 for each in found["comparisons"])
        assert json.loads((export / "subnet.json").read_text())["preparation"]["classes"] == list(LABELS)
        outputs = np.array(found["reference"])
        assert ((outputs > 0) & (outputs < 1)).all()
        assert (abs(outputs.sum(axis=1) - 1) > 1e-3).any()


def test_a_person_reads_what_the_network_does(results: Path) -> None:
    card = (results / "macs" / "exports" / "budget_01" / "README.md").read_text()
    assert "A network that gives images several labels with 4 outputs" in card
    assert "the larger it is, the likelier the label" in card
    assert "| average precision, measured (%) |" in card
    assert "Average precision: how far the labels of a picture come" in (results / "macs" / "report.html").read_text()
