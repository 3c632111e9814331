"""Pictures without labels, and an ONNX file of LRASPP, which returns a map: from a folder to a verified export."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import autotailor
from autotailor import accuracy, config, data, export, finetuning, prediction, search, sensitivity, task
from autotailor.__main__ import main
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.profiling import DeviceConfig, open_runtime
from returning import NETWORKS

ROOT = Path(__file__).parents[3]
COUNT = 60
PIXELS = ("--mean", "0.5", "0.5", "0.5", "--std", "0.25", "0.25", "0.25")
LESS = (
    *("finetune.epochs=1", "finetune.batch_size=16", "finetune.subnets=2", "finetune.panel.every=0", "workers=1"),
    *("sensitivity.evaluations=4", "sensitivity.validate_subnets=2", "data.workers=0", "data.cache=''"),
)


@dataclass(frozen=True)
class Walk:
    """What a person has after all stages."""

    folder: Path
    written: str
    splits: data.DataSplits
    outcomes: Outcomes
    cheaper: float


def write(folder: Path) -> Path:
    """Writes pictures of waves."""
    folder.mkdir()
    random, (y, x) = np.random.default_rng(0), np.mgrid[:80, :80]
    for number in range(COUNT):
        wave = np.sin(x / random.uniform(3, 12) + y / random.uniform(3, 12))[..., None]
        pixels = random.uniform(0, 255, 3) + 60 * wave + random.normal(0, 10, (80, 80, 3))
        Image.fromarray(pixels.clip(0, 255).astype(np.uint8)).save(folder / f"{number}.png")
    return folder


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    folder = tmp_path_factory.mktemp("maps")
    pictures, model = write(folder / "waves"), folder / "maps.onnx"
    make, side, _ = NETWORKS["lraspp"]
    torch.manual_seed(0)
    torch.onnx.export(make().eval(), (torch.zeros(1, 3, side, side),), str(model), dynamo=False, output_names=["map"])
    with contextlib.redirect_stdout(io.StringIO()) as said:
        assert main(["inspect", str(model), "--data", str(pictures), *PIXELS, "--yaml"]) == 0
    shutil.copytree(ROOT / "conf", folder / "conf")
    (folder / "conf" / "model" / "maps.yaml").write_text(said.getvalue())
    whole = config.compose(folder / "conf", "maps", "macs", LESS)
    config.check(whole)
    original = autotailor.compile(model, whole["model"]["space"])
    splits = accuracy.with_labels(data.load(whole["data"]), original)
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
    statistics = accuracy.calibrate(net.module().eval(), chosen, splits, settings.calibration)
    runtime = open_runtime(DeviceConfig.from_section({"name": "test"}))
    network = export.inherited(net, chosen, statistics)
    export.export(network, folder / "budget_01", splits.test, runtime, preparation=splits.preparation)
    return Walk(folder, said.getvalue(), splits, outcomes, float(front.cost[row] / front.cost.max()))


def test_inspect_takes_the_task_of_outputs(walk: Walk) -> None:
    assert "task: outputs" in walk.written
    assert "labels: false" in walk.written
    assert task.score_of(walk.splits).name == "fidelity"


def test_subnets_are_more_and_less_faithful(walk: Walk) -> None:
    means = walk.outcomes.values.mean(axis=1)
    assert means.max() > 0.99
    assert means.min() < means.max()
    assert walk.cheaper <= 0.6


def test_the_export_is_verified_and_as_faithful_as_the_file_says(walk: Walk) -> None:
    folder = walk.folder / "budget_01"
    found = json.loads((folder / "verification.json").read_text())
    assert found["passed"]
    assert {each["file"] for each in found["comparisons"]} == {"model.onnx", "model.pt", "model.ncnn"}
    said = json.loads((folder / "subnet.json").read_text())
    assert list(said["output_shapes"]) == ["map"]
    values = export.accuracy_of_onnx(folder / "model.onnx", walk.splits.test)
    assert ((values >= 0) & (values <= 1)).all()
