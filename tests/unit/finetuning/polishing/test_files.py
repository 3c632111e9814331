"""The files between polishing and export: what is written is read again, and damaged files are refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch

import autotailor
from autotailor.finetuning import TrainingError
from autotailor.finetuning.polishing import Polished, read_exported, write_exported
from autotailor.search import read_budgets


@pytest.fixture
def found(resnet_net: autotailor.SuperNet) -> dict[str, Polished]:
    random = np.random.default_rng(0)
    sliced = resnet_net.slice(resnet_net.smallest()).weights
    drawn = {name: random.normal(size=weight.shape).astype(weight.dtype) for name, weight in sliced.items()}
    weights = {name: drawn[name] if sliced[name].dtype == np.float32 else sliced[name] for name in sliced}
    return {
        "largest": Polished(resnet_net.largest(), 95.0),
        "budget_01": Polished(resnet_net.smallest(), 80.0, 85.0, weights, 96),
    }


def test_what_is_written_is_read(resnet_net: autotailor.SuperNet, found: dict[str, Polished], tmp_path: Path) -> None:
    json_path, weights_path = tmp_path / "polish.json", tmp_path / "polished.pt"
    write_exported(json_path, weights_path, found)
    read = read_exported(json_path, weights_path, resnet_net)
    assert {name: each.subnet for name, each in read.items()} == {name: each.subnet for name, each in found.items()}
    assert read["largest"].graph is None
    assert [each.weights for each in read.values()] == ["inherited", "polished"]
    graph, weights = read["budget_01"].graph, found["budget_01"].weights
    assert graph is not None
    assert weights is not None
    for name, weight in weights.items():
        np.testing.assert_array_equal(graph.weights[name], weight)
    said = json.loads(json_path.read_text())
    assert said["accuracy_validation"]["budget_01"] == {"inherited": 80.0, "polished": 85.0}
    assert said["images"] == 96
    assert read_budgets(json_path, resnet_net.space) == {name: each.subnet for name, each in found.items()}


def test_weights_of_another_subnet_are_refused(
    resnet_net: autotailor.SuperNet, found: dict[str, Polished], tmp_path: Path
) -> None:
    json_path, weights_path = tmp_path / "polish.json", tmp_path / "polished.pt"
    write_exported(json_path, weights_path, found)
    said = json.loads(json_path.read_text())
    said["subnets"]["budget_01"] = said["subnets"]["largest"]
    json_path.write_text(json.dumps(said))
    with pytest.raises(TrainingError, match="do not fit it; run the rule polish again"):
        read_exported(json_path, weights_path, resnet_net)


@pytest.mark.parametrize("content", [b"", b"no weights", None])
def test_a_damaged_file_is_refused(
    content: bytes | None, resnet_net: autotailor.SuperNet, found: dict[str, Polished], tmp_path: Path
) -> None:
    json_path, weights_path = tmp_path / "polish.json", tmp_path / "polished.pt"
    write_exported(json_path, weights_path, found)
    if content is None:
        torch.save({"schema_version": 1, "subnets": {}}, weights_path)
    else:
        weights_path.write_bytes(content)
    with pytest.raises(TrainingError, match="run the rule polish again"):
        read_exported(json_path, weights_path, resnet_net)
