"""The Jetson's INA3221 on copies of sysfs."""

from pathlib import Path

import pytest

from sensors import found, jetson, watts, write


def test_the_jetsons_total_rail_is_read(tmp_path: Path) -> None:
    monitor = jetson(tmp_path)
    sensor = found(tmp_path)
    assert sensor is not None
    assert sensor.name == "INA3221 (VDD_IN)"
    assert watts(tmp_path) == pytest.approx(6.0)
    (monitor / "in1_label").write_text("VDD_SOC\n")
    assert watts(tmp_path) == pytest.approx(8.0)  # no total: all rails


def test_an_agx_orin_has_no_total_rail_and_all_of_its_rails_count_once(tmp_path: Path) -> None:
    """Labels of the developer kit, on two monitors; the memory's rail is fed by the system's."""
    first = {"in1_label": "VDD_GPU_SOC", "in1_input": 12_000, "curr1_input": 200}
    first |= {"in2_label": "VDD_CPU_CV", "in2_input": 12_000, "curr2_input": 1500}
    first |= {"in3_label": "VIN_SYS_5V0", "in3_input": 5000, "curr3_input": 800}
    write(tmp_path, "hwmon/hwmon3", name="ina3221", **first)
    second = {"in2_label": "VDDQ_VDD2_1V8AO", "in2_input": 5000, "curr2_input": 300}
    write(tmp_path, "hwmon/hwmon4", name="ina3221", **second)
    assert watts(tmp_path) == pytest.approx(12.0 * 1.7 + 5.0 * 0.8)
