"""The layout of a folder of pictures: ``train``, ``val`` and ``test``, or only one folder per class, or no labels."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.files.contents import Content, digest
from autotailor.data.pictures.listing import (
    Listing,
    class_folders,
    holds_pictures,
    is_picture,
    list_pictures,
    list_unlabelled,
)
from autotailor.data.pictures.parts import NAMES

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Layout:
    """A folder's pictures by part.

    Attributes:
        parts: ``train`` and, where the folder has them, ``val`` and ``test``. Pictures that the folder does not divide
            into parts are all in ``train``.
    """

    parts: Mapping[str, Listing]

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, sorted; the position of a name is the network's output. Empty without labels."""
        return self.parts["train"].classes

    def files(self) -> list[Path]:
        """All pictures, part after part."""
        return [path for listing in self.parts.values() for path in listing.files()]

    def positions(self) -> dict[str, npt.NDArray[np.int64]]:
        """Maps each part to the positions of its pictures in ``files()``."""
        sizes = [len(listing.paths) for listing in self.parts.values()]
        ends = np.cumsum(sizes)
        return {
            part: np.arange(end - size, end, dtype=np.int64)
            for part, end, size in zip(self.parts, ends, sizes, strict=True)
        }

    def without_test(self) -> Layout:
        """The parts that training and validation pictures depend on."""
        return Layout({part: listing for part, listing in self.parts.items() if part != "test"})

    def digest(self, contents: list[Content]) -> str:
        """SHA-256 over the parts, the relative paths and the contents of all pictures."""
        names = [f"{part}/{path}" for part, listing in self.parts.items() for path in listing.paths]
        return digest(names, contents)


TABLES = (".csv", ".tsv", ".json", ".jsonl", ".xlsx", ".parquet", ".txt")
"""Suffixes of files that may hold labels; they are not read."""


def read_layout(name: str, root: str, labels: bool = True) -> Layout:
    """Lists the pictures below a root.

    Args:
        name: of the dataset, for messages.
        root: folder with ``train/CLASS/`` and ``val/CLASS/``, or with ``CLASS/``; ``~`` is the home folder.
        labels: whether the folders' names are labels. With False, pictures may lie at any depth below the root, or
            below ``train``, ``val`` and ``test``.

    Raises:
        DataError: the folder is missing, has one class alone, a class has no picture, or two parts have different
            classes.
    """
    folder = root_folder(name, root, "CLASS/IMAGE.jpg", "one folder per class, with pictures in each")
    try:
        folders = _parts(name, folder) if labels else unlabelled_parts(name, folder)
    except OSError as error:
        raise unlisted(name, folder, error) from error
    parts = {part: (list_pictures if labels else list_unlabelled)(where) for part, where in folders.items()}
    for part, listing in parts.items():
        _check_classes(name, part, listing.classes, parts["train"].classes)
    if labels and len(parts["train"].classes) == 1:
        raise DataError(_one_class(name, folder, folders["train"]))
    return Layout(parts)


def root_folder(name: str, root: str, example: str, content: str) -> Path:
    """The folder of a dataset.

    Args:
        name: of the dataset, for messages.
        root: as in the configuration; ``~`` is the home folder.
        example: where a picture lies, from the root or a part on.
        content: of the folder, in words.

    Raises:
        DataError: there is no such folder.
    """
    if not root:
        raise DataError(f"data {name}: set data.root to the folder that holds the pictures as {example}")
    folder = Path(root).expanduser()
    if folder.is_file():
        raise DataError(f"data {name}: {folder} is a file; name the folder that holds {content}")
    if not folder.is_dir():
        raise DataError(
            f"data {name}: {folder.resolve()} does not exist; put images there as train/{example} and val/{example}, "
            f"or all of them as {example}, or set data.root to where they are"
        )
    return folder


def unlisted(name: str, folder: Path, error: OSError) -> DataError:
    """The error of a folder that cannot be listed."""
    return DataError(f"data {name}: {folder} cannot be listed ({error.strerror}); give access to it")


def _one_class(name: str, folder: Path, train: Path) -> str:
    """What is wrong where all pictures lie in one folder: it holds the parts, or a table holds the labels."""
    (only,) = class_folders(train)
    inner = folder / only
    if train == folder and _named_parts(name, inner, set(class_folders(inner))):
        return f"data {name}: {folder} holds only {only}, which has the parts of the data; name {inner} as data.root"
    message = (
        f"data {name}: {folder} has one class, {only}; name the folder that holds one folder per class, at least two. "
        f"Pictures without labels: name a folder with no folders in it, or set data.root and data.labels: false"
    )
    tables = sorted(path.name for path in folder.iterdir() if path.suffix.lower() in TABLES)
    more = f". Labels in a table ({tables[0]}) are read by a function of yours: data.kind: source" if tables else ""
    return message + more


def _parts(name: str, folder: Path) -> dict[str, Path]:
    """Maps each part to its folder. A folder ``train`` without subfolders is a class of that name, not a part."""
    inside = set(class_folders(folder))
    folders = _named_parts(name, folder, {n for n in inside if class_folders(folder / n)})
    if folders and "train" not in folders:
        raise DataError(
            f"data {name}: {folder / 'train'} is missing or has no class folders, but {folder} has "
            f"{' and '.join(path.name for path in folders.values())}; put images there as train/CLASS/IMAGE.jpg"
        )
    if not folders and not inside:
        if any(is_picture(path.name) for path in folder.iterdir()):
            raise DataError(
                f"data {name}: {folder.resolve()} holds pictures and no class folders; every class has a folder of "
                f"its own, and the folder above them is the one to name. If the pictures have no labels, set "
                f"data.labels to false (inspect --data does so itself)"
            )
        raise DataError(
            f"data {name}: {folder.resolve()} has no folders; put images there as CLASS/IMAGE.jpg, one folder per "
            f"class, or as train/CLASS/IMAGE.jpg and val/CLASS/IMAGE.jpg"
        )
    if not folders:
        return {"train": folder}
    _warn_of_others(name, folder, inside, folders)
    return folders


def _warn_of_others(name: str, folder: Path, inside: Collection[str], folders: Mapping[str, Path]) -> None:
    """Names the folders with pictures that are left out, because folders beside them are parts."""
    spellings = {each for names in NAMES.values() for each in names}
    others = [each for each in sorted(inside) if each.casefold() not in spellings and holds_pictures(folder / each)]
    if others:
        parts = ", ".join(f"{path.name} is the {part} part" for part, path in folders.items())
        logger.warning(
            "data %s: in %s %s, so that pictures in %s are left out; rename or move a folder that is one of %s, and "
            "rename a class that is called as a part is",
            *(name, folder, parts, ", ".join(others), ", ".join(NAMES)),
        )


def unlabelled_parts(name: str, folder: Path) -> dict[str, Path]:
    """Maps each part to its folder; all pictures are in ``train`` where the folder has no folder of that name."""
    inside = set(class_folders(folder))
    folders = _named_parts(name, folder, inside)
    if "train" not in folders:
        return {"train": folder}
    _warn_of_others(name, folder, inside, folders)
    return folders


def _named_parts(name: str, folder: Path, inside: set[str]) -> dict[str, Path]:
    """Maps each part to the folder with its name among the folders ``inside``."""
    folders = {}
    for part, names in NAMES.items():
        present = [n for n in sorted(inside) if n.casefold() in names]
        if len(present) > 1:
            raise DataError(
                f"data {name}: {folder} holds {' and '.join(present)}, but only one folder can be the {part} part; "
                f"remove or rename the other"
            )
        if present:
            folders[part] = folder / present[0]
    return folders


def is_flat(folder: Path) -> bool:
    """Whether a folder holds pictures without labels: pictures, or parts with pictures, and no folder of a class.

    Raises:
        OSError: the folder is missing, or cannot be listed.
    """
    inside = set(class_folders(folder))
    parts = {part for part, names in NAMES.items() for name in inside if name.casefold() in names}
    if "train" in parts and len(parts) == len(inside):
        return all(_holds_pictures(folder / name) and not class_folders(folder / name) for name in inside)
    return not inside and _holds_pictures(folder)


def _holds_pictures(folder: Path) -> bool:
    return any(is_picture(path.name) and path.is_file() for path in folder.iterdir())


def _check_classes(name: str, part: str, classes: tuple[str, ...], expected: tuple[str, ...]) -> None:
    if classes != expected:
        different = sorted(set(classes) ^ set(expected))
        shown = ", ".join(different[:5]) + (f" and {len(different) - 5} more" if len(different) > 5 else "")
        raise DataError(
            f"data {name}: {part} has other classes than train: only one of them has {shown}. Every part needs "
            f"the same class folders, since their sorted names are the network's outputs"
        )
