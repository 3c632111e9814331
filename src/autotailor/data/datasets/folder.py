"""Pictures of the user: ``ROOT/train/CLASS/*.jpg`` with ``val`` and ``test``, ``ROOT/CLASS/*.jpg``, or no classes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autotailor.artifacts import open_regular
from autotailor.data.errors import DataError
from autotailor.data.files.contents import MOST_BYTES, Content, Examiner, read_contents
from autotailor.data.pictures.layout import Layout, read_layout
from autotailor.data.pictures.parts import DividedConfig
from autotailor.data.pictures.survey import report
from autotailor.data.registry import Dataset, register

if TYPE_CHECKING:
    from autotailor.data.pictures.loading import Opened
    from autotailor.data.splits import DataSplits


class FolderConfig(DividedConfig):
    """Parameters of ``folder``.

    Attributes:
        root: folder with one subfolder per class, or with ``train/``, ``val/`` and ``test/`` that have these; without
            labels pictures lie anywhere below.
    """

    root: str = ""


@dataclass(frozen=True)
class Files:
    """Opens pictures by their number among these paths.

    Attributes:
        paths: of the files.
        background: what transparent pixels stand over.
        contents: SHA-256 of each file; empty where they are not known.
    """

    paths: Sequence[Path]
    background: str = "white"
    contents: Sequence[str] = ()

    def identity(self, index: int) -> str:
        """See ``pictures.cache.identity``."""
        return f"{self.contents[index]} over {self.background}" if self.contents else ""

    def __call__(self, index: int) -> Any:
        """The picture, RGB and upright.

        Raises:
            DataError: the file was removed or changed since it was checked.
        """
        from autotailor.data.pictures.reading import PictureError

        path = self.paths[index]
        try:
            with open_regular(path, MOST_BYTES) as stream:
                content = stream.read()
            picture = self._read(content)
            if self.contents and hashlib.sha256(content).hexdigest() != self.contents[index]:
                raise PictureError("has other bytes than before")
            return picture
        except (PictureError, OSError) as error:
            raise DataError(f"{path}: {error}; it was removed or changed while it was in use") from error

    def _read(self, content: bytes) -> Any:
        from autotailor.data.pictures.reading import read_picture

        return read_picture(content, self.background)


class Folder(Dataset):
    """A dataset of pictures on disk."""

    _label: type[np.generic] = np.int64

    def __init__(self, config: FolderConfig) -> None:
        self._config = config

    def check(self) -> None:
        """Raises DataError naming the folder that is missing or empty."""
        self.layout()

    def layout(self) -> Layout:
        """Lists the pictures by part, anew at each call."""
        return read_layout(self._config.name, self._config.root, self._config.labels)

    def classes(self) -> tuple[str, ...] | None:
        """See Dataset; None where the pictures have no labels."""
        return self.layout().classes if self._config.labels else None

    def verify(self) -> None:
        """See Dataset."""
        self._examine(self.layout())

    def fingerprint(self) -> str:
        """See Dataset."""
        return self._digest(self.layout())

    def training_fingerprint(self) -> str:
        """See Dataset."""
        return self._digest(self.layout().without_test())

    def _digest(self, layout: Layout) -> str:
        return layout.digest(read_contents(layout.files(), f"reading {self._config.name}"))

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import divided

        layout = self.layout()
        labels = {part: listing.labels for part, listing in layout.parts.items()}
        return divided(self._config, layout.classes, self._opened(layout, labels))

    def _opened(self, layout: Layout, labels: Mapping[str, Sequence[Any]]) -> dict[str, Opened]:
        """The pictures of each part, examined, with its labels."""
        from autotailor.data.pictures.loading import Opened

        contents, parts = [content.sha256 for content in self._examine(layout)], {}
        for (part, listing), positions in zip(layout.parts.items(), layout.positions().values(), strict=True):
            own = [contents[i] for i in positions]
            files = Files(listing.files(), self._config.background, own)
            parts[part] = Opened(files, np.array(labels[part], dtype=self._label), own)
        return parts

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
    return Folder(FolderConfig.from_section(section))
