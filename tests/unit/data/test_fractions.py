"""The shares of training, validation and test: what can be used, and what is refused in the user's words."""

from __future__ import annotations

import pytest

from autotailor.data import DataError
from autotailor.data.fractions import Fractions
from autotailor.sections import Section


class Divided(Section, of="data", error=DataError):
    fractions: Fractions


@pytest.mark.parametrize("fractions", [[0.8, 0.1, 0.1], [0.7, 0.2, 0.1], [0.5, 0.1, 0.1], [1 / 3, 1 / 3, 1 / 3]])
def test_three_positive_parts_of_at_most_everything_can_be_used(fractions: list[float]) -> None:
    assert Divided.from_section({"fractions": fractions}).fractions == tuple(fractions)


@pytest.mark.parametrize(
    "fractions", [3, None, "abc", [0.8, 0.2], [0.8, 0.2, 0.0], [0.8, 0.2, 0.2], [0.1, 0.1, float("nan")], ["a", 1, 1]]
)
def test_anything_else_is_refused_under_the_key_that_the_user_wrote(fractions: object) -> None:
    with pytest.raises(DataError, match=r"^data\.fractions: expected three positive parts"):
        Divided.from_section({"fractions": fractions})
