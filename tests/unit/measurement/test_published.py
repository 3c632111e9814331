"""What MLflow is told of the exported SubNets."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import autotailor
import tiny_data
from autotailor.measurement.published import exported_models
from autotailor.search import LATENCY, costs


@pytest.fixture
def files(resnet_net: autotailor.SuperNet, tmp_path: Path) -> dict[str, Path]:
    """The largest SubNet as an exported file."""
    path = tmp_path / "model.onnx"
    resnet_net.export_onnx(resnet_net.largest(), path)
    return {"budget_01": path}


def test_a_model_has_the_numbers_of_its_row_its_budget_and_an_image(files: dict[str, Path], tmp_path: Path) -> None:
    table = pd.DataFrame(
        {
            "name": ["largest", "budget_01", "original"],
            "weights": ["inherited", "polished", ""],
            "accuracy_measured": [91.0, 90.0, 92.0],
            "energy_mj_predicted": [np.nan] * 3,
            "budget_ms": [np.nan, 0.5, np.nan],
            "budget_met": [None, True, None],
            "macs_m": [9.0, 4.0, 9.0],
        }
    )
    splits = tiny_data.splits()
    (model,) = exported_models(table, files, splits, LATENCY, tmp_path / "examples")
    assert (model.name, model.onnx) == ("budget_01", files["budget_01"])
    assert model.metrics == {"accuracy_measured": 90.0, "budget_ms": 0.5, "macs_m": 4.0}
    assert model.limits == {"latency_ms_measured": 0.5}
    assert {"weights": "polished", "budget_met": "True"}.items() <= model.tags.items()
    image, _ = next(iter(splits.test.batches(1)))
    assert np.load(model.example).shape == (1, 3, 32, 32)
    assert np.array_equal(np.load(model.example), autotailor.data.resize(image, 32).numpy())
    (counted,) = exported_models(
        table.drop(columns=["budget_ms", "budget_met"]), files, splits, costs()["macs"], tmp_path
    )
    assert counted.limits == {"macs_m": 4.0}
