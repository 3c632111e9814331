"""The registry of tasks: each task is one file in ``tasks/`` with one call of ``register``."""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from autotailor.data.labels import CLASSIFICATION, UNKNOWN, has_labels
from autotailor.sections import meant
from autotailor.task.errors import TaskError
from autotailor.task.interface import Task
from autotailor.task.scores import Score

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits, EvaluationSet

Kind = TypeVar("Kind", bound=type[Task])
_KINDS: dict[str, type[Task]] = {}


def register(kind: Kind) -> Kind:
    """Decorator: makes a task known by its name."""
    if kind.name in _KINDS:
        raise TaskError(f"task {kind.name!r} is registered twice; choose another name")
    _KINDS[kind.name] = kind
    return kind


def names() -> tuple[str, ...]:
    """Names of all registered tasks, sorted."""
    from autotailor.task import tasks

    for module in pkgutil.iter_modules(tasks.__path__):
        importlib.import_module(f"{tasks.__name__}.{module.name}")
    return tuple(sorted(_KINDS))


@functools.cache
def find(name: str) -> Task:
    """The task of a name, behind which may stand what the task is told; raises TaskError where there is none."""
    kind, _, told = name.partition(" ")
    if kind not in names():
        raise TaskError(f"data.task: unknown task {kind!r}; known are {', '.join(names())}{meant(kind, names())}")
    return _KINDS[kind](told)


def of(data: DataSplits | EvaluationSet) -> Task:
    """The task of data, whose targets have the form that it expects.

    Raises:
        TaskError: the targets have another form or are of no use to the task, or the task is unknown.
    """
    from autotailor.data.splits import DataSplits

    images = data.validation if isinstance(data, DataSplits) else data
    task = find(images.task)
    if isinstance(data, DataSplits):
        _check_labels(task, data.labelled)
    has_none = images.labels.ndim == 1 and (task.compares or bool((images.labels == UNKNOWN).all()))
    has_floats = images.labels.dtype.kind == "f"
    strange = (task.target_axes == 3 and has_floats != task.has_boxes) or (task.has_numbers and not has_floats)
    if (images.labels.ndim != task.target_axes or strange) and not has_none:
        raise TaskError(
            f"data.task is {task.name}, whose targets have {task.target_axes} axes, and the data have targets of shape "
            f"{list(images.labels.shape)}; name the task of these data, or the data of this task (data.kind)"
        )
    return task


def of_section(section: Mapping[str, Any]) -> Task:
    """The task that a section ``data`` of the configuration names.

    Raises:
        TaskError: see ``find``, and the pictures have labels that the task cannot use.
    """
    task = find(f"{section.get('task', CLASSIFICATION)} {section.get('decode', '')}".strip())
    _check_labels(task, has_labels(section))
    return task


def _check_labels(task: Task, labelled: bool) -> None:
    """Raises TaskError for labels that a task cannot use."""
    if labelled and not task.labelled:
        raise TaskError(f"data.task is {task.name}, which compares with the original network; set data.labels to false")


def score_of(data: DataSplits) -> Score:
    """What is reported of networks on some data."""
    task = of(data)
    return task.score if data.labelled else task.agreement


def score(section: Mapping[str, Any]) -> Score:
    """What is reported of networks on the data of a section ``data`` of the configuration."""
    task = of_section(section)
    return task.score if has_labels(section) else task.agreement
