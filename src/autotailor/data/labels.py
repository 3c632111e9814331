"""Whether pictures have labels, and for which task.

What labels are, the task itself says (``task.Task``), whose room stands above this one: ``autotailor`` tells this room
how a task is found (``tasks_are_found``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy.typing as npt

UNKNOWN = -1
"""The label of an image that has none."""
IGNORED = 255
"""What a map of classes has where a pixel does not count."""
BOX = ("left", "top", "right", "bottom", "class", "crowd")
"""What a row of a picture's boxes has, float32: edges as shares of its sides, the number of the class (``UNKNOWN``
where the row is no box), and 1 where the box surrounds a crowd, else 0."""
CLASSIFICATION = "classification"
"""The task of data that name no other."""
REGRESSION = "regression"
"""The task whose labels are numbers, float32 ``[n, k]``."""
EMBEDDING = "embedding"
"""The task whose classes are those of the pictures, and not the network's outputs."""


class Labelled(Protocol):
    """What a task says of its labels, see ``task.Task``."""

    @property
    def has_numbers(self) -> bool: ...
    @property
    def names_outputs(self) -> bool: ...


_tasks: list[Callable[[str], Labelled]] = []


def tasks_are_found(by: Callable[[str], Labelled]) -> None:
    """Says how a task is found by its name, behind which may stand what the task is told."""
    _tasks[:] = [by]


def has_labels(section: Mapping[str, Any]) -> bool:
    """Whether the pictures of a section ``data`` of the configuration have labels."""
    return bool(section.get("labels", True))


def labels_suffice(section: Mapping[str, Any]) -> bool:
    """Whether labels alone judge a section's pictures; else answers of the original network do, or labels with them."""
    return has_labels(section) and names_outputs(str(section.get("task", CLASSIFICATION)))


def has_numbers(task: str) -> bool:
    """Whether the labels of a task, behind whose name may stand what it is told, are numbers."""
    return _tasks[0](task).has_numbers


def names_outputs(task: str) -> bool:
    """Whether the classes of a task, behind whose name may stand what it is told, are the network's outputs."""
    return _tasks[0](task).names_outputs


def scaled(task: str, labels: npt.NDArray[Any]) -> str:
    """The name of a task; where its labels are numbers ``[n, k]``, with what it is told of their scale behind it.

    The scale is told as means and standard deviations in JSON. A number that is the same everywhere has the unit one.
    """
    if not has_numbers(task) or labels.ndim != 2:
        return task
    import numpy as np

    numbers = np.asarray(labels, dtype=np.float64)
    spreads = numbers.std(axis=0)
    scale = json.dumps([numbers.mean(axis=0).tolist(), np.where(spreads > 0, spreads, 1.0).tolist()])
    return f"{task.partition(' ')[0]} {scale}"


def name_numbers(count: int) -> tuple[str, ...]:
    """Names of numbers that have none: ``y``, or ``y0``, ``y1`` and so on."""
    return ("y",) if count == 1 else tuple(f"y{number}" for number in range(count))
