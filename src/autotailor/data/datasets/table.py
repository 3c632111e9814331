"""Pictures whose labels stand in a table: one row for each picture, one column for each label, in a CSV file.

    file,part,sky,water,people          file,age
    trip/0001.jpg,train,1,0,1           faces/0001.jpg,31.5
    trip/0002.jpg,train,0,0,0           faces/0002.jpg,4

Labels are 0 or 1, and numbers where the task is ``regression``. The column ``part`` may be left out; parts that are
missing are drawn by the seed, as for folders of pictures.
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from autotailor.artifacts import open_regular
from autotailor.data.datasets.folder import Folder, FolderConfig
from autotailor.data.errors import DataError
from autotailor.data.examination import listed
from autotailor.data.files.contents import MOST_BYTES
from autotailor.data.labels import UNKNOWN, has_numbers
from autotailor.data.pictures.layout import Layout
from autotailor.data.pictures.listing import Listing
from autotailor.data.pictures.parts import NAMES
from autotailor.data.registry import Dataset, register
from autotailor.values import is_finite

if TYPE_CHECKING:
    from autotailor.data.splits import DataSplits

FILE, PART = "file", "part"
Row = tuple[str, tuple[float, ...]]
"""The path of a picture, and 0, 1 or a number for each label."""


class TableConfig(FolderConfig):
    """Parameters of ``table``.

    Attributes:
        root: folder from which the table names its pictures.
        table: the CSV file, from ``root`` on, with the columns ``file``, perhaps ``part`` (train, val or test), and one
            column of 0 and 1, or of numbers, for each label.
    """

    table: str = "labels.csv"


class Table(Folder):
    """A dataset of pictures on disk, whose labels stand in a table."""

    def __init__(self, config: TableConfig) -> None:
        super().__init__(config)
        self._table, self._root = Path(config.root).expanduser() / config.table, Path(config.root).expanduser()
        self._name, self._numbers = config.name, has_numbers(config.task)
        self._label = np.float32 if self._numbers else np.int64

    def layout(self) -> Layout:
        """Lists the pictures of the table by part, anew at each call; labels are left out."""
        _, parts = self._read()
        listings = {part: self._listing(rows) for part, rows in parts.items()}
        missing = [str(path) for listing in listings.values() for path in listing.files() if not path.is_file()]
        if missing:
            raise DataError(
                f"data {self._name}: {len(missing):,} pictures of {self._table} are missing; paths start at "
                f"{self._root} (data.root):\n{listed(missing)}"
            )
        return Layout(listings)

    def classes(self) -> tuple[str, ...] | None:
        """See Dataset: the columns of the labels; None where the table's labels are not looked at."""
        return self._read()[0] if self._config.labels else None

    def _digest(self, layout: Layout) -> str:
        """The digest of the pictures, with their labels."""
        names, parts = self._read()
        kept = {part: rows for part, rows in parts.items() if part in layout.parts}
        labels = hashlib.sha256(repr((names, kept)).encode()).hexdigest()
        return f"{super()._digest(layout)} {labels}" if self._config.labels else super()._digest(layout)

    def load(self) -> DataSplits:
        """See Dataset."""
        from autotailor.data.pictures.loading import divided

        (names, parts), layout = self._read(), self.layout()
        labels = {part: [own for _, own in rows] for part, rows in parts.items()}
        return divided(self._config, names, self._opened(layout, labels))

    def _listing(self, rows: Sequence[Row]) -> Listing:
        return Listing(self._root, (), tuple(path for path, _ in rows), (UNKNOWN,) * len(rows), ())

    def _read(self) -> tuple[tuple[str, ...], dict[str, list[Row]]]:
        """The names of the labels, and the rows of each part.

        Raises:
            DataError: the table is missing or is none; the message names the line.
        """
        where = f"data {self._name}: {self._table}"
        try:
            with open_regular(self._table, MOST_BYTES) as stream:
                lines = csv.DictReader(io.StringIO(stream.read().decode("utf-8-sig")), strict=True)
                names = tuple(name for name in lines.fieldnames or () if name not in (FILE, PART))
                least = 1 if self._numbers else 2
                if FILE not in (lines.fieldnames or ()) or len(names) < least or len(set(names)) < len(names):
                    raise DataError(
                        f"{where} has the columns {list(lines.fieldnames or ())}; expected {FILE}, perhaps {PART}, and "
                        f"at least {'a column of numbers' if self._numbers else 'two labels of different names'}"
                    )
                parts: dict[str, list[Row]] = {}
                for line in lines:
                    parts.setdefault(self._part(line, lines.line_num), []).append(
                        self._row(line, names, lines.line_num)
                    )
        except OSError as error:
            raise DataError(
                f"{where} cannot be read ({error.strerror}); name the table in data.table, from data.root on, or put "
                f"it there"
            ) from error
        except (UnicodeDecodeError, csv.Error) as error:
            raise DataError(f"{where} is no CSV file in UTF-8 ({error}); save it as one") from error
        self._check(where, parts)
        return names, {part: parts[part] for part in NAMES if part in parts}

    def _part(self, line: Mapping[str, Any], number: int) -> str:
        """The part of a line's picture, ``train`` where the table has no parts."""
        cell = str(line.get(PART, "train") or "").strip().casefold()
        for part, spellings in NAMES.items():
            if cell in spellings:
                return part
        raise DataError(
            f"data {self._name}: line {number} of {self._table} is of the part {cell!r}; expected one of "
            f"{', '.join(NAMES)} in each line, or no column {PART}"
        )

    def _row(self, line: Mapping[str, Any], names: Sequence[str], number: int) -> Row:
        """The picture and the labels of a line."""
        cells = {name: str(line[name]).strip() for name in names}
        wrong = [name for name, value in cells.items() if not self._is_label(value)]
        if None in line or not line[FILE] or wrong:
            label, hint = ("a finite number", "") if self._numbers else ("0 or 1", "; numbers want the task regression")
            column = (*wrong, FILE)[0]
            raise DataError(
                f"data {self._name}: line {number} of {self._table} has {line.get(column)!r} in column {column}; "
                f"expected the path of a picture and {label} for each label, as many as there are columns{hint}"
            )
        return str(line[FILE]), tuple(map(float if self._numbers else int, cells.values()))

    def _is_label(self, value: str) -> bool:
        return is_finite(value) if self._numbers else value in ("0", "1")

    def _check(self, where: str, parts: Mapping[str, Sequence[Row]]) -> None:
        """Refuses a table without training pictures, and one that names a picture twice."""
        if "train" not in parts:
            raise DataError(f"{where} has no row of the part train; the other parts are tested, and not learnt from")
        seen: set[str] = set()
        for path, _ in (row for rows in parts.values() for row in rows):
            if path in seen:
                raise DataError(f"{where} names {path} twice; leave one of both rows out")
            seen.add(path)


@register("table")
def table(section: Mapping[str, Any]) -> Dataset:
    """Factory of the registry."""
    return Table(TableConfig.from_section(section))
