"""The resize, against PyTorch's."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from autotailor.runtime.serving.resize import resized, weights


@pytest.mark.parametrize(("before", "after"), [((32, 32), (24, 24)), ((24, 24), (32, 32)), ((224, 160), (97, 131))])
def test_the_resize_equals_torchs(before: tuple[int, int], after: tuple[int, int]) -> None:
    picture = np.random.default_rng(0).normal(size=(3, *before)).astype(np.float32)
    expected = torch.nn.functional.interpolate(torch.from_numpy(picture)[None], after, mode="bilinear", antialias=True)
    assert np.abs(resized(picture, *after) - expected[0].numpy()).max() < 1e-4


@pytest.mark.parametrize("before", [1, 2, 7, 33, 100])
@pytest.mark.parametrize("after", [1, 3, 32, 99])
def test_every_pair_of_sizes_has_weights_of_torch(before: int, after: int) -> None:
    unit = torch.eye(before, dtype=torch.float64).reshape(before, 1, 1, before)
    expected = torch.nn.functional.interpolate(unit, (1, after), mode="bilinear", antialias=True)[:, 0, 0].T
    assert np.abs(weights(before, after) - expected.numpy()).max() < 1e-6


def test_a_picture_of_the_right_size_is_not_copied() -> None:
    picture = np.zeros((3, 8, 8), dtype=np.float32)
    assert resized(picture, 8, 8) is picture
