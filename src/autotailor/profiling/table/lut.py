"""The look-up table (LUT) of operator latencies: a CSV file with what the store knows about one model's operators."""

from __future__ import annotations

import csv
import io
import stat
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
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
"""Bytes of the largest table that is read: two hundred times the table of a large space."""


@dataclass(frozen=True)
class LUTRow:
    """One operator on one device.

    Attributes:
        feature: the operator.
        fingerprint: id of the device's fingerprint.
        latency_ms: latency in milliseconds.
        standard_error: standard error of the latency, in milliseconds.
        repeats: number of passes in which the operator was measured.
        energy_mj: energy of one run above idle, in millijoules (power of the operator's kind x latency); None where it
            is not known.
        resident_weight_mb: the operator's weights as the runtime holds them, in MiB; None where this is not known.
        workspace_mb: scratch memory of one run, in MiB; None where it is not known.
        measured_at: when the operator was measured last, UTC in ISO 8601; empty where it is not known.
        measured_by: version of the autotailor that measured; empty where it is not known. (The runtime's version is
            part of the fingerprint.)
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
        rows: one row for each operator, in the order in which the operators were asked for.
        device: the device whose id is the rows' fingerprint; None where the table does not describe it.
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

    def column(self, name: str) -> dict[str, float]:
        """Operator id to ``energy_mj``, ``resident_weight_mb`` or ``workspace_mb``, where the value is known."""
        return {row.feature.id: value for row in self.rows if (value := getattr(row, name)) is not None}

    def select(
        self, operators: Iterable[OperatorFeature], dispensable: Collection[OperatorFeature] = frozenset()
    ) -> LUT:
        """The rows of some operators, in the operators' order; the anchor operator's row comes last.

        Args:
            operators: whose rows are taken.
            dispensable: those of them that the table may lack.

        Raises:
            LUTError: operators are missing; the message says how many, of which kinds, and what to do.
        """
        rows = {row.feature.id: row for row in self.rows}
        distinct = dict.fromkeys(operators)
        chosen = [feature for feature in distinct if feature.id in rows or feature not in dispensable]
        if missing := Counter(feature.kind for feature in chosen if feature.id not in rows):
            kinds = ", ".join(f"{count} {kind}" for kind, count in missing.most_common())
            raise LUTError(
                f"the table of device {self.fingerprint} lacks {missing.total()} of {len(chosen)} operators ({kinds}): "
                "the table was made for another network or space. Ask for a table of this model and space (the lut.csv "
                "of rule profile, run on the device), or run without lut=... where the device is at hand"
            )
        anchor = "" if self.device is None else self.device.anchor
        keys = dict.fromkeys((*(f.id for f in chosen if f.id != anchor), *([anchor] if anchor in rows else [])))
        return LUT(tuple(rows[key] for key in keys), self.device)

    def write(self, path: Path) -> None:
        """Writes the CSV file whole or not at all."""
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
        """Reads the CSV file.

        Raises:
            LUTError: the file does not exist or is no CSV in UTF-8; a column is missing or occurs twice; a row makes
                no sense; or the file holds rows of two devices.
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
                f"{path}, {refused[0]}{more}; no row of the table was taken: run the rule profile again, or export the "
                "table again"
            )
        if len(fingerprints := {row.fingerprint for row in rows}) > 1:
            raise LUTError(
                f"{path}: the LUT holds latencies of {len(fingerprints)} devices, expected one: profile into one file "
                "per device"
            )
        if len({row.feature.id for row in rows}) != len(rows):
            raise LUTError(f"{path}: an operator appears twice; run the rule profile again")
        return cls(tuple(rows), _read_device(path, rows, {line.get("device") or "" for _, line in lines}))


def _text(path: Path) -> str:
    """A file's text, without the byte order mark that spreadsheet programs put at the beginning of UTF-8."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise LUTError(f"{path}: this is no regular file, expected a table (CSV); name the file of a LUT")
        if status.st_size > MOST_BYTES:
            raise LUTError(
                f"{path}: the file has {status.st_size / 2**20:,.0f} MiB, expected a LUT of at most "
                f"{MOST_BYTES / 2**20:.0f} MiB; name the file of a LUT"
            )
        return path.read_bytes().decode("utf-8-sig")
    except OSError as error:
        reason = error.strerror or error
        raise LUTError(f"{path}: the LUT cannot be read ({reason}); run the rule profile to make it") from error
    except UnicodeDecodeError as error:
        raise LUTError(
            f"{path}: the file is no text in UTF-8 (byte {error.start}); save the table as CSV in UTF-8, or export it "
            "again"
        ) from error
    except ValueError as error:  # no file can have such a path
        raise LUTError(f"{str(path)!r}: the file cannot be read ({error}); name the file of a LUT") from error


def _lines(path: Path, text: str) -> Iterator[tuple[int, dict[str, str]]]:
    """Each row of the table, with the number of the row's last line in the file."""
    required = [name for name in COLUMNS if name not in FURTHER]
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        names = next(reader, [])
        if missing := [name for name in required if name not in names]:
            raise LUTError(
                f"{path}: the file is no LUT, because the columns {', '.join(missing)} are missing; expected "
                f"{', '.join(required)}, with commas in between: name the file of a LUT"
            )
        if twice := [name for name, count in Counter(names).items() if count > 1 and name in COLUMNS]:
            raise LUTError(f"{path}: the columns {', '.join(twice)} occur twice; export the table again")
        for values in reader:
            if values and len(values) != len(names):
                raise LUTError(
                    f"{path}, line {reader.line_num}: {len(values)} values for {len(names)} columns; the file was cut "
                    "off or changed: export the table again"
                )
            if values:
                yield reader.line_num, dict(zip(names, values, strict=True))
    except csv.Error as error:
        raise LUTError(f"{path}, line {reader.line_num}: this is no CSV ({error}); export the table again") from error


def _read_device(path: Path, rows: Sequence[LUTRow], texts: set[str]) -> Fingerprint | None:
    """The device that the column ``device`` describes in all rows; None where the column is empty or missing."""
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
            f"{path}: the column device describes {device.id}, but the column fingerprint says {rows[0].fingerprint}; "
            "export the table again"
        )
    return device


def _read_row(row: dict[str, str]) -> LUTRow:
    """Reads one row; raises ValueError that says what is wrong with the row."""
    try:
        feature = read_feature(row["feature"])
        latency, error = float(_digits(row["latency_ms"])), float(_digits(row["standard_error"]))
        extras: dict[str, Any] = {name: float(_digits(row[name])) for name in OPTIONAL if row.get(name)}
        extras |= {name: row.get(name) or "" for name in ORIGIN}
        read = LUTRow(feature, row["fingerprint"], latency, error, int(_digits(row["repeats"])), **extras)
    except NONSENSE as reason:
        raise ValueError(f"not a row of a LUT ({str(reason)[:200]})") from reason
    if feature.id != row["operator_id"]:
        raise ValueError(f"operator_id is {row['operator_id'][:40]!r}, but the feature's id is {feature.id}")
    if wrong := refuse_row(read):
        raise ValueError(wrong)
    return read


def _digits(text: str) -> str:
    """The text of a number in the digits 0 to 9; Python alone also takes ``1_0``, and digits of other scripts."""
    if "_" in text or not text.isascii():
        raise ValueError(f"{text[:40]!r} is no number in the digits 0 to 9")
    return text


def refuse_row(row: LUTRow) -> str | None:
    """What is wrong with a row; None for a row that makes sense."""
    if not (row.measured_at + row.measured_by).isprintable() or len(row.measured_at + row.measured_by) > 200:
        return "measured_at or measured_by is not one short line"
    return refusal({name: getattr(row, name) for name in RANGES if hasattr(row, name)})
