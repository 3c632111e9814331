"""Devices on USB: choosing one of several, and the errors for a device that cannot be reached."""

from collections.abc import Sequence
from typing import Any

from adb_shell.exceptions import UsbReadFailedError
from adb_shell.transport.base_transport import BaseTransport

from autotailor.profiling.errors import AuthorisationError, DeviceError, TransientError


class GuardedUsb(BaseTransport):  # type: ignore[misc]
    """adb-shell's USB transport, which raises adb-shell's own exception when libusb refuses to connect.

    Args:
        transport: the transport that adb-shell made; its ``connect`` lets libusb's exception through.
    """

    def __init__(self, transport: BaseTransport) -> None:
        self._transport = transport

    def connect(self, transport_timeout_s: float | None) -> None:
        """Claims the device; raises UsbReadFailedError with libusb's error."""
        import usb1

        try:
            self._transport.connect(transport_timeout_s)
        except usb1.USBError as error:
            raise UsbReadFailedError("cannot be opened", error) from error

    def close(self) -> None:
        """Releases the device; safe to call twice."""
        self._transport.close()

    def bulk_read(self, numbytes: int, transport_timeout_s: float | None) -> bytes:
        """Reads the bytes that have come; raises UsbReadFailedError."""
        return bytes(self._transport.bulk_read(numbytes, transport_timeout_s))

    def bulk_write(self, data: bytes, transport_timeout_s: float | None) -> int:
        """Sends the bytes; raises UsbWriteFailedError."""
        return int(self._transport.bulk_write(data, transport_timeout_s))


def open_usb(name: str, serial: str | None, timeout: float) -> BaseTransport:
    """The transport of a device on USB.

    Args:
        name: the device's name, for messages.
        serial: the device's serial number; None where only one device is plugged in.
        timeout: for one read or write, in seconds.

    Raises:
        TransientError: the device is not plugged in, or does not answer.
        AuthorisationError: this user may not open the device.
        DeviceError: several devices are plugged in and none is chosen, another program holds the device, or USB cannot
            be used.
    """
    try:
        import usb1
        from adb_shell.transport.usb_transport import UsbTransport
    except Exception as error:  # no package, no library, or a library that cannot start here
        raise DeviceError(
            f"device {name}: USB cannot be used ({error}): install libusb (Debian: apt-get install libusb-1.0-0), "
            "or set device.address to reach it over the network"
        ) from error
    by_serial: dict[str, Any] = {}
    unreadable: list[Exception] = []
    try:
        for transport in UsbTransport.find_all_adb_devices(timeout):
            try:
                by_serial[transport.serial_number or ""] = transport
            except usb1.USBError as error:
                unreadable.append(error)
    except usb1.USBError as error:
        raise usb_fault(name, error) from error
    if unreadable and serial not in by_serial:  # the unreadable device may be the one that is meant
        raise usb_fault(name, unreadable[0]) from unreadable[0]
    return GuardedUsb(by_serial[choose(name, serial, sorted(by_serial))])


def choose(name: str, serial: str | None, names: Sequence[str]) -> str:
    """The serial number of the device that the configuration means, among those that are plugged in."""
    if serial in names:
        return str(serial)
    if serial is None and len(names) == 1:
        return names[0]
    if serial is None and names:
        raise DeviceError(
            f"device {name}: {len(names)} devices are plugged in, {', '.join(names)}: set device.serial to one of them"
        )
    meant = f"no device with serial number {serial}" if serial else "no device"
    others = f"only {', '.join(names)}" if names else "and nothing there offers adb"
    raise TransientError(
        f"device {name}: {meant} on USB, {others}: plug the device in and switch on USB debugging in its developer "
        "options, or set device.address to reach it over the network"
    )


def usb_fault(name: str, cause: Exception) -> DeviceError:
    """The error for a device on USB that cannot be reached.

    Args:
        name: the device's name, for messages.
        cause: libusb's error, or adb-shell's exception where the device is silent.

    Returns:
        AuthorisationError: this user may not open the device.
        TransientError: trying again can help.
        DeviceError: another program holds the device.
    """
    match type(cause).__name__:  # libusb may be missing, so that its classes cannot be named here
        case "USBErrorAccess":
            return AuthorisationError(
                f"device {name}: no permission to open it on USB: install the udev rules for Android devices (Debian: "
                "apt-get install android-sdk-platform-tools-common), add yourself to the group plugdev, log in again"
            )
        case "USBErrorBusy":
            return DeviceError(
                f"device {name}: another program holds it on USB, most likely a running adb server: stop that with "
                "`adb kill-server` (and close Android Studio), or set device.address to reach it over the network"
            )
    return TransientError(
        f"device {name}: no ADB daemon answers on USB ({cause}): unlock the device, see that USB debugging is switched "
        "on, plug it in again (another cable or port may help), or set device.address to reach it over the network"
    )
