"""The Jetson's INA3221 on copies of sysfs."""

from __future__ import annotations

from pathlib import Path

import pytest

from sensors import found, jetson, watts


def test_the_jetsons_total_rail_is_read(tmp_path: Path) -> None:
    monitor = jetson(tmp_path)
    sensor = found(tmp_path)
    assert sensor is not None
    assert sensor.name == "INA3221 (VDD_IN)"
    assert watts(tmp_path) == pytest.approx(6.0)
    (monitor / "in1_label").write_text("VDD_SOC\n")
    assert watts(tmp_path) == pytest.approx(8.0)  # no total: all rails
