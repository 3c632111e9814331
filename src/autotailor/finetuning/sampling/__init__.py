"""Sampling strategies draw the SubNets that each training step trains; a strategy is one file with one ``register``."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping

from autotailor.finetuning.errors import TrainingError
from autotailor.finetuning.sampling.strategy import STRATEGIES, Strategy, register
from autotailor.ir.space.variable import Space

__all__ = ["Strategy", "create", "names", "register"]


def names() -> tuple[str, ...]:
    """Names of all strategies, sorted."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(sorted(STRATEGIES))


def create(name: str, space: Space, stages: Mapping[str, str], count: int) -> Strategy:
    """Makes a strategy by name.

    Args:
        name: one of ``names()``.
        space: of the SuperNet.
        stages: variable name to the stage it belongs to.
        count: SubNets per step.

    Raises:
        TrainingError: the name is unknown; the message lists the known names.
    """
    if name not in names():
        raise TrainingError(f"unknown sampling strategy {name!r}; known are {', '.join(names())}")
    return STRATEGIES[name](space, stages, count)
