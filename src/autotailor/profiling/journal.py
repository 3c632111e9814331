"""The journal of measurements: JSON lines, appended as they come, so that nothing is measured twice."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotailor.profiling.errors import ProfilingError

SCHEMA = 1


@dataclass(frozen=True)
class Record:
    """One visit of one program: block estimates of one batch.

    Attributes:
        fingerprint: id of the device's fingerprint.
        key: operator id, or a network's id.
        blocks: latencies in milliseconds, one for each block of passes, without drift correction.
        anchor_ms: what the anchor operator took in the same batch.
        passes: how often it was run.
        seconds: its share of the batch's wall time.
    """

    fingerprint: str
    key: str
    blocks: tuple[float, ...]
    anchor_ms: float
    passes: int
    seconds: float


class Journal:
    """Records in a file. A half-written last line (the process was killed) is cut off."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._repair()

    def _repair(self) -> None:
        """Cuts off a last line that does not end or does not parse."""
        if not self.path.exists():
            return
        content = self.path.read_bytes()
        end = content.rfind(b"\n") + 1
        if end != len(content):
            with self.path.open("r+b") as file:
                file.truncate(end)

    def append(self, records: Iterator[Record] | list[Record]) -> None:
        """Adds records, on disk when this returns."""
        lines = "".join(json.dumps({"schema": SCHEMA, **asdict(record)}) + "\n" for record in records)
        with self.path.open("a") as file:
            file.write(lines)
            file.flush()
            os.fsync(file.fileno())

    def records(self, fingerprint: str) -> list[Record]:
        """Records of one fingerprint, in the order they were measured."""
        if not self.path.exists():
            return []
        found = (self._read(line, number) for number, line in enumerate(self.path.read_text().splitlines(), 1))
        return [record for record in found if record.fingerprint == fingerprint]

    def _read(self, line: str, number: int) -> Record:
        try:
            data: Mapping[str, Any] = json.loads(line)
            if data["schema"] != SCHEMA:
                raise ProfilingError(
                    f"{self.path}, line {number}: schema {data['schema']}, expected {SCHEMA}; "
                    "delete the file to measure anew"
                )
            values = {key: data[key] for key in ("fingerprint", "key", "anchor_ms", "passes", "seconds")}
            return Record(**values, blocks=tuple(float(v) for v in data["blocks"]))
        except (ValueError, KeyError, TypeError) as error:
            raise ProfilingError(
                f"{self.path}, line {number}: not a record of a measurement ({error}); "
                "delete the line to measure that operator again"
            ) from error
