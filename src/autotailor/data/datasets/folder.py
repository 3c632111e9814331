"""Images of one's own: ``ROOT/train/CLASS/*.jpg``, the same under ``val`` and, where wanted, under ``test``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.pictures import PictureConfig, Pictures, splits
from autotailor.data.registry import Dataset, read_config, register
from autotailor.data.splits import DataSplits


@dataclass(frozen=True)
class FolderConfig(PictureConfig):
    """Parameters of ``folder``.

    Attributes:
        root: folder that holds ``train`` and ``val``, each with one folder per class. Where there is no ``test``,
            ``val`` is halved by the seed into validation and test.
    """

    root: str = ""


class Folder(Dataset):
    """Pictures on disk."""

    def __init__(self, config: FolderConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError naming the folder that is missing or empty."""
        if not self._config.root:
            raise DataError(f"data {self._config.name}: set data.root to the folder that holds train/ and val/")
        for part in ("train", "val"):
            folder = Path(self._config.root).expanduser() / part
            if not folder.is_dir() or not any(child.is_dir() for child in folder.iterdir()):
                raise DataError(
                    f"data {self._config.name}: {folder} is missing or has no class folders; put images there as "
                    f"{part}/CLASS/IMAGE.jpg, or set data.root to where they are"
                )

    def load(self) -> DataSplits:
        """See Dataset."""
        root = Path(self._config.root).expanduser()
        train, held = _read(root / "train"), _read(root / "val")
        test = _read(root / "test") if (root / "test").is_dir() else None
        for part, classes in (("val", held[1]), ("test", test[1] if test else train[1])):
            if classes != train[1]:
                different = sorted(set(classes) ^ set(train[1]))[:5]
                raise DataError(f"data {self._config.name}: {part} has other classes than train: {different} ...")
        return splits(self._config, len(train[1]), train[0], held[0], test[0] if test else None)


def _read(folder: Path) -> tuple[Pictures, list[str]]:
    from torchvision.datasets import ImageFolder

    try:
        images = ImageFolder(str(folder))
    except (FileNotFoundError, OSError) as error:
        raise DataError(f"{folder}: every class folder needs at least one image: {error}") from error
    paths = [path for path, _ in images.samples]
    labels: npt.NDArray[np.int64] = np.array(images.targets, dtype=np.int64)
    return Pictures(lambda index: images.loader(paths[index]), labels), list(images.classes)


@register("folder")
def folder(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Folder(read_config(FolderConfig, section))
