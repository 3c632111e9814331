from __future__ import annotations

from typing import Any

import pytest

from autotailor.measurement.effort import Effort, EffortError


def test_a_run_from_before_the_section_is_measured_as_it_was() -> None:
    assert Effort.from_section({}) == Effort(rounds=5, seconds=1.0)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"rounds": 1}, r"measure\.rounds is 1; one round has no standard error"),
        ({"seconds": 0.0}, r"measure\.seconds is 0\.0; take a positive number"),
        ({"minutes": 1}, "minutes"),
    ],
)
def test_an_effort_that_measures_nothing_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(EffortError, match=message):
        Effort.from_section(section)
