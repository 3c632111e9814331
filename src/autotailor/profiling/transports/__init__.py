"""Transports: how commands and files reach a device. One file and one line here make a new one."""

from __future__ import annotations

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.registry import Registry, open_part
from autotailor.profiling.transports.base import Transport
from autotailor.profiling.transports.local import LocalTransport


def _adb(device: DeviceConfig) -> Transport:
    from autotailor.profiling.transports.adb.transport import (
        AdbTransport,  # where it is needed: its libraries load slowly
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
"""Name to what makes it."""


def open_transport(device: DeviceConfig) -> Transport:
    """The transport of a device.

    Raises:
        DeviceError: it is unknown.
    """
    return open_part("transport", device.transport, TRANSPORTS, device)


__all__ = ["TRANSPORTS", "LocalTransport", "Transport", "open_transport"]
