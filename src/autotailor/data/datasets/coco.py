"""Pictures with boxes, as COCO files have them: ``images``, ``annotations`` and ``categories`` in a JSON file.

Classes are the categories in the order of their ids, which need not follow one another. Images are whole pictures,
stretched to the square, so that no box is cut off.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import open_regular
from autotailor.code import factory_content
from autotailor.data.datasets.folder import Folder, FolderConfig
from autotailor.data.errors import DataError
from autotailor.data.examination import refusals, refuse
from autotailor.data.files.contents import MOST_BYTES, Content, verdict_on
from autotailor.data.labels import BOX, UNKNOWN
from autotailor.data.pictures.layout import Layout
from autotailor.data.pictures.listing import Listing
from autotailor.data.pictures.parts import NAMES
from autotailor.data.registry import Dataset, register
from autotailor.values import UnfitError

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

KEYS = ("images", "annotations", "categories")
SIZES = "sizes in COCO files 1"  # verdicts by other rules are not reused
OUTSIDE = 2.0
"""Pixels by which an edge may lie outside its picture, as rounding has it; it is moved to the edge."""


class CocoConfig(FolderConfig):
    """Parameters of ``coco``.

    Attributes:
        root: folder from which the files and their pictures are named.
        train, val, test: the COCO file of each part, from ``root`` on; parts without a file are drawn from the others,
            as for folders of pictures.
        images: folder of the pictures, from ``root`` on; empty looks for them beside the file, and below ``root``.
        decode: ``module:function`` that makes boxes of the network's outputs (``task.tasks.detection``).
        crop: 0, which stretches the whole picture to the square; a crop would cut boxes off.
    """

    train: str = "boxes.json"
    val: str = ""
    test: str = ""
    images: str = ""
    decode: str = ""
    crop: float = 0.0

    def __post_init__(self) -> None:
        if self.crop:
            raise UnfitError("crop", f"expected 0, not {self.crop}: what a crop leaves out would count as missed")

    @property
    def judge(self) -> str:
        """See PictureConfig."""
        return f"{self.task} {self.decode}".strip()


@dataclass(frozen=True)
class _Part:
    """What a file says.

    Attributes:
        listing: of the pictures.
        sizes: width and height of each picture, pixels.
        boxes: of each picture, rows as ``labels.BOX``.
        classes: names by the ids of the categories, in their order.
    """

    listing: Listing
    sizes: tuple[tuple[int, int], ...]
    boxes: tuple[tuple[tuple[float, ...], ...], ...]
    classes: Mapping[int, str]


class Coco(Folder):
    """A dataset of pictures on disk, whose boxes stand in COCO files."""

    PLACES: ClassVar[tuple[str, ...]] = ("train", "val", "test", "images")
    _config: CocoConfig

    def layout(self) -> Layout:
        """Lists the pictures of the files by part."""
        return Layout({part: annotated.listing for part, annotated in self._parts.items()})

    def classes(self) -> tuple[str, ...] | None:
        """See Dataset: names of the categories; None where boxes are not looked at."""
        return tuple(self._parts["train"].classes.values()) if self._config.labels else None

    def _digest(self, layout: Layout) -> str:
        """The digest of the pictures, with their boxes and the code that decodes a network's boxes."""
        parts, decode = self._parts, self._config.decode
        code = factory_content(decode, Path(".snakemake") / "autotailor" / "decode.json") if decode else ""
        own = [(annotated.boxes, annotated.classes) for part, annotated in parts.items() if part in layout.parts]
        boxes_and_code = repr((own if self._config.labels else (), code))
        return f"{super()._digest(layout)} {hashlib.sha256(boxes_and_code.encode()).hexdigest()}"

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import divided

        parts, layout = self._parts, self.layout()
        opened = self._opened(layout, {part: listing.labels for part, listing in layout.parts.items()})
        if self._config.labels:
            for part, annotated in parts.items():
                opened[part] = dataclasses.replace(opened[part], labels=_padded(annotated.boxes))
        return divided(self._config, self.classes() or (), opened)

    def _examine(self, layout: Layout) -> list[Content]:
        """See Folder; the sizes that the files tell are compared with those of the pictures."""
        contents = super()._examine(layout)
        sizes = [size for annotated in self._parts.values() for size in annotated.sizes]
        pairs = list(zip(layout.files(), sizes, strict=True))
        digest = hashlib.sha256((layout.digest(contents) + repr(sizes)).encode()).hexdigest()
        wrong = verdict_on(digest, SIZES, lambda: _sizes(self._config.name, pairs)).splitlines()
        self._refuse(f"{len(wrong):,} pictures have other sizes than their boxes", wrong)
        return contents

    @cached_property
    def _parts(self) -> dict[str, _Part]:
        """What the files say, by part; they are read once.

        Raises:
            DataError: a file is missing or is none of COCO's, or pictures or boxes cannot be used.
        """
        config = self._config
        files = {part: str(getattr(config, part)) for part in NAMES if getattr(config, part)}
        if "train" not in files:
            raise DataError(f"data {config.name}: data.train names no file; name the COCO file to learn from there")
        root = Path(config.root).expanduser()
        parts = {part: self._part(part, root / file) for part, file in files.items()}
        for part, annotated in parts.items():
            if annotated.classes != parts["train"].classes:
                raise DataError(
                    f"data {config.name}: {root / files[part]} has other categories than {root / files['train']}; "
                    f"give all parts the same ids and names"
                )
        return parts

    def _part(self, part: str, path: Path) -> _Part:
        """What one file says."""
        document = self._read(path)
        try:
            pictures = sorted(document["images"], key=lambda each: str(each["file_name"]))
            names = [str(each["file_name"]) for each in pictures]
            sizes = tuple((int(each["width"]), int(each["height"])) for each in pictures)
            places = {each["id"]: number for number, each in enumerate(pictures)}
            categories = sorted((int(each["id"]), str(each["name"])) for each in document["categories"])
        except (KeyError, TypeError, ValueError) as error:
            raise DataError(
                f"data {self._config.name}: {path} is no file of COCO's format ({type(error).__name__}: {error}); its "
                f"images need id, file_name, width and height, and its categories id and name"
            ) from error
        classes = dict(categories)
        twice = [f"{name} twice" for name, count in Counter(names).items() if count > 1]
        twice += [
            f"the id {id_} of categories twice" for id_, count in Counter(i for i, _ in categories).items() if count > 1
        ]
        if twice or not classes or not pictures or len(places) < len(pictures):
            what = twice[0] if twice else "an id of images twice" if pictures and classes else "no images or categories"
            raise DataError(f"data {self._config.name}: {path} has {what}; each needs one id and one name")
        folder = self._folder(part, path, names[0])
        if missing := [str(folder / name) for name in names if not (folder / name).is_file()]:
            self._refuse(f"{len(missing):,} pictures of {path} are missing", missing)
        boxes = self._boxes(path, document["annotations"] if self._config.labels else [], places, sizes, list(classes))
        listing = Listing(folder, (), tuple(names), (UNKNOWN,) * len(names), ())
        return _Part(listing, sizes, boxes, classes)

    def _read(self, path: Path) -> dict[str, Any]:
        where = f"data {self._config.name}: {path}"
        try:
            with open_regular(path, MOST_BYTES) as stream:
                document = json.load(stream)
        except (OSError, ValueError) as error:
            raise DataError(
                f"{where} cannot be read ({getattr(error, 'strerror', None) or error}); put a COCO file there, or name "
                f"those of the parts in data.train, data.val and data.test, from data.root on"
            ) from error
        if not isinstance(document, dict) or not all(isinstance(document.get(key), list) for key in KEYS):
            raise DataError(f"{where} is no file of COCO's format; expected the lists {', '.join(KEYS)} in it")
        return document

    def _folder(self, part: str, path: Path, name: str) -> Path:
        """The folder of a file's pictures: that of the configuration, or the first usual one that has a picture."""
        root, inner = Path(self._config.root).expanduser(), Path("images")
        if self._config.images:
            return root / self._config.images
        own = path.stem.rpartition("_")[2]  # train2017 of instances_train2017.json
        places = [path.parent, path.parent / inner, root, root / inner]
        places += [root / before / each for before in ("", inner) for each in (own, *NAMES[part])]
        for place in places:
            if (place / name).is_file():
                return place
        raise DataError(
            f"data {self._config.name}: {path} names the picture {name}, which lies in none of "
            f"{', '.join(dict.fromkeys(map(str, places)))}; name its folder in data.images, from data.root on"
        )

    def _boxes(
        self,
        path: Path,
        annotations: list[dict[str, Any]],
        places: Mapping[Any, int],
        sizes: tuple[tuple[int, int], ...],
        ids: list[int],
    ) -> tuple[tuple[tuple[float, ...], ...], ...]:
        """The boxes of each picture.

        Raises:
            DataError: some annotations cannot be used; the message names the first of them.
        """
        boxes: list[list[tuple[float, ...]]] = [[] for _ in sizes]
        wrong, labels = list[str](), {id_: number for number, id_ in enumerate(ids)}
        for number, each in enumerate(annotations):
            try:
                place, is_known = places.get(each.get("image_id")), each.get("category_id") in labels
            except (AttributeError, TypeError):
                wrong.append(f"annotation {number}: expected an image_id and a category_id, not {each!s:.80}")
                continue
            if place is None or not is_known:
                key = "image_id" if place is None else "category_id"
                wrong.append(f"annotation {each.get('id', number)}: no {key} {each.get(key)!r}")
            elif reason := _wrong_box(each.get("bbox"), *sizes[place]):
                wrong.append(f"annotation {each.get('id', number)}: bbox {each.get('bbox')} {reason}")
            else:
                (left, top, w, h), (width, height) = each["bbox"], sizes[place]
                edges = (left / width, top / height, (left + w) / width, (top + h) / height)
                label = (float(labels[each["category_id"]]), float(bool(each.get("iscrowd", 0))))
                boxes[place].append((*(min(max(edge, 0.0), 1.0) for edge in edges), *label))
        self._refuse(f"{len(wrong):,} of {len(annotations):,} boxes of {path} cannot be used", wrong)
        return tuple(map(tuple, boxes))

    def _refuse(self, what: str, wrong: list[str]) -> None:
        refuse(self._config.name, what, wrong, place="")


def find_files(folder: Path) -> dict[str, str]:
    """The COCO files of a folder by part, from the folder on, by their names; empty where there is none."""
    files = [path for pattern in ("*.json", "*/*.json") for path in sorted(folder.glob(pattern)) if _is_coco(path)]
    boxes = [path for path in files if not path.name.startswith(("captions", "person_keypoints"))]
    if len(boxes) == 1:
        return {"train": str(boxes[0].relative_to(folder))}
    named = {path: str(path.relative_to(folder)).lower() for path in boxes}
    parts = {part: [path for path, name in named.items() if names[0] in name] for part, names in NAMES.items()}
    return {part: str(paths[0].relative_to(folder)) for part, paths in parts.items() if paths} if parts["train"] else {}


def _is_coco(path: Path) -> bool:
    """Whether a file seems to hold boxes: its first or last bytes name a list of COCO's."""
    if not path.is_file():  # a pipe would be waited for without end
        return False
    with path.open("rb") as stream:
        start = stream.read(4096)
        stream.seek(-min(path.stat().st_size, 4096), 2)
        text = start + stream.read()
    return any(f'"{key}"'.encode() in text for key in ("annotations", "categories"))


def _wrong_box(box: Any, width: int, height: int) -> str:
    """Why a box [left, top, width, height] cannot be one of a picture; "" where it can."""
    if not isinstance(box, list) or len(box) != 4 or not all(isinstance(each, int | float) for each in box):
        return "is not [left, top, width, height]"
    left, top, w, h = box
    if not all(map(math.isfinite, box)) or w <= 0 or h <= 0:
        return "has no area"
    is_far = min(left, top) < -OUTSIDE or left + w > width + OUTSIDE or top + h > height + OUTSIDE
    if is_far or min(left + w, width) <= max(left, 0) or min(top + h, height) <= max(top, 0):
        return f"lies outside its picture of {width} x {height} pixels"
    return ""


def _padded(boxes: tuple[tuple[tuple[float, ...], ...], ...]) -> npt.NDArray[np.float32]:
    """Boxes of pictures as one array ``[n, most, 6]``, filled with rows that are no box; at least one row."""
    most = max([1, *map(len, boxes)])
    padded = np.zeros((len(boxes), most, len(BOX)), np.float32)
    padded[..., BOX.index("class")] = UNKNOWN
    for number, own in enumerate(boxes):
        padded[number, : len(own)] = np.asarray(own, np.float32).reshape(-1, len(BOX))
    return padded


def _sizes(name: str, pairs: list[tuple[Path, tuple[int, int]]]) -> str:
    """The pictures that have other sizes than their file tells, a line for each."""
    from autotailor.data.pictures.reading import upright_size

    def check(index: int) -> None:
        path, stated = pairs[index]
        if (actual := upright_size(path)) != stated:
            sizes = [" x ".join(map(str, size)) for size in (actual, stated)]
            raise DataError(f"{path} has {sizes[0]} pixels, and the file of its boxes says {sizes[1]}")

    return "\n".join(refusals(f"comparing the pictures of {name} with their boxes", len(pairs), check))


@register("coco")
def coco(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Coco(CocoConfig.from_section(section))
