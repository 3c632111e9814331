"""Pictures with boxes: what is read, what goes with what, and what is refused before any work."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

import picture_files
from autotailor import config, data
from autotailor.data import DataError
from autotailor.data.datasets.coco import CocoConfig, find_files
from autotailor.data.pictures.stream import Pictures, _Items

ROOT = Path(__file__).parents[4]
Document = dict[str, Any]


def square(number: int, size: tuple[int, int] = (40, 30)) -> tuple[Image.Image, list[int]]:
    """A white picture with one red rectangle, and its box [left, top, width, height]."""
    random = np.random.default_rng(number)
    width, height = (int(random.integers(8, side // 2)) for side in size)
    left, top = int(random.integers(size[0] - width)), int(random.integers(size[1] - height))
    pixels = np.full((size[1], size[0], 3), 255, np.uint8)
    pixels[top : top + height, left : left + width, 1:] = 0
    return Image.fromarray(pixels), [left, top, width, height]


def write(root: Path, count: int = 24, name: str = "boxes.json", change: Callable[[Document], Any] = id) -> Path:
    """Pictures, every fourth without a box, and their file; ids have gaps, and are in no order."""
    (root / "images").mkdir(parents=True, exist_ok=True)
    images, boxes = [], []
    for number in range(count):
        picture, box = square(number)
        picture.save(root / "images" / f"{number:03d}.png")
        images.append({"id": 900 - number, "file_name": f"{number:03d}.png", "width": 40, "height": 30})
        if number % 4:
            category, crowd = (9, 2)[number % 2], int(number % 8 == 7)
            boxes.append(
                {"id": number, "image_id": 900 - number, "category_id": category, "bbox": box, "iscrowd": crowd}
            )
    names = [{"id": 9, "name": "ship"}, {"id": 2, "name": "tree"}]
    document = {"images": images, "annotations": boxes, "categories": names}
    change(document)
    (root / name).write_text(json.dumps(document), encoding="utf-8")
    return root


def section(root: Path, **more: object) -> dict[str, object]:
    known = {"kind": "coco", "task": "detection", "decode": "autotailor.task.decoders.yolo:yolo"}
    return picture_files.section(root, **{**known, "mean": [0.5] * 3, "std": [0.25] * 3, "crop": 0, **more})


def red(image: torch.Tensor) -> list[float]:
    """The edges of the red rectangle of an image, as shares of its sides; empty where there is none."""
    rows, columns = np.nonzero((image[1] < 0).numpy())
    if not len(rows):
        return []
    side = image.shape[-1]
    return [columns.min() / side, rows.min() / side, (columns.max() + 1) / side, (rows.max() + 1) / side]


def test_boxes_are_where_their_pictures_show_them_in_all_parts(tmp_path: Path) -> None:
    splits = data.load(section(write(tmp_path), resolution=64))
    assert (splits.classes, splits.num_classes) == (("tree", "ship"), 2)
    assert splits.validation.task == "detection autotailor.task.decoders.yolo:yolo"
    assert len(splits.train) + len(splits.validation) + len(splits.test) == 24
    seen = 0
    for part in (splits.train.batches(0, 8), splits.validation.batches(8), splits.test.batches(8)):
        for image, target in zip(*next(part), strict=True):
            for box in target[target[:, 4] >= 0].tolist():
                assert box[:4] == pytest.approx(red(image), abs=2.5 / 64)
                seen += 1
    assert seen > 4
    labels = splits.test.labels
    assert (labels.dtype, labels.shape[2]) == (np.float32, 6)
    assert splits.has_maps


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 50), st.integers(20, 200), st.integers(20, 200))
def test_a_crop_and_a_flip_are_those_of_the_picture(epoch: int, position: int, width: int, height: int) -> None:
    picture, (left, top, w, h) = square(epoch, (width, height))
    label = np.array([[[left / width, top / height, (left + w) / width, (top + h) / height, 1, 0]]], np.float32)
    found = CocoConfig(name="x", resolution=64, mean=(0.5,) * 3, std=(0.25,) * 3, scale=(0.3, 1.0))
    items = _Items(found, Pictures(lambda _: picture, label, np.zeros(1, np.int64)), None)
    image, target = items[epoch, position, 0]
    assert isinstance(target, torch.Tensor)
    shown = red(image)
    if target[0, 4] >= 0 and shown:
        assert target[0, :4].tolist() == pytest.approx(shown, abs=6 / 64)
    else:
        assert not shown or min(shown[2] - shown[0], shown[3] - shown[1]) < 6 / 64


def test_crowds_are_not_learnt_and_are_marked_for_the_judge(tmp_path: Path) -> None:
    splits = data.load(section(write(tmp_path, 64), resolution=64, scale=[1.0, 1.0]))
    _, learnt = next(splits.train.batches(0, len(splits.train)))
    assert (learnt[learnt[..., 5] > 0][:, 4] == -1).all()
    judged = np.concatenate([splits.validation.labels, splits.test.labels]).reshape(-1, 6)
    assert (judged[judged[:, 5] > 0][:, 4] == 0).all()
    assert (judged[:, 5] > 0).any()


def test_parts_of_the_user_are_taken(tmp_path: Path) -> None:
    for part, count in (("train", 8), ("val", 4)):
        write(tmp_path / "pictures", count, f"instances_{part}2017.json")
    assert find_files(tmp_path / "pictures") == {part: f"instances_{part}2017.json" for part in ("train", "val")}
    files = {"train": "instances_train2017.json", "val": "instances_val2017.json"}
    splits = data.load(section(tmp_path / "pictures", **files))
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [8, 2, 2]


def test_without_labels_boxes_are_not_looked_at(tmp_path: Path) -> None:
    write(tmp_path, change=lambda document: document["annotations"].append({"id": 1}))
    splits = data.load(section(tmp_path, labels=False))
    assert (splits.num_classes, splits.validation.labels.tolist()) == (0, [-1, -1])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda d: d["annotations"][0].update(bbox=[30, 2, 20, 4]),
            "annotation 1: bbox .* outside its picture of 40 x 30",
        ),
        *(
            (lambda d, box=box: d["annotations"][0].update(bbox=box), "annotation 1: bbox .* outside its picture")
            for box in ([-1.9, 3, 1.5, 4], [3, -1.9, 4, 1.5], [40, 3, 1.5, 4], [3, 30.5, 4, 1])  # nothing of it is left
        ),
        *(
            (lambda d, each=each: d["annotations"].insert(0, each), "annotation 0: expected an image_id and a category")
            for each in (1, None, {"image_id": [900]}, {"category_id": {}})
        ),
        (lambda d: d["annotations"][1].update(bbox=[3, 2, 0, 4]), "annotation 2: bbox .* has no area"),
        (
            lambda d: d["annotations"][1].update(bbox=[3, 2, 5]),
            r"annotation 2: bbox .* is not \[left, top, width, height",
        ),
        (lambda d: d["annotations"][0].update(image_id=7), "annotation 1: no image_id 7"),
        (lambda d: d["annotations"][0].update(category_id=7), "annotation 1: no category_id 7"),
        (lambda d: d["images"].append({**d["images"][0], "id": 1}), "000.png twice"),
        (lambda d: d["categories"].append({"id": 9, "name": "x"}), "the id 9 of categories twice"),
        (lambda d: d["images"].append({**d["images"][0], "id": 1, "file_name": "x.png"}), "1 pictures .* are missing"),
        (
            lambda d: d["images"][0].update(width=30),
            "000.png has 40 x 30 pixels, and the file of its boxes says 30 x 30",
        ),
        (lambda d: d.pop("categories"), "no file of COCO's format"),
        (lambda d: d["images"][0].pop("width"), "no file of COCO's format"),
    ],
)
def test_what_cannot_be_used_is_named_before_training(
    tmp_path: Path, change: Callable[[Document], Any], message: str
) -> None:
    write(tmp_path, change=change)
    with pytest.raises(DataError, match=message):
        data.verify(section(tmp_path))


def test_boxes_and_the_decoder_count_in_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    before = data.fingerprint(section(write(tmp_path)))
    assert data.fingerprint(section(tmp_path)) == before
    assert data.fingerprint(section(tmp_path, decode="autotailor.task.decoders.centres:centres")) != before
    write(tmp_path, change=lambda document: document["annotations"][0].update(bbox=[1, 1, 9, 9]))
    assert data.fingerprint(section(tmp_path)) != before


def test_the_configuration_of_the_project_reads_boxes() -> None:
    composed = config.compose(ROOT / "conf", "resnet_digits", "macs", ["data=coco"])["data"]
    assert CocoConfig.from_section({k: v for k, v in composed.items() if k != "kind"}).judge == "detection"
    with pytest.raises(DataError, match=r"crop.*expected 0"):
        CocoConfig.from_section({"name": "x", "resolution": 8, "crop": 0.5})
