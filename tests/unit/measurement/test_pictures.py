"""Test pictures with masks and boxes, as their labels and networks have them."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

import boxed
import masked
import tiny_data
from autotailor import data
from autotailor.measurement.pictures import SIDE, pictures

CASES = {"masks": masked, "boxes": boxed}


@pytest.fixture(scope="module", params=CASES)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, dict[str, Any]]:
    """What is written of an untrained network and of another one for smaller pictures."""
    case, folder = CASES[request.param], tmp_path_factory.mktemp(request.param)
    splits = data.load({**case.SECTION, "root": str(case.write_notes(folder / "notes", 40)), "cache": ""})
    torch.manual_seed(0)
    models = {"budget_01": 32, "original": 64}
    for name, side in models.items():
        export(case.network().eval(), folder / f"{name}.onnx", side)
    return request.param, pictures({name: folder / f"{name}.onnx" for name in models}, splits)


def export(network: nn.Module, path: Path, side: int) -> None:
    torch.onnx.export(network, (torch.zeros(1, 3, side, side),), str(path), dynamo=False)


def opened(url: str) -> np.ndarray[Any, Any]:
    kind, _, content = url.partition(",")
    assert kind == "data:image/jpeg;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content)))).astype(np.int64)


def test_each_picture_is_shown_as_its_labels_and_all_networks_have_it(found: tuple[str, dict[str, Any]]) -> None:
    kind, written = found
    assert [list(picture) for picture in written["pictures"]] == [["labels", "original", "budget_01"]] * 4
    assert all(opened(url).shape == (SIDE, SIDE, 3) for picture in written["pictures"] for url in picture.values())
    assert list(written["classes"]) == list({"masks": masked.CLASSES, "boxes": ("zero", "one", "seven")}[kind])
    assert len(set(written["classes"].values())) == len(written["classes"])


def test_labels_are_painted_in_the_colours_of_their_classes(found: tuple[str, dict[str, Any]]) -> None:
    kind, written = found
    colours = [np.array([int(c[i : i + 2], 16) for i in (1, 3, 5)]) for c in written["classes"].values()]
    if kind == "boxes":  # a network that has learnt nothing is sure of no box, so that its picture is the plain one
        plain, boxed_ones = (
            np.stack([opened(each[k]) for each in written["pictures"]]) for k in ("original", "labels")
        )
        changed = np.abs(boxed_ones - plain).max(3) > 60
        painted = boxed_ones[changed]
        near = min(np.abs(painted - colour).sum(1).min() for colour in colours)
        assert 0 < changed.mean() < 0.3
        assert near < 60
    else:  # a mean of the paper, which is bright, and of the class's colour
        corner = opened(written["pictures"][0]["labels"])[:8, :8].mean((0, 1))
        assert np.abs(2 * corner - colours[0]).min() > 100
        assert (corner >= colours[0] / 2 - 6).all()


def test_classes_of_pictures_have_no_places() -> None:
    assert pictures({}, tiny_data.splits()) == {"schema_version": 1, "classes": {}, "pictures": []}
