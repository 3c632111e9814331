"""How far the outputs of two networks are from each other, picture by picture."""

from typing import Any

import pytest
import torch

from autotailor.task.interface import Lesson
from autotailor.task.registry import find
from autotailor.task.rows import WORST

LESSON = Lesson(weight=1.0)


def drawn(*shape: int, seed: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def several(seed: int) -> tuple[torch.Tensor, ...]:
    return drawn(3, 4, 6, 6, seed=seed), drawn(3, 7, seed=seed + 1)


@pytest.mark.parametrize(
    ("task", "outputs", "others"),
    [
        ("classification", drawn(3, 5, seed=0), drawn(3, 5, seed=1)),
        ("multilabel", drawn(3, 5, seed=0), drawn(3, 5, seed=1)),
        ("segmentation", drawn(3, 4, 8, 8, seed=0), drawn(3, 4, 8, 8, seed=1)),
        ("segmentation", drawn(3, 4, 6, 6, seed=0), drawn(3, 4, 8, 8, seed=1)),
        ("embedding", drawn(3, 16, seed=0), drawn(3, 16, seed=1)),
        ("detection", several(0), several(2)),
        ("outputs", several(0), several(2)),
    ],
)
def test_each_picture_has_the_loss_of_a_student_that_sees_it_alone(task: str, outputs: Any, others: Any) -> None:
    found = find(task).apart(outputs, others, LESSON)
    assert found.shape == (3,)
    assert (found > 0).all()
    mine, theirs = (
        tuple(each[1:2] for each in both) if isinstance(both, tuple) else both[1:2] for both in (outputs, others)
    )
    torch.testing.assert_close(found[1], find(task).loss(mine, torch.empty(0), theirs, LESSON))
    assert find(task).apart(others, others, LESSON) == pytest.approx(0.0, abs=1e-6)


def test_a_network_that_has_diverged_is_as_far_as_can_be() -> None:
    outputs = drawn(2, 5, seed=0)
    outputs[0, 3] = float("nan")
    found = find("classification").apart(outputs, drawn(2, 5, seed=1), LESSON)
    assert found[0] == WORST
    assert found[1] < WORST
