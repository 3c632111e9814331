"""A sensor is read while a command runs."""

from pathlib import Path, PurePosixPath

import psutil
import pytest

from autotailor.profiling.energy import Watch
from autotailor.profiling.transports.local import LocalTransport
from sensors import HOST, battery, found, write


def test_without_a_sensor_energy_is_unavailable(tmp_path: Path) -> None:
    assert found(tmp_path) is None
    write(tmp_path, "hwmon/hwmon0", name="coretemp", temp1_input=40000)
    write(tmp_path, "power_supply/AC", type="Mains", online=1)
    assert found(tmp_path) is None


def test_a_watched_command_keeps_its_output_and_exit_code(tmp_path: Path) -> None:
    battery(tmp_path, 500_000)
    sensor = found(tmp_path)
    assert sensor is not None
    watch, lines = Watch(sensor, PurePosixPath(tmp_path), idle_seconds=1.0), list[str]()
    with LocalTransport(HOST) as transport:
        code = transport.run(
            watch.command(["sh", "-c", 'echo "$1"; sleep 1; exit 7', "sh", "two words; $HOME"]),
            lambda line: None if watch.take(line) else lines.append(line),
            timeout=30,
        )
    assert (code, lines) == (7, ["two words; $HOME"])
    assert watch.idle_watts() == pytest.approx(2.0)
    assert watch.watts(watch.now - 1.0, watch.now) == pytest.approx(0.0)
    assert not [process for process in psutil.Process().children(recursive=True) if "watch" in process.cmdline()]


def test_a_sensor_that_goes_away_is_unavailable_not_zero(tmp_path: Path) -> None:
    folder = battery(tmp_path, 500_000)
    sensor = found(tmp_path)
    assert sensor is not None
    (folder / "current_now").unlink()
    watch = Watch(sensor, PurePosixPath(tmp_path), idle_seconds=0.7)
    with LocalTransport(HOST) as transport:
        transport.run(watch.command(["sleep", "0.1"]), watch.take, timeout=30)
    assert len(watch.seconds) > 3
    assert watch.idle_watts() != watch.idle_watts()  # NaN
