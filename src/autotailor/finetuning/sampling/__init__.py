"""Sampling strategies draw the SubNets that each training step trains; a strategy is one file with one ``register``."""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from typing import Any

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.sampling.strategy import STRATEGIES, Strategy, register
from autotailor.ir.space.metric import Metric
from autotailor.ir.space.variable import Space

__all__ = ["Strategy", "check_count", "create", "names", "parameters", "register"]


def names() -> tuple[str, ...]:
    """Names of all strategies, sorted."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(STRATEGIES))


def parameters(name: str, section: Mapping[str, Any]) -> Any:
    """The parameters of a strategy, as the dataclass that the strategy names (``Strategy.section``).

    Args:
        name: one of ``names()``.
        section: ``finetune.sampling`` of the configuration; parameters left out have their default.

    Raises:
        TrainingError: the strategy or a parameter is unknown (the message lists the known ones), or out of range.
    """
    return _known(name).section.from_section(section, where=f"strategy {name!r}: finetune.sampling")


def check_count(name: str, count: int) -> None:
    """Raises TrainingError where steps of so many SubNets would never train some of those that a strategy trains."""
    if count < (least := _known(name).least):
        raise TrainingError(
            f"finetune.subnets: {count} SubNets in each step are too few for the strategy {name}, which would never "
            f"train some sort of them; set at least {least}"
        )


def _known(name: str) -> type[Strategy]:
    if name not in names():
        raise TrainingError(f"finetune.strategy: unknown sampling strategy {name!r}; known are {', '.join(names())}")
    return STRATEGIES[name]


def create(
    name: str,
    space: Space,
    stages: Mapping[str, str],
    count: int,
    section: Mapping[str, Any] | None = None,
    macs: Callable[[], Metric] | None = None,
) -> Strategy:
    """Makes a strategy by name.

    Args:
        name: one of ``names()``.
        space: of the SuperNet.
        stages: variable name to the stage it belongs to.
        count: SubNets per step.
        section: ``finetune.sampling`` of the configuration.
        macs: makes the metric of multiply-accumulates, for strategies that draw by MACs.

    Raises:
        TrainingError: see ``parameters``.
    """
    given = parameters(name, section or {})
    return STRATEGIES[name](space, stages, count, given, macs)
