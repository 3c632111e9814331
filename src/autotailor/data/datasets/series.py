"""Recordings in files: sound (``.wav``) and tables of sensors (``.csv``, ``.tsv``), cut into windows.

``data.root`` is a folder:

    ROOT/CLASS/RECORDING.wav          divided by ``data.fractions``
    ROOT/train/CLASS/RECORDING.csv    with ``val`` and ``test``, where the user divided the recordings
    ROOT/RECORDING.wav                without labels, at any depth with ``data.labels: false``
    ROOT/RECORDING.csv                at any depth where the task is ``regression``, and ROOT/TABLE

Numbers of a regression are columns of the recordings (``data.targets``), whose mean over a window is the window's, or
stand in a table with a row for each recording (``data.table``), all of whose windows have them.

A recording has a row of numbers for each channel of the sound, or for each column of the table. A window is
``data.length`` numbers long and begins every ``data.hop`` numbers; what is shorter than a window is continued by zeros.
Windows of one recording, and of its copies, stay in one part. Sound in whole numbers is divided by the largest, so that
it lies between -1 and 1.
"""

from __future__ import annotations

import csv
import io
import warnings
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import psutil

from autotailor.artifacts import open_regular
from autotailor.data.datasets.arrays import LAYOUTS, Array, Arrays, ArraysConfig
from autotailor.data.examination import refuse
from autotailor.data.files.contents import MOST_BYTES, Content, Examiner, digest, read_contents
from autotailor.data.labels import has_numbers
from autotailor.data.pictures.layout import root_folder, unlabelled_parts, unlisted
from autotailor.data.pictures.listing import class_folders, is_picture, visible_files
from autotailor.data.registry import Dataset, register
from autotailor.values import Natural, UnfitError, is_number

SOUND, TABLES = (".wav", ".wave"), {".csv": ",", ".tsv": "\t"}
"""Suffixes of sound, and of tables with what stands between their numbers."""
EXAMINER = "finite recording 2"  # verdicts by other rules are not reused
FILE = "file"
"""The column of ``data.table`` that names recordings."""
SHOWN = 5
"""Most recordings that a message names."""
Rows = npt.NDArray[np.float32]


class SeriesConfig(ArraysConfig):
    """Parameters of ``series``, beside those of ``arrays``.

    Attributes:
        root: folder of the recordings.
        length: numbers of a window, those that the network takes; 0: those of the longest recording.
        hop: numbers from the beginning of one window to that of the next; 0: ``length``.
        columns: of tables, in the order of the network's channels; empty takes all columns but ``targets``.
        rate: of sound, numbers a second; recordings of another rate are refused. 0: that of the first recording.
        targets: columns of tables that a regression learns: the mean of each over a window.
        table: a CSV file below ``root`` with the column ``file``, the path of a recording from ``root`` on, and columns
            of numbers that a regression learns. One of ``targets`` and ``table`` is named.
    """

    length: Natural = 0
    hop: Natural = 0
    columns: tuple[str, ...] = ()
    rate: Natural = 0
    targets: tuple[str, ...] = ()
    table: str = ""

    def __post_init__(self) -> None:
        if has_numbers(self.task) and self.labels and bool(self.targets) == bool(self.table):
            raise UnfitError("targets", "expected columns of the recordings, or a table of their numbers (table)")
        if (self.targets or self.table) and not (has_numbers(self.task) and self.labels):
            raise UnfitError("targets", f"{self.targets or self.table}: only a regression with labels learns numbers")
        if both := sorted(set(self.targets) & set(self.columns)):
            raise UnfitError(
                "targets", f"{both[0]} is in columns, too; a network that reads a number need not learn it"
            )


@dataclass(frozen=True, eq=False)
class Recording:
    """One recording.

    Attributes:
        rows: float32 ``[channels, length]``.
        columns: names of the table's columns, numbers where it has no head; empty of sound.
        rate: of sound, numbers a second; 0 of a table.
    """

    rows: Rows
    columns: tuple[str, ...] = ()
    rate: int = 0

    def apart(self, columns: tuple[str, ...]) -> tuple[Recording, Rows]:
        """The recording without some of its columns, and these ``[columns, length]``."""
        if not columns:
            return self, self.rows[:0]
        places = [self.columns.index(name) for name in columns]
        left = tuple(name for name in self.columns if name not in columns)
        return Recording(np.delete(self.rows, places, 0), left, self.rate), self.rows[places]


def is_recording(path: str) -> bool:
    """Whether the suffix of a file's name is one of a recording."""
    return Path(path).suffix.lower() in (*SOUND, *TABLES)


def holds_recordings(folder: Path) -> bool:
    """Whether recordings and no pictures lie at any depth below a folder; raises OSError where it is not readable."""
    files = list(visible_files(folder))
    return any(map(is_recording, files)) and not any(map(is_picture, files))


def read_recording(content: bytes, suffix: str, columns: tuple[str, ...] = ()) -> Recording:
    """A recording from a file's bytes.

    Args:
        content: of the file.
        suffix: of its name.
        columns: of a table that are taken; empty takes all.

    Raises:
        ValueError: the bytes are no sound or no table of numbers, or the table lacks a column.
    """
    recording = _sound(content) if suffix.lower() in SOUND else _table(content, TABLES[suffix.lower()], columns)
    if not recording.rows.size:
        raise ValueError("it holds no numbers")
    if not np.isfinite(recording.rows).all():
        raise ValueError("it holds numbers that are not finite, or places without a number")
    return recording


def _sound(content: bytes) -> Recording:
    from scipy.io import wavfile

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # chunks that are no sound
        try:
            rate, numbers = wavfile.read(io.BytesIO(content))
        except Exception as error:  # of a damaged file SciPy raises whatever its reading ends in
            raise ValueError(f"it is no sound in PCM or in floats ({error or type(error).__name__})") from error
    rows = np.atleast_2d(np.asarray(numbers).T)
    if rows.dtype.kind == "u":
        rows = (rows.astype(np.float32) - 128) / 128
    elif rows.dtype.kind == "i":
        rows = rows / (float(np.iinfo(rows.dtype).max) + 1)
    return Recording(rows.astype(np.float32), rate=int(rate))


def _table(content: bytes, separator: str, columns: tuple[str, ...]) -> Recording:
    import pandas as pd

    try:
        start = io.StringIO(content[:MOST_LINE].decode("utf-8-sig", "ignore"), newline=None)
        lines = csv.reader(start, delimiter=separator)
        first = next((line for line in lines if any(map(str.strip, line))), [])
        has_head = any(cell.strip() and not is_number(cell) for cell in first)
        table = pd.read_csv(io.BytesIO(content), sep=separator, header=0 if has_head else None, encoding="utf-8-sig")
    except (ValueError, csv.Error, pd.errors.ParserError) as error:
        raise ValueError(f"it is no table of numbers ({error})") from error
    table.columns = [str(name).strip() for name in table.columns]
    if lacks := [name for name in columns if name not in table.columns]:
        raise ValueError(f"it has the columns {', '.join(table.columns)}, and not {', '.join(lacks)} (data.columns)")
    table = table[list(columns)] if columns else table
    if text := [name for name, column in table.items() if column.dtype.kind not in "iufb"]:
        raise ValueError(f"its column {text[0]} holds text; name the columns of numbers in data.columns")
    return Recording(np.ascontiguousarray(table.to_numpy(dtype=np.float32).T), tuple(table.columns))


MOST_LINE = 1 << 16
"""Bytes among which the end of a table's first line is looked for."""


class Series(Arrays):
    """A dataset of recordings, whose windows are its signals."""

    _config: SeriesConfig

    def __init__(self, config: SeriesConfig) -> None:
        super().__init__(config)
        if config.layout != LAYOUTS[0]:
            raise self._refusal("windows of recordings have their channels first; leave data.layout out")

    def of_length(self, length: int) -> Series:
        """The same recordings in windows of another length."""
        return Series(replace(self._config, length=length))

    @property
    def has_labels(self) -> bool:
        """Whether recordings have labels: they lie in folders of classes, or have numbers."""
        return has_numbers(self._config.task) or any(class_folders(folder) for folder in self._folders.values())

    def fingerprint(self) -> str:
        """See Dataset."""
        recordings = digest(list(self._paths), self._contents)
        table = f" {sha256(repr(self._table_numbers).encode()).hexdigest()}" if self._config.table else ""
        return recordings + table

    @property
    def _has_classes(self) -> bool:
        """Whether the folders in which recordings lie are their labels."""
        return self._config.labels and not has_numbers(self._config.task)

    @property
    def _columns(self) -> tuple[str, ...]:
        """Columns of tables that are read; empty reads all."""
        return (*self._config.columns, *self._config.targets) if self._config.columns else ()

    @cached_property
    def _table_numbers(self) -> tuple[tuple[str, ...], dict[str, list[float]]]:
        """Names of the numbers in ``data.table``, and those of each recording by its path from the root on."""
        path = Path(self._config.root).expanduser() / self._config.table
        try:
            with open_regular(path, MOST_BYTES) as stream:
                lines = csv.DictReader(io.StringIO(stream.read().decode("utf-8-sig")), strict=True)
                names = tuple(name for name in lines.fieldnames or () if name != FILE)
                read = [(str(line[FILE]), [float(line[name]) for name in names]) for line in lines]
        except (OSError, UnicodeDecodeError, csv.Error, KeyError, TypeError, ValueError) as error:
            raise self._refusal(
                f"{path} is no table with the column {FILE} and finite numbers for each recording ({error}); correct "
                "it, or name another one in data.table"
            ) from error
        if bad := [name for name, numbers in read if not (numbers and np.isfinite(numbers).all())]:
            raise self._refusal(f"{path} has no finite numbers for {bad[0]}; correct the row, or leave it out")
        if twice := [name for name, count in Counter(name for name, _ in read).items() if count > 1]:
            raise self._refusal(f"{path} names {twice[0]} twice; leave one of both rows out")
        return names, dict(read)

    @cached_property
    def _folders(self) -> dict[str, Path]:
        """The folder of each part; all recordings are in ``train`` where the user did not divide them."""
        config = self._config
        folder = root_folder(config.name, config.root, "CLASS/RECORDING.wav", "one folder per class, with recordings")
        try:
            return unlabelled_parts(config.name, folder)
        except OSError as error:
            raise unlisted(config.name, folder, error) from error

    @cached_property
    def _paths(self) -> dict[str, tuple[str, str, Path]]:
        """The recordings: path from the root to part, class and file; the class is empty without labels."""
        try:
            return self._listed_paths()
        except OSError as error:
            raise unlisted(self._config.name, Path(self._config.root), error) from error

    def _listed_paths(self) -> dict[str, tuple[str, str, Path]]:
        paths: dict[str, tuple[str, str, Path]] = {}
        table = Path(self._config.root).expanduser() / self._config.table
        for part, folder in self._folders.items():
            classes = class_folders(folder) if self._has_classes else [""]
            for label in classes:
                there = [name for name in visible_files(folder / label) if is_recording(name)]
                names = [name for name in there if folder / label / name != table]
                if not names:
                    raise self._refusal(f"no recording (.wav, .csv, .tsv) lies in {folder / label}; remove the folder")
                paths |= {f"{part}/{label}/{name}": (part, label, folder / label / name) for name in names}
            if not classes:
                raise self._refusal(
                    f"{folder} has no folders of classes; put recordings there as CLASS/RECORDING.wav, or set "
                    f"data.labels to false"
                )
            self._check_classes(part, classes)
        recordings = list(map(self._row, paths.values()))
        if self._config.table and (lacking := sorted(set(recordings) - set(self._table_numbers[1]))):
            raise self._refusal(f"{self._config.table} has no row for {', '.join(lacking[:SHOWN])}; add it")
        return paths

    def _row(self, path: tuple[str, str, Path]) -> str:
        """What the table calls a recording."""
        return path[2].relative_to(Path(self._config.root).expanduser()).as_posix()

    def _check_classes(self, part: str, classes: list[str]) -> None:
        expected = class_folders(self._folders["train"]) if self._has_classes else [""]
        if different := sorted(set(classes) ^ set(expected)):
            raise self._refusal(
                f"{part} has other classes than train: only one of them has {', '.join(different[:SHOWN])}; every part "
                f"needs the same folders"
            )

    @cached_property
    def _contents(self) -> list[Content]:
        """Hashes of the recordings, each of which is read once to see whether it can be used.

        Raises:
            DataError: some recordings cannot be used.
        """
        config, files = self._config, [path for _, _, path in self._paths.values()]
        contents: dict[Path, Content] = {}
        for suffix in (*SOUND, *TABLES):
            own = [path for path in files if path.suffix.lower() == suffix]
            verdict = partial(_verdict, suffix, self._columns, config.targets)
            examiner = Examiner(f"{EXAMINER} {suffix} {self._columns}{config.targets or ''}", verdict)
            contents |= zip(own, read_contents(own, f"checking the recordings of {config.name}", examiner), strict=True)
        bad = [f"{path}: {contents[path].verdict}" for path in files if contents[path].verdict]
        what = f"{len(bad):,} of {len(files):,} recordings cannot be used"
        refuse(f"{config.name}: {self._root}", what, bad)
        return [contents[path] for path in files]

    @cached_property
    def _arrays(self) -> Mapping[str, Array]:
        """Windows, labels and groups of each part."""
        contents = {name: content.sha256 for name, content in zip(self._paths, self._contents, strict=True)}
        read = {name: self._read(path).apart(self._config.targets) for name, (_, _, path) in self._paths.items()}
        recordings, targets = (
            {name: one for name, (one, _) in read.items()},
            {name: own for name, (_, own) in read.items()},
        )
        self._check_alike(recordings)
        length = self._config.length or max(each.rows.shape[1] for each in recordings.values())
        hop = self._config.hop or length
        counts = {name: 1 + max(0, each.rows.shape[1] - length) // hop for name, each in recordings.items()}
        channels = len(next(iter(recordings.values())).rows)
        size, free = 4 * channels * length * sum(counts.values()), psutil.virtual_memory().available
        if size > free:
            raise self._refusal(f"its windows take {size:,} bytes, and {free:,} of memory are free; raise data.hop")
        arrays = dict[str, Array]()
        for part in self._folders:
            own = [name for name, (of, _, _) in self._paths.items() if of == part]
            times = [counts[name] for name in own]
            arrays[f"x_{part}"] = np.concatenate([_windows(recordings[name].rows, length, hop) for name in own])
            arrays[f"groups_{part}"] = np.repeat([contents[name] for name in own], times)
            if self._config.targets:
                means = [_windows(targets[name], length, hop, "edge").mean(2) for name in own]
                arrays[f"y_{part}"] = np.concatenate(means)
            elif self._config.table:
                numbers = [self._table_numbers[1][self._row(self._paths[name])] for name in own]
                arrays[f"y_{part}"] = np.repeat(np.array(numbers, dtype=np.float32), times, axis=0)
            elif self._config.labels:
                arrays[f"y_{part}"] = np.repeat([self._paths[name][1] for name in own], times)
        return arrays

    def _numbers(self, given: Mapping[str, Array]) -> tuple[tuple[str, ...], Mapping[str, Array]]:
        """See Arrays; the columns name the numbers."""
        return self._config.targets or self._table_numbers[0], super()._numbers(given)[1]

    def _read(self, path: Path) -> Recording:
        try:
            with open_regular(path, MOST_BYTES) as stream:
                return read_recording(stream.read(), path.suffix, self._columns)
        except (OSError, ValueError) as error:
            raise self._refusal(f"{path}: {error}") from error

    def _check_alike(self, recordings: Mapping[str, Recording]) -> None:
        """Refuses recordings of other channels or of another rate than the first."""
        first_name, first = next(iter(recordings.items()))
        rate = self._config.rate or first.rate
        for name, each in recordings.items():
            if (len(each.rows), each.columns) != (len(first.rows), first.columns):
                raise self._refusal(
                    f"{name} has {_channels(each)}, {first_name} has {_channels(first)}; give all the same, or name "
                    f"the columns in data.columns"
                )
            if each.rate and each.rate != rate:
                raise self._refusal(
                    f"{name} has {each.rate} numbers a second, expected {rate}; bring all to the rate of the training, "
                    f"for instance with sox or ffmpeg"
                )


def _verdict(suffix: str, columns: tuple[str, ...], targets: tuple[str, ...], content: bytes) -> str:
    """Why a recording cannot be used; "" where it can."""
    try:
        recording = read_recording(content, suffix, columns)
    except ValueError as error:
        return str(error)
    if lacks := [name for name in targets if name not in recording.columns]:
        remedy = "its numbers can stand in a table (data.table)" if suffix in SOUND else "add them"
        return f"it has no column {', '.join(lacks)} (data.targets); {remedy}"
    return "" if len(recording.rows) > len(targets) else "all of its columns are targets (data.targets)"


def _channels(recording: Recording) -> str:
    return f"the columns {', '.join(recording.columns)}" if recording.columns else f"{len(recording.rows)} channels"


def _windows(rows: Rows, length: int, hop: int, mode: Literal["constant", "edge"] = "constant") -> Rows:
    """The windows of a recording ``[windows, channels, length]``; one shorter than a window is continued by zeros.

    With the mode ``edge`` a short recording is continued by its last number.
    """
    if rows.shape[1] < length:
        rows = np.pad(rows, ((0, 0), (0, length - rows.shape[1])), mode)
    return np.ascontiguousarray(np.lib.stride_tricks.sliding_window_view(rows, length, 1)[:, ::hop].swapaxes(0, 1))


@register("series")
def series(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Series(SeriesConfig.from_section(section))
