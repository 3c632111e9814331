"""The outcome of one trained network, and its file."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from autotailor.artifacts import read_json, write_json

BoolArray = npt.NDArray[np.bool_]
SHARES = ("latency", "polished")
"""Numbers that may be unknown."""


@dataclass(frozen=True, eq=False)
class Outcome:
    """One network of one method.

    Attributes:
        validation: accuracy on the validation set, percent; it chooses the learning rate.
        right: whether each image of the test set is classified correctly, ``[n]``.
        what: the network, for the reader: a width, or the assignment of a SubNet as JSON.
        macs: multiply-accumulate operations over those of the original network.
        latency: over the original's: measured where ``polished`` is a number, else predicted by the LUT; NaN where the
            LUT does not know all operators.
        known: operators of the network that the LUT knows, as ``6 of 36``; empty without a LUT.
        images: that training has shown to this network since the original network or the SuperNet.
        passes: forward and backward passes of one image that training took since then, networks that lost a race
            included.
        lr: learning rate; 0 for a network that is not trained.
        tried: learning rate (as text) to accuracy on the validation set.
        polished: latency of the polished SubNet of the budget, measured in the same run as this network's, over the
            original's; NaN where this network's latency was not measured.
    """

    validation: float
    right: BoolArray
    what: str
    macs: float
    latency: float = float("nan")
    known: str = ""
    images: int = 0
    passes: int = 0
    lr: float = 0.0
    tried: tuple[tuple[float, float], ...] = ()
    polished: float = float("nan")

    def write(self, path: Path) -> None:
        """Writes the file whole or not at all; its folder is made if missing."""
        path.parent.mkdir(parents=True, exist_ok=True)
        bits = {"right": np.packbits(self.right).tobytes().hex(), "count": len(self.right)}
        shares = {key: None if np.isnan(getattr(self, key)) else getattr(self, key) for key in SHARES}
        write_json(path, asdict(replace(self, right=np.zeros(0, np.bool_))) | bits | shares)

    @classmethod
    def read(cls, path: Path) -> Outcome:
        """Reads a file of ``write``."""
        found = read_json(path)
        del found["schema_version"]
        packed = np.frombuffer(bytes.fromhex(found.pop("right")), np.uint8)
        right = np.unpackbits(packed, count=found.pop("count")).astype(np.bool_)
        shares = {key: float("nan") if found.get(key) is None else found[key] for key in SHARES}
        tried = tuple((lr, value) for lr, value in found["tried"])
        return cls(**found | shares | {"right": right, "tried": tried})
