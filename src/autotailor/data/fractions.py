"""The parameter ``fractions`` of a dataset: the shares of pictures for training, validation and test."""

from __future__ import annotations

from autotailor.data.errors import DataError
from autotailor.sections import place

ROUNDING = 1e-9  # by which a sum of decimal fractions may exceed 1


def check_fractions(owner: object, fractions: object) -> None:
    """Raises DataError unless the fractions of an owner are three positive numbers whose sum is at most 1."""
    if not isinstance(fractions, tuple) or not all(type(each) in (int, float) for each in fractions):
        raise _refusal(owner, fractions)
    if len(fractions) != 3 or not min(fractions) > 0 or not sum(fractions) <= 1 + ROUNDING:
        raise _refusal(owner, list(fractions))


def _refusal(owner: object, said: object) -> DataError:
    return DataError(
        f"{place(owner)}.fractions: expected three positive parts (train, validation, test) that sum to at most 1, "
        f"not {said!r}"
    )
