"""The look-up table of operator latencies (design, section 5): a CSV, what the store knows of one model's operators."""

from __future__ import annotations

import csv
import io
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.artifacts import atomic
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import LUTError
from autotailor.profiling.records.limits import NONSENSE, RANGES, read_feature, refusal

COLUMNS = (
    "operator_id",
    "feature",
    "fingerprint",
    "latency_ms",
    "standard_error",
    "repeats",
    "energy_mj",
    "resident_weight_mb",
    "workspace_mb",
    "measured_at",
    "measured_by",
    "device",
)
OPTIONAL = ("energy_mj", "resident_weight_mb", "workspace_mb")
ORIGIN = ("measured_at", "measured_by")
FURTHER = frozenset((*OPTIONAL, *ORIGIN, "device"))
MOST_BYTES = 2**28
"""Of a table: two hundred times what a large space takes."""


@dataclass(frozen=True)
class LUTRow:
    """One operator on one device.

    Attributes:
        feature: the operator.
        fingerprint: id of the device's fingerprint.
        latency_ms: milliseconds.
        standard_error: of the latency, in milliseconds.
        repeats: passes that it was measured in.
        energy_mj: of one run above idle, millijoules (power of its kind x latency); None: unavailable.
        resident_weight_mb: its weights as the runtime holds them, MiB; None: not known.
        workspace_mb: scratch memory of one run, MiB; None: not known.
        measured_at: when it was measured last, UTC in ISO 8601; empty: not known.
        measured_by: the autotailor that did it; empty: not known. The runtime's version is in the fingerprint.
    """

    feature: OperatorFeature
    fingerprint: str
    latency_ms: float
    standard_error: float
    repeats: int
    energy_mj: float | None = None
    resident_weight_mb: float | None = None
    workspace_mb: float | None = None
    measured_at: str = ""
    measured_by: str = ""


@dataclass(frozen=True)
class LUT:
    """Latencies of distinct operators on one device.

    Attributes:
        rows: one for each operator, in the order they were asked for.
        device: what the fingerprint of the rows stands for; None: the table does not say.
    """

    rows: tuple[LUTRow, ...]
    device: Fingerprint | None = None

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[LUTRow]:
        return iter(self.rows)

    @property
    def fingerprint(self) -> str:
        """Id of the device's fingerprint."""
        return self.rows[0].fingerprint if self.rows else ""

    def latencies(self) -> dict[str, float]:
        """Operator id to milliseconds."""
        return {row.feature.id: row.latency_ms for row in self.rows}

    def standard_errors(self) -> dict[str, float]:
        """Operator id to the standard error in milliseconds."""
        return {row.feature.id: row.standard_error for row in self.rows}

    def known(self, name: str) -> dict[str, float]:
        """Operator id to ``energy_mj``, ``resident_weight_mb`` or ``workspace_mb``, where it is known."""
        return {row.feature.id: value for row in self.rows if (value := getattr(row, name)) is not None}

    def select(self, operators: Iterable[OperatorFeature]) -> LUT:
        """The rows of some operators, in their order, then those of the anchor operator.

        Raises:
            LUTError: how many are missing, of which kinds, and what to do.
        """
        rows = {row.feature.id: row for row in self.rows}
        wanted = list(dict.fromkeys(operators))
        if missing := Counter(feature.kind for feature in wanted if feature.id not in rows):
            kinds = ", ".join(f"{count} {kind}" for kind, count in missing.most_common())
            raise LUTError(
                f"the table of device {self.fingerprint} lacks {missing.total()} of {len(wanted)} operators ({kinds}): "
                "it was made for another network or space. Ask for one made with this model and space (rule profile on "
                "the device, then its lut.csv), or run without lut=... where the device is at hand"
            )
        anchor = "" if self.device is None else self.device.anchor
        keys = dict.fromkeys((*(f.id for f in wanted if f.id != anchor), *([anchor] if anchor in rows else [])))
        return LUT(tuple(rows[key] for key in keys), self.device)

    def write(self, path: Path) -> None:
        """Writes the CSV at once or not at all."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(COLUMNS)
        device = "" if self.device is None else self.device.to_json()
        for row in self.rows:
            extras = ["" if (value := getattr(row, name)) is None else repr(value) for name in OPTIONAL]
            origin = [getattr(row, name) for name in ORIGIN]
            numbers = [repr(row.latency_ms), repr(row.standard_error), str(row.repeats)]
            writer.writerow(
                [row.feature.id, row.feature.to_json(), row.fingerprint, *numbers, *extras, *origin, device]
            )
        with atomic(path) as temporary:
            temporary.write_text(text.getvalue())

    @classmethod
    def read(cls, path: Path) -> LUT:
        """Reads the CSV.

        Raises:
            LUTError: no such file, no CSV in UTF-8, columns that are missing or there twice, a row that makes no sense,
                or two devices in one file.
        """
        lines = list(_lines(path, _text(Path(path))))
        rows, refused = [], []
        for number, line in lines:
            try:
                rows.append(_read_row(line))
            except ValueError as error:
                refused.append(f"line {number}: {error}")
        if refused:
            more = f" (and {len(refused) - 1} more lines)" if len(refused) > 1 else ""
            raise LUTError(
                f"{path}, {refused[0]}{more}; nothing of it was taken: run the rule profile again, or export the table "
                "again"
            )
        if len(fingerprints := {row.fingerprint for row in rows}) > 1:
            raise LUTError(
                f"{path}: latencies of {len(fingerprints)} devices in one LUT; profile into one file per device"
            )
        if len({row.feature.id for row in rows}) != len(rows):
            raise LUTError(f"{path}: an operator appears twice; run the rule profile again")
        return cls(tuple(rows), _read_device(path, rows, {line.get("device") or "" for _, line in lines}))


def _text(path: Path) -> str:
    """What a file says; with or without the mark that spreadsheets put at the beginning of UTF-8."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise LUTError(f"{path}: no file, expected a table (CSV); name the file of a LUT")
        if status.st_size > MOST_BYTES:
            raise LUTError(
                f"{path}: {status.st_size / 2**20:,.0f} MiB, a LUT has at most {MOST_BYTES / 2**20:.0f}; is it a table?"
            )
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or error
        raise LUTError(f"{path}: cannot be read ({reason}); run the rule profile to make it") from error
    except UnicodeDecodeError as error:
        raise LUTError(
            f"{path}: no text in UTF-8 (byte {error.start}); save it as CSV in UTF-8, or export the table again"
        ) from error
    except ValueError as error:  # a path that no file can have
        raise LUTError(f"{str(path)!r}: cannot be read ({error}); name the file of a LUT") from error


def _lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row with the number of its last line in the file."""
    required = [name for name in COLUMNS if name not in FURTHER]
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        if missing := [name for name in required if name not in names]:
            raise LUTError(
                f"{path}: no LUT, the columns {', '.join(missing)} are missing; expected {', '.join(required)}, with "
                "commas in between"
            )
        if twice := [name for name, count in Counter(names).items() if count > 1 and name in COLUMNS]:
            raise LUTError(f"{path}: the columns {', '.join(twice)} are there twice; export the table again")
        for values in reader:
            if values and len(values) != len(names):
                raise LUTError(
                    f"{path}, line {reader.line_num}: {len(values)} values for {len(names)} columns; the file is cut "
                    "off or was changed: export the table again"
                )
            if values:
                yield reader.line_num, dict(zip(names, values, strict=True))
    except csv.Error as error:
        raise LUTError(f"{path}, line {reader.line_num}: no CSV ({error}); export the table again") from error


def _read_device(path: Path, rows: Sequence[LUTRow], texts: set[str]) -> Fingerprint | None:
    """The device that all rows describe; None where they do not."""
    if len(texts) > 1:
        raise LUTError(f"{path}: the column device is not the same in all rows; export the table again")
    if texts <= {""}:
        return None
    try:
        device = Fingerprint.from_json(texts.pop())
    except ValueError as error:
        raise LUTError(f"{path}: the column device is no JSON of a device ({error}); export the table again") from error
    if device.id != rows[0].fingerprint:
        raise LUTError(
            f"{path}: its column device describes {device.id}, its fingerprint is {rows[0].fingerprint}; "
            "export the table again"
        )
    return device


def _read_row(row: dict[str, str]) -> LUTRow:
    """One row; raises ValueError saying what is wrong with it."""
    try:
        feature = read_feature(row["feature"])
        latency, error = float(row["latency_ms"]), float(row["standard_error"])
        extras: dict[str, Any] = {name: float(row[name]) for name in OPTIONAL if row.get(name)}
        extras |= {name: row.get(name) or "" for name in ORIGIN}
        read = LUTRow(feature, row["fingerprint"], latency, error, int(row["repeats"]), **extras)
    except NONSENSE as reason:
        raise ValueError(f"not a row of a LUT ({str(reason)[:200]})") from reason
    if feature.id != row["operator_id"]:
        raise ValueError(f"id {row['operator_id'][:40]!r} is not that of its feature ({feature.id})")
    if wrong := refuse_row(read):
        raise ValueError(wrong)
    return read


def refuse_row(row: LUTRow) -> str | None:
    """What is wrong with a row; None: nothing."""
    if not (row.measured_at + row.measured_by).isprintable() or len(row.measured_at + row.measured_by) > 200:
        return "measured_at or measured_by is not one short line"
    return refusal({name: getattr(row, name) for name in RANGES if hasattr(row, name)})
