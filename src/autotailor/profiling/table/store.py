"""The LUT store: all measurements of operators, whatever run or model asked for them.

The store is one SQLite file in a folder of the user's choice; ``database.py`` has its tables. The store holds *visits*
(``Record``) and no latencies: visits are the one source of truth. The visits of a batch are appended in one
transaction, and are on disk before the next batch begins. A row of a LUT follows from all visits of its operator on its
device. So a killed run loses and repeats nothing, and a second run or model measures only what is new. Rows that
somebody else measured (``merge``) count for operators that have no visit here.
"""

import importlib.metadata
import json
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, TypeVar

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.device import Fingerprint
from autotailor.profiling.errors import LUTError
from autotailor.profiling.records.differential import estimates
from autotailor.profiling.records.limits import MOST_COUNT, RANGES, read_feature, refusal, refusal_of_blocks
from autotailor.profiling.records.record import Record
from autotailor.profiling.table.database import EXTRAS, ORIGIN, Database, insert
from autotailor.profiling.table.lut import LUT, LUTRow, refuse_row

logger = logging.getLogger(__name__)

Made = TypeVar("Made")
LEAST_LATENCY_MS = 1e-5
"""Latency in milliseconds of an operator that is too cheap to be told from the noise of a copy."""
VISIT = ("fingerprint", "operator", "blocks", "anchor_ms", "passes", "seconds")
IMPORTED = ("fingerprint", "operator", "latency_ms", "standard_error", "repeats")


@dataclass(frozen=True)
class StoredDevice:
    """A device that the store knows.

    Attributes:
        fingerprint: the device's fingerprint, with the facts.
        operators: how many operators are known on the device, the anchor included.
        last: time of the latest measurement, UTC; an imported row keeps the time at which it was measured.
        sources: each file that rows were imported from, with the number of rows; the file is empty where it is not
            known.
    """

    fingerprint: Fingerprint
    operators: int
    last: str
    sources: Mapping[str, int] = field(default_factory=dict)


class Store(Database):
    """All measurements in one folder. Safe for threads, concurrent processes and crashes; needs a local file system."""

    # Writing.

    def register(self, fingerprint: Fingerprint, operators: Iterable[OperatorFeature]) -> None:
        """Makes a device and operators known, so that records of them can be appended."""
        with self.transaction() as database:
            insert(database, "devices", ("fingerprint", "facts"), [(fingerprint.id, fingerprint.to_json())])
            insert(database, "operators", ("id", "feature"), [(f.id, f.to_json()) for f in operators])

    def append(self, records: Sequence[Record]) -> None:
        """Adds records of registered devices and operators. The records are on disk when this method returns.

        Raises:
            LUTError: a record makes no sense, so that none is stored; or the store cannot be written.
        """
        for record in records:
            if reason := refusal(vars(record)) or refusal_of_blocks(record.blocks):
                raise LUTError(f"LUT store {self.path}: a record of {record.key} makes no sense: {reason}")
        now, version = datetime.now(UTC).isoformat(timespec="seconds"), importlib.metadata.version("autotailor")
        rows = [
            (r.fingerprint, r.key, json.dumps(r.blocks), *_values(r, (*VISIT[3:], *EXTRAS)), now, version)
            for r in records
        ]
        with self.transaction() as database:
            insert(database, "visits", (*VISIT, *EXTRAS, *ORIGIN), rows)

    def add_powers(self, fingerprint: str, watts: Mapping[str, float]) -> None:
        """Adds the power above idle (watts) of kinds of operators of a registered device.

        Raises:
            LUTError: a number makes no sense; or the store cannot be written.
        """
        for kind, value in watts.items():
            if reason := refusal({"watts": value}):
                raise LUTError(f"LUT store {self.path}: the power of {kind} makes no sense: {reason}")
        now = datetime.now(UTC).isoformat(timespec="seconds")
        rows = [(fingerprint, kind, value, now) for kind, value in watts.items()]
        with self.transaction() as database:
            insert(database, "powers", ("fingerprint", "kind", "watts", "measured_at"), rows)

    def merge(self, lut: LUT, source: str = "") -> int:
        """Imports a table that describes its device; replaces rows that were imported before for the same operators.

        Args:
            lut: the table.
            source: the file that the table came from, by which its rows can be removed again.

        Returns:
            How many of the table's rows count, because their operators have no visit here.

        Raises:
            LUTError: the table does not describe its device, or one of its rows makes no sense.
        """
        if not len(lut):
            raise LUTError(f"{source or 'the table'}: it holds no operators; export it again")
        if lut.device is None:
            raise LUTError(
                f"the table of device {lut.fingerprint} does not describe the device (column device); "
                "write the table anew from the store that it came from (`Store(FOLDER).lut(FINGERPRINT).write(PATH)`)"
            )
        if wrong := [(row, reason) for row in lut if (reason := refuse_row(row))]:
            raise LUTError(f"the table of device {lut.fingerprint}: {wrong[0][0].feature.id}: {wrong[0][1]}")
        anchor_ms = lut.latencies().get(lut.device.anchor)
        further = (*EXTRAS, *ORIGIN)
        rows = [
            (row.fingerprint, row.feature.id, *_values(row, IMPORTED[2:]), anchor_ms, *_values(row, further), source)
            for row in lut
        ]
        self.register(lut.device, (row.feature for row in lut))
        with self.transaction() as database:
            insert(database, "imported", (*IMPORTED, "anchor_ms", *EXTRAS, *ORIGIN, "source"), rows)
        visited = {record.key for record in self.records(lut.fingerprint)}
        return sum(row.feature.id not in visited for row in lut)

    # Reading.

    def devices(self) -> list[StoredDevice]:
        """Devices with measurements or imported rows, the one with the latest measurement first."""
        query = (
            "SELECT fingerprint, facts, COUNT(DISTINCT operator), MAX(measured_at) FROM devices JOIN "
            "(SELECT fingerprint, operator, measured_at FROM visits UNION ALL "
            "SELECT fingerprint, operator, measured_at FROM imported) USING (fingerprint) "
            "GROUP BY fingerprint ORDER BY 4 DESC"
        )
        sources: dict[str, dict[str, int]] = {}
        for key, source, count in self.select("SELECT fingerprint, source, COUNT(*) FROM imported GROUP BY 1, 2"):
            sources.setdefault(key, {})[source] = count
        return [
            StoredDevice(device, count, last, sources.get(key, {}))
            for key, facts, count, last in self.select(query)
            if (device := self._sense(f"device {key}", Fingerprint.from_json, facts))
        ]

    def fingerprints(self) -> list[str]:
        """Ids of the fingerprints of all devices with measurements or imported rows."""
        query = "SELECT fingerprint FROM visits UNION SELECT fingerprint FROM imported"
        return [key for (key,) in self.select(query)]

    def records(self, fingerprint: str) -> list[Record]:
        """Records of one device, in the order they were measured."""
        query = f"SELECT {', '.join((*VISIT, *EXTRAS))} FROM visits WHERE fingerprint = ? ORDER BY number"
        return self._visits(self.select(query, fingerprint))

    def _visits(self, rows: Iterable[Sequence[Any]]) -> list[Record]:
        """The records in rows with the columns VISIT and EXTRAS; rows that somebody has spoilt are left out."""
        return [
            Record(f, key, blocks, *rest)
            for f, key, text, *rest in rows
            if (blocks := self._sense(f"a visit of operator {key}", _read_blocks, text))
        ]

    def _sense(self, what: str, read: Callable[[str], Made], text: str) -> Made | None:
        """What ``read`` makes of a text in the store; None, with a warning, where somebody has spoilt the text."""
        try:
            return read(text)
        except ValueError as error:
            logger.warning(
                "LUT store %s: %s makes no sense, is left out and measured again: %s", self.path, what, error
            )
            return None

    def operators(self) -> frozenset[str]:
        """Ids of all operators that are registered."""
        return frozenset(key for (key,) in self.select("SELECT id FROM operators"))

    def powers(self, fingerprint: str) -> dict[str, float]:
        """Kind of operator to power above idle in watts, for the kinds whose power was measured."""
        return dict(self.select("SELECT kind, watts FROM powers WHERE fingerprint = ?", fingerprint))

    def imported(self, fingerprint: str) -> dict[str, LUTRow]:
        """Operator id to its imported row.

        The anchor operator's latencies here and in the imported table scale the row to the machine's speed here. Where
        the anchor has no visit here, its imported row stands for it, so that rows of several tables fit together.
        """
        columns = (*IMPORTED[2:], *EXTRAS, *ORIGIN)
        query = (
            f"SELECT feature, anchor_ms, {', '.join(columns)} FROM imported "
            "JOIN operators ON operator = operators.id WHERE fingerprint = ?"
        )
        imported = self.select(query, fingerprint)
        here = self._here(self._device(fingerprint)) if imported else None
        rows = {}
        for feature, there, *values in imported:
            scale = here / there if here and there else 1.0
            fields = dict(zip(columns, values, strict=True))
            for name in ("latency_ms", "standard_error"):
                fields[name] = RANGES[name].clamp(fields[name] * scale)
            if operator := self._sense("an operator", read_feature, feature):
                rows[operator.id] = LUTRow(operator, fingerprint, **fields)
        return rows

    def _here(self, device: Fingerprint) -> float | None:
        """The latency of the anchor operator to which imported rows are scaled; None where nothing is known of it."""
        anchors = [record for record in self.records(device.id) if record.key == device.anchor]
        if anchors:
            return estimates(anchors, device.anchor)[device.anchor].latency_ms
        query = "SELECT latency_ms FROM imported WHERE fingerprint = ? AND operator = ?"
        return next((float(ms) for (ms,) in self.select(query, device.id, device.anchor)), None)

    def lut(self, fingerprint: str, operators: Iterable[OperatorFeature] | None = None) -> LUT:
        """The LUT of a device, from its visits and imported rows.

        Args:
            fingerprint: id of the device's fingerprint.
            operators: the operators of the LUT, in this order, with the anchor operator last; None for all that are
                known.

        Raises:
            LUTError: the device is not known, or some of the operators are not measured on it.
        """
        device = self._device(fingerprint)
        rows = self.imported(fingerprint) | self._measured(device)
        order = rows if operators is None else dict.fromkeys(feature.id for feature in operators)
        if missing := [key for key in order if key not in rows]:
            raise LUTError(
                f"LUT store {self.path}: {len(missing)} of {len(order)} operators are not measured on device "
                f"{fingerprint}, first {missing[0]}; run the rule profile"
            )
        anchor = [device.anchor] if device.anchor in rows else []
        keys = dict.fromkeys((*(key for key in order if key not in anchor), *anchor))
        return LUT(tuple(rows[key] for key in keys), device)

    def _device(self, fingerprint: str) -> Fingerprint:
        facts = self.select("SELECT facts FROM devices WHERE fingerprint = ?", fingerprint)
        if not facts:
            names = ", ".join(device.fingerprint.id for device in self.devices()) or "none"
            raise LUTError(f"LUT store {self.path}: nothing is known of device {fingerprint}; known are: {names}")
        device = self._sense(f"device {fingerprint}", Fingerprint.from_json, facts[0][0])
        if device is None:
            raise LUTError(
                f"LUT store {self.path}: the entry of device {fingerprint} does not describe a device; remove it with "
                f"`python -m autotailor lut remove {fingerprint}`"
            )
        return device

    def _measured(self, device: Fingerprint) -> dict[str, LUTRow]:
        """Operator id to the row with the latency that follows from all visits of the operator.

        Each further value is that of the last visit that has it.
        """
        columns = ("feature", *VISIT, *EXTRAS, *ORIGIN)
        query = (
            f"SELECT {', '.join(columns)} FROM visits JOIN operators ON operator = operators.id "
            "WHERE fingerprint = ? ORDER BY number"
        )
        last: dict[str, tuple[str, dict[str, Any]]] = {}
        records = []
        for values in self.select(query, device.id):  # one query, because other processes append meanwhile
            row = dict(zip(columns, values, strict=True))
            key = row["operator"]
            before = last[key][1] if key in last else {}
            seen = {name: row[name] for name in (*EXTRAS, *ORIGIN) if row[name] is not None}
            last[key] = row["feature"], before | seen
            records += self._visits([[row[name] for name in (*VISIT, *EXTRAS)]])
        rows, powers = {}, self.powers(device.id)
        for key, estimate in estimates(records, device.anchor).items():
            feature, further = last[key]
            operator = self._sense("an operator", read_feature, feature)
            if operator is None:
                continue
            latency = RANGES["latency_ms"].clamp(max(estimate.latency_ms, LEAST_LATENCY_MS))
            error = RANGES["standard_error"].clamp(estimate.standard_error)
            numbers = (latency, error, min(estimate.repeats, MOST_COUNT))
            if operator.kind in powers:
                further = {"energy_mj": powers[operator.kind] * latency} | further
            rows[key] = LUTRow(operator, device.id, *numbers, **further)
        return rows


def _values(row: object, names: Iterable[str]) -> tuple[Any, ...]:
    return tuple(getattr(row, name) for name in names)


def _read_blocks(text: str) -> tuple[float, ...]:
    """A visit's latencies; raises ValueError where they make no sense."""
    try:
        blocks = json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deep") from error
    if reason := refusal_of_blocks(blocks):
        raise ValueError(reason)
    return tuple(blocks)
