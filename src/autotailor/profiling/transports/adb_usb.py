"""Devices on USB: which one is meant."""

from __future__ import annotations

from collections.abc import Sequence

from adb_shell.transport.base_transport import BaseTransport

from autotailor.profiling.errors import AuthorisationError, DeviceError, TransientError


def open_usb(name: str, serial: str | None, timeout: float) -> BaseTransport:
    """The transport of a device on USB.

    Args:
        name: of the device, for messages.
        serial: its serial number; None: the only one there is.
        timeout: of reading and writing, in seconds.

    Raises:
        TransientError: it is not there.
        AuthorisationError: this user may not open it.
        DeviceError: several are and none is chosen, or USB cannot be used.
    """
    try:
        import usb1
        from adb_shell.transport.usb_transport import UsbTransport
    except (ImportError, OSError) as error:
        raise DeviceError(
            f"device {name}: USB cannot be used ({error}): install libusb (Debian: apt-get install libusb-1.0-0), "
            "or set device.address to reach it over the network"
        ) from error
    try:
        found = {transport.serial_number: transport for transport in UsbTransport.find_all_adb_devices(timeout)}
    except usb1.USBErrorAccess as error:
        raise no_access(name) from error
    return found[choose(name, serial, sorted(found))]


def choose(name: str, serial: str | None, found: Sequence[str]) -> str:
    """The serial number of the device that is meant, of those that are plugged in."""
    if serial in found:
        return str(serial)
    if serial is None and len(found) == 1:
        return found[0]
    if serial is None and found:
        raise DeviceError(
            f"device {name}: {len(found)} devices are plugged in, {', '.join(found)}: set device.serial to one of them"
        )
    meant = f"no device with serial number {serial}" if serial else "no device"
    others = f"there are {', '.join(found)}" if found else "nothing offers adb there"
    raise TransientError(
        f"device {name}: {meant} on USB, {others}: plug it in and switch on USB debugging in its developer options, "
        "or set device.address to reach it over the network"
    )


def no_access(name: str) -> AuthorisationError:
    """The error for a device that this user may not open."""
    return AuthorisationError(
        f"device {name}: no permission to open it on USB: install the udev rules for Android devices "
        "(Debian: apt-get install android-sdk-platform-tools-common), add yourself to the group plugdev, log in again"
    )
