"""The two usual forms of YOLO's output say the same boxes, and overlapping ones are suppressed."""

from __future__ import annotations

import pytest
import torch

from autotailor.task.decoders.yolo import yolo

PLACES = [[32.0, 20.0, 10.0, 8.0], [33.0, 20.0, 10.0, 8.0], [50.0, 50.0, 4.0, 4.0], *([[5.0, 5.0, 2.0, 2.0]] * 9)]
SCORES = [[0.1, 0.9, 0.0], [0.0, 0.8, 0.0], [0.7, 0.0, 0.0], *([[0.0, 0.0, 0.0]] * 9)]


@pytest.mark.parametrize("has_objects", [False, True])
def test_both_forms_of_the_output_are_read(has_objects: bool) -> None:
    boxes, scores = torch.tensor(PLACES), torch.tensor(SCORES)
    likelihood = torch.full((len(PLACES), 1), 0.5)
    whole = torch.cat([boxes, likelihood, 2 * 0.5 * scores] if has_objects else [boxes, scores], 1)[None]
    (found,) = yolo(whole if has_objects else whole.transpose(1, 2), 64)
    scale = 0.5 if has_objects else 1.0
    torch.testing.assert_close(found["scores"], torch.tensor([0.9, 0.7, 0.1]) * scale)
    assert found["labels"].tolist() == [1, 0, 0]
    assert found["boxes"][0].tolist() == [27.0, 16.0, 37.0, 24.0]


def test_an_output_of_another_rank_is_refused() -> None:
    with pytest.raises(ValueError, match=r"not \[1, 7, 8, 8\]"):
        yolo(torch.zeros(1, 7, 8, 8), 64)
