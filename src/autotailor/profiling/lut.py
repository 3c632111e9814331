"""The look-up table of operator latencies (design, section 5): a CSV, what the store knows of one model's operators."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotailor.artifacts import atomic
from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import LUTError

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
            LUTError: no such file, missing columns, a row that makes no sense, or two devices in one file.
        """
        try:
            text = Path(path).read_text()
        except OSError as error:
            raise LUTError(f"{path}: cannot be read ({error.strerror}); run the rule profile to make it") from error
        reader = csv.DictReader(io.StringIO(text))
        required = [name for name in COLUMNS if name not in FURTHER]
        if missing := [name for name in required if name not in (reader.fieldnames or ())]:
            raise LUTError(
                f"{path}: no LUT, the columns {', '.join(missing)} are missing; expected {', '.join(required)}"
            )
        lines = list(reader)
        rows = tuple(_read_row(path, number, line) for number, line in enumerate(lines, 2))
        if len(fingerprints := {row.fingerprint for row in rows}) > 1:
            raise LUTError(
                f"{path}: latencies of {len(fingerprints)} devices in one LUT; profile into one file per device"
            )
        if len({row.feature.id for row in rows}) != len(rows):
            raise LUTError(f"{path}: an operator appears twice; run the rule profile again")
        return cls(rows, _read_device(path, rows, {line.get("device") or "" for line in lines}))


def _read_device(path: Path, rows: Sequence[LUTRow], texts: set[str]) -> Fingerprint | None:
    """The device that all rows describe; None where they do not."""
    if len(texts) != 1 or texts == {""}:
        return None
    try:
        device = Fingerprint(json.loads(texts.pop()))
    except ValueError as error:
        raise LUTError(f"{path}: the column device is no JSON ({error}); export the table again") from error
    if device.id != rows[0].fingerprint:
        raise LUTError(
            f"{path}: its column device describes {device.id}, its fingerprint is {rows[0].fingerprint}; "
            "export the table again"
        )
    return device


def _read_row(path: Path, number: int, row: dict[str, str]) -> LUTRow:
    try:
        feature = OperatorFeature.from_json(row["feature"])
        latency, error = float(row["latency_ms"]), float(row["standard_error"])
        extras: dict[str, Any] = {name: float(row[name]) for name in OPTIONAL if row.get(name)}
        extras |= {name: row.get(name) or "" for name in ORIGIN}
        read = LUTRow(feature, row["fingerprint"], latency, error, int(row["repeats"]), **extras)
    except (ValueError, KeyError, TypeError) as reason:
        raise LUTError(f"{path}, line {number}: not a row of a LUT ({reason}); run the rule profile again") from reason
    if feature.id != row["operator_id"]:
        raise LUTError(f"{path}, line {number}: id {row['operator_id']} is not that of its feature ({feature.id})")
    if not 0 <= latency < float("inf"):
        raise LUTError(f"{path}, line {number}: latency {latency} ms, expected a number of at least 0")
    return read
