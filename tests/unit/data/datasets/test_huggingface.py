"""Datasets of Hugging Face: small ones, written to disk by the library itself."""

from __future__ import annotations

import io
from pathlib import Path

import datasets
import numpy as np
import pytest
import torch
from PIL import Image

from autotailor import data
from autotailor.data.labels import UNKNOWN
from picture_files import photo
from picture_files import section as folder_section

CLASSES = ["ant", "bee", "cat"]


def rows(count: int, first: int = 0, label: object = None) -> datasets.Dataset:
    features = datasets.Features({"image": datasets.Image(), "label": label or datasets.ClassLabel(names=CLASSES)})
    images = []
    for i in range(count):
        stream = io.BytesIO()
        photo(first + i, (24, 20)).save(stream, "PNG")
        images.append({"bytes": stream.getvalue(), "path": None})
    return datasets.Dataset.from_dict({"image": images, "label": [i % 3 for i in range(count)]}, features)


def section(dataset: Path, **more: object) -> dict[str, object]:
    return {"name": "hub", "kind": "huggingface", "dataset": str(dataset), "resolution": 16, **more}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    """Training, validation and test, as ``save_to_disk`` writes them."""
    parts = {"train": rows(12), "validation": rows(6, 100), "test": rows(3, 200)}
    datasets.DatasetDict(parts).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


def read(images: data.EvaluationSet) -> torch.Tensor:
    return torch.cat([batch for batch, _ in images.batches(4)])


def test_the_parts_of_a_saved_dataset_are_taken(saved: Path) -> None:
    splits = data.load(section(saved))
    assert (splits.num_classes, len(splits.train), len(splits.validation), len(splits.test)) == (3, 12, 6, 3)
    assert data.classes(section(saved)) == tuple(CLASSES)
    assert splits.test.labels.tolist() == [0, 1, 2]
    stream = splits.train
    whole = torch.cat([images for images, _ in stream.batches(1, 12)])
    assert torch.equal(torch.cat([images for images, _ in stream.batches(1, 3, start=2)]), whole[6:])


def test_pictures_are_those_of_a_folder(saved: Path, tmp_path: Path) -> None:
    for part, first, count in (("train", 0, 12), ("val", 100, 6), ("test", 200, 3)):
        for i in range(count):
            folder = tmp_path / "folder" / part / CLASSES[i % 3]
            folder.mkdir(parents=True, exist_ok=True)
            photo(first + i, (24, 20)).save(folder / f"{i:02}.png")
    same = data.load(folder_section(tmp_path / "folder"))
    hub, order = data.load(section(saved)), np.argsort(np.arange(3) % 3, kind="stable")
    assert torch.equal(read(hub.test)[order], read(same.test))


def test_one_table_is_divided_and_copies_stay_together(tmp_path: Path) -> None:
    whole = datasets.concatenate_datasets([rows(30), rows(30)])
    whole.save_to_disk(tmp_path / "one")
    splits = data.load(section(tmp_path / "one", label="label"))
    assert (len(splits.train), len(splits.validation), len(splits.test)) == (48, 6, 6)
    assert not set(splits.validation.groups) & set(splits.test.groups)
    assert len(set(splits.test.groups)) == 3


def test_pictures_beside_the_table_are_read_by_load_dataset_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for part, count in (("train", 5), ("test", 4)):
        for number, name in enumerate(CLASSES):
            folder = tmp_path / "pictures" / part / name
            folder.mkdir(parents=True)
            for i in range(count):
                photo(100 * number + i + 50 * count, (24, 20)).save(folder / f"{i}.png")
    given = section(tmp_path / "pictures", fractions=[0.8, 0.2, 0.2])
    with pytest.raises(data.DataError, match="fractions"):
        data.check(given)
    splits = data.load(section(tmp_path / "pictures"))
    assert (splits.num_classes, len(splits.test)) == (3, 12)
    before = data.fingerprint(section(tmp_path / "pictures"))
    picture = tmp_path / "pictures" / "train" / "ant" / "0.png"
    Image.new("RGB", (24, 20)).save(picture)
    assert data.fingerprint(section(tmp_path / "pictures")) != before


def test_labels_are_not_needed(saved: Path) -> None:
    splits = data.load(section(saved, labels=False, label="nothing"))
    assert (splits.labelled, set(splits.test.labels)) == (False, {UNKNOWN})


def test_a_training_on_a_saved_dataset_goes_on_where_it_was_moved(saved: Path, tmp_path: Path) -> None:
    before = data.load(section(saved)).fingerprint
    moved = saved.rename(tmp_path / "elsewhere")
    assert data.load(section(moved)).fingerprint == before
    assert data.load(section(moved, seed=1)).fingerprint != before


def test_the_fingerprint_is_that_of_the_content(saved: Path, tmp_path: Path) -> None:
    before = data.fingerprint(section(saved))
    assert data.fingerprint(section(saved.rename(tmp_path / "elsewhere"), resolution=32)) == before
    other = datasets.DatasetDict({"train": rows(12), "validation": rows(6, 100), "test": rows(3, 201)})
    other.save_to_disk(tmp_path / "other")
    assert data.fingerprint(section(tmp_path / "other")) != before


def test_what_cannot_be_used_is_refused_by_name(saved: Path, tmp_path: Path) -> None:
    names = datasets.Value("string")
    texts = rows(6).cast_column("label", names)
    texts.save_to_disk(tmp_path / "texts")
    rows(6).rename_column("image", "photo").save_to_disk(tmp_path / "renamed")
    datasets.DatasetDict({"val": rows(6)}).save_to_disk(tmp_path / "val")
    broken = datasets.Dataset.from_dict(
        {"image": [{"bytes": b"no picture", "path": None}] * 6, "label": [0, 1, 2] * 2}, rows(1).features
    )
    broken.save_to_disk(tmp_path / "broken")
    missing = {"image": [None, *rows(5)["image"]], "label": [0, 1, 2] * 2}
    datasets.Dataset.from_dict(missing, rows(1).features).save_to_disk(tmp_path / "missing")
    unlabelled = {"image": rows(6)["image"][:], "label": [0, 1, 2, 0, None, 2]}
    datasets.Dataset.from_dict(unlabelled, rows(1).features).save_to_disk(tmp_path / "unlabelled")
    for given, message in (
        (section(Path()) | {"dataset": ""}, r"set data\.dataset to a folder of save_to_disk"),
        (section(tmp_path / "nowhere"), r"cannot be loaded by load_dataset"),
        (section(saved, image="picture"), r"no column 'picture'; set data\.image to one of image, label"),
        (section(saved, label="class"), r"no column 'class'.*or data\.labels to false"),
        (section(saved, image="label"), r"label is no column of images"),
        (section(tmp_path / "renamed"), r"set data\.image to one of photo"),
        (section(saved, label="image"), r"the column image holds values of \w+; labels are .* data\.label names"),
        (section(tmp_path / "texts"), r"labels are whole numbers from 0 on"),
        (section(tmp_path / "val"), r"has the splits val, and none of them is train; save a DatasetDict"),
        (section(tmp_path / "missing"), r"the picture of row 0 is missing; leave the row out"),
        (section(tmp_path / "unlabelled"), r"row 4 has no label in the column label; give it one"),
        (section(tmp_path / "broken"), r"row 0 is no picture of a known format"),
    ):
        with pytest.raises(data.DataError, match=message):
            data.load(given)
