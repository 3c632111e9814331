"""Power above idle becomes the energy of operators."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

import psutil
import pytest

from autotailor.ir.feature import OperatorFeature, freeze_attributes
from autotailor.profiling import Store
from autotailor.profiling.energy import find_sensor
from autotailor.profiling.measuring.power import measure_kinds, representatives
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.record import Record
from sensors import HOST, jetson


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
    assert store.lut(fingerprint).column("energy_mj") == {}
    store.add_powers(fingerprint, powers)
    energies = store.lut(fingerprint).column("energy_mj")
    assert energies == {key: pytest.approx(powers["Conv"] * latency) for key, latency in latencies.items()}
    assert Store(tmp_path / "store").powers(fingerprint) == powers


def test_representatives_are_spread_over_latencies() -> None:
    features = [OperatorFeature("Relu", ((1, c, 1, 1),), ((1, c, 1, 1),), (), ()) for c in range(1, 101)]
    chosen = representatives(features, {f.id: f.inputs[0][1] for f in features})
    assert [f.inputs[0][1] for f in chosen] == [1, 21, 41, 60, 80, 100]
    assert representatives(features[:1], {features[0].id: 1.0}) == features[:1]
