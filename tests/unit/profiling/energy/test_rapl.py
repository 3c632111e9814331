"""RAPL on copies of sysfs."""

from pathlib import Path

import pytest

from sensors import found, reading, write


def test_rapl_adds_packages_and_survives_a_wrap(tmp_path: Path) -> None:
    zones = [
        write(tmp_path, f"powercap/intel-rapl:{i}", name=f"package-{i}", energy_uj=9_000_000, max_energy_range_uj=10**7)
        for i in (0, 1)
    ]
    write(tmp_path, "powercap/intel-rapl:0:0", name="core", energy_uj=77, max_energy_range_uj=10**7)
    sensor = found(tmp_path)
    assert sensor is not None
    readings = [reading(tmp_path, sensor)]
    (zones[0] / "energy_uj").write_text("9500000")
    readings.append(reading(tmp_path, sensor))
    (zones[0] / "energy_uj").write_text("250000")
    (zones[1] / "energy_uj").write_text("9000001")
    readings.append(reading(tmp_path, sensor))
    assert sensor.joules([0.0, 0.1, 0.2], readings) == pytest.approx([0.0, 0.5, 0.5 + 0.75 + 1e-6])


def test_rapl_that_may_not_be_read_is_unavailable(tmp_path: Path) -> None:
    zone = write(tmp_path, "powercap/intel-rapl:0", name="package-0", max_energy_range_uj=10**7)
    (zone / "energy_uj").mkdir()  # root reads every file, but no folder
    assert found(tmp_path) is None
