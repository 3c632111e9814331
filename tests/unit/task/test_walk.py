"""Pictures with several labels each, and an ONNX file with a Sigmoid behind each label: from a table to a card."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pandas as pd
import pytest
import torch
from PIL import Image
from sklearn.metrics import label_ranking_average_precision_score
from torch import nn

import autotailor
import strangers
from autotailor import config, data, export, finetuning, prediction, search, sensitivity, task
from autotailor.__main__ import main
from autotailor.accuracy import calibrate
from autotailor.finetuning.polishing import Exported
from autotailor.measurement import summary
from autotailor.measurement.config import Effort
from autotailor.measurement.inheritance import inheritance
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.profiling import DeviceConfig, open_runtime
from autotailor.reporting import write_card

ROOT = Path(__file__).parents[3]
LABELS = ("square", "ring", "bar", "dots")
COUNT = 300
SIDE = 40
PIXELS = ("--mean", "0.5", "0.5", "0.5", "--std", "0.25", "0.25", "0.25")
LESS = (
    *("finetune.epochs=2", "finetune.batch_size=32", "finetune.subnets=2", "finetune.panel.every=0", "workers=1"),
    *("sensitivity.evaluations=4", "sensitivity.validate_subnets=2", "data.workers=0", "data.cache=''"),
)


@dataclass(frozen=True)
class Walk:
    """What a person has after all stages."""

    folder: Path
    written: str
    splits: data.DataSplits
    outcomes: Outcomes
    chosen: autotailor.SubNet
    predicted: float
    table: pd.DataFrame


def drawn(name: str, random: np.random.Generator) -> np.ndarray:
    """Whether each pixel belongs to a shape at some place: bool ``[SIDE, SIDE]``."""
    y, x = np.mgrid[:SIDE, :SIDE] - random.uniform(10, SIDE - 10, 2)[:, None, None]
    far = np.maximum(abs(x), abs(y))
    return {
        "square": far < 6,
        "ring": abs(np.hypot(x, y) - 7) < 1.8,
        "bar": (abs(y) < 1.8) & (abs(x) < 10),
        "dots": (far < 8) & (x.astype(int) % 4 < 2) & (y.astype(int) % 4 < 2),
    }[name]


def write(folder: Path) -> Path:
    """Writes pictures on which each shape is or is not, and the table of them."""
    folder.mkdir()
    random, lines = np.random.default_rng(0), ["file," + ",".join(LABELS)]
    for number in range(COUNT):
        known = random.random(len(LABELS)) < 0.4
        pixels = random.uniform(130, 255, 3) + random.normal(0, 10, (SIDE, SIDE, 3))
        for name in np.array(LABELS)[known]:
            pixels[drawn(name, random)] = random.uniform(0, 110, 3)
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
        lines.append(f"{number}.png," + ",".join(map(str, known.astype(int))))
    (folder / "labels.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "labels.csv"


def train(table: Path) -> nn.Module:
    """A network with a Sigmoid for each label, trained in seconds by its owner."""
    section = {"name": "tags", "kind": "table", "task": "multilabel", "root": str(table.parent), "resolution": SIDE}
    stream = data.load({**section, "crop": 1.0, "mean": [0.5] * 3, "std": [0.25] * 3, "scale": [0.8, 1.0]}).train
    torch.manual_seed(0)
    network = nn.Sequential(*list(strangers.network())[:-1], nn.Linear(64, len(LABELS)))
    optimizer = torch.optim.AdamW(network.parameters(), lr=4e-3)
    for epoch in range(8):
        for images, labels in stream.batches(epoch, 32):
            optimizer.zero_grad()
            nn.functional.binary_cross_entropy_with_logits(network(images), labels).backward()
            optimizer.step()
    return nn.Sequential(network, nn.Sigmoid()).eval()


def composed(folder: Path, written: str) -> dict[str, Any]:
    """The configuration of a run with what ``inspect`` wrote, checked as a run checks it."""
    shutil.copytree(ROOT / "conf", folder / "conf")
    (folder / "conf" / "model" / "tags.yaml").write_text(written)
    whole = config.compose(folder / "conf", "tags", "macs", LESS)
    config.check(whole)
    return whole


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    folder = tmp_path_factory.mktemp("labels")
    table, model = write(folder / "tags"), folder / "tags.onnx"
    strangers.export(train(table), model)
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["inspect", str(model), "--data", str(table), *PIXELS, "--yaml"]) == 0
    whole = composed(folder, said.getvalue())
    splits = data.load(whole["data"])
    original = autotailor.compile(model, whole["model"]["space"])
    settings = finetuning.FinetuneConfig.from_section(whole["finetune"])
    net = finetuning.finetune(original, splits, settings, folder).net
    measured = sensitivity.SensitivityConfig.from_section(whole["sensitivity"], whole["finetune"]["calibration"])
    outcomes = sensitivity.evaluate_designed(net, splits, measured, folder / "journal.jsonl")
    prediction.write_outcomes(folder / "evaluations.csv", outcomes)
    chance = task.of(splits).chance(splits.validation.labels)
    known = prediction.read_outcomes(folder / "evaluations.csv", net.space, splits.validation.groups, chance)
    learnt = prediction.Accuracy.learnt(prediction.fit(known, net.macs()))
    front = search.search(search.Objectives(learnt.metric, net.macs()), search.SearchConfig()).front
    row = int(np.flatnonzero(front.cost <= 0.6 * front.cost.max())[-1])
    chosen = autotailor.SubNet.from_array(net.space, front.indices[row])
    module = net.module().eval()
    network = export.inherited(net, chosen, calibrate(module, chosen, splits, settings.calibration))
    runtime = open_runtime(DeviceConfig.from_section({"name": "test"}))
    export.export(network, folder / "budget_01", splits.test, runtime, preparation=splits.preparation)
    models = {"budget_01": folder / "budget_01" / "model.onnx"}
    models["original"] = summary.export_original(original, None, folder)
    weights = inheritance(net, {"budget_01": Exported(chosen)}, splits, settings.calibration)
    found = summary.summarise(
        *(summary.predictions(net, learnt, None, None), {"budget_01": chosen}, weights, models, splits.test),
        *(None, None, Effort.from_section(whole["measure"])),
    )
    write_card(folder / "budget_01", "budget_01", whole, found.set_index("name").to_dict("index"))
    predicted = float(front.accuracy[row])
    return Walk(folder, said.getvalue(), splits, outcomes, chosen, predicted, found.set_index("name"))


def test_inspect_writes_the_table_and_the_names_of_the_labels(walk: Walk) -> None:
    assert "{override /data: table}" in walk.written
    assert "0 square, 1 ring, 2 bar, 3 dots" in walk.written
    assert (task.of(walk.splits).name, walk.splits.classes) == ("multilabel", LABELS)


def test_the_original_is_as_good_as_scikit_learn_says_of_its_file(walk: Walk) -> None:
    session = onnxruntime.InferenceSession(str(walk.folder / "tags.onnx"))
    (name,) = (each.name for each in session.get_inputs())
    images = torch.cat([images for images, _ in walk.splits.test.batches(64)]).numpy()
    said = np.concatenate([session.run(None, {name: image[None]})[0] for image in images])
    wanted = 100 * label_ranking_average_precision_score(walk.splits.test.labels, said)
    assert walk.table.loc["original", "accuracy_measured"] == pytest.approx(wanted, abs=0.05)
    assert wanted > 100 * task.of(walk.splits).chance(walk.splits.test.labels) + 5


def test_the_search_learns_from_values_that_are_no_bits(walk: Walk) -> None:
    values = walk.outcomes.values
    assert ((values > 0) & (values < 1)).any()
    assert len(np.unique(values.mean(axis=1))) > 4
    assert 0 < walk.predicted <= 100
    half = walk.table.loc["budget_01"]
    assert half["accuracy_inherited"] == pytest.approx(half["accuracy_measured"], abs=0.1)
    assert half["macs_m"] < walk.table.loc["original", "macs_m"]


def test_the_export_is_verified_and_keeps_the_sigmoid(walk: Walk) -> None:
    found = json.loads((walk.folder / "budget_01" / "verification.json").read_text())
    assert found["passed"]
    assert all(each["same_predictions"] == 1 for each in found["comparisons"])
    outputs = np.array(found["reference"])
    assert ((outputs > 0) & (outputs < 1)).all()
    assert (abs(outputs.sum(axis=1) - 1) > 1e-3).any()


def test_a_person_reads_what_the_network_does(walk: Walk) -> None:
    card = (walk.folder / "budget_01" / "README.md").read_text()
    assert "A network that gives images several labels with 4 outputs" in card
    assert "the larger it is, the likelier the label" in card
    assert "| average precision, measured (%) |" in card
    assert "in this order `square`, `ring`, `bar`, `dots`" in card
