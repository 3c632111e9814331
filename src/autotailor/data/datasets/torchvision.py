"""Datasets that torchvision knows by name and can download: CIFAR10, CIFAR100, FashionMNIST, SVHN ..."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autotailor.data.errors import DataError
from autotailor.data.files.contents import digest, read_contents
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.registry import Dataset, register
from autotailor.values import Flag

if TYPE_CHECKING:
    from autotailor.data.pictures.stream import Pictures
    from autotailor.data.splits import DataSplits

HALVES = 2  # seed word
FOLDERS = {
    "CIFAR10": "cifar-10-batches-py", "CIFAR100": "cifar-100-python", "STL10": "stl10_binary",
    "CLEVRClassification": "clevr", "FGVCAircraft": "fgvc-aircraft-2013b", "Imagenette": "imagenette2*",
}  # fmt: skip
"""Patterns of the folders of datasets whose names do not say them."""
SPLITS = {True: ("train", "trainval", "train-standard"), False: ("test", "val")}
"""The names that datasets give their images for training, and the others; the first one that a dataset knows counts."""


class TorchvisionConfig(PictureConfig):
    """Parameters of ``torchvision``.

    Attributes:
        dataset: class of ``torchvision.datasets`` that is made with a root, train or test, and download.
        root: folder of the files. They are looked for here before anything is downloaded.
        download: whether missing files may be downloaded.
    """

    dataset: str = ""
    root: str = "data"
    download: Flag = True


class Torchvision(Dataset):
    """A dataset of ``torchvision.datasets``; the seed halves its test images into validation and test."""

    def __init__(self, config: TorchvisionConfig) -> None:
        self._config = config

    @cached_property
    def _class(self) -> Any:
        return _dataset_class(self._config)

    def check(self) -> None:
        """Raises DataError naming the missing files and their folder, after a download was tried where allowed."""
        for train in (True, False):
            self._open(train)

    def fingerprint(self) -> str:
        """SHA-256 over the relative paths and the contents of the dataset's files below ``root``."""
        if not (files := self._listed()):
            self.check()
            files = self._listed()
        folder = self._folder()
        contents = read_contents([folder / name for name in files], f"reading {self._config.name}")
        return digest(files, contents)

    def _listed(self) -> list[str]:
        """Relative paths of the files in ``_folder``; other datasets have folders of their own in ``root``."""
        folder, root = self._folder(), Path(self._config.root).expanduser()
        return _files_of(folder, "*" if folder == root else "**/*")

    def _folder(self) -> Path:
        """The folder of this dataset below ``root``, or ``root`` where torchvision puts the files there directly."""
        root = Path(self._config.root).expanduser()
        plain, pattern = _plain(self._config.dataset), FOLDERS.get(self._config.dataset, "")
        folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
        return next((p for p in folders if _plain(p.name) == plain or fnmatch(p.name, pattern)), root)

    def classes(self) -> tuple[str, ...] | None:
        """None, because not all of torchvision's datasets name their classes."""
        return None

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.stream import splits

        train, held = self._pictures(True), self._pictures(False)
        mixed = np.random.default_rng([self._config.seed, HALVES]).permutation(len(held.labels))
        if (half := len(mixed) // 2) < 1:
            raise DataError(
                f"data {self._config.name}: validation and test need at least two held-out images, {len(mixed)} found; "
                f"choose another data.dataset"
            )
        validation, test = (held.part(np.sort(ids)) for ids in (mixed[:half], mixed[half:]))
        return splits(self._config, int(train.labels.max()) + 1, train, validation, test)

    def _pictures(self, train: bool) -> Pictures:
        """Pictures of torchvision's training or test part."""
        from autotailor.data.pictures.stream import Pictures

        images = self._open(train)
        labels = getattr(images, "targets", getattr(images, "labels", None))
        if labels is None:
            labels = [label for _, label in images]
        opened = _Images(images, self._config.background)
        return Pictures(opened, np.asarray(labels, dtype=np.int64), np.arange(len(labels), dtype=np.int64))

    def _open(self, train: bool) -> Any:
        root = str(Path(self._config.root).expanduser())
        has_flag = "train" in inspect.signature(self._class).parameters
        for split in [{"train": train}] if has_flag else [{"split": name} for name in SPLITS[train]]:
            try:
                return self._class(root, download=False, **split)
            except ValueError as unknown:  # no split of this dataset has the name
                reason: Exception = unknown
            except (RuntimeError, OSError) as missing:
                reason = missing
                break
        else:
            raise DataError(
                f"data {self._config.name}: torchvision's {self._config.dataset} has no split "
                f"{' or '.join(SPLITS[train])} ({reason}); choose another data.dataset"
            )
        if self._config.download:
            try:
                return self._class(root, download=True, **split)
            except Exception as error:  # servers, networks and archives make downloads fail with many kinds of errors
                reason = error
        raise DataError(
            f"data {self._config.name}: torchvision's {self._config.dataset} is not under {root} and "
            f"{'could not be downloaded' if self._config.download else 'data.download is false'} ({reason}). "
            f"Put {self._files()} into {root} by hand, or set data.root to where it is"
        )

    def _files(self) -> str:
        """Names and addresses of the dataset's files, as far as torchvision knows them."""
        urls = [self._class.__dict__[key] for key in ("url", "urls", "mirrors") if key in self._class.__dict__]
        names = [str(getattr(self._class, key)) for key in ("filename", "base_folder") if hasattr(self._class, key)]
        source = f" (from {', '.join(map(str, urls))})" if urls else ""
        return (" or ".join(names) or f"the files of {self._config.dataset}") + source


@dataclass(frozen=True)
class _Images:
    """Opens pictures of a dataset by their number."""

    images: Any
    background: str = "white"

    def __call__(self, index: int) -> Any:
        from autotailor.data.pictures.reading import to_rgb, upright

        return to_rgb(upright(self.images[index][0]), self.background)


def _plain(name: str) -> str:
    """A name in lower case without punctuation, so that ``food-101`` and ``Food101`` compare as equal."""
    return "".join(character for character in name.lower() if character.isalnum())


def _files_of(folder: Path, pattern: str) -> list[str]:
    files = (path.relative_to(folder) for path in folder.glob(pattern) if path.is_file())
    return sorted(path.as_posix() for path in files if not any(part.startswith(".") for part in path.parts))


def _dataset_class(config: TorchvisionConfig) -> Any:
    from torchvision import datasets

    dataset = getattr(datasets, config.dataset, None) if config.dataset else None
    if not _is_usable(dataset):
        usable = sorted(name for name, value in vars(datasets).items() if _is_usable(value))
        raise DataError(
            f"data {config.name}: torchvision has no downloadable dataset {config.dataset!r} with training and test "
            f"images; set data.dataset to one of {', '.join(usable)}"
        )
    return dataset


def _is_usable(dataset: object) -> bool:
    """Whether a class of torchvision needs a folder alone, downloads its files, and has a part for training."""
    if not inspect.isclass(dataset):
        return False
    parameters = inspect.signature(dataset).parameters
    parts = {"train", "split"} & set(parameters)
    needed = {
        name for name, each in parameters.items() if each.default is each.empty and each.kind is not each.VAR_KEYWORD
    }
    return "download" in parameters and bool(parts) and needed <= {"root", *parts}


@register("torchvision")
def torchvision(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Torchvision(TorchvisionConfig.from_section(section))
