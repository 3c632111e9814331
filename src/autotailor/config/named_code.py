"""The teacher and the loss that the section ``finetune`` names are tried before any work.

The rule ``finetune`` tries both again, with the data. A run that first trains the original network would come to that
rule after hours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

SOME = 7
"""Classes with which a loss is tried where their number is not known yet."""


def check_named_code(config: Mapping[str, Any]) -> None:
    """Makes the teacher that a configuration names, and calls its loss.

    Args:
        config: a result of ``compose``, whose sections ``model``, ``data`` and ``finetune`` have been checked.

    Raises:
        TrainingError: the teacher cannot be made or has other classes than the network, or the loss does not return
            what training needs.
    """
    from autotailor import data
    from autotailor.finetuning.config import LARGEST, FinetuneConfig

    section, classes = config["finetune"], _classes(config)
    if not (section.get("teacher") or section.get("loss")):
        return
    finetune = FinetuneConfig.from_section(section)
    if finetune.teacher not in (None, LARGEST):
        from autotailor.finetuning.external_teacher import check_teacher

        check_teacher(finetune.teacher, classes, config["data"]["resolution"])
    if finetune.loss is not None:
        from autotailor.finetuning.loss import make_loss

        make_loss(finetune, classes or SOME, independent=False, labelled=data.has_labels(config["data"]))


def _classes(config: Mapping[str, Any]) -> int | None:
    """Number of the network's outputs; None where only the network itself could say it."""
    from autotailor import data

    if (outputs := config["model"].get("num_classes")) is not None:
        return int(outputs)
    names = data.classes(config["data"])
    return None if names is None else len(names)
