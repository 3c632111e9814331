"""Images of one's own: ``ROOT/train/CLASS/*.jpg``, the same under ``val`` and, where wanted, under ``test``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from autotailor.data.contents import read_contents
from autotailor.data.layout import read_layout
from autotailor.data.listing import Listing
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
        read_layout(self._config.name, self._config.root)

    def fingerprint(self) -> str:
        """See Dataset."""
        layout = read_layout(self._config.name, self._config.root)
        return layout.digest(read_contents(layout.files(), f"reading {self._config.name}"))

    def load(self) -> DataSplits:
        """See Dataset."""
        layout = read_layout(self._config.name, self._config.root)
        parts = {part: _pictures(listing) for part, listing in layout.parts.items()}
        return splits(self._config, len(layout.classes), parts["train"], parts["val"], parts.get("test"))


def _pictures(listing: Listing) -> Pictures:
    return Pictures(partial(_open, tuple(map(str, listing.files()))), np.array(listing.labels, dtype=np.int64))


def _open(paths: Sequence[str], index: int) -> Any:
    from torchvision.datasets.folder import default_loader

    return default_loader(paths[index])


@register("folder")
def folder(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Folder(read_config(FolderConfig, section))
