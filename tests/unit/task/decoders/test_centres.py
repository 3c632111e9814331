"""A peak of the heat map is a box of the sizes that are there."""

from __future__ import annotations

import pytest
import torch

from autotailor.task.decoders.centres import centres


@pytest.mark.parametrize("offset", [None, 0.25])
def test_a_peak_is_a_box_in_pixels_of_the_image(offset: float | None) -> None:
    heat, sides = torch.full((2, 3, 8, 16), -9.0), torch.zeros(2, 2, 8, 16)
    heat[1, 2, 4, 6], heat[1, 2, 4, 7] = 3.0, 2.0
    sides[1, :, 4, 6] = torch.tensor([4.0, 2.0])
    maps = (heat, sides) if offset is None else (heat, sides, torch.full((2, 2, 8, 16), offset))
    _, found = centres(maps, 64)
    x, y = (6 + (0.5 if offset is None else offset)) * 4, (4 + (0.5 if offset is None else offset)) * 8
    assert found["boxes"][0].tolist() == [x - 8, y - 8, x + 8, y + 8]
    assert (found["labels"][0], found["scores"][0]) == (2, pytest.approx(torch.tensor(3.0).sigmoid().item()))
    assert found["scores"][1] < 0.01, "the neighbour of a peak is none"
