"""The pictures of a folder: one subfolder per class, with pictures at any depth below it; or no classes."""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotailor.data.errors import DataError
from autotailor.data.labels import UNKNOWN

# Files with these suffixes count as pictures. One that cannot be read is refused by name, never left out silently.
SUFFIXES = frozenset(
    f".{suffix}"
    for suffix in (
        *("jpg", "jpeg", "jpe", "jfif", "png", "apng", "gif", "webp", "tif", "tiff", "bmp", "dib", "avif", "avifs"),
        *("ppm", "pgm", "pbm", "pnm", "heic", "heif", "jp2", "j2k", "jxl", "psd", "tga", "ico"),
        *("raw", "cr2", "nef", "dng", "arw"),
    )
)
NOT_CLASSES = frozenset({"__MACOSX", "@eaDir", "lost+found"})
"""Folders that systems create at any depth; those of a Synology hold thumbnails of the pictures beside them."""


@dataclass(frozen=True)
class Listing:
    """Pictures of one folder, in the order of their relative paths.

    Attributes:
        folder: the folder that holds the class folders.
        classes: names of the class folders in Unicode's composed form (NFC), sorted; the label of a picture is the
            position of its class. Empty where pictures have no labels.
        paths: of the pictures, relative to the folder, with ``/``.
        labels: of the pictures, one per path; ``UNKNOWN`` where pictures have none.
        others: paths of the files whose suffix is not one of a picture, relative to the folder.
    """

    folder: Path
    classes: tuple[str, ...]
    paths: tuple[str, ...]
    labels: tuple[int, ...]
    others: tuple[str, ...]

    def files(self) -> list[Path]:
        """The pictures' paths."""
        return [self.folder / path for path in self.paths]

    def class_names(self) -> list[str]:
        """The name of each picture's class; "" where pictures have no labels."""
        return [self.classes[label] if self.classes else "" for label in self.labels]


def class_folders(folder: Path) -> list[str]:
    """Sorted names of the subfolders, without hidden ones and without those that operating systems create."""
    with os.scandir(folder) as entries:
        return sorted(
            e.name for e in entries if e.is_dir() and not e.name.startswith(".") and e.name not in NOT_CLASSES
        )


def list_pictures(folder: Path) -> Listing:
    """The pictures of a folder.

    Raises:
        DataError: the folder cannot be listed, a class folder holds no picture, or two are spelled alike.
    """
    try:
        classes = _folders_of_classes(folder)
        files = [
            (label, f"{name}/{path}")
            for label, name in enumerate(classes.values())
            for path in visible_files(folder / name)
        ]
    except OSError as error:
        raise DataError(f"{folder}: cannot be listed ({error.strerror}: {error.filename})") from error
    pictures = [(path, label) for label, path in files if is_picture(path)]
    others = [path for _, path in files if not is_picture(path)]
    empty = sorted(set(range(len(classes))) - {label for _, label in pictures})
    if empty or not classes:
        named = f"{folder / list(classes.values())[empty[0]]} has none" if empty else f"{folder} has no class folders"
        raise DataError(
            f"{folder}: every class folder needs at least one picture (.jpg, .png ...); {named}. "
            f"Put pictures there as CLASS/IMAGE.jpg, or remove the folder"
        )
    return Listing(
        folder,
        tuple(classes),
        tuple(path for path, _ in pictures),
        tuple(label for _, label in pictures),
        tuple(others),
    )


def _folders_of_classes(folder: Path) -> dict[str, str]:
    """Maps each class, sorted, to its folder: an accented letter is one character on some systems and two on others."""
    folders: dict[str, str] = {}
    for name in class_folders(folder):
        composed = unicodedata.normalize("NFC", name)
        if composed in folders:
            raise DataError(
                f"{folder}: two class folders are called {composed}; they look alike, and their letters are other "
                f"characters (Unicode NFC and NFD), as in copies from another system. Move the pictures of one into "
                f"the other"
            )
        folders[composed] = name
    return dict(sorted(folders.items()))


def list_unlabelled(folder: Path) -> Listing:
    """The pictures at any depth below a folder, without labels.

    Raises:
        DataError: the folder cannot be listed, or holds no picture.
    """
    try:
        files = list(visible_files(folder))
    except OSError as error:
        raise DataError(f"{folder}: cannot be listed ({error.strerror}: {error.filename})") from error
    pictures = tuple(path for path in files if is_picture(path))
    if not pictures:
        raise DataError(f"{folder}: no picture (.jpg, .png ...) lies there; put pictures there, in any subfolders")
    others = tuple(path for path in files if not is_picture(path))
    return Listing(folder, (), pictures, (UNKNOWN,) * len(pictures), others)


def holds_pictures(folder: Path) -> bool:
    """Whether a picture lies at any depth below a folder; raises OSError where the folder cannot be listed."""
    return any(is_picture(path) for path in visible_files(folder))


def is_picture(path: str) -> bool:
    """Whether the suffix of a file's name is one of a picture."""
    return f".{path.rpartition('.')[2].lower()}" in SUFFIXES


def visible_files(folder: Path) -> Iterator[str]:
    """Relative paths of the visible files below a folder that people have put there, sorted; links are followed."""
    seen: set[str] = set()
    paths: list[str] = []
    for where, folders, names in os.walk(folder, followlinks=True, onerror=_raise):
        real = os.path.realpath(where)
        if real in seen:  # a link led back to a folder that was listed already
            folders.clear()
            continue
        seen.add(real)
        folders[:] = [name for name in folders if not name.startswith(".") and name not in NOT_CLASSES]
        inside = os.path.relpath(where, folder)
        prefix = "" if inside == "." else inside.replace(os.sep, "/") + "/"
        paths += [prefix + name for name in names if not name.startswith(".")]
    yield from sorted(paths)


def _raise(error: OSError) -> None:
    raise error
