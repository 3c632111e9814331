"""A phone's battery on copies of sysfs."""

from pathlib import Path

import pytest

from sensors import battery, found, watts


@pytest.mark.parametrize("current", [-500_000, 500_000, 500, -500])
def test_a_phones_current_in_any_unit_and_sign(tmp_path: Path, current: int) -> None:
    battery(tmp_path, current)
    assert watts(tmp_path) == pytest.approx(2.0)


def test_a_charging_phone_is_unavailable(tmp_path: Path) -> None:
    battery(tmp_path, 500_000, "Charging")
    assert found(tmp_path) is None
