"""Faults of libusb on the way to a device on USB; the device is adb-shell's own transport on a handle of the test."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from autotailor.profiling import DeviceConfig, DeviceError
from autotailor.profiling.errors import AuthorisationError, UnreachableError
from autotailor.profiling.transports.adb.tcp import WholeBufferTcp, user_key
from autotailor.profiling.transports.adb.transport import AdbTransport
from autotailor.profiling.transports.remote.link import Patience
from device.adb_daemon import AdbDaemon

usb1 = pytest.importorskip("usb1", reason="libusb is missing: apt-get install libusb-1.0-0", exc_type=OSError)
usb = pytest.importorskip("adb_shell.transport.usb_transport", reason="USB cannot be used here", exc_type=Exception)

IMPATIENT = Patience(connect=2.0, first=0.3, answer=2.0, pause=0.02)


class Plugged:
    """A device in libusb's eyes: its setting, its handle, and an ADB daemon behind it.

    Args:
        serial: its serial number.
        daemon: its port on the loopback interface; None: nothing can be sent.
    """

    def __init__(self, serial: str, daemon: int | None = None) -> None:
        self.serial, self.tries = serial, 0
        self.faults: dict[str, list[Exception]] = {"serial": [], "claim": []}
        self.daemon = WholeBufferTcp("127.0.0.1", daemon or 1)

    def _meet(self, what: str) -> None:
        self.tries += 1
        if self.faults[what]:
            raise self.faults[what].pop(0)

    def iterSettings(self) -> Iterator[Plugged]:
        yield self

    def iterEndpoints(self) -> list[Any]:
        return [SimpleNamespace(getAddress=lambda address=address: address) for address in (0x81, 0x01)]

    def getClass(self) -> int:
        return int(usb.CLASS)

    def getSubClass(self) -> int:
        return int(usb.SUBCLASS)

    def getProtocol(self) -> int:
        return int(usb.PROTOCOL)

    def getNumber(self) -> int:
        return 0

    def getSerialNumber(self) -> str:
        self._meet("serial")
        return self.serial

    def open(self) -> Plugged:
        return self

    def kernelDriverActive(self, _: int) -> bool:
        return False

    def claimInterface(self, _: int) -> None:
        self._meet("claim")
        self.daemon.connect(2)

    def releaseInterface(self, _: int) -> None:
        pass

    def close(self) -> None:
        self.daemon.close()

    def bulkRead(self, _: int, size: int, timeout: int) -> bytearray:
        return bytearray(self.daemon.bulk_read(size, timeout / 1000))

    def bulkWrite(self, _: int, data: bytes, timeout: int) -> int:
        return self.daemon.bulk_write(data, timeout / 1000)


@pytest.fixture
def plug(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., None]:
    """Plugs devices in; this user has an adb key of the test's."""
    monkeypatch.setenv("ANDROID_USER_HOME", str(tmp_path / ".android"))
    user_key()

    def plug(*devices: Plugged) -> None:
        context = SimpleNamespace(getDeviceIterator=lambda skip_on_error: iter(devices))
        monkeypatch.setattr(usb.UsbTransport, "USB1_CTX", context)

    return plug


def check(serial: str | None = None) -> None:
    with AdbTransport(DeviceConfig(name="phone", transport="adb", serial=serial), IMPATIENT) as transport:
        transport.check()


def test_an_adb_server_holds_it(plug: Callable[..., None]) -> None:
    phone = Plugged("A1")
    phone.faults["claim"] = [usb1.USBErrorBusy()]
    plug(phone)
    with pytest.raises(DeviceError, match=r"another program holds it on USB.*a running adb server.*`adb kill-server`"):
        check()
    assert phone.tries == 2, "waiting does not help"


@pytest.mark.parametrize("what", ["serial", "claim"])
def test_it_may_not_be_opened(plug: Callable[..., None], what: str) -> None:
    phone = Plugged("A1")
    phone.faults[what] = [usb1.USBErrorAccess()]
    plug(phone)
    with pytest.raises(AuthorisationError, match="no permission to open it on USB: install the udev rules"):
        check()


@pytest.mark.parametrize("what", ["serial", "claim"])
def test_a_fault_that_stays(plug: Callable[..., None], what: str) -> None:
    phone = Plugged("A1")
    phone.faults[what] = [usb1.USBErrorIO() for _ in range(1000)]
    plug(phone)
    with pytest.raises(UnreachableError, match=r"on USB \(LIBUSB_ERROR_IO.*plug it in again.*tried \d+ times"):
        check()
    assert phone.tries > 2


def test_faults_that_pass(plug: Callable[..., None], tmp_path: Path) -> None:
    with AdbDaemon(tmp_path / "phone") as daemon:
        phone = Plugged("A1", int(daemon.address.rpartition(":")[2]))
        phone.faults = {"serial": [usb1.USBErrorIO()], "claim": [usb1.USBErrorNoDevice()]}
        plug(phone)
        check()


def test_only_the_one_that_is_meant_must_be_readable(plug: Callable[..., None]) -> None:
    mine, other = Plugged("A1"), Plugged("B2")
    mine.faults["claim"] = [usb1.USBErrorBusy()]
    other.faults["serial"] = [usb1.USBErrorAccess() for _ in range(2)]
    plug(other, mine)
    with pytest.raises(DeviceError, match="another program holds it"):
        check("A1")
    with pytest.raises(AuthorisationError, match="no permission"):
        check()


def test_usb_itself_fails(plug: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(skip_on_error: bool) -> None:
        raise usb1.USBErrorOther

    monkeypatch.setattr(usb.UsbTransport, "USB1_CTX", SimpleNamespace(getDeviceIterator=fail))
    with pytest.raises(UnreachableError, match=r"on USB \(LIBUSB_ERROR_OTHER"):
        check()
