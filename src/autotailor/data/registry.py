"""Datasets by name: one file and one ``register`` each."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from autotailor.data.errors import DataError
from autotailor.sections import read_section

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

Config = TypeVar("Config")
WHERE_AND_HOW = ("root", "download", "workers")  # keys that change no image
DATASETS = "autotailor.data.datasets"


class Dataset(ABC):
    """One kind of dataset, made from its section of the configuration (without ``name``)."""

    @abstractmethod
    def check(self) -> None:
        """Raises DataError when the data cannot be had, before any work."""

    @abstractmethod
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes, label after label; None where only loading tells."""

    def verify(self) -> None:
        """Raises DataError naming everything in the data that cannot be used; may take as long as reading them all."""
        self.check()

    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of the content of the data, wherever they lie; cheap where nothing changed."""

    @abstractmethod
    def load(self) -> DataSplits:
        """The three splits."""


Factory = Callable[[Mapping[str, Any]], Dataset]
_FACTORIES: dict[str, Factory] = {}


def register(name: str) -> Callable[[Factory], Factory]:
    """Decorator: makes a factory known as the dataset ``name`` of the configuration."""

    def add(factory: Factory) -> Factory:
        if name in _FACTORIES:
            raise DataError(f"dataset {name!r} is registered twice; choose another name")
        _FACTORIES[name] = factory
        return factory

    return add


def names() -> tuple[str, ...]:
    """Names of all registered datasets, sorted."""
    from autotailor.data import datasets

    for module in pkgutil.iter_modules(datasets.__path__):
        importlib.import_module(f"{datasets.__name__}.{module.name}")
    return tuple(sorted(_FACTORIES))


def _factory(kind: str) -> Factory | None:
    """The factory of a kind; the file that is called like it is tried first, since others may import much."""
    if kind.isidentifier() and importlib.util.find_spec(f"{DATASETS}.{kind}"):
        importlib.import_module(f"{DATASETS}.{kind}")
    if kind not in _FACTORIES:
        names()
    return _FACTORIES.get(kind)


def _dataset(section: Mapping[str, Any]) -> Dataset:
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        raise DataError(f"the data section is a mapping with the name of a dataset, one of {', '.join(names())}")
    kind = section.get("kind", section["name"])
    factory = _factory(str(kind))
    if factory is None:
        raise DataError(
            f"unknown dataset {kind!r}; known are {', '.join(names())} (images of your own: kind: folder, root: PATH)"
        )
    return factory({key: value for key, value in section.items() if key != "kind"})


def load(section: Mapping[str, Any]) -> DataSplits:
    """The splits that a section of the configuration describes.

    Args:
        section: ``name`` and the parameters of the dataset. Where the name is not itself that of a registered
            dataset, ``kind`` says which one reads it.

    Raises:
        DataError: unknown dataset or parameter, a value out of range, or data that cannot be had.
    """
    dataset = _dataset(section)
    dataset.check()
    splits = dataset.load()
    meant = {key: value for key, value in section.items() if key not in WHERE_AND_HOW}
    identity = json.dumps({**meant, "content": dataset.fingerprint()}, sort_keys=True, default=str)
    return dataclasses.replace(splits, fingerprint=identity)


def check(section: Mapping[str, Any]) -> None:
    """Raises DataError at once when the data cannot be had: which file, and where to put it by hand.

    Data that may be downloaded are downloaded here, once, so that no later rule can fail for want of them.
    """
    _dataset(section).check()


def verify(section: Mapping[str, Any]) -> None:
    """Raises DataError naming what in the data cannot be used, after one pass over all of them.

    ``load`` does the same. What was looked at once is remembered, so that a second pass costs a look at the times.
    """
    _dataset(section).verify()


def classes(section: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Names of the classes, label after label; None where only loading the data tells.

    Raises:
        DataError: the data cannot be had.
    """
    return _dataset(section).classes()


def fingerprint(section: Mapping[str, Any]) -> str:
    """Digest of the content of a section's data: sorted relative paths with the hashes of the files.

    It depends neither on times nor on where the data lie, nor on the section's other parameters. A file is read again
    only where its path, size or times changed.

    Raises:
        DataError: the data cannot be had.
    """
    return _dataset(section).fingerprint()


def read_config(config: type[Config], section: Mapping[str, Any]) -> Config:
    """A dataset's parameters from its section; see ``autotailor.sections``."""
    return read_section(config, section, f"data {section.get('name')}", DataError)
