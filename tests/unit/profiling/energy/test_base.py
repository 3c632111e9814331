"""Joules from readings of power."""

from dataclasses import dataclass

import numpy as np

from autotailor.profiling.energy.base import Files, Gauge, folders, readable, value


@dataclass(frozen=True)
class Meter(Gauge):
    def watts(self, files: Files) -> float:
        return value(files, self.paths[0])


METER = Meter("meter", ("power",))


def test_energy_is_the_area_under_the_power() -> None:
    rng = np.random.default_rng(0)
    seconds, watts = np.cumsum(rng.uniform(0.1, 1.0, 9)), rng.uniform(1, 5, 9)
    found = METER.joules(seconds.tolist(), [{"power": f"{watt:.12f}"} for watt in watts])
    expected = [float(np.trapezoid(watts[: i + 1], seconds[: i + 1])) for i in range(9)]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(METER.joules([0, 2, 3], [{"power": "4"}] * 3), [0, 8, 12])


def test_energy_is_unknown_from_a_missing_reading_on() -> None:
    found = METER.joules([0, 1, 2, 3], [{"power": "1"}, {"power": "1"}, {"power": "broken"}, {"power": "1"}])
    np.testing.assert_array_equal(np.isnan(found), [False, False, True, True])


def test_a_file_without_a_number_cannot_be_read() -> None:
    assert [readable({"a": text}, "a") for text in ("1", "-2.5e3", "", "on")] == [True, True, False, False]
    assert not readable({}, "a")


def test_folders_are_those_that_hold_the_file_below_the_pattern() -> None:
    files = dict.fromkeys(
        ["class/hwmon/hwmon2/name", "class/hwmon/hwmon0/name", "class/hwmon/hwmon1/other", "class/other/hwmon3/name"],
        "x",
    )
    assert folders(files, "class/hwmon/hwmon*/name") == ["class/hwmon/hwmon0", "class/hwmon/hwmon2"]
