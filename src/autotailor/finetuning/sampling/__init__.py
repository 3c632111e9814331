"""Sampling strategies: which SubNets each training step trains. One file and one ``register`` each."""

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
    """A strategy by name.

    Raises:
        TrainingError: unknown name; the message lists the known ones.
    """
    if name not in names():
        raise TrainingError(f"unknown sampling strategy {name!r}; known are {', '.join(names())}")
    return STRATEGIES[name](space, stages, count)
