"""A part of an evaluation set: which images it takes."""

from __future__ import annotations

import numpy as np
import torch

from autotailor.data.excerpt import excerpt
from autotailor.data.splits import TensorEvaluationSet

IMAGES = torch.arange(600.0).reshape(600, 1, 1, 1).expand(600, 3, 2, 2)
SORTED = TensorEvaluationSet(IMAGES, np.arange(600) // 100, np.arange(600) // 3)


def test_a_set_that_is_sorted_by_class_gives_images_of_all_classes_with_their_labels_and_groups() -> None:
    part = excerpt(SORTED, 60)
    numbers = part.images[:, 0, 0, 0].long().numpy()
    assert len(part) == len(part.images) == 60
    assert np.bincount(part.labels).tolist() == [10] * 6
    assert (part.labels == numbers // 100).all()
    assert (part.groups == numbers // 3).all()


def test_more_images_than_the_set_has_are_the_whole_set_once() -> None:
    part = excerpt(SORTED, 10_000)
    assert torch.equal(part.images, IMAGES)
    assert (part.labels == SORTED.labels).all()
