"""The parameter ``fractions`` of a dataset: the shares of pictures for training, validation and test."""

from __future__ import annotations

from typing import Annotated

from autotailor.values import AboveZero, Told

ROUNDING = 1e-9  # by which a sum of decimal fractions may exceed 1
Fractions = Annotated[
    tuple[AboveZero, AboveZero, AboveZero],
    Told(
        "three positive parts (train, validation, test) that sum to at most 1",
        lambda parts: sum(parts) <= 1 + ROUNDING,
    ),
]
