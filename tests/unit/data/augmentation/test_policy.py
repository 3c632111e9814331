"""Policies of single images against torchvision's own transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torchvision.transforms import v2

from autotailor.data.augmentation.config import AugmentationConfig
from autotailor.data.augmentation.policy import POLICY, Policy
from autotailor.data.seeding import generator
from picture_files import photo

MEAN, STD, SEED = (0.5, 0.4, 0.3), (0.2, 0.25, 0.3), 5
HOW: dict[str, Any] = {"interpolation": v2.InterpolationMode.BILINEAR, "fill": [128, 102, 76]}
TORCHVISIONS = {
    "randaugment": v2.RandAugment(3, 12, **HOW),
    "trivialaugment": v2.TrivialAugmentWide(**HOW),
    "none": v2.Identity(),
}


def normalise(picture: Image.Image) -> torch.Tensor:
    pixels = v2.functional.to_dtype(v2.functional.pil_to_tensor(picture), torch.float32, scale=True)
    return v2.functional.normalize(pixels, list(MEAN), list(STD))


@pytest.mark.parametrize("name", TORCHVISIONS)
def test_an_image_is_what_torchvision_makes_with_the_random_numbers_of_its_position(name: str) -> None:
    policy = Policy(AugmentationConfig(name, operations=3, magnitude=12, erasing=0.5), SEED, MEAN)
    theirs = v2.Compose([TORCHVISIONS[name], normalise, v2.RandomErasing(p=0.5)])
    picture, changed = photo(0, (40, 32)), 0
    for epoch, position in ((0, 0), (0, 1), (3, 0), (3, 1), (3, 2), (10_000, 63)):
        ours = policy(picture, normalise, epoch, position)
        with torch.random.fork_rng(devices=[]):
            torch.set_rng_state(generator(SEED, POLICY, epoch, position).get_state())
            assert torch.equal(ours, theirs(picture))
        assert torch.equal(ours, policy(picture, normalise, epoch, position))
        changed += not torch.equal(ours, normalise(picture))
    assert changed >= 2


def test_what_is_erased_gets_the_mean_colour_of_the_data() -> None:
    policy = Policy(AugmentationConfig(erasing=1.0), SEED, MEAN)
    picture = photo(0, (40, 32))
    plain, erased = normalise(picture), policy(picture, normalise, 0, 0)
    changed = (plain != erased).any(0)
    assert 0.01 < changed.float().mean() < 0.5
    assert torch.equal(erased[:, ~changed], plain[:, ~changed])
    assert not erased[:, changed].any()


def test_what_lies_outside_of_a_shifted_picture_gets_the_mean_colour_of_the_data() -> None:
    policy = Policy(AugmentationConfig("trivialaugment"), SEED, MEAN)
    white, seen = Image.new("RGB", (32, 32), (255, 255, 255)), set[tuple[int, ...]]()

    def look(picture: Image.Image) -> torch.Tensor:
        seen.update(map(tuple, np.asarray(picture).reshape(-1, 3).tolist()))
        return normalise(picture)

    for position in range(60):
        policy(white, look, 0, position)
    assert (128, 102, 76) in seen
