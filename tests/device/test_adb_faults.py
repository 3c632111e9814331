"""What can go wrong with a phone, and that nothing is lost by it."""

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from autotailor.profiling import DeviceConfig, DeviceError
from autotailor.profiling.errors import RunLostError
from autotailor.profiling.transports.adb.transport import AdbTransport
from autotailor.profiling.transports.adb.usb import choose
from autotailor.profiling.transports.remote.link import Patience
from device.adb_daemon import AdbDaemon
from device.conftest import IMPATIENT, connect

COUNT = "for i in 1 2 3 4 5 6; do echo line $i; sleep 0.05; done; exit 7"
LINES = [f"line {number}" for number in range(1, 7)]


def interrupt(_: str) -> None:
    raise KeyboardInterrupt


def counted(transport: AdbTransport) -> tuple[int, list[str]]:
    """Runs a command that prints six lines, slowly: exit code and lines."""
    lines: list[str] = []
    return transport.run(["sh", "-c", COUNT], lines.append), lines


@pytest.mark.parametrize("kind", ["drop", "stall", "corrupt", "cut"])
@pytest.mark.parametrize("after", [0, 3])
def test_no_line_is_lost_or_doubled(phone: AdbDaemon, adb: AdbTransport, kind: str, after: int) -> None:
    adb.check()
    phone.faults.plan(kind, after=after, times=3, seconds=0.3)
    assert counted(adb) == (7, LINES)
    assert phone.faults.happened[kind] == 3


def test_a_device_that_stalls_for_longer_than_an_answer_takes(phone: AdbDaemon) -> None:
    with connect(phone, replace(IMPATIENT, answer=1.0)) as transport:
        transport.check()
        phone.faults.plan("stall", after=2, times=1, seconds=1.5)
        assert counted(transport) == (7, LINES)


@pytest.mark.parametrize("kind", ["drop", "corrupt", "damage"])
def test_files_arrive_whole(phone: AdbDaemon, adb: AdbTransport, tmp_path: Path, kind: str) -> None:
    source, back = tmp_path / "sent", tmp_path / "back"
    source.write_bytes(os.urandom(600_000))
    adb.check()
    phone.faults.plan(kind, times=2)
    assert Path(adb.push(source, "folder/file")).read_bytes() == source.read_bytes()
    phone.faults.plan(kind, after=1, times=2)
    adb.pull("folder/file", back)
    assert back.read_bytes() == source.read_bytes()


def test_a_device_that_always_damages_files_is_given_up(phone: AdbDaemon, adb: AdbTransport, tmp_path: Path) -> None:
    source = tmp_path / "sent"
    source.write_text("something")
    phone.faults.plan("damage", times=99)
    with pytest.raises(DeviceError, match="file arrived damaged 3 times"):
        adb.push(source, "file")
    assert not [path for path in phone.phone.tmp.rglob("*") if path.is_file()]


def test_nothing_half_written_is_left_here(phone: AdbDaemon, adb: AdbTransport, tmp_path: Path) -> None:
    target = tmp_path / "empty" / "file"
    target.parent.mkdir()
    with pytest.raises(DeviceError, match="file: No such file"):
        adb.pull("file", target)
    (Path(adb.folder) / "file").write_text("something")
    phone.faults.plan("damage", times=99)
    with pytest.raises(DeviceError, match="came back damaged 3 times"):
        adb.pull("file", target)
    assert not list(target.parent.iterdir())


def test_no_space(phone: AdbDaemon, adb: AdbTransport, tmp_path: Path) -> None:
    huge, small = tmp_path / "huge", tmp_path / "small"
    with huge.open("wb") as file:
        file.truncate(2**43)  # a file of holes: larger than any disk here, and takes no space
    with pytest.raises(DeviceError, match=r"no space for huge: it needs 8388608\.0 MiB in .*device\.folder"):
        adb.push(huge, "huge")
    small.write_text("something")
    phone.faults.plan("full", times=99)
    with pytest.raises(DeviceError, match=r"No space left on device: no space is left on the device: remove something"):
        adb.push(small, "small")


def test_no_permission(phone: AdbDaemon) -> None:
    device = DeviceConfig(name="phone", transport="adb", address=phone.address, folder="/proc/1/here")
    with AdbTransport(device, IMPATIENT) as transport, pytest.raises(DeviceError, match=r"/proc/1.*device\.folder"):
        transport.check()


def test_a_missing_command_is_named(phone: AdbDaemon, adb: AdbTransport) -> None:
    phone.phone.environment["PATH"] = str(phone.phone.root / "system" / "bin")
    with pytest.raises(DeviceError, match="cat: not found: the device lacks this command"):
        adb.check()


def test_nobody_there(home: Path) -> None:
    device = DeviceConfig(name="phone", transport="adb", address="127.0.0.1:1")
    words = r"127\.0\.0\.1:1 .*refused.*adb tcpip.*tried \d+ times"
    with AdbTransport(device, Patience(first=0.5)) as transport, pytest.raises(DeviceError, match=words):
        transport.check()


def test_a_device_that_says_nothing_is_given_up(phone: AdbDaemon) -> None:
    phone.faults.plan("stall", times=99, seconds=30)
    device = DeviceConfig(name="phone", transport="adb", address=phone.address)
    with AdbTransport(device) as transport, pytest.raises(DeviceError, match="no answer within"):
        transport.check()


def test_refused_connections_are_tried_again(phone: AdbDaemon, adb: AdbTransport) -> None:
    phone.faults.plan("refuse", times=2)
    adb.check()
    assert phone.faults.happened["refuse"] == 2


def test_a_key_is_asked_for_once(phone: AdbDaemon, warnings: Callable[[], str]) -> None:
    phone.prompt = 0.5
    for _ in range(2):
        with connect(phone) as transport:
            transport.check()
    assert phone.asked == 1
    assert warnings().count("accept this computer's adb key on the screen") == 1


def test_nobody_accepts_the_key(phone: AdbDaemon, adb: AdbTransport) -> None:
    phone.prompt = None
    with pytest.raises(DeviceError, match="nobody accepted it within 3 s: unlock the device"):
        adb.check()
    assert phone.asked == 1


def test_a_restart_ends_a_command_and_keeps_its_lines(phone: AdbDaemon, adb: AdbTransport) -> None:
    lines: list[str] = []

    def on_line(line: str) -> None:
        lines.append(line)
        if len(lines) == 1:
            phone.reboot(seconds=0.3)

    with pytest.raises(RunLostError, match="the device was restarted"):
        adb.run(["sh", "-c", COUNT.replace("0.05", "0.5")], on_line)
    assert lines == LINES[: len(lines)]
    assert counted(adb) == (7, LINES)


def test_a_device_that_does_not_come_back(phone: AdbDaemon) -> None:
    words = r"\(tried \d+ times in"
    with connect(phone, replace(IMPATIENT, lost=0.5)) as transport, pytest.raises(DeviceError, match=words):
        transport.run(["sh", "-c", COUNT], lambda _: phone.stop())


def test_what_dead_runs_left_is_stopped_and_removed(
    phone: AdbDaemon, adb: AdbTransport, monkeypatch: pytest.MonkeyPatch
) -> None:
    dead = connect(phone)
    monkeypatch.setattr(dead.shell, "attempt_once", lambda script: None)  # as after SIGKILL: nothing is tidied up
    with pytest.raises(KeyboardInterrupt):
        dead.run(["sh", "-c", "echo started; sleep 60"], interrupt)
    left = Path(dead.folder)
    pid = int((left / "run.0" / "pid").read_text())
    assert Path(f"/proc/{pid}/cwd").exists()
    other = left.with_name("run-another_computer_0-00000000")
    other.mkdir()
    assert Path(adb.folder).exists()
    assert not left.exists()
    assert other.exists()
    for _ in range(200):
        if not Path(f"/proc/{pid}/cwd").exists():
            return
        time.sleep(0.05)
    pytest.fail("its command still runs")


def test_cleaning_up_a_device_that_is_away(phone: AdbDaemon, warnings: Callable[[], str]) -> None:
    transport = connect(phone)
    left = Path(transport.folder)
    phone.stop()
    transport.cleanup()
    transport.cleanup()
    assert "the next run removes it" in warnings()
    phone.start()
    with connect(phone) as later:
        assert later.folder != str(left)
    assert not left.exists()


@pytest.mark.parametrize(
    ("serial", "found", "words"),
    [
        (None, [], "no device on USB, and nothing there offers adb"),
        ("A1", ["B2"], "no device with serial number A1 on USB, only B2"),
        (None, ["A1", "B2"], "2 devices are plugged in, A1, B2: set device.serial"),
    ],
)
def test_which_device_on_usb_is_not_clear(serial: str | None, found: list[str], words: str) -> None:
    with pytest.raises(DeviceError, match=words):
        choose("phone", serial, found)


@pytest.mark.parametrize(("serial", "found"), [(None, ["A1"]), ("A1", ["A1", "B2"])])
def test_the_device_on_usb_that_is_meant(serial: str | None, found: list[str]) -> None:
    assert choose("phone", serial, found) == "A1"


def test_without_a_device_on_usb(home: Path) -> None:
    pytest.importorskip("usb1", reason="libusb is missing: apt-get install libusb-1.0-0", exc_type=OSError)
    device, words = DeviceConfig(name="phone", transport="adb", serial="nowhere"), r"nowhere on USB.*plug the device in"
    with AdbTransport(device, Patience(first=0.2)) as transport, pytest.raises(DeviceError, match=words):
        transport.check()
