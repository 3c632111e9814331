"""Removes measurements from the LUT store: those of a device, of some operators, or of an imported table."""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from autotailor.profiling.errors import LUTError
from autotailor.profiling.table.store import Store


@dataclass(frozen=True)
class Selection:
    """Which measurements to remove: those that meet all conditions that are given.

    Attributes:
        fingerprints: ids of the devices' fingerprints; None for any device.
        operator: a kind (``Conv``), or the beginning of an operator's id; None for any operator.
        source: path or name of the file that rows were imported from; None for any, measurements made here included.
        is_imported: whether only imported rows are meant.
    """

    fingerprints: Collection[str] | None = None
    operator: str | None = None
    source: str | None = None
    is_imported: bool = False


@dataclass(frozen=True)
class Removal:
    """The measurements of one device that a selection removes.

    Attributes:
        fingerprint: id of the device's fingerprint.
        operators: how many distinct operators lose measurements.
        visits: how many measurements made here are removed.
        imported: how many rows of imported tables are removed.
        sources: the files that those rows came from.
    """

    fingerprint: str
    operators: int
    visits: int
    imported: int
    sources: tuple[str, ...]


class Remover:
    """Finds the measurements in a store that a selection means, and removes them.

    Args:
        store: the store.
        selection: which of the store's measurements are meant.

    Raises:
        LUTError: the selection gives no condition, or the store cannot be read.
    """

    def __init__(self, store: Store, selection: Selection) -> None:
        if selection == Selection():
            raise LUTError("name a device, an operator or a table: a whole store is removed by removing its file")
        self._store, self._selection = store, selection
        self._operators = None if selection.operator is None else self._ids(selection.operator)

    def _ids(self, operator: str) -> list[str]:
        kinds = self._store.select("SELECT id, feature FROM operators")
        return [key for key, feature in kinds if key.startswith(operator) or _kind(feature) == operator]

    @property
    def _takes_visits(self) -> bool:
        return self._selection.source is None and not self._selection.is_imported

    def removals(self) -> list[Removal]:
        """What ``remove`` would remove, by device."""
        visits = self._counts("visits") if self._takes_visits else {}
        imported = self._counts("imported")
        where, arguments = self._where("imported")
        sources: dict[str, list[str]] = {}
        for key, source in self._store.select(
            f"SELECT DISTINCT fingerprint, source FROM imported WHERE {where}", *arguments
        ):
            sources.setdefault(key, []).append(source)
        return [
            Removal(
                key,
                len(visits.get(key, {}).keys() | imported.get(key, {}).keys()),
                sum(visits.get(key, {}).values()),
                sum(imported.get(key, {}).values()),
                tuple(sorted(sources.get(key, ()))),
            )
            for key in sorted(visits.keys() | imported.keys())
        ]

    def remove(self) -> None:
        """Removes all selected measurements, or none. Devices and operators stay registered, for runs that use them.

        Raises:
            LUTError: the store cannot be written.
        """
        with self._store.transaction() as database:
            for table in ("imported", *(["visits", "powers"] if self._takes_visits else [])):
                where, arguments = self._where(table)
                database.execute(f"DELETE FROM {table} WHERE {where}", arguments)

    def _counts(self, table: str) -> dict[str, dict[str, int]]:
        where, arguments = self._where(table)
        query = f"SELECT fingerprint, operator, COUNT(*) FROM {table} WHERE {where} GROUP BY 1, 2"
        counts: dict[str, dict[str, int]] = {}
        for key, operator, count in self._store.select(query, *arguments):
            counts.setdefault(key, {})[operator] = count
        return counts

    def _where(self, table: str) -> tuple[str, list[str]]:
        """The condition for the rows of a table, and its arguments."""
        conditions, arguments, chosen = ["1"], list[str](), self._selection
        if chosen.fingerprints is not None:
            conditions.append("fingerprint IN (SELECT value FROM json_each(?))")
            arguments.append(json.dumps(list(chosen.fingerprints)))
        if table == "powers" and chosen.operator is not None:
            conditions.append("kind = ?")
            arguments.append(chosen.operator)
        elif self._operators is not None:
            conditions.append("operator IN (SELECT value FROM json_each(?))")
            arguments.append(json.dumps(self._operators))
        if table == "imported" and chosen.source is not None:
            conditions.append("(source IN (?, ?) OR substr(source, -length(?)) = ?)")
            behind = f"/{chosen.source}"
            arguments += [chosen.source, str(Path(chosen.source).expanduser().resolve()), behind, behind]
        return " AND ".join(conditions), arguments


def _kind(feature: str) -> str | None:
    try:
        said = json.loads(feature)
    except (ValueError, RecursionError):
        return None
    return said.get("kind") if isinstance(said, dict) else None
