"""Cases of segmentation, detection, sound and motion, each from its data to its exports: one file for each."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from torch import nn

from pipelines import detection, motion, segmentation, sound


class Case(NamedTuple):
    """What a person has, and gives.

    Attributes:
        factory: ``module:function`` of the network, whose checkpoint is given beside it.
        signal: shape of a signal, where the network takes signals and is therefore given as an ONNX file; else ().
        write: writes the data into a new folder, by a seed, and no more than some of them where a number says so.
        given: the data in the folder, for ``inspect --data``.
        network: makes the network without trained weights.
        train: trains a network in the person's own loop on the folder's data, by a seed; returns the images seen.
        inspect: further arguments of ``inspect``.
        overrides: further arguments of ``run``.
    """

    factory: str
    signal: tuple[int, ...]
    write: Callable[[Path, int, int], Path]
    given: str
    network: Callable[[], nn.Module]
    train: Callable[[nn.Module, Path, int], int]
    inspect: tuple[str, ...]
    overrides: tuple[str, ...]


def _case(module: ModuleType) -> Case:
    """The case of a module of this folder."""
    parts = (module.write, module.GIVEN, module.network, module.train, module.INSPECT, module.OVERRIDES)
    return Case(f"{module.__name__}:network", module.SIGNAL, *parts)


MODULES = {"sound": sound, "motion": motion, "segmentation": segmentation, "detection": detection}
CASES = {name: _case(module) for name, module in MODULES.items()}
