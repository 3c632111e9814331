"""Cooling pauses, on copies of sysfs."""

import logging
import threading
from pathlib import Path, PurePosixPath

import pytest

from autotailor.profiling import DeviceConfig
from autotailor.profiling.host.machine import look, wait_until_cool
from autotailor.profiling.transports.local import LocalTransport

HOST = DeviceConfig(name="board")


def board(root: Path, cooling: int = 0, throttled: int = 0) -> Path:
    files = {
        "class/thermal/cooling_device0/type": "thermal-cpufreq-0",
        "class/thermal/cooling_device0/cur_state": cooling,
        "devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": throttled,
    }
    for path, value in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(f"{value}\n")
    return root / "class/thermal/cooling_device0/cur_state"


def test_a_cool_device_is_not_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board(tmp_path)
    with LocalTransport(HOST) as transport:
        assert wait_until_cool(transport, "board", root=PurePosixPath(tmp_path), pause=60).cooling == ()
    assert not caplog.records


def test_a_throttled_device_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    state = board(tmp_path, cooling=2)
    threading.Timer(0.5, state.write_text, ["0\n"]).start()
    with LocalTransport(HOST) as transport:
        machine = wait_until_cool(transport, "board", root=PurePosixPath(tmp_path), pause=0.1, patience=60)
    assert machine.cooling == ()
    assert [r.getMessage() for r in caplog.records] == [
        "device board: cooling in force: thermal-cpufreq-0: pausing until it has cooled down; a fan helps"
    ]


def test_throttling_between_two_looks_costs_one_pause(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board(tmp_path, throttled=3)
    with LocalTransport(HOST) as transport:
        before = look(transport, PurePosixPath(tmp_path))
        board(tmp_path, throttled=5)
        wait_until_cool(transport, "board", before, root=PurePosixPath(tmp_path), pause=0.01)
    assert "throttled 2 times meanwhile: pausing" in caplog.text


def test_patience_ends_with_a_warning(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    board(tmp_path, cooling=1)
    with LocalTransport(HOST) as transport:
        machine = wait_until_cool(transport, "board", root=PurePosixPath(tmp_path), pause=0.01, patience=0.02)
    assert machine.cooling == ("thermal-cpufreq-0",)
    assert "measuring goes on while it is slow" in caplog.text
