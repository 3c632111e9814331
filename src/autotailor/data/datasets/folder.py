"""Pictures of the user: ``ROOT/train/CLASS/*.jpg`` with ``val`` and ``test``, or only ``ROOT/CLASS/*.jpg``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from autotailor.data.errors import DataError
from autotailor.data.files.contents import Content, Examiner, read_contents
from autotailor.data.pictures.config import PictureConfig
from autotailor.data.pictures.division import divide
from autotailor.data.pictures.layout import Layout, read_layout
from autotailor.data.pictures.survey import report
from autotailor.data.registry import Dataset, read_config, register

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits


@dataclass(frozen=True)
class FolderConfig(PictureConfig):
    """Parameters of ``folder``.

    Attributes:
        root: folder that holds ``train`` and optionally ``val`` and ``test``, each with one folder per class; or the
            class folders themselves. The seed draws missing parts: a missing ``test`` is half of ``val``; a missing
            ``val`` (and ``test``, where that is missing, too) is taken from the training pictures.
        fractions: shares of training, validation and test where missing parts are taken from the training pictures.
    """

    root: str = ""
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.fractions) != 3 or min(self.fractions) <= 0 or sum(self.fractions) > 1 + 1e-9:
            raise DataError(
                f"data {self.name}: fractions are three positive parts (train, validation, test) that sum to at most "
                f"1, not {list(self.fractions)}"
            )


@dataclass(frozen=True)
class Files:
    """Opens pictures by their number among these paths."""

    paths: Sequence[Path]

    def __call__(self, index: int) -> Any:
        """The picture, RGB and upright.

        Raises:
            DataError: the file was removed or changed since it was checked.
        """
        from autotailor.data.pictures.reading import PictureError, read_picture

        path = self.paths[index]
        try:
            return read_picture(path.read_bytes())
        except (PictureError, OSError) as error:
            raise DataError(f"{path}: {error}; it was removed or changed while it was in use") from error


class Folder(Dataset):
    """A dataset of pictures on disk."""

    def __init__(self, config: FolderConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError naming the folder that is missing or empty."""
        self.layout()

    def layout(self) -> Layout:
        """Lists the pictures by part, anew at each call."""
        return read_layout(self._config.name, self._config.root)

    def classes(self) -> tuple[str, ...]:
        """See Dataset."""
        return self.layout().classes

    def verify(self) -> None:
        """See Dataset."""
        self._examine(self.layout())

    def fingerprint(self) -> str:
        """See Dataset."""
        layout = self.layout()
        return layout.digest(read_contents(layout.files(), f"reading {self._config.name}"))

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.stream import Pictures, splits

        layout = self.layout()
        contents = [content.sha256 for content in self._examine(layout)]
        files = layout.files()
        labels = np.array([label for part in layout.parts.values() for label in part.labels], dtype=np.int64)
        groups = np.unique(contents, return_inverse=True)[1].astype(np.int64)
        parts = [
            Pictures(Files([files[i] for i in ids]), labels[ids], groups[ids]) for ids in self.divide(layout, contents)
        ]
        return splits(self._config, len(layout.classes), *parts)

    def divide(self, layout: Layout, contents: Sequence[str]) -> list[npt.NDArray[np.int64]]:
        """Positions of the pictures for training, validation and test in ``layout.files()``.

        Args:
            layout: of the pictures.
            contents: hashes of the layout's files, in the order of ``layout.files()``.
        """
        train, val, test = self._config.fractions
        ids = layout.positions()
        if "val" not in ids:
            shares = (train + test, val) if "test" in ids else (train, val, test)
            return self._split(layout, "train", contents, shares) + ([ids["test"]] if "test" in ids else [])
        return [
            ids["train"],
            *([ids["val"], ids["test"]] if "test" in ids else self._split(layout, "val", contents, (1, 1))),
        ]

    def _split(
        self, layout: Layout, part: str, contents: Sequence[str], shares: Sequence[float]
    ) -> list[npt.NDArray[np.int64]]:
        ids, listing = layout.positions()[part], layout.parts[part]
        own = [contents[i] for i in ids]
        divided = divide(self._config.name, layout.classes, listing.labels, own, shares, self._config.seed)
        return [ids[positions] for positions in divided]

    def _examine(self, layout: Layout) -> list[Content]:
        """Contents of all pictures.

        Raises:
            DataError: some pictures cannot be read.
        """
        from autotailor.data.pictures.reading import EXAMINER, examine

        title = f"checking the pictures of {self._config.name}"
        contents = read_contents(layout.files(), title, Examiner(EXAMINER, examine))
        report(self._config.name, layout, contents)
        return contents


@register("folder")
def folder(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Folder(read_config(FolderConfig, section))
