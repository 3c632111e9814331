"""A part of an evaluation set: which images it takes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from autotailor.data.excerpt import excerpt, share_of
from autotailor.data.splits import Batch, EvaluationSet, TensorEvaluationSet

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


def test_a_share_has_the_images_of_an_excerpt() -> None:
    part, expected = share_of(SORTED, 60), excerpt(SORTED, 60)
    assert torch.equal(torch.cat([images for images, _ in part.batches(7)]), expected.images)
    assert (part.labels == expected.labels).all()
    assert (part.groups == expected.groups).all()


@pytest.mark.parametrize("count", [0, 600, 601])
def test_all_images_are_the_set_itself(count: int) -> None:
    assert share_of(SORTED, count) is SORTED


def test_a_set_of_the_users_own_gives_a_part_of_its_images() -> None:
    """``part`` of the base class reads the set, whatever its batches."""

    class Own(EvaluationSet):
        labels, groups = SORTED.labels, SORTED.groups

        def batches(self, batch_size: int) -> Iterator[Batch]:
            yield from SORTED.batches(batch_size)

    positions = np.array([3, 255, 256, 599])
    part = Own().part(positions)
    images, labels = next(part.batches(9))
    assert images[:, 0, 0, 0].tolist() == positions.tolist()
    assert labels.tolist() == [0, 2, 2, 5]
    assert part.groups.tolist() == [1, 85, 85, 199]
