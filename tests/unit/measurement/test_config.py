from typing import Any

import pytest

from autotailor.measurement.config import Effort, EffortError


def test_a_run_from_before_the_section_is_measured_as_it_was() -> None:
    assert Effort.from_section({}) == Effort(rounds=5, seconds=1.0)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"rounds": 1}, r"measure\.rounds: expected 2 to 100 rounds \(one has no standard error\), not 1"),
        ({"seconds": 0.0}, r"measure\.seconds: expected a positive number of seconds, for instance 1, not 0\.0"),
        ({"minutes": 1}, "minutes"),
    ],
)
def test_an_effort_that_measures_nothing_is_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(EffortError, match=message):
        Effort.from_section(section)
