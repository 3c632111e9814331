"""Datasets of the user's: ``data.source`` names a function that returns PyTorch ``Dataset`` objects.

Their items are pairs of an image (PIL, array or tensor, see ``pictures.items``) and a label. autotailor crops, flips
and normalises the images itself, each training image by (seed, epoch, index), so that an interrupted training continues
exactly. Items must therefore be the same whenever they are read; items with random augmentations are refused.

Of a change of the data, these are noticed: the code of the function's module, ``data.arguments``, the number of items,
labels that the dataset lists (``targets`` or ``labels``), and ``SAMPLE`` items of each part, with their pixels. For any
other change, ``data.version`` is a text that the user changes.
"""

from __future__ import annotations

import functools
import hashlib
import json
import logging
from collections.abc import Collection, Mapping, Sized
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.code import factory_content
from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN, has_numbers
from autotailor.data.pictures.parts import NAMES, DividedConfig
from autotailor.data.progress import progress
from autotailor.data.registry import Dataset, register
from autotailor.project.factory import FAILURES, find_factory, raised

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

logger = logging.getLogger(__name__)
SAMPLE = 16
LISTS = ("targets", "labels")  # attributes in which datasets list their labels
IntArray = npt.NDArray[np.int64]


class SourceConfig(DividedConfig):
    """Parameters of ``source``.

    Attributes:
        source: ``package.module:factory``, a function that returns one Dataset, a tuple of training, validation and
            test, or a mapping.
        arguments: keyword arguments of the function.
        version: a text to be changed where items change that are not among those looked at.
    """

    source: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    version: str = ""


@dataclass(frozen=True)
class Items:
    """Opens the items of one part by their number.

    Attributes:
        place: the part, for messages.
        items: the user's dataset.
        labelled: whether items are pairs of an image and a label; otherwise a label may be missing.
        background: what transparent pixels stand over, as ``data.background``.
        numbers: whether a label is one number or more of a regression; otherwise it is the number of a class.
    """

    place: str
    items: Any
    labelled: bool
    background: str = "white"
    numbers: bool = False

    def __len__(self) -> int:
        return len(self.items)

    def __call__(self, index: int) -> Any:
        """The picture of an item: RGB and upright."""
        return self.read(index)[0]

    def read(self, index: int) -> tuple[Any, Any]:
        """The picture of an item, and its label, of a regression ``[k]``; ``UNKNOWN`` where labels are not read.

        Raises:
            DataError: the item cannot be read, or is no picture with a label.
        """
        from autotailor.data.pictures.items import to_picture

        where = f"{self.place}: item {index}"
        try:
            item = self.items[index]
        except Exception as error:  # the user's own code may raise anything; SystemExit ends a run that is terminated
            raise DataError(f"{where} cannot be read ({raised(error)})") from error
        if self.labelled and not (isinstance(item, tuple | list) and len(item) >= 2):
            raise DataError(
                f"{where} is a {type(item).__name__}; return (image, label), or set data.labels to false for pictures "
                f"without labels"
            )
        image, label = (item[0], item[1]) if self.labelled else (item[0] if _is_pair(item) else item, UNKNOWN)
        try:
            return to_picture(image, self.background), self._label(label)
        except DataError as error:
            raise DataError(f"{where}: {error}") from error

    def _label(self, label: Any) -> Any:
        return _numbers(label) if self.numbers and self.labelled else _label(label)

    def labels(self) -> npt.NDArray[Any]:
        """The labels of all items: those that the dataset lists, else those of the items, each of which is read."""
        if not self.labelled:
            return np.full(len(self), UNKNOWN, dtype=np.int64)
        if not self.numbers and (listed := listed_labels(self.items)) is not None:
            return listed
        with progress(f"reading the labels of {self.place}", len(self)) as advance:
            labels = []
            for index in range(len(self)):
                labels.append(self.read(index)[1])
                advance()
        if len(sizes := {np.size(label) for label in labels}) > 1:
            raise DataError(f"{self.place}: labels of its items have {sorted(sizes)} numbers; give all as many")
        return np.array(labels, dtype=np.float32 if self.numbers else np.int64)

    def sample(self) -> str:
        """Digest of the number of items, of listed labels, and of ``SAMPLE`` items.

        Raises:
            DataError: an item cannot be read, differs when it is read again, or has another label than the listed one.
        """
        digest = hashlib.sha256(str(len(self)).encode())
        listed = listed_labels(self.items) if self.labelled and not self.numbers else None
        if listed is not None:
            digest.update(listed.tobytes())
        for index in np.unique(np.linspace(0, len(self) - 1, SAMPLE).astype(np.int64)).tolist():
            (picture, label), (again, _) = self.read(index), self.read(index)
            if picture.tobytes() != again.tobytes():
                raise DataError(
                    f"{self.place}: item {index} is another picture each time it is read; return it without random "
                    f"augmentation, since autotailor crops and flips by seed, epoch and index"
                )
            if listed is not None and label != listed[index]:
                raise DataError(
                    f"{self.place}: item {index} has the label {label}, and the dataset lists {listed[index]} for it; "
                    f"make both agree"
                )
            digest.update(f"{picture.size} {label} ".encode() + picture.tobytes())
        return digest.hexdigest()


class Source(Dataset):
    """Datasets that the user's function makes."""

    def __init__(self, config: SourceConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError where the function cannot be called, or returns no usable datasets."""
        self._parts()

    def classes(self) -> tuple[str, ...] | None:
        """The attribute ``classes`` of the training items; None where it lists nothing, or without labels."""
        names = getattr(self._parts()["train"].items, "classes", None)
        if not self._config.labels or isinstance(names, str) or not isinstance(names, Collection):
            return None
        return tuple(map(str, names))

    def verify(self) -> None:
        """Reads a sample of each part twice; reading all items would take as long as an epoch at each start."""
        for items in self._parts().values():
            items.sample()

    def fingerprint(self) -> str:
        """See Dataset; the module's docstring says what is noticed."""
        samples = [f"{name} {items.sample()}" for name, items in self._parts().items()]
        code = factory_content(self._config.source, Path(".snakemake") / "autotailor" / "source.json")
        digests = [
            code,
            json.dumps(self._config.arguments, sort_keys=True, default=str),
            self._config.version,
            *samples,
        ]
        return hashlib.sha256(repr(digests).encode()).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import Opened, divided

        logger.info(
            "data %s: a change of %s is noticed by its code, its arguments, the number of items, listed labels and %d "
            "items of each part; change data.version where other items change",
            self._config.name,
            self._config.source,
            SAMPLE,
        )
        parts = {
            name: Opened(items, items.labels(), [f"{name} {i}" for i in range(len(items))])
            for name, items in self._parts().items()
        }
        labels = [part.labels for part in parts.values()]
        count = labels[0].shape[1] if labels[0].ndim == 2 else max(each.max() for each in labels) + 1
        classes = self.classes() or tuple(map(str, range(count)))
        return divided(self._config, classes, parts)

    def _parts(self) -> dict[str, Items]:
        config = self._config
        made = _made(config.source, json.dumps(config.arguments, sort_keys=True), config.name)
        how = config.labels, config.background, has_numbers(config.task)
        return {
            part: Items(f"data {config.name}: {part} of {config.source}", items, *how) for part, items in made.items()
        }


@functools.cache
def _made(source: str, arguments: str, name: str) -> dict[str, Any]:
    """The user's datasets by part; made once in a process, because a function may take long."""
    if not source:
        raise DataError(f"data {name}: set data.source to package.module:factory, a function that returns Datasets")
    where = f"data {name}: data.source {source}"
    factory = find_factory(source, f"data {name}: data.source", DataError)
    try:
        made = factory(**json.loads(arguments))
    except FAILURES as error:
        raise DataError(f"{where} cannot be called ({raised(error)}); see data.arguments") from error
    parts = _named(where, made)
    for part, items in parts.items():
        if not hasattr(items, "__getitem__") or not hasattr(items, "__len__"):
            raise DataError(
                f"{where}: {part} is a {type(items).__name__} without a length or without items by number; return a "
                f"Dataset with __len__ and __getitem__ (shards are read by data.kind webdataset)"
            )
        if not len(items):
            raise DataError(f"{where}: {part} has no items")
    return parts


def _named(where: str, made: Any) -> dict[str, Any]:
    """Maps each part to its dataset."""
    if isinstance(made, Mapping):
        names = {name: part for part, spellings in NAMES.items() for name in spellings}
        if unknown := sorted(set(map(str, made)) - set(names)):
            raise DataError(f"{where}: unknown part {unknown[0]!r}; known are {', '.join(names)}")
        parts = {names[name]: items for name, items in made.items()}
        if "train" not in parts or len(parts) < len(made):
            raise DataError(f"{where}: expected train, and val and test at most once, not {', '.join(made)}")
        return {part: parts[part] for part in NAMES if part in parts}
    if isinstance(made, tuple) or _lists_datasets(made):
        if not 1 <= len(made) <= len(NAMES):
            raise DataError(f"{where}: expected one to three datasets (train, val, test), not {len(made)}")
        return dict(zip(NAMES, made, strict=False))
    return {"train": made}


def _lists_datasets(made: Any) -> bool:
    """Whether a list holds Datasets, and not the items of one Dataset."""
    return isinstance(made, list) and bool(made) and all(_is_dataset(each) for each in made)


def _is_dataset(value: Any) -> bool:
    return hasattr(value, "__getitem__") and hasattr(value, "__len__") and not isinstance(value, tuple | list | Mapping)


def listed_labels(items: Any) -> IntArray | None:
    """The labels that a dataset, or the dataset of a ``torch.utils.data.Subset``, lists; None without a list."""
    whole, indices = getattr(items, "dataset", None), getattr(items, "indices", None)
    if whole is not None and indices is not None:
        listed = listed_labels(whole)
        return None if listed is None else listed[np.asarray(indices, dtype=np.int64)]
    for name in LISTS:
        values = getattr(items, name, None)
        if not isinstance(values, Sized) or len(values) != len(items):
            continue
        array = np.asarray(values)
        if array.ndim == 1 and np.issubdtype(array.dtype, np.integer):
            return array.astype(np.int64)
    return None


def _is_pair(item: Any) -> bool:
    return isinstance(item, tuple | list) and bool(len(item))


def _label(label: Any) -> int:
    """A label as a number.

    Raises:
        DataError: the label is not a whole number.
    """
    value = np.asarray(label)
    if value.size != 1 or not np.issubdtype(value.dtype, np.integer):
        raise DataError(f"its label is {label!r}; return the number of its class, from 0 on")
    return int(value.reshape(()))


def _numbers(label: Any) -> npt.NDArray[np.float32]:
    """A label as numbers ``[k]``.

    Raises:
        DataError: the label is something else, or a number is not finite.
    """
    value = np.asarray(label)
    if value.dtype.kind not in "iuf" or value.ndim > 1 or not value.size or not np.isfinite(value).all():
        raise DataError(f"its label is {label!r}; return one finite number or a row of them (data.task is regression)")
    return value.astype(np.float32).reshape(-1)


@register("source")
def source(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Source(SourceConfig.from_section(section))
