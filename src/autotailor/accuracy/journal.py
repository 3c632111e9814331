"""A journal of evaluations: one line of JSON for each SubNet, so that an interrupted run evaluates no SubNet twice."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import atomic

logger = logging.getLogger(__name__)
BoolArray = npt.NDArray[np.bool_]


class Journal:
    """Correctness of each image for each SubNet id.

    The first line holds a fingerprint of everything that the results depend on. A journal with another fingerprint is
    emptied, with a warning. A last line that was cut off is dropped.

    Args:
        path: of the file; its folder is made if missing.
        fingerprint: of network, data and parameters.
    """

    def __init__(self, path: Path, fingerprint: str) -> None:
        self.path = path
        self._known: dict[str, BoolArray] = {}
        lines = self._lines(fingerprint)
        with atomic(path) as temporary:
            temporary.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")

    def _lines(self, fingerprint: str) -> list[str]:
        """The header and the file's valid lines, whose results are remembered."""
        header = json.dumps({"fingerprint": fingerprint})
        if not self.path.is_file():
            return [header]
        found = self.path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not found or found[0] != header:
            logger.warning(
                "%s belongs to another network, data or parameters; all SubNets are evaluated anew", self.path
            )
            return [header]
        kept = [header]
        for line in found[1:]:
            try:
                entry = json.loads(line)
                packed = np.frombuffer(bytes.fromhex(entry["right"]), dtype=np.uint8)
                bits = np.unpackbits(packed, count=entry["images"])
                self._known[str(entry["subnet"])] = bits.astype(np.bool_)
            except (ValueError, KeyError, TypeError):
                break
            kept.append(line)
        return kept

    def get(self, subnet: str) -> BoolArray | None:
        """Correctness ``[n]`` of a SubNet; None where the SubNet has not been evaluated."""
        return self._known.get(subnet)

    def add(self, subnet: str, right: BoolArray) -> None:
        """Appends one SubNet's correctness, and waits until the line is on the disk."""
        line = json.dumps({"subnet": subnet, "images": len(right), "right": np.packbits(right).tobytes().hex()})
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(f"{line}\n")
            stream.flush()
            os.fsync(stream.fileno())
        self._known[subnet] = right
