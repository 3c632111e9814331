"""The limits of a measurement's numbers; numbers from tables, stores and devices are checked against them.

The limits are far wider than any operator needs, and narrow enough that products and quotients of permitted numbers are
finite.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from autotailor.ir.feature import OperatorFeature


@dataclass(frozen=True)
class Range:
    """The numbers from ``least`` to ``most``.

    Attributes:
        least: the smallest number.
        most: the largest number.
        is_whole: whether only whole numbers are permitted.
        may_lack: whether None is permitted, too.
    """

    least: float
    most: float
    is_whole: bool = False
    may_lack: bool = False

    def has(self, value: object) -> bool:
        """Whether a value is one of these numbers."""
        if value is None:
            return self.may_lack
        if isinstance(value, bool) or not isinstance(value, int if self.is_whole else int | float):
            return False
        return self.least <= value <= self.most  # both comparisons are false for NaN

    def clamp(self, value: float) -> float:
        """The nearest number of the range; NaN stays NaN."""
        return min(max(value, self.least), self.most) if not math.isnan(value) else value

    def __str__(self) -> str:
        kind = "a whole number" if self.is_whole else "a number"
        return f"{kind} from {self.least:g} to {self.most:g}"


MOST_MS = 1e9
MOST_MB = 1e9
MOST_COUNT = 10**12
MOST_BLOCKS = 1000
BLOCK_MS = Range(-MOST_MS, MOST_MS)
"""One block's latency. It is a difference, and so can be below 0 for an operator that costs less than the noise."""

RANGES: Mapping[str, Range] = {
    "latency_ms": Range(1e-9, MOST_MS),
    "standard_error": Range(0.0, MOST_MS),
    "repeats": Range(1, MOST_COUNT, is_whole=True),
    "anchor_ms": Range(1e-9, MOST_MS),
    "passes": Range(1, MOST_COUNT, is_whole=True),
    "seconds": Range(0.0, 1e9),
    "resident_weight_mb": Range(0.0, MOST_MB, may_lack=True),
    "workspace_mb": Range(0.0, MOST_MB, may_lack=True),
    "energy_mj": Range(0.0, 1e16, may_lack=True),
    "watts": Range(0.0, 1e6),
}
"""Name of a column to the numbers that it may hold."""


HEAP_NOISE_MB = 1.0
"""An operator's memory is the difference of two sizes of a heap, which other parts of the process use, too."""


def heap_difference(megabytes: float | None) -> float | None:
    """Memory of an operator, MiB, at least 0; None for a difference that shows nothing, far below 0 or too large."""
    if megabytes is None or not -HEAP_NOISE_MB <= megabytes <= MOST_MB:
        return None
    return max(0.0, megabytes)


def refusal(values: Mapping[str, object]) -> str | None:
    """The first number of a row that makes no sense, and what was expected; None where all numbers make sense."""
    for name, value in values.items():
        if name in RANGES and not RANGES[name].has(value):
            return f"{name} is {value!r}, expected {RANGES[name]}"[:300]
    return None


def refusal_of_blocks(blocks: object) -> str | None:
    """What is wrong with a record's latencies; None where nothing is."""
    if not isinstance(blocks, Sequence) or isinstance(blocks, str) or not 1 <= len(blocks) <= MOST_BLOCKS:
        return f"blocks are {str(blocks)[:100]!r}, expected 1 to {MOST_BLOCKS} numbers"
    if wrong := [block for block in blocks if not BLOCK_MS.has(block)]:
        return f"a block is {wrong[0]!r}, expected {BLOCK_MS}"[:300]
    return None


NONSENSE = (ValueError, KeyError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""Exceptions that reading a text of unknown origin can raise."""


def read_feature(text: str) -> OperatorFeature:
    """Reads an operator from a text that may be anything.

    Raises:
        ValueError: the text describes no operator.
    """
    try:
        feature = OperatorFeature.from_json(text)
        kinds = [feature.kind, *(follower.kind for follower in feature.followers)]
        attributes = [feature.attributes, feature.setting, *(follower.attributes for follower in feature.followers)]
        shapes = [*feature.inputs, *feature.outputs, *feature.weights]
        sound = (
            all(isinstance(kind, str) and kind.isprintable() and kind for kind in kinds)
            and all(type(size) is int and 0 <= size <= MOST_COUNT for shape in shapes for size in shape)
            and all(_is_attribute(value) for values in attributes for _, value in values)
        )
        hash(feature.id)
    except NONSENSE as error:
        raise ValueError(f"no operator ({str(error)[:200]})") from error
    if not sound:
        raise ValueError("no operator (a kind that is no name, a size that is no number, or a strange attribute)")
    return feature


def _is_attribute(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(isinstance(part, int | float | str) for part in value)
    return isinstance(value, int | float | str)
