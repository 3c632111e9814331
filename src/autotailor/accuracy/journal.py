"""A journal of evaluations: one line of JSON for each SubNet, so that an interrupted run evaluates no SubNet twice."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

from autotailor.artifacts import atomic
from autotailor.prediction.evaluations.outcome import DIVERGENCES, LOSSES, Outcome

logger = logging.getLogger(__name__)
SCHEMA = 2
"""Version of a journal's lines; those of the first version, which named no version, held no losses."""


class Journal:
    """Values and losses of each SubNet id, image by image.

    The first line holds the version and a fingerprint of everything that the results depend on. A journal with another
    version or fingerprint is emptied, with a warning. A last line that was cut off is dropped.

    Args:
        path: of the file; its folder is made if missing.
        fingerprint: of network, data and parameters.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self._outcomes: dict[str, Outcome] = {}
        lines = self._lines(fingerprint)
        with atomic(path) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _lines(self, fingerprint: str) -> list[str]:
        """The header and the file's valid lines, whose results are remembered."""
        header = json.dumps({"schema_version": SCHEMA, "fingerprint": fingerprint})
        if not self.path.is_file():
            return [header]
        lines = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines or lines[0] != header:
            logger.warning("%s %s; all SubNets are evaluated anew", self.path, _difference(lines))
            return [header]
        kept = [header]
        for line in lines[1:]:
            try:
                entry = json.loads(line)
                is_divergence = DIVERGENCES in entry
                losses = entry[DIVERGENCES if is_divergence else LOSSES]
                outcome = Outcome.unpacked(entry["right"], losses, entry["images"], is_divergence)
                self._outcomes[str(entry["subnet"])] = outcome
            except (ValueError, KeyError, TypeError):
                break
            kept.append(line)
        return kept

    def get(self, subnet: str) -> Outcome | None:
        """Values and losses of a SubNet; None where the SubNet has not been evaluated."""
        return self._outcomes.get(subnet)

    def add(self, subnet: str, outcome: Outcome) -> None:
        """Appends one SubNet's values and losses, and waits until the line is on the disk."""
        values, losses = outcome.packed()
        line = json.dumps({"subnet": subnet, "images": len(outcome.values), "right": values, outcome.kind: losses})
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._outcomes[subnet] = outcome


def _difference(lines: list[str]) -> str:
    """Why the lines of a journal are not read."""
    try:
        header = json.loads(lines[0])
    except (ValueError, IndexError):
        header = None
    if isinstance(header, dict) and header.get("schema_version") != SCHEMA:
        return "was written by another version of autotailor, in another form"
    return "belongs to another network, data or parameters"
