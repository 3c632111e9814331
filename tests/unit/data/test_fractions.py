"""The shares of training, validation and test: what can be used, and what is refused in the user's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from autotailor.data import DataError
from autotailor.data.fractions import check_fractions
from autotailor.sections import read_section


@dataclass(frozen=True)
class Divided:
    fractions: Any

    def __post_init__(self) -> None:
        check_fractions(self, self.fractions)


@pytest.mark.parametrize("fractions", [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.5, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]])
def test_three_positive_parts_of_at_most_everything_can_be_used(fractions: list[float]) -> None:
    assert read_section(Divided, {"fractions": fractions}, "data", DataError).fractions == tuple(fractions)


@pytest.mark.parametrize(
    "fractions", [3, None, "abc", [0.8, 0.2], [0.8, 0.2, 0.0], [0.8, 0.2, 0.2], [0.1, 0.1, float("nan")], ["a", 1, 1]]
)
def test_anything_else_is_refused_under_the_key_that_the_user_wrote(fractions: object) -> None:
    with pytest.raises(DataError, match=r"^data\.fractions: expected three positive parts"):
        read_section(Divided, {"fractions": fractions}, "data", DataError)
