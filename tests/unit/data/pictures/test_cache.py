"""What a rule has made of pictures is there for the next rule, and for no other picture."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from autotailor import artifacts, data
from autotailor.data.pictures import reading


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two classes of pictures with alpha channels, so large that training reduces them."""
    random = np.random.default_rng(0)
    for name in ("cat", "dog"):
        (tmp_path / "photos" / name).mkdir(parents=True)
        for i in range(10):
            pixels = random.integers(0, 255, (90, 120, 4), dtype=np.uint8)
            Image.fromarray(pixels).save(tmp_path / "photos" / name / f"{i}.png")
    return tmp_path / "photos"


def images(photos: Path, **settings: Any) -> dict[str, torch.Tensor]:
    """Images of an epoch of training, and of validation and test."""
    section = {"name": "mine", "kind": "folder", "root": str(photos), "resolution": 16, "scale": [0.5, 1.0]}
    artifacts.swept.cache_clear()
    splits = data.load({**section, "cache": str(photos.parent / "work"), **settings})
    parts = {"train": splits.train.batches(0, 4), "val": splits.validation.batches(4), "test": splits.test.batches(4)}
    return {part: torch.cat([pixels for pixels, _ in found]) for part, found in parts.items()}


def equal(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> dict[str, bool]:
    return {part: torch.equal(one[part], other[part]) for part in one}


def kept(photos: Path) -> list[Path]:
    return sorted((photos.parent / "work" / "pictures").glob("*.npy"))


def closed(content: bytes, background: str = "white") -> Any:
    raise AssertionError("a picture was opened")


@pytest.mark.parametrize("background", ["white", "drop"])
def test_a_later_rule_opens_no_picture_and_sees_the_same(
    photos: Path, monkeypatch: pytest.MonkeyPatch, background: str
) -> None:
    plain = images(photos, cache="", background=background)
    assert not kept(photos)
    assert all(equal(images(photos, background=background), plain).values())
    assert len(kept(photos)) == 20
    monkeypatch.setattr(reading, "read_picture", closed)
    assert all(equal(images(photos, background=background), plain).values())


def test_pictures_over_another_background_at_another_resolution_or_of_another_content_are_others(photos: Path) -> None:
    first = images(photos)
    for settings in ({"background": "black"}, {"resolution": 12}, {"crop": 0.7, "scale": [0.1, 1.0]}):
        assert all(equal(images(photos, **settings), images(photos, cache="", **settings)).values())
    path = photos / "cat" / "3.png"
    Image.fromarray(np.zeros((90, 120, 3), dtype=np.uint8)).save(path)
    changed = images(photos)
    assert all(equal(changed, images(photos, cache="")).values())
    assert not all(equal(changed, first).values())


def test_a_damaged_file_is_made_anew_and_an_old_one_is_removed(photos: Path) -> None:
    first = images(photos)
    broken, cut, old, *_ = kept(photos)
    broken.write_bytes(b"no array")
    cut.write_bytes(cut.read_bytes()[:-5])
    (stray := old.with_name("0.npy")).write_bytes(b"")
    os.utime(stray, (0, 0))
    assert all(equal(images(photos), first).values())
    assert not stray.exists()
    assert np.load(broken).dtype == np.uint8


def test_a_folder_that_takes_no_files_and_a_set_beyond_the_limit_cost_time_alone(photos: Path) -> None:
    (photos.parent / "work").write_text("no folder")
    assert all(equal(images(photos), images(photos, cache="")).values())
    elsewhere = photos.parent / "elsewhere"
    images(photos, cache=str(elsewhere), memory_gib=0)
    assert not list(elsewhere.rglob("*.npy"))
