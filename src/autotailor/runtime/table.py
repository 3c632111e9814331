"""The table of a pool's members, with range queries over latency, energy, memory and accuracy (AdaScale, section IV-C).

Rows are sorted by falling accuracy. The most accurate member within some limits is therefore the first row that meets
them, and a query ends at that row. AdaScale keeps two B+ trees instead; a tree serves one column, and the other three
limits must still be checked row by row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from autotailor.runtime.errors import PoolError

Floats = npt.NDArray[np.float64]
Rows = npt.NDArray[np.int64]

CLASSES = ("compute", "memory", "fixed")
"""The classes of operators that load slows down differently (``split_ms`` of a row, in this order).

``compute`` is bound by arithmetic, ``memory`` by bandwidth and caches, and ``fixed`` is the cost of starting operators.
"""
BLOCK = 2048
"""Rows that a query checks at once, before it looks whether one of them meets the limits."""


@dataclass(frozen=True)
class Entry:
    """One member of a pool, as the choice among members knows it.

    Attributes:
        subnet: id of the SubNet.
        accuracy: percent.
        split_ms: milliseconds without load in operators of each of ``CLASSES``; their sum is the latency.
        energy_mj: energy of one inference above idle, in millijoules; NaN where unknown.
        memory_mb: peak memory in MiB; NaN where unknown.
    """

    subnet: str
    accuracy: float
    split_ms: tuple[float, float, float]
    energy_mj: float = math.nan
    memory_mb: float = math.nan

    @property
    def latency_ms(self) -> float:
        """Latency without load."""
        return sum(self.split_ms)


@dataclass(frozen=True)
class Limits:
    """A range query; a member whose value is unknown does not meet a limit on it."""

    latency_ms: float = math.inf
    energy_mj: float = math.inf
    memory_mb: float = math.inf
    accuracy: float = -math.inf


@dataclass(frozen=True, eq=False)
class Table:
    """The members of a pool, by falling accuracy and, where accuracy is equal, by rising latency.

    Attributes:
        entries: the members, ``n`` of them.
    """

    entries: tuple[Entry, ...]

    @classmethod
    def of(cls, entries: Sequence[Entry]) -> Table:
        """The table of some members, in any order.

        Raises:
            PoolError: there is no member, two are the same SubNet, or a latency is not positive.
        """
        if not entries:
            raise PoolError("a table needs at least one member")
        for entry in entries:
            positive = len(entry.split_ms) == len(CLASSES) and min(entry.split_ms) >= 0 < entry.latency_ms < math.inf
            if not positive or not math.isfinite(entry.accuracy):
                raise PoolError(
                    f"member {entry.subnet}: expected a finite accuracy, and {len(CLASSES)} latencies that are not "
                    f"negative and have a positive sum, not {entry.accuracy} and {list(entry.split_ms)}"
                )
        if len({entry.subnet for entry in entries}) < len(entries):
            raise PoolError("a table needs distinct members, and two are the same SubNet: leave one of them out")
        return cls(tuple(sorted(entries, key=lambda entry: (-entry.accuracy, entry.latency_ms))))

    def __len__(self) -> int:
        return len(self.entries)

    @cached_property
    def split_ms(self) -> Floats:
        """``[n, 3]``, see ``Entry``."""
        return np.array([entry.split_ms for entry in self.entries], dtype=np.float64)

    @cached_property
    def latency_ms(self) -> Floats:
        """``[n]``, without load."""
        return np.array([entry.latency_ms for entry in self.entries])

    @cached_property
    def accuracy(self) -> Floats:
        """``[n]``, percent, falling."""
        return np.array([entry.accuracy for entry in self.entries])

    @cached_property
    def energy_mj(self) -> Floats:
        """``[n]``; NaN where unknown."""
        return np.array([entry.energy_mj for entry in self.entries])

    @cached_property
    def memory_mb(self) -> Floats:
        """``[n]``; NaN where unknown."""
        return np.array([entry.memory_mb for entry in self.entries])

    @cached_property
    def fastest(self) -> int:
        """Row of the member with the least latency without load: what runs where nothing fits."""
        return int(self.latency_ms.argmin())

    def best(self, limits: Limits) -> int | None:
        """Row of the most accurate member within some limits; None where no member is."""
        end = self._accurate(limits)
        for start in range(0, end, BLOCK):
            fits = self._fits(limits, slice(start, min(start + BLOCK, end)))
            if fits.any():
                return start + int(fits.argmax())
        return None

    def within(self, limits: Limits) -> Rows:
        """Rows ``[k]`` of all members within some limits, by falling accuracy."""
        return np.flatnonzero(self._fits(limits, slice(0, self._accurate(limits))))

    def _accurate(self, limits: Limits) -> int:
        """How many members are as accurate as asked for; they come first."""
        return int(np.searchsorted(-self.accuracy, -limits.accuracy, side="right"))

    def _fits(self, limits: Limits, rows: slice) -> npt.NDArray[np.bool_]:
        fits = self.latency_ms[rows] <= limits.latency_ms
        if limits.energy_mj < math.inf:
            fits &= self.energy_mj[rows] <= limits.energy_mj
        if limits.memory_mb < math.inf:
            fits &= self.memory_mb[rows] <= limits.memory_mb
        return fits
