"""Transports: how commands and files reach a device. A new transport is one file, and one entry in ``TRANSPORTS``."""

from autotailor.profiling.device import DeviceConfig, Registry, open_part
from autotailor.profiling.transports.base import Transport
from autotailor.profiling.transports.local import LocalTransport


def _adb(device: DeviceConfig) -> Transport:
    from autotailor.profiling.transports.adb.transport import (
        AdbTransport,  # imported here because the libraries of adb load slowly
    )

    return AdbTransport(device)


def _ssh(device: DeviceConfig) -> Transport:
    from autotailor.profiling.transports.ssh import SshTransport

    return SshTransport(device)


TRANSPORTS: Registry[Transport] = {
    "local": LocalTransport,
    "adb": _adb,
    "ssh": _ssh,
}
"""The configuration's name of each transport, and what makes the transport for a device."""


def open_transport(device: DeviceConfig) -> Transport:
    """The transport of a device.

    Raises:
        DeviceError: the configuration names an unknown transport, or what is registered under the name makes none.
    """
    return open_part("transport", device.transport, TRANSPORTS, device, Transport)


__all__ = ["TRANSPORTS", "LocalTransport", "Transport", "open_transport"]
