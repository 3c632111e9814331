"""What the parameters of a training say of its teacher."""

from dataclasses import replace
from typing import Protocol, TypeVar

from autotailor.data.splits import DataSplits
from autotailor.finetuning.config import DistillationConfig
from autotailor.task.interface import Lesson


class _Taught(Protocol):
    """Parameters of a training with a teacher."""

    @property
    def distillation(self) -> DistillationConfig: ...
    @property
    def label_smoothing(self) -> float: ...


Taught = TypeVar("Taught", bound=_Taught)


def lesson_of(config: _Taught, independent: bool) -> Lesson:
    """How a network learns; ``independent`` as in ``Lesson``."""
    taught = config.distillation
    return Lesson(taught.weight, taught.temperature, config.label_smoothing, independent)


def teacher_alone(config: Taught, data: DataSplits) -> Taught:
    """The parameters of a training on these data: without labels, the teacher has all the weight."""
    if data.labelled:
        return config
    alone = replace(config.distillation, weight=1.0)
    return replace(config, distillation=alone)  # type: ignore[type-var]  # every such class is a dataclass
