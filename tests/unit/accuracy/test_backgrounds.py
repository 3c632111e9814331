"""Pictures with transparency: how many there are, and over which background a network knows them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from autotailor import data
from autotailor.accuracy.backgrounds import find_transparent, judge
from autotailor.accuracy.teaching import AnsweredSet
from autotailor.data.preparation import Judgement


class Bright(nn.Module):
    """Answers class 0 for bright pictures, and class 1 for dark ones."""

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        mean = images.mean((1, 2, 3))
        return torch.stack([mean, 0.5 - mean], 1)


@pytest.fixture
def splits(tmp_path: Path) -> data.DataSplits:
    """Test pictures: 12 of cat, a dark spot on what is transparent, 12 of dog, dark and without transparency."""
    random = np.random.default_rng(0)
    for part in ("train", "val", "test"):
        for name in ("cat", "dog"):
            folder = tmp_path / part / name
            folder.mkdir(parents=True)
            for i in range(12):
                pixels = random.integers(0, 60, (20, 20, 4), dtype=np.uint8)
                pixels[..., 3] = 255
                if name == "cat":
                    pixels[: 10 + i // 2, :, 3] = 0
                    pixels[:, 10:, 3] = 0
                Image.fromarray(pixels).save(folder / f"{i}.png")
    section = {"name": "mine", "kind": "folder", "root": str(tmp_path), "resolution": 16, "crop": 1.0}
    return data.load({**section, "mean": [0.0] * 3, "std": [1.0] * 3})


@pytest.mark.parametrize("chosen", ["white", "black"])
def test_a_network_that_knows_pictures_over_one_background_alone_is_told_of(
    chosen: str, splits: data.DataSplits
) -> None:
    images = splits.test.over(chosen)
    assert images is not None
    found = find_transparent(images, chosen)
    assert found is not None
    assert (found.looked_at, found.pictures) == (24, 12)
    judged = judge(Bright(), found)
    better = {"white": "", "black": "white"}[chosen]
    assert judged == Judgement(24, 12, {"white": 100.0, "black": 0.0, "drop": 0.0}, differs=True, better=better)
    assert judged.sentence.endswith({"white": "no other is clearly better", "black": "to white"}[chosen])
    assert "right on 100.0 % over white, 0.0 % over black, 0.0 % with the stored colours (drop)" in judged.sentence
    assert judge(always_first(), found).differs is False


def always_first() -> nn.Module:
    """Always answers class 0."""
    return nn.Sequential(nn.Flatten(), ToFirst())


class ToFirst(nn.Module):
    def forward(self, flat: torch.Tensor) -> torch.Tensor:
        return torch.tensor([1.0, 0.0]).expand(len(flat), 2)


def test_pictures_without_transparency_and_images_that_are_no_files_say_nothing(splits: data.DataSplits) -> None:
    opaque = splits.test.part(np.flatnonzero(splits.test.labels == 1))
    assert find_transparent(opaque, "white") is None
    images, labels = next(splits.test.batches(24))
    made = replace(splits, test=data.splits.TensorEvaluationSet(images, labels, np.arange(24)))
    assert find_transparent(made.test, "white") is None


def test_pictures_without_labels_of_their_own_are_counted_and_not_judged(splits: data.DataSplits) -> None:
    answered = AnsweredSet(splits.test, np.zeros(24, dtype=np.int64))
    found = find_transparent(answered, "white", labelled=False)
    assert found is not None
    assert judge(Bright(), found) == Judgement(24, 12)
