"""``inspect --data PATH``: compares the user's pictures with a network, and writes their data section."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotailor.agreement import BYTE, AgreementError, mismatch
from autotailor.data.datasets.coco import Coco, CocoConfig, find_files
from autotailor.data.datasets.folder import Folder, FolderConfig
from autotailor.data.datasets.masks import Masks, MasksConfig, is_masked
from autotailor.data.datasets.table import Table, TableConfig
from autotailor.data.files.contents import cores
from autotailor.data.labels import EMBEDDING, REGRESSION
from autotailor.data.pictures.layout import Layout, is_flat
from autotailor.values import is_number

if TYPE_CHECKING:
    from autotailor.data.pictures.statistics import PictureStatistics

MOST_WORKERS = 8
LISTED = 24  # classes
RARE = 5  # times as many pictures that another class has, from which on a class is said to be rare
IMAGENET_CROP = 0.875
DECODERS, WRITTEN = "autotailor.task.decoders", "mine:decode"
ANCHORED = {"ssdlite320": (6, (16, 32, 64, 128, 256, 512)), "retinanet": (9, (8, 16, 32, 64, 128))}
"""Decoders of torchvision's detectors, with the anchors of each place and the strides of the maps."""
LARGEST = 2048  # pixels
MULTILABEL = "multilabel"
TASKS = {
    "outputs": "how near a SubNet's outputs are to the original network's",
    REGRESSION: "the score is R², of the numbers that the columns hold",
    EMBEDDING: "the score is how often a picture's nearest neighbour is of its class",
}
"""What is measured, for a comment."""
Triple = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocessing:
    """The preprocessing of pictures that a network expects.

    Attributes:
        mean, std: for each channel, pixels between 0 and 1.
        origin: source of mean and std, for a comment.
        crop, interpolation: as in the data's configuration; None where they are unknown.
    """

    mean: Triple
    std: Triple
    origin: str
    crop: float | None = None
    interpolation: str | None = None


@dataclass(frozen=True)
class OwnData:
    """A folder of the user's pictures.

    Attributes:
        folder: as the user named it.
        name: of the dataset.
        layout: the pictures by part.
        labels: whether the pictures lie in folders of classes, or their labels stand in a table or are masks.
        table: name of the table in the folder; "" where there is none.
        columns: labels of the table, or classes of the masks or boxes.
        masks: whether each picture has a mask.
        files: the COCO file of each part, where pictures have boxes.
        decode: a decoder that takes outputs of the network's shapes.
        task: that the configuration names; "" where it is that of the dataset.
    """

    folder: Path
    name: str
    layout: Layout
    labels: bool = True
    table: str = ""
    columns: tuple[str, ...] = ()
    task: str = ""
    masks: bool = False
    files: Mapping[str, str] = field(default_factory=dict)
    decode: str = ""

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes, in the order of the network's outputs; empty without labels."""
        return self.columns or self.layout.classes

    @property
    def kind(self) -> str:
        """The dataset that reads the pictures."""
        return "coco" if self.files else "masks" if self.masks else "table" if self.table else "folder"

    def for_network(
        self, source: str, outputs: int, returned: Sequence[str], shapes: Sequence[tuple[int, ...]]
    ) -> OwnData:
        """The pictures with the task of a network.

        Args:
            source: of the network.
            outputs: how many classes it knows; 0 where it returns something else.
            returned: names of the tensors that it returns.
            shapes: of these tensors, the first axis being that of the images.

        Raises:
            AgreementError: the pictures have other labels than the network.
        """
        if self.masks:
            _, *axes = shapes[0]
            if len(axes) != 3 or axes[0] != len(self.classes):
                raise AgreementError(
                    f"the network {source} returns {returned[0]} [n, {', '.join(map(str, axes))}], and the masks in "
                    f"{self.folder} have {len(self.classes)} classes: give a network whose map is [n, "
                    f"{len(self.classes)}, height, width]; where another of its outputs is the map, name it as "
                    f"model.output (inspect: --output)"
                )
            return self
        if self.task and not outputs:
            raise AgreementError(no_rows(source, returned, self.task))
        if self.task == EMBEDDING:
            return self
        if self.files:
            return replace(self, decode=_decoder(shapes, len(self.classes)))
        if self.labels and not outputs:
            from autotailor.compiler.sources.outputs import no_classes

            raise AgreementError(
                f"the network {source} {no_classes(returned)}; and the pictures in {self.folder} have labels: else "
                f"name a folder in which pictures lie without folders of classes"
            )
        if self.labels and outputs != len(self.classes):
            raise AgreementError(mismatch(source, outputs, str(self.folder), self.classes))
        return self if outputs else replace(self, task="outputs")

    def verify(self) -> None:
        """Raises DataError naming every picture that cannot be used."""
        self._read(32).verify()

    def _read(self, resolution: int) -> Folder:
        if self.files:
            return Coco(_coco_config(self.folder, self.name, self.files, resolution))
        if self.masks:
            return Masks(MasksConfig(name=self.name, resolution=resolution, crop=1.0, root=str(self.folder)))
        if self.table:
            return Table(_table_config(self.folder, self.name, self.table, self.task, resolution))
        return Folder(
            FolderConfig(name=self.name, resolution=resolution, crop=1.0, root=str(self.folder), labels=self.labels)
        )

    def summary(self, transparent: Sequence[str] = ()) -> list[str]:
        """Lines that describe the pictures and the classes, with comments on transparent pictures."""
        kind = ("numbers" if self.task == REGRESSION else "labels") if self.table else "classes"
        what = f"{len(self.classes)} {kind}" if self.labels else "without labels"
        what = f"each has a mask of {what}" if self.masks else f"with boxes of {what}" if self.files else what
        lines = [f"Data {self.folder}: {_parts(self.layout)}, all of them readable; {what}."]
        comments = (*class_lines(self), *self.rare_lines(), *transparent)
        return [*lines, *(line.removeprefix("# ") for line in comments)]

    def rare_lines(self) -> list[str]:
        """Comments that name a class of far fewer pictures than others; none where there is no such class."""
        counts = Counter(label for listing in self.layout.parts.values() for label in listing.labels)
        if not self.labels or self.columns or min(counts.values()) * RARE > max(counts.values()):
            return []
        (most, many), *_, (least, few) = counts.most_common()
        rare, usual = (_printable(self.classes[label]) for label in (least, most))
        return [
            f"# Of {rare} there are {few:,} pictures, of {usual} {many:,}:",
            "# accuracy counts pictures and not classes, and says little of a rare class.",
        ]

    def statistics(self, resolution: int, what: str) -> PictureStatistics:
        """Statistics of the training pictures; ``what`` of them is needed, for the progress.

        Raises:
            DataError: some pictures cannot be used.
        """
        from autotailor.data.pictures.statistics import measure
        from autotailor.data.pictures.stream import PictureStream

        splits = self._read(resolution).load()
        assert isinstance(splits.train, PictureStream)
        return measure(splits.train, what=what)


def read_own_data(path: Path, task: str = "") -> OwnData:
    """Lists the pictures of a folder, or of a table with their labels (``data.datasets.table``).

    Pictures that lie in a folder without class folders have no labels. COCO's JSON files hold boxes
    (``data.datasets.coco``). Folders ``images`` and ``masks`` hold pictures with the class of each pixel
    (``data.datasets.masks``).

    Raises:
        AgreementError: such data do not have what the task needs.
        DataError: the folder is missing, has no pictures, or has only one class; the file is no table of pictures.
    """
    own = _read(path, task)
    fits = {REGRESSION: own.table or not own.labels, EMBEDDING: own.kind == "folder"}
    if not fits.get(task, True):
        expected = "a .csv file with numbers, or arrays" if task == REGRESSION else "a folder with one folder per class"
        raise AgreementError(f"--data {path} is read as data.kind {own.kind}, and --task {task} needs {expected}")
    return own


def _read(path: Path, task: str) -> OwnData:
    if path.suffix.lower() == ".csv":
        return _read_table(path, task)
    is_file = path.suffix.lower() == ".json"
    folder = path.parent if is_file else path
    name = named(folder)
    if files := {"train": path.name} if is_file else find_files(folder.expanduser()):
        boxes = Coco(_coco_config(folder, name, files, 32))
        return OwnData(folder, name, boxes.layout(), columns=boxes.classes() or (), files=files)
    if is_masked(folder.expanduser()):
        masks = Masks(MasksConfig(name=name, resolution=32, root=str(folder)))
        return OwnData(folder, name, masks.layout(), columns=masks.classes() or (), masks=True)
    labels = not (folder.expanduser().is_dir() and is_flat(folder.expanduser()))
    config = FolderConfig(name=name, resolution=32, root=str(folder), labels=labels)
    return OwnData(folder, name, Folder(config).layout(), labels, task=task)


def _coco_config(folder: Path, name: str, files: Mapping[str, str], resolution: int) -> CocoConfig:
    return CocoConfig(name=name, resolution=resolution, root=str(folder), **{"train": "", **files})  # type: ignore[arg-type]


def _decoder(shapes: Sequence[tuple[int, ...]], classes: int) -> str:
    """The decoder of this package that takes outputs of some shapes; a placeholder where there is none."""
    axes = [shape[1:] for shape in shapes]
    if [len(each) for each in axes] in ([3, 3], [3, 3, 3]) and [each[0] for each in axes[:2]] == [classes, 2]:
        return f"{DECODERS}.centres:centres"
    if len(axes) == 2 and all(len(each) == 2 for each in axes) and 4 in (axes[0][1], axes[1][1]):
        return f"{DECODERS}.anchors:{_anchored(axes[0][0])}"
    if len(axes[0]) == 2 and min(axes[0]) in (classes + 4, classes + 5):
        return f"{DECODERS}.yolo:yolo"
    return WRITTEN


def _anchored(count: int) -> str:
    """The decoder whose anchors have this number in square pictures of some size, the first where none has."""
    for name, (each, strides) in ANCHORED.items():
        grids = (sum(math.ceil(side / stride) ** 2 for stride in strides) for side in range(8, LARGEST, 8))
        if count % each == 0 and count // each in grids:
            return name
    return next(iter(ANCHORED))


def _read_table(path: Path, task: str) -> OwnData:
    folder, name = path.parent, named(path.parent)
    table = Table(_table_config(folder, name, path.name, task, 32))
    return OwnData(folder, name, table.layout(), table=path.name, columns=table.classes() or (), task=task)


def _table_config(folder: Path, name: str, table: str, task: str, resolution: int) -> TableConfig:
    return TableConfig(
        name=name, resolution=resolution, crop=1.0, root=str(folder), table=table, task=task or MULTILABEL
    )


def no_rows(source: str, returned: Sequence[str], task: str) -> str:
    """The message for a network that does not return the one row that a task needs."""
    return (
        f"the network {source} returns {', '.join(returned)}, and --task {task} needs one row of numbers [n, k]: name "
        f"the output that is the row (inspect: --output), or leave --task out"
    )


def named(path: Path, otherwise: str = "pictures") -> str:
    """A name for the data of a folder or a file."""
    return re.sub(r"\W+", "_", path.expanduser().resolve().name).strip("_").lower() or otherwise


def is_of_timm(source: str) -> bool:
    """Whether a source names a network of timm, ``timm:NAME``."""
    module, _, name = source.partition(":")
    return bool(name) and module.split(".")[0] == "timm"


def timm_preprocessing(source: str) -> Preprocessing | None:
    """A network's own preprocessing according to timm; None where timm does not know it."""
    if not is_of_timm(source):
        return None
    import timm

    name = source.partition(":")[2]
    config = timm.get_pretrained_cfg(name, allow_unregistered=True)
    if config is None or not config.mean or not config.std:
        return None
    return Preprocessing(
        _triple(config.mean),
        _triple(config.std),
        f"timm's for {name}",
        crop=config.crop_pct if config.crop_pct and 0 < config.crop_pct <= 1 else None,
        interpolation=config.interpolation if config.interpolation in ("bilinear", "bicubic") else None,
    )


def preprocessing(
    own: OwnData,
    source: str,
    resolution: int,
    mean: Sequence[float] | None,
    std: Sequence[float] | None,
    *,
    is_bytes: bool = False,
) -> tuple[Preprocessing, PictureStatistics]:
    """The preprocessing of the pictures, and their statistics.

    Mean and deviation are the given ones, else none where the network scales bytes itself (``is_bytes``), else
    those of timm, else those measured on the pictures.

    Raises:
        DataError: some pictures cannot be used.
    """
    scaled = Preprocessing((0.0, 0.0, 0.0), (BYTE, BYTE, BYTE), "none: the network takes bytes, and scales them itself")
    own_preprocessing = scaled if is_bytes else timm_preprocessing(source)
    is_given = mean is not None and std is not None
    measured = own.statistics(resolution, "sizes" if is_given or own_preprocessing else "mean and deviation")
    if mean is not None and std is not None:
        crop, how = (own_preprocessing.crop, own_preprocessing.interpolation) if own_preprocessing else (None, None)
        return Preprocessing(_triple(mean), _triple(std), "given with --mean and --std", crop, how), measured
    if own_preprocessing is not None:
        return own_preprocessing, measured
    origin = (
        f"measured on {measured.measured:,} of {measured.pictures:,} training pictures; replace them if the network "
        f"was trained with other values"
    )
    return Preprocessing(measured.mean, measured.std, origin), measured


def crop_of(prepared: Preprocessing, measured: PictureStatistics, resolution: int) -> float:
    """The network's own crop; where it is unknown, small pictures are taken whole."""
    return prepared.crop or (1.0 if measured.side <= resolution else IMAGENET_CROP)


def data_lines(
    own: OwnData, prepared: Preprocessing, measured: PictureStatistics, resolution: int, *, is_assumed: bool = False
) -> list[str]:
    """The data section, as YAML with comments.

    Args:
        own: the pictures.
        prepared: how the network wants them.
        measured: their statistics.
        resolution: side of the network's images, pixels.
        is_assumed: whether this side is only the usual one, since nobody has named the network's.
    """
    small = measured.side <= resolution
    crop = 0 if own.files else 1.0 if own.masks else crop_of(prepared, measured, resolution)
    side = f"{resolution} is assumed: --resolution names the network's" if is_assumed else "the network's"
    rows: list[tuple[str, Any, str]] = [
        ("name", quoted(own.name), ""),
        ("root", own.folder, ""),
        ("resolution", "${model.resolution}", side),
        ("mean", list(prepared.mean), "of pixels between 0 and 1"),
        ("std", list(prepared.std), ""),
        ("crop", crop, "in evaluation the shorter side is scaled to resolution / crop; 0 stretches it"),
        ("scale", [0.5, 1.0] if small else [0.35, 1.0], "area of the training crops"),
        ("flip", True, "false where left and right differ, as in writing"),
        ("interpolation", prepared.interpolation or "bilinear", ""),
        ("workers", min(MOST_WORKERS, cores()), "processes or threads that open pictures"),
    ]
    if own.files:
        advice = "chosen by the outputs' shapes: look whether it is right"
        said = "write this function: it makes boxes of the outputs" if own.decode == WRITTEN else advice
        rows[2:2] = [*((part, quoted(file), "") for part, file in own.files.items()), ("decode", own.decode, said)]
    if own.table:
        rows.insert(2, ("table", quoted(own.table), "one row for each picture, one column for each label"))
    if not own.labels:
        without = "none: the original network teaches alone, and accuracy is agreement with it"
        rows.insert(2, ("labels", False, without))
    if own.task:
        rows.insert(2, ("task", own.task, TASKS[own.task]))
    if len(own.layout.parts) < 3:
        missing = "training, validation, test: drawn by the seed, equal files in one part"
        if "val" not in own.layout.parts:
            rows.insert(2, ("fractions", [0.8, 0.1, 0.1], missing))
    lines = [line(key, value, comment) for key, value, comment in rows]
    place = next(i for i, row in enumerate(rows) if row[0] == "mean")
    lines.insert(place, f"  # mean and std: {prepared.origin}")
    counts = f"# {_parts(own.layout)}; the median of the shorter sides is {measured.side:g} pixels."
    return [counts, "data:", *lines]


def class_lines(own: OwnData) -> list[str]:
    """Comments that name the class of each output; the pictures do not say it where they have no labels."""
    classes = own.classes
    if not classes:
        return ["# The pictures have no labels: what the network's outputs mean is not looked at."]
    order = "outputs are the folders' names in sorted order"
    if own.task == EMBEDDING:
        order = "outputs are vectors; the folders are classes, whose pictures should be neighbours"
    if own.columns:
        order = "map has the classes of the masks" if own.masks else "outputs are the table's columns in their order"
        order = "boxes have the categories in the order of their ids" if own.files else order
    return numbered(f"# The network's {order}:", classes)


def numbered(title: str, classes: Sequence[str]) -> list[str]:
    """Comments that number classes from 0 on, below a title."""
    lines = [title]
    shown = [f"{number} {_printable(name)}" for number, name in enumerate(classes[:LISTED])]
    if len(classes) > LISTED:
        shown.append(f"... {len(classes) - 1} {_printable(classes[-1])}")
    for piece in shown:
        if len(lines) == 1 or len(lines[-1]) + len(piece) > 96:
            lines.append(f"#   {piece}")
        else:
            lines[-1] += f", {piece}"
    return lines


def quoted(text: object) -> str:
    """A text in the quotes and escapes with which Hydra reads it unchanged."""
    import yaml  # type: ignore[import-untyped]

    escaped = str(text).replace("${", "\\${")
    style = '"' if is_number(escaped) else None  # Hydra reads more texts as numbers than YAML does
    dumped = yaml.safe_dump(escaped, allow_unicode=True, width=10**6, default_style=style)
    return str(dumped).removesuffix("...\n").strip()


def line(key: str, value: object, comment: str = "") -> str:
    """One key of the data section, with a comment behind it."""
    if isinstance(value, Path):
        written = quoted(value)
    else:
        written = str(value).lower() if isinstance(value, bool) else str(value)
    return f"  {key}: {written}".ljust(34 if comment else 0) + (f"  # {comment}" if comment else "")


def _parts(layout: Layout) -> str:
    counts = ", ".join(f"{part} {len(listing.paths):,}" for part, listing in layout.parts.items())
    return counts if len(layout.parts) > 1 else f"{len(layout.parts['train'].paths):,} pictures"


def _printable(name: str) -> str:
    """A name without line breaks and other characters that would leave the line of a comment."""
    return "".join(character if character.isprintable() else "?" for character in name)


def _triple(values: Sequence[float]) -> Triple:
    first, second, third = (float(value) for value in values)
    return first, second, third
