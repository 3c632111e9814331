"""Parameters of a joint training: those of ``finetune``, for other epochs and at another rate."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.training.config import LoopConfig
from autotailor.sections import Section
from autotailor.values import AboveZero, Natural

if TYPE_CHECKING:
    from autotailor.finetuning.config import FinetuneConfig

OF_THE_JOB = ("accelerator", "processes", "nodes", "workers")
"""Parameters that one job can have but once."""
SAME = {"adamw_fused": "adamw"}
"""Optimizers that differ by rounding alone."""


class JointConfig(Section, of="polish.joint", error=TrainingError):
    """How a SuperNet is trained on for some of its SubNets.

    Attributes:
        epochs: of the training; 0 leaves it out.
        lr_share: learning rate over that of polishing, for whose optimizer it is; all else is as in ``finetune``.
    """

    epochs: Natural = 0
    lr_share: AboveZero = 2.0


def continued(finetune: Mapping[str, Any], epochs: int, lr: float) -> dict[str, Any]:
    """The section of a joint training.

    Args:
        finetune: the section of the training of the SuperNet, which has sorted the channels already.
        epochs: of the joint training.
        lr: its learning rate.
    """
    return {**finetune, "epochs": epochs, "lr": lr, "sort": False, "resume_from": None, "freeze": None, "stages": []}


def before_race(polish: Mapping[str, Any], finetune: Mapping[str, Any]) -> dict[str, Any] | None:
    """The section of the training that comes before the race of the rule ``polish``.

    Args:
        polish: the section ``polish`` of a configuration that has been checked.
        finetune: its section ``finetune``.

    Returns:
        The section, for ``FinetuneConfig``; None where candidates do not train together, or not at all.
    """
    joint = JointConfig(**polish.get("joint", {}))
    if not joint.epochs or not polish.get("rounds"):
        return None
    of_training = continued(finetune, joint.epochs, joint.lr_share * polish.get("lr", LoopConfig.lr))
    of_training |= {key: polish[key] for key in OF_THE_JOB if key in polish}
    return of_training | {"optimizer": _optimizer(polish, finetune)}


def config_before_race(polish: Mapping[str, Any], finetune: Mapping[str, Any]) -> FinetuneConfig | None:
    """The parameters that ``before_race`` gives the section of; None where candidates do not train together.

    Raises:
        TrainingError: the processes of ``polish`` cannot train with the parameters of ``finetune``.
    """
    from autotailor.finetuning.config import FinetuneConfig

    section = before_race(polish, finetune)
    return None if section is None else FinetuneConfig.from_section(section)


def _optimizer(polish: Mapping[str, Any], finetune: Mapping[str, Any]) -> str:
    """That of ``polish``, whose rate it is; where that of ``finetune`` is the same but for rounding, the latter."""
    of_race, of_supernet = (str(each.get("optimizer", LoopConfig.optimizer)) for each in (polish, finetune))
    is_same = SAME.get(of_race, of_race) == SAME.get(of_supernet, of_supernet)
    return of_supernet if is_same else of_race
