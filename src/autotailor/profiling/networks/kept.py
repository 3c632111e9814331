"""Keeps what each round of timing whole networks has measured, so that an interrupted rule goes on with the next round.

A rule that is finished does not keep its rounds, because a person who runs the rule again wants to measure again: the
suffix of the files is none of those that a work folder keeps (``autotailor.work``).
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autotailor.artifacts import write_text
from autotailor.profiling.records.record import Record

SUFFIX = ".round"


@dataclass(frozen=True)
class KeptRounds:
    """The rounds that a rule has measured before it was interrupted, one file for each.

    Attributes:
        folder: of the files.
        networks: the networks that each round times.
        fingerprint: id of the device, its runtime and settings; rounds of another one do not count.
    """

    folder: Path
    networks: Sequence[str]
    fingerprint: str

    def read(self, rounds: int) -> list[list[Record]]:
        """The records of the first rounds, ``rounds`` at most, up to the first one that is missing or not whole."""
        kept: list[list[Record]] = []
        while len(kept) < rounds and (records := self._read(len(kept))):
            kept.append(records)
        return kept

    def write(self, index: int, records: Sequence[Record]) -> None:
        """Writes the records of a round; an interrupted write leaves no file."""
        self.folder.mkdir(parents=True, exist_ok=True)
        write_text(self._path(index), json.dumps([asdict(record) for record in records]))

    def _path(self, index: int) -> Path:
        return self.folder / f"{index + 1}{SUFFIX}"

    def _read(self, index: int) -> list[Record]:
        """The records of a round; none where the round does not time these networks on this device."""
        try:
            said = json.loads(self._path(index).read_text(encoding="utf-8"))
            records = [Record(**{**values, "blocks": tuple(values["blocks"])}) for values in said]
        except (OSError, ValueError, TypeError, KeyError):
            return []
        is_whole = set(self.networks) <= {record.key for record in records}
        return records if is_whole and {record.fingerprint for record in records} == {self.fingerprint} else []
