"""Sensors of energy on copies of sysfs, read through a transport while a runner works."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import psutil
import pytest

from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.profiling import DeviceConfig, Store
from autotailor.profiling.energy import Gauge, Sensor, Watch, find_sensor
from autotailor.profiling.measuring.power import measure_kinds, representatives
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.record import Record
from autotailor.profiling.transports.local import LocalTransport

HOST = DeviceConfig(name="host", warmup=1, energy_seconds=1.5)


def write(root: Path, folder: str, **files: object) -> Path:
    path = root / "class" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (path / name).write_text(f"{value}\n")
    return path


def jetson(root: Path) -> Path:
    write(root, "hwmon/hwmon0", name="tmp451", temp1_input=40000)
    rails = {"in1_label": "VDD_IN", "in1_input": 5000, "curr1_input": 1200}
    rails |= {"in2_label": "VDD_CPU_GPU_CV", "in2_input": 5000, "curr2_input": 400}
    return write(root, "hwmon/hwmon3", name="ina3221", **rails)


def battery(root: Path, current: int, status: str = "Discharging") -> Path:
    values = {"type": "Battery", "status": status, "current_now": current, "voltage_now": 4_000_000}
    return write(root, "power_supply/battery", **values)


def found(root: Path) -> Sensor | None:
    """What is found through the transport."""
    with LocalTransport(HOST) as transport:
        return find_sensor(transport, PurePosixPath(root))


def reading(root: Path, sensor: Sensor) -> dict[str, str]:
    return {path: (root / path).read_text().strip() for path in sensor.paths}


def watts(root: Path) -> float:
    """What the gauge that is found says."""
    sensor = found(root)
    assert isinstance(sensor, Gauge)
    return sensor.watts(reading(root, sensor))


def test_without_a_sensor_energy_is_unavailable(tmp_path: Path) -> None:
    assert found(tmp_path) is None
    write(tmp_path, "hwmon/hwmon0", name="coretemp", temp1_input=40000)
    write(tmp_path, "power_supply/AC", type="Mains", online=1)
    assert found(tmp_path) is None


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


def test_the_jetsons_total_rail_is_read(tmp_path: Path) -> None:
    monitor = jetson(tmp_path)
    sensor = found(tmp_path)
    assert sensor is not None
    assert sensor.name == "INA3221 (VDD_IN)"
    assert watts(tmp_path) == pytest.approx(6.0)
    (monitor / "in1_label").write_text("VDD_SOC\n")
    assert watts(tmp_path) == pytest.approx(8.0)  # no total: all rails


@pytest.mark.parametrize("current", [-500_000, 500_000, 500, -500])
def test_a_phones_current_in_any_unit_and_sign(tmp_path: Path, current: int) -> None:
    battery(tmp_path, current)
    assert watts(tmp_path) == pytest.approx(2.0)


def test_a_charging_phone_is_unavailable(tmp_path: Path) -> None:
    battery(tmp_path, 500_000, "Charging")
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


@contextmanager
def busy_board(root: Path) -> Iterator[None]:
    """A board that draws 5 W, and 15 W while a runner works."""
    monitor, stop = jetson(root), threading.Event()

    def follow() -> None:
        commands: list[str] = []
        while not stop.wait(0.02):
            with suppress(psutil.NoSuchProcess):  # it may end between two lines
                commands = [" ".join(child.cmdline()) for child in psutil.Process().children()]
            current = (
                3000 if any(command.startswith("/") and "manifest.json" in command for command in commands) else 1000
            )
            new = monitor / "new"
            new.write_text(f"{current}\n")
            new.replace(monitor / "curr1_input")

    thread = threading.Thread(target=follow, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_power_above_idle_becomes_the_energy_of_operators(tmp_path: Path) -> None:
    root = tmp_path / "sys"
    with busy_board(root), Session(HOST) as session:
        sensor = find_sensor(session.transport, PurePosixPath(root))
        assert sensor is not None
        attributes = freeze_attributes({"group": 1, "pads": (1, 1, 1, 1), "strides": (1, 1), "dilations": (1, 1)})
        conv, larger = (
            OperatorFeature("Conv", (shape,), (shape,), ((48, 48, 3, 3), (48,)), attributes)
            for shape in ((1, 48, 14, 14), (1, 48, 28, 28))
        )
        latencies = {conv.id: 0.1, larger.id: 0.4}
        powers = measure_kinds(
            session, sensor, [conv, larger], latencies, {}, root=PurePosixPath(root), idle_seconds=1.0
        )
        assert powers == {"Conv": pytest.approx(10.0, rel=0.05)}
        assert measure_kinds(session, sensor, [conv], latencies, powers, root=PurePosixPath(root)) == {}
        store = Store(tmp_path / "store")
        store.register(session.fingerprint, (conv, larger))
        fingerprint = session.fingerprint.id
    store.append([Record(fingerprint, f.id, (latencies[f.id],), 1.0, 8, 0.5) for f in (conv, larger)])
    assert store.lut(fingerprint).known("energy_mj") == {}
    store.add_powers(fingerprint, powers)
    energies = store.lut(fingerprint).known("energy_mj")
    assert energies == {key: pytest.approx(powers["Conv"] * latency) for key, latency in latencies.items()}
    assert Store(tmp_path / "store").powers(fingerprint) == powers


def test_representatives_are_spread_over_latencies() -> None:
    features = [OperatorFeature("Relu", ((1, c, 1, 1),), ((1, c, 1, 1),), (), ()) for c in range(1, 101)]
    chosen = representatives(features, {f.id: f.inputs[0][1] for f in features})
    assert [f.inputs[0][1] for f in chosen] == [1, 21, 41, 60, 80, 100]
    assert representatives(features[:1], {features[0].id: 1.0}) == features[:1]
