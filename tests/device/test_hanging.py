"""Commands and lines that never end: ended after their time on every kind of device, and no memory is filled."""

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from autotailor.ir.feature import Follower, OperatorFeature, freeze_attributes
from autotailor.profiling import DeviceConfig, Store, profile
from autotailor.profiling.errors import OverdueError
from autotailor.profiling.measuring import pace
from autotailor.profiling.transports import LocalTransport, base
from autotailor.profiling.transports.base import Deadline, Transport
from autotailor.profiling.transports.ssh import SshTransport
from device.adb_daemon import AdbDaemon
from device.conftest import IMPATIENT, connect
from device.runners import built


@pytest.fixture(params=["local", "adb", "old adb", "ssh"])
def device(request: pytest.FixtureRequest, tmp_path: Path, home: Path) -> Iterator[Transport]:
    """A device of each kind."""
    if request.param == "local":
        with LocalTransport(DeviceConfig(name="host")) as local:
            yield local
    elif request.param == "ssh":
        board = request.getfixturevalue("board")
        config = DeviceConfig(name="board", transport="ssh", address=board.address, folder=str(tmp_path / "board"))
        with SshTransport(config, IMPATIENT) as ssh:
            yield ssh
    else:
        with AdbDaemon(tmp_path / "phone", old="old" in request.param) as daemon, connect(daemon) as adb:
            yield adb


def is_gone(pid: int) -> bool:
    """Whether a process ends at once or soon: a signal takes its time."""
    for _ in range(100):
        if not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE:
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize("beat", ["sleep 1000", "while :; do echo still here; sleep 0.05; done"])
def test_a_command_that_never_ends_is_ended_after_its_time(device: Transport, beat: str) -> None:
    said: list[str] = []
    with pytest.raises(OverdueError, match=r"did not end within 1 s"):
        device.run(["sh", "-c", f"echo $$; {beat}"], said.append, 1.0)
    assert is_gone(int(said[0]))


def test_what_a_command_has_started_is_ended_with_it(device: Transport) -> None:
    said: list[str] = []
    with pytest.raises(OverdueError):
        device.run(["sh", "-c", "sleep 1000 & echo $!; wait"], said.append, 1.0)
    assert is_gone(int(said[0]))


def test_who_gets_on_is_given_more_time(device: Transport) -> None:
    said: list[str] = []
    deadline = Deadline(1.5)

    def on_line(line: str) -> None:
        said.append(line)
        deadline.renew(1.5)

    assert device.run(["sh", "-c", "for i in 1 2 3 4; do sleep 0.7; echo $i; done; exit 3"], on_line, deadline) == 3
    assert said == ["1", "2", "3", "4"]


def test_a_line_without_end_fills_no_memory(device: Transport) -> None:
    said: list[str] = []
    script = "head -c 9000000 /dev/zero | tr '\\000' x; echo; echo after; head -c 5000000 /dev/zero | tr '\\000' y; "
    before, deadline = psutil.Process().memory_info().rss, Deadline(60.0)

    def on_line(line: str) -> None:
        said.append(line)
        deadline.renew(3.0 if line == "after" else 60.0)

    with pytest.raises(OverdueError):
        device.run(["sh", "-c", script + "sleep 1000"], on_line, deadline)
    assert [line[:5] for line in said] == ["xxxxx", "after"]
    assert len(said[0]) == base.LONGEST
    assert psutil.Process().memory_info().rss - before < 40 * 2**20


def conv(channels: int) -> OperatorFeature:
    shape = (1, channels, 8, 8)
    attributes = freeze_attributes({"pads": (1, 1, 1, 1), "strides": (1, 1), "group": 1})
    weights = ((channels, channels, 3, 3), (channels,))
    return OperatorFeature("Conv", (shape,), (shape,), weights, attributes, (Follower("Relu"),))


def test_a_frozen_runner_on_a_phone_is_ended_and_nothing_is_lost(
    phone: AdbDaemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    built("host")
    monkeypatch.setattr(pace, "FACTOR", 0.1)
    section = {"name": "phone", "transport": "adb", "runtime": "ncnn", "address": phone.address}
    section |= {"hang_minutes": 0.05, "energy_seconds": 0, "min_minutes": 0, "precision_target": 0.9, "drift": 10}
    config, operators = DeviceConfig.from_section(section), [conv(8 * i) for i in range(1, 13)]
    frozen: list[int] = []

    def freeze() -> None:
        while not frozen:
            time.sleep(0.01)
            for process in psutil.process_iter():
                with suppress(psutil.Error):
                    is_ours = process.cwd().startswith(str(phone.phone.root)) and "profile-" in " ".join(
                        process.cmdline()
                    )
                    if is_ours and "runner" in process.name() and process.cpu_times().user > 0.1:
                        os.kill(process.pid, signal.SIGSTOP)
                        frozen.append(process.pid)

    thread = threading.Thread(target=freeze, daemon=True)
    thread.start()
    lut = profile(operators, config, tmp_path / "store")
    assert frozen
    assert "did not end within" in caplog.text
    assert {feature.id for feature in operators} <= lut.latencies().keys()
    assert all(is_gone(pid) for pid in frozen)
    assert len(Store(tmp_path / "store").devices()) == 1
    json.dumps(lut.latencies(), allow_nan=False)
