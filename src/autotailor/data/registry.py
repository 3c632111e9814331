"""The registry of datasets: each dataset is one file in ``datasets/`` with one call of ``register``."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
import json
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from autotailor.data.errors import DataError
from autotailor.data.labels import names_outputs

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

WHERE_AND_HOW = (
    "root",
    "download",
    "workers",
    "memory_gib",
    "cache",
)  # keys of any dataset that do not change the images
NEUTRAL = {"labels": True, "background": "white", "task": "classification", "targets": [], "table": ""}
"""Keys of later versions with the values that change nothing. The fingerprint leaves them out, so that a training that
an earlier version began still goes on."""
DATASETS = "autotailor.data.datasets"


class Dataset(ABC):
    """One kind of dataset, made from its section of the configuration (without ``kind``).

    Attributes:
        PLACES: keys of this dataset's section that only say where the data lie, because ``fingerprint`` holds all that
            these keys lead to.
    """

    PLACES: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def check(self) -> None:
        """Raises DataError where the data are missing and cannot be downloaded; runs before any other work."""

    @abstractmethod
    def classes(self) -> tuple[str, ...] | None:
        """Names of the classes in the order of their labels; None where the names are known only after loading."""

    def verify(self) -> None:
        """Raises DataError naming every file that cannot be used; may take as long as reading all data."""
        self.check()

    @abstractmethod
    def fingerprint(self) -> str:
        """Digest of the data's content, whatever folder holds the data; cheap where no file changed."""

    def training_fingerprint(self) -> str:
        """Digest of the content that training and validation pictures depend on; here that of all data."""
        return self.fingerprint()

    @abstractmethod
    def load(self) -> DataSplits:
        """Reads the data into the three splits."""


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
    """The factory of a kind. The module named like the kind is tried first: importing all modules takes long."""
    if kind.isidentifier() and importlib.util.find_spec(f"{DATASETS}.{kind}"):
        importlib.import_module(f"{DATASETS}.{kind}")
    if kind not in _FACTORIES:
        names()
    return _FACTORIES.get(kind)


def _dataset(section: Mapping[str, Any]) -> Dataset:
    if not isinstance(section, Mapping) or not isinstance(section.get("name"), str):
        raise DataError(
            f"data.name: the section data must be a mapping whose name is a dataset, one of {', '.join(names())}"
        )
    kind = section.get("kind", section["name"])
    factory = _factory(str(kind))
    if factory is None:
        raise DataError(
            f"data.{'kind' if 'kind' in section else 'name'}: unknown dataset {kind!r}; known are "
            f"{', '.join(names())} (images of your own: kind: folder, root: PATH)"
        )
    made = factory({key: value for key, value in section.items() if key != "kind"})
    if not isinstance(made, Dataset):
        raise DataError(f"dataset {kind!r}: its function made {type(made).__name__}, expected a Dataset; return it")
    return made


def load(section: Mapping[str, Any]) -> DataSplits:
    """The splits that a section of the configuration describes.

    Args:
        section: ``name`` and the parameters of the dataset. Where ``name`` is not a registered dataset, ``kind``
            names the registered dataset that reads the section.

    Raises:
        DataError: the dataset or a parameter is unknown, a value is out of range, or the data are missing.
    """
    from autotailor.data.contract import check_splits

    dataset = _dataset(section)
    dataset.check()
    splits = dataset.load()
    check_splits(str(section.get("kind", section["name"])), splits)
    stated = {k: v for k, v in meant(section).items() if not (k in NEUTRAL and v == NEUTRAL[k])}
    identity = json.dumps({**stated, "content": dataset.fingerprint()}, sort_keys=True, default=str)
    named = dataset.classes() or ()
    fits = len(named) == splits.num_classes and names_outputs(splits.validation.task)
    class_names = tuple(map(str, named)) if fits else ()
    return dataclasses.replace(splits, fingerprint=identity, classes=class_names)


def meant(section: Mapping[str, Any]) -> dict[str, Any]:
    """A section without the keys that say where its data lie and how its data are read: these do not change the images.

    Raises:
        DataError: the dataset or a parameter is unknown, or a value is out of range.
    """
    left_out = {*WHERE_AND_HOW, *_dataset(section).PLACES}
    return {key: value for key, value in section.items() if key not in left_out}


def check(section: Mapping[str, Any]) -> None:
    """Raises DataError where data are missing; the message names the files and the folder to put them into.

    Data that may be downloaded are downloaded here, once, so that no later rule fails because they are missing.
    """
    _dataset(section).check()


def verify(section: Mapping[str, Any]) -> None:
    """Raises DataError naming every file that cannot be used, after one pass over all files.

    ``load`` makes the same pass. Results are remembered, so that a second pass only compares sizes and times of files.
    """
    _dataset(section).verify()


def classes(section: Mapping[str, Any]) -> tuple[str, ...] | None:
    """Names of the classes in the order of their labels; None where the names are known only after loading.

    Raises:
        DataError: the data are missing.
    """
    return _dataset(section).classes()


def fingerprint(section: Mapping[str, Any]) -> str:
    """Digest of the content of a section's data: sorted relative paths with the hashes of the files.

    The digest depends neither on times, nor on the folder of the data, nor on the section's other parameters. A file
    is read again only where its path, size or times changed.

    Raises:
        DataError: the data are missing.
    """
    return _dataset(section).fingerprint()


def training_fingerprint(section: Mapping[str, Any]) -> str:
    """As ``fingerprint``, of the content that training and validation pictures depend on.

    Test pictures in files of their own are left out; those that are drawn from others by the seed count.
    """
    return _dataset(section).training_fingerprint()
