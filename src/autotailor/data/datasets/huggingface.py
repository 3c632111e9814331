"""Hugging Face ``datasets`` with an image column: a folder that ``save_to_disk`` wrote, or what ``load_dataset`` loads.

The library is an optional extra (``pip install autotailor[huggingface]``). Pictures are opened by autotailor's own
rules (``pictures.reading``) from the stored bytes, and not by the library, so that a picture means the same in every
dataset.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.examination import listed, refusals
from autotailor.data.files.contents import digest, read_contents, verdict_on
from autotailor.data.labels import UNKNOWN
from autotailor.data.pictures.parts import NAMES, DividedConfig
from autotailor.data.progress import progress
from autotailor.data.registry import Dataset, register

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

SAVED = ("dataset_dict.json", "state.json")  # files in a folder of ``save_to_disk``
IntArray = npt.NDArray[np.int64]


class HuggingfaceConfig(DividedConfig):
    """Parameters of ``huggingface``.

    Attributes:
        dataset: a folder that ``save_to_disk`` wrote, or a name or folder for ``load_dataset``, which may download.
        subset: configuration of the dataset, for ``load_dataset``; empty takes its default.
        revision: of the dataset on the hub; empty takes the newest one.
        image: column of the images.
        label: column of the labels, whole numbers from 0 on.
    """

    dataset: str = ""
    subset: str = ""
    revision: str = ""
    image: str = "image"
    label: str = "label"


@dataclass(frozen=True)
class Rows:
    """Opens the pictures of one part by their number.

    Attributes:
        place: the part, for messages.
        rows: the part with its column of images alone, not decoded.
        image: name of the column.
        background: what transparent pixels stand over, as ``data.background``.
    """

    place: str
    rows: Any
    image: str
    background: str = "white"

    def __call__(self, index: int) -> Any:
        """The picture, RGB and upright.

        Raises:
            DataError: the picture cannot be read.
        """
        from autotailor.data.pictures.reading import PictureError, read_picture

        try:
            return read_picture(self.content(index), self.background)
        except (PictureError, OSError) as error:
            raise DataError(f"{self.place}: the picture of row {index} {error}") from error

    def content(self, index: int) -> bytes:
        """The bytes of a picture, which are stored in the table, or in a file that the table names.

        Raises:
            PictureError: the row has no picture.
        """
        from autotailor.data.pictures.reading import PictureError

        stored = self.rows[index][self.image]
        if stored is None or (stored["bytes"] is None and stored["path"] is None):
            raise PictureError(f"is missing; leave the row out (Dataset.filter), or put a picture into {self.image}")
        return bytes(stored["bytes"]) if stored["bytes"] is not None else Path(stored["path"]).read_bytes()

    def contents(self) -> list[str]:
        """SHA-256 of each picture."""
        with progress(f"reading {self.place}", len(self.rows)) as advance:
            hashes = []
            for index in range(len(self.rows)):
                hashes.append(hashlib.sha256(self.content(index)).hexdigest())
                advance()
        return hashes


class Huggingface(Dataset):
    """A dataset of the library ``datasets``."""

    PLACES = ("dataset",)

    def __init__(self, config: HuggingfaceConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError where the dataset is missing, or lacks a column; a dataset of the hub is downloaded here."""
        self._parts()

    def classes(self) -> tuple[str, ...] | None:
        """The names of the column's ``ClassLabel``; None where labels are plain numbers, or without labels."""
        if not self._config.labels:
            return None
        names = getattr(self._parts()["train"].features[self._config.label], "names", None)
        return tuple(names) if names else None

    def verify(self) -> None:
        """Raises DataError naming the pictures that cannot be used."""
        from autotailor.data.pictures.reading import EXAMINER

        if verdict := verdict_on(self.fingerprint(), f"{EXAMINER}, column {self._config.image}", self._examine):
            raise DataError(f"data {self._config.name}: pictures cannot be used:\n{verdict}")

    def _examine(self) -> str:
        """The pictures that cannot be used, a line for each; "" where all can be used."""
        parts = [self._rows(part, rows) for part, rows in self._parts().items()]
        reasons = [refusals(f"checking the pictures of {each.place}", len(each.rows), each) for each in parts]
        return listed([line for lines in reasons for line in lines])

    def fingerprint(self) -> str:
        """SHA-256 over the parts, and the contents of the files that hold the tables and the pictures beside them."""
        return self._digest(self._parts())

    def training_fingerprint(self) -> str:
        """See Dataset."""
        return self._digest({part: rows for part, rows in self._parts().items() if part != "test"})

    def _digest(self, parts: Mapping[str, Any]) -> str:
        files = {f"{part}/{number}": path for part, rows in parts.items() for number, path in _files(rows)}
        files |= {
            f"{part}/{number} picture": path
            for part, rows in parts.items()
            for number, path in _pictures_beside(rows, self._config.image)
        }
        content = digest(list(files), read_contents(list(files.values()), f"reading {self._config.name}"))
        sizes = {part: len(rows) for part, rows in parts.items()}
        return hashlib.sha256(f"{content} {sizes}".encode()).hexdigest()

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import Opened, divided

        self.verify()
        parts = {}
        for part, rows in self._parts().items():
            opened = self._rows(part, rows)
            # Pictures that are neither divided nor held out are not compared with others.
            is_apart = part == "train" and "val" in self._parts()
            contents = [f"train {i}" for i in range(len(rows))] if is_apart else opened.contents()
            parts[part] = Opened(opened, self._labels(rows), contents)
        most = max(int(part.labels.max()) for part in parts.values())
        return divided(self._config, self.classes() or tuple(map(str, range(most + 1))), parts)

    def _labels(self, rows: Any) -> IntArray:
        if not self._config.labels:
            return np.full(len(rows), UNKNOWN, dtype=np.int64)
        values = list(rows.with_format(None)[self._config.label])
        if None in values:
            raise DataError(
                f"data {self._config.name}: row {values.index(None)} has no label in the column {self._config.label}; "
                f"give it one, or leave the row out (Dataset.filter)"
            )
        if kinds := sorted({type(value).__name__ for value in values} - {"int"}):
            raise DataError(
                f"data {self._config.name}: the column {self._config.label} holds values of {', '.join(kinds)}; labels "
                f"are whole numbers from 0 on (Dataset.class_encode_column makes them of names), and data.label names "
                f"their column"
            )
        return np.asarray(values, dtype=np.int64)

    def _rows(self, part: str, rows: Any) -> Rows:
        from datasets import Image

        image = self._config.image
        plain = rows.select_columns([image]).cast_column(image, Image(decode=False))
        return Rows(f"data {self._config.name}: {part}", plain, image, self._config.background)

    def _parts(self) -> Mapping[str, Any]:
        config = self._config
        parts = _open(config.name, config.dataset, config.subset, config.revision)
        for part, rows in parts.items():
            self._check_columns(part, rows)
        return parts

    def _check_columns(self, part: str, rows: Any) -> None:
        """Raises DataError unless the part has rows, a column of images and, where there are labels, one of labels."""
        from datasets import Image

        where = f"data {self._config.name}: {part} of {self._config.dataset}"
        columns = [self._config.image, *([self._config.label] if self._config.labels else [])]
        for key, column in zip(("image", "label"), columns, strict=False):
            if column not in rows.column_names:
                raise DataError(
                    f"{where} has no column {column!r}; set data.{key} to one of {', '.join(rows.column_names)}"
                    + ("" if key == "image" else ", or data.labels to false")
                )
        if not isinstance(rows.features[self._config.image], Image):
            raise DataError(f"{where}: the column {self._config.image} is no column of images (feature Image); cast it")
        if not len(rows):
            raise DataError(f"{where} has no rows")


@functools.cache
def _open(name: str, dataset: str, subset: str, revision: str) -> Mapping[str, Any]:
    """The parts of a dataset; opened once in a process."""
    if not dataset:
        raise DataError(f"data {name}: set data.dataset to a folder of save_to_disk, or to a name for load_dataset")
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"data {name}: the library datasets is not installed; `pip install autotailor[huggingface]`"
        ) from error
    folder = Path(dataset).expanduser()
    try:
        if any((folder / file).is_file() for file in SAVED):
            loaded = datasets.load_from_disk(str(folder))
        else:
            loaded = datasets.load_dataset(dataset, subset or None, revision=revision or None)
    except Exception as error:  # the library, the hub and scripts of datasets raise many kinds of errors
        raise DataError(
            f"data {name}: {dataset} is no folder of save_to_disk and cannot be loaded by load_dataset "
            f"({type(error).__name__}: {error}); put the dataset there, or correct data.dataset"
        ) from error
    return _named(f"data {name}: {dataset}", loaded)


def _named(where: str, loaded: Any) -> Mapping[str, Any]:
    """Maps each part to its rows; splits with other names are left out."""
    if not isinstance(loaded, Mapping):
        return {"train": loaded}
    parts: dict[str, Any] = {}
    for part, names in NAMES.items():
        present = [name for name in names if name in loaded]
        if len(present) > 1:
            raise DataError(f"{where} has the splits {' and '.join(present)}, but only one can be {part}")
        if present:
            parts[part] = loaded[present[0]]
    if "train" not in parts:
        raise DataError(
            f"{where} has the splits {', '.join(map(str, loaded))}, and none of them is train; save a DatasetDict that "
            f"names the split of training pictures train"
        )
    return parts


def _files(rows: Any) -> Sequence[tuple[int, Path]]:
    """The files of a part's table."""
    return list(enumerate(Path(file["filename"]) for file in rows.cache_files))


def _pictures_beside(rows: Any, image: str) -> Sequence[tuple[int, Path]]:
    """The files of pictures that the table names and does not hold."""
    paths = []
    for chunk in rows.data.column(image).chunks:
        if chunk.field("bytes").null_count:
            stored = zip(chunk.field("bytes").is_null().to_pylist(), chunk.field("path").to_pylist(), strict=True)
            paths += [Path(path) for is_outside, path in stored if is_outside and path is not None]
    return list(enumerate(paths))


@register("huggingface")
def huggingface(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Huggingface(HuggingfaceConfig.from_section(section))
