"""The teachers and the loss that the sections ``finetune`` and ``polish`` name are tried before any work.

The rules try them again, with the data. A run that first trains the original network would come to these rules after
hours.
"""

from collections.abc import Collection, Mapping
from typing import Any

from autotailor.finetuning.joint import before_race
from autotailor.stages import STAGES
from autotailor.task.registry import of_section

SOME = 7
"""Classes with which a loss is tried where their number is not known yet."""
TEACHING = {
    section: tuple(name for name, stage in STAGES.items() if stage.trains and stage.accelerator == (section,))
    for section in ("finetune", "polish")
}
"""Sections that may name a teacher, each with the rules that always train with it."""


def check_named_code(config: Mapping[str, Any]) -> None:
    """Makes the teachers that a configuration names, and calls its loss; nothing is fetched.

    Args:
        config: a result of ``compose``, whose sections ``model``, ``data``, ``finetune`` and ``polish`` have been
            checked.

    Raises:
        TrainingError: a teacher cannot be made or has other classes than the network, or the loss does not return what
            training needs.
    """
    task, side = of_section(config["data"]), config["data"]["resolution"]
    for section, source in _teachers(config).items():
        from autotailor.finetuning.external_teacher import check_teacher

        check_teacher(source, task, _classes(config), side, f"{section}.teacher")
    if config["finetune"].get("loss"):
        from autotailor import data
        from autotailor.finetuning.config import FinetuneConfig
        from autotailor.finetuning.loss import make_loss

        finetune = FinetuneConfig.from_section(config["finetune"])
        classes, labelled = _classes(config) or SOME, data.has_labels(config["data"])
        make_loss(finetune, task, classes, independent=False, labelled=labelled)


def fetch_teachers(config: Mapping[str, Any], rules: Collection[str]) -> None:
    """Fetches the weights of timm's networks that teach in some rules, and tries the networks.

    Args:
        config: a result of ``compose`` that has been checked.
        rules: names of the rules that will run.

    Raises:
        TrainingError: weights cannot be fetched, or a network cannot teach these classes.
    """
    for section, source in _teachers(config).items():
        if source.startswith("timm:") and not set(rules).isdisjoint(_taught(config, section)):
            from autotailor.finetuning.external_teacher import fetch_teacher

            fetch_teacher(
                source, of_section(config["data"]), _classes(config), config["data"]["resolution"], f"{section}.teacher"
            )


def _taught(config: Mapping[str, Any], section: str) -> tuple[str, ...]:
    """Rules that train with the teacher of a section."""
    is_joint = section == "finetune" and before_race(config["polish"], config["finetune"]) is not None
    return (*TEACHING[section], "polish") if is_joint else TEACHING[section]


def _teachers(config: Mapping[str, Any]) -> dict[str, str]:
    """Sources of teachers that are neither the original network nor a SubNet, by the section that names them."""
    named = {section: config[section].get("teacher") for section in TEACHING}
    if not config["polish"].get("rounds"):
        del named["polish"]
    return {section: source for section, source in named.items() if isinstance(source, str) and ":" in source}


def _classes(config: Mapping[str, Any]) -> int | None:
    """Number of the network's outputs; None where only the network itself could say it."""
    from autotailor import data

    if (outputs := config["model"].get("num_classes")) is not None:
        return int(outputs)
    names = data.classes(config["data"])
    return None if names is None else len(names)
