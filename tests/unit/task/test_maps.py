"""Pictures without labels, and the ONNX file of a trained network that returns a map: from a folder to an export."""

from __future__ import annotations

import contextlib
import io
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import autotailor
import masked
from autotailor import accuracy, config, data, export, finetuning, prediction, search, sensitivity, task
from autotailor.__main__ import main
from autotailor.data.splits import EvaluationSet, sized
from autotailor.export.verification import run_onnx
from autotailor.prediction.evaluations.outcomes import Outcomes
from autotailor.profiling import DeviceConfig, open_runtime

ROOT = Path(__file__).parents[3]
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
    fidelity: float


@pytest.fixture(scope="module")
def walk(tmp_path_factory: pytest.TempPathFactory) -> Walk:
    folder = tmp_path_factory.mktemp("maps")
    pictures, model = masked.write_notes(folder / "notes", 200) / "images", folder / "maps.onnx"
    image = torch.zeros(1, 3, masked.SIDE, masked.SIDE)
    torch.onnx.export(masked.train(folder / "notes"), (image,), str(model), dynamo=False, output_names=["map"])
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
    found = accuracy.evaluate(net.module().eval(), chosen, splits.test, statistics)
    cheaper, fidelity = float(front.cost[row] / front.cost.max()), float(found.values.mean())
    return Walk(folder, said.getvalue(), splits, outcomes, cheaper, fidelity)


def test_inspect_takes_the_task_of_outputs(walk: Walk) -> None:
    assert "task: outputs" in walk.written
    assert "labels: false" in walk.written
    assert task.score_of(walk.splits).name == "fidelity"


def test_subnets_are_more_and_less_faithful(walk: Walk) -> None:
    means = walk.outcomes.values.mean(axis=1)
    assert means.max() > means.min() + 0.1, means
    assert walk.outcomes.reference.values.mean() > means.mean()
    assert walk.cheaper <= 0.6


def test_the_export_is_verified(walk: Walk) -> None:
    folder = walk.folder / "budget_01"
    found = json.loads((folder / "verification.json").read_text())
    assert found["passed"]
    assert {each["file"] for each in found["comparisons"]} == {"model.onnx", "model.pt2", "model.ncnn"}
    assert list(json.loads((folder / "subnet.json").read_text())["output_shapes"]) == ["map"]


def test_fidelity_says_how_alike_the_masks_of_a_file_and_of_the_original_are(walk: Walk) -> None:
    """A SubNet of at most 60 % of the MACs draws the original's masks, and one that guesses does not."""
    model = walk.folder / "budget_01" / "model.onnx"
    values = export.accuracy_of_onnx(model, walk.splits.test)
    assert values.mean() == pytest.approx(walk.fidelity, abs=1e-3)
    wanted = masks(walk.folder / "maps.onnx", walk.splits.test)
    alike, by_chance = (overlap(each, wanted) for each in (masks(model, walk.splits.test), np.roll(wanted, 1, axis=0)))
    assert alike > 0.5
    assert alike > by_chance + 0.3


def masks(path: Path, images: EvaluationSet) -> np.ndarray:
    """The classes that an ONNX file gives the pixels of all pictures, at the places of the original's map."""
    run: Callable[..., Any] = run_onnx(path)
    side = json.loads((path.parent / "subnet.json").read_text())["input_shape"][-1] if path.name == "model.onnx" else 0
    maps = [torch.from_numpy(run(sized(batch, side).numpy())) for batch, _ in images.batches(16)]
    size = [masked.SIDE // 2] * 2
    return torch.nn.functional.interpolate(torch.cat(maps), size, mode="bilinear").argmax(1).numpy()


def overlap(found: np.ndarray, wanted: np.ndarray) -> float:
    """IoU of the digits, as a mean over their classes."""
    pairs = [(found == each, wanted == each) for each in range(1, len(masked.CLASSES))]
    return float(np.mean([(a & b).sum() / (a | b).sum() for a, b in pairs]))
