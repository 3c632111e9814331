"""Pictures with the class of each pixel: ``images/NAME.jpg`` and ``masks/NAME.png``, below ROOT or each part of it.

A mask is a PNG file as large as its picture, with one channel (or a palette) whose numbers are those of classes. A
pixel with the number ``ignore`` does not count. The names of the classes are listed, or stand in a file, one a line.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from autotailor.data.datasets.folder import Files, Folder, FolderConfig
from autotailor.data.errors import DataError
from autotailor.data.examination import refusals, refuse
from autotailor.data.files.contents import Content, Examiner, read_contents, verdict_on
from autotailor.data.labels import IGNORED, UNKNOWN
from autotailor.data.pictures.layout import Layout, root_folder, unlabelled_parts, unlisted
from autotailor.data.pictures.listing import Listing, list_unlabelled
from autotailor.data.registry import Dataset, register
from autotailor.values import Bound, Told

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

IMAGES, MASKS, ENDING = "images", "masks", ".png"
SIZES = "sizes of masks 1"  # verdicts by other rules are not reused
Names = Annotated[tuple[str, ...] | str, Told("a list of names, or a file with a name in each line")]


class MasksConfig(FolderConfig):
    """Parameters of ``masks``.

    Attributes:
        root: folder with ``images`` and ``masks``, or with ``train``, ``val`` and ``test`` that have these.
        classes: names in the order of their numbers, from 0 on; or the file with them, from ``root`` on.
        ignore: the number of pixels that do not count.
    """

    classes: Names = "classes.txt"
    ignore: Annotated[int, Bound(ge=0, le=IGNORED)] = IGNORED


@dataclass(frozen=True)
class MaskFiles(Files):
    """Opens masks by their number among these paths, as ``Pictures.masks``; ``ignore`` is as in the configuration."""

    ignore: int = IGNORED

    def identity(self, index: int) -> str:
        """See ``pictures.cache.identity``."""
        return f"mask {self.contents[index]} without {self.ignore}" if self.contents else ""

    def _read(self, content: bytes) -> Any:
        from autotailor.data.pictures.reading import read_mask

        return read_mask(content, self.ignore)


class Masks(Folder):
    """A dataset of pictures and their masks on disk."""

    _config: MasksConfig

    def layout(self) -> Layout:
        """Lists the pictures by part, anew at each call, and makes sure that each has its mask."""
        return self._layouts()[0]

    def classes(self) -> tuple[str, ...] | None:
        """See Dataset: None where the masks are not looked at.

        Raises:
            DataError: there are fewer than two names, or more than numbers for them, or the file is missing.
        """
        if not self._config.labels:
            return None
        name, given = self._config.name, self._config.classes
        where = f"data {name}: data.classes"
        if isinstance(given, str):
            path = Path(self._config.root).expanduser() / given
            where = f"data {name}: {path}"
            try:
                lines = path.read_text(encoding="utf-8-sig").splitlines()
            except (OSError, UnicodeDecodeError) as error:
                raise DataError(
                    f"{where} cannot be read ({getattr(error, 'strerror', None) or error}); write the name of each "
                    f"class into a line of it, that of number 0 first, or list the names in data.classes"
                ) from error
            given = tuple(line.strip() for line in lines if line.strip())
        twice = [each for each, count in Counter(given).items() if count > 1]
        if twice or not 2 <= len(given) <= IGNORED:
            problem = f"{twice[0]} twice" if twice else f"{len(given)} classes"
            raise DataError(f"{where} has {problem}; expected 2 to {IGNORED} different names, that of number 0 first")
        return given

    def check(self) -> None:
        """See Dataset."""
        self.layout()
        self.classes()

    def _digest(self, layout: Layout) -> str:
        """The digest of the pictures, with their masks and the names of the classes."""
        whole = super()._digest(layout)
        if not self._config.labels:
            return whole
        masks = Layout({part: each for part, each in self._layouts()[1].parts.items() if part in layout.parts})
        own = masks.digest(read_contents(masks.files(), f"reading the masks of {self._config.name}"))
        return f"{whole} {hashlib.sha256(repr((self.classes(), own)).encode()).hexdigest()}"

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import divided

        pictures, masks = self._layouts()
        labels = {part: listing.labels for part, listing in pictures.parts.items()}
        opened = self._opened(pictures, labels)
        if self._config.labels:
            contents, places = [each.sha256 for each in self._examined(masks)], masks.positions()
            for part, listing in masks.parts.items():
                own = [contents[i] for i in places[part]]
                files = MaskFiles(listing.files(), contents=own, ignore=self._config.ignore)
                opened[part] = dataclasses.replace(opened[part], masks=files)
        return divided(self._config, self.classes() or (), opened)

    def _layouts(self) -> tuple[Layout, Layout]:
        """The pictures, and the masks in the order of their pictures; no masks where they are not looked at."""
        name = self._config.name
        folder = root_folder(name, self._config.root, f"{IMAGES}/NAME.jpg", f"{IMAGES} and {MASKS}")
        try:
            folders = unlabelled_parts(name, folder)
        except OSError as error:
            raise unlisted(name, folder, error) from error
        inner = (IMAGES, MASKS) if self._config.labels else (IMAGES,)
        for where in folders.values():
            if missing := [each for each in inner if not (where / each).is_dir()]:
                raise DataError(
                    f"data {name}: {where} has no folder {' and no folder '.join(missing)}; put pictures there as "
                    f"{IMAGES}/NAME.jpg, and the classes of their pixels as {MASKS}/NAME{ENDING}"
                )
        pictures = {part: list_unlabelled(where / IMAGES) for part, where in folders.items()}
        masks = {part: _paired(name, pictures[part], folders[part] / MASKS) for part in folders if MASKS in inner}
        return Layout(pictures), Layout(masks)

    def _examine(self, layout: Layout) -> list[Content]:
        """See Folder; masks are examined with their pictures."""
        contents = super()._examine(layout)
        if self._config.labels:
            masks = self._layouts()[1]
            digests = layout.digest(contents) + masks.digest(self._examined(masks))
            digest = hashlib.sha256(digests.encode()).hexdigest()
            pairs = list(zip(layout.files(), masks.files(), strict=True))
            _refuse(self._config.name, verdict_on(digest, SIZES, lambda: _sizes(self._config.name, pairs)).splitlines())
        return contents

    def _examined(self, masks: Layout) -> list[Content]:
        """Contents of all masks.

        Raises:
            DataError: some masks cannot be read, or have numbers that are no classes.
        """
        from autotailor.data.pictures.reading import EXAMINER, examine_mask

        count, ignore, files = len(self.classes() or ()), self._config.ignore, masks.files()
        examiner = Examiner(
            f"masks 1 of {count} without {ignore}, {EXAMINER}", partial(examine_mask, classes=count, ignore=ignore)
        )
        contents = read_contents(files, f"checking the masks of {self._config.name}", examiner)
        wrong = [f"{path} {each.verdict}" for path, each in zip(files, contents, strict=True) if each.verdict]
        _refuse(self._config.name, wrong)
        return contents


def is_masked(folder: Path) -> bool:
    """Whether a folder holds pictures and their masks, or parts with these."""
    return any((folder / part / IMAGES).is_dir() and (folder / part / MASKS).is_dir() for part in ("", "train"))


def _paired(name: str, pictures: Listing, folder: Path) -> Listing:
    """The masks of pictures, in their order.

    Raises:
        DataError: a picture has no mask of its own, or a mask no picture.
    """
    masks = set(list_unlabelled(folder).paths)
    mask_paths = [path.rpartition(".")[0] + ENDING for path in pictures.paths]
    counts = Counter(mask_paths)
    pairs = list(zip(pictures.paths, mask_paths, strict=True))
    wrong = [f"{pictures.folder / path} has no mask {folder / mask}" for path, mask in pairs if mask not in masks]
    wrong += [f"{folder / mask} has no picture" for mask in sorted(masks - set(mask_paths))]
    wrong += [f"{pictures.folder / path} shares its mask with another" for path, mask in pairs if counts[mask] > 1]
    _refuse(name, wrong)
    return Listing(folder, (), tuple(mask_paths), (UNKNOWN,) * len(mask_paths), ())


def _sizes(name: str, pairs: Sequence[tuple[Path, Path]]) -> str:
    """The masks that are not as large as their pictures, a line for each."""
    from autotailor.data.pictures.reading import upright_size

    def check(index: int) -> None:
        picture, mask = pairs[index]
        picture_size, mask_size = upright_size(picture), upright_size(mask)
        if mask_size != picture_size:
            sizes = [" x ".join(map(str, size)) for size in (mask_size, picture_size)]
            raise DataError(f"{mask} has {sizes[0]} pixels, and {picture} has {sizes[1]}")

    return "\n".join(refusals(f"comparing the masks of {name} with their pictures", len(pairs), check))


def _refuse(name: str, wrong: Sequence[str]) -> None:
    """Raises DataError where pictures and masks cannot be used."""
    refuse(name, f"{len(wrong):,} masks or pictures cannot be used", wrong)


@register("masks")
def masks(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Masks(MasksConfig.from_section(section))
