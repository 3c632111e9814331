"""Errors of profiling: each message names the object, what was expected, and the remedy."""

from autotailor.ir.errors import AutoTailorError


class DeviceError(AutoTailorError):
    """A device's configuration is wrong, or the device cannot be used."""


class UnreachableError(DeviceError):
    """Nothing answers at a device's address."""


class AuthorisationError(DeviceError):
    """A device answers, but does not let this computer in."""


class ProfilingError(AutoTailorError):
    """Operators or networks cannot be measured."""


class LUTError(AutoTailorError):
    """A look-up table of latencies cannot be read, or does not fit."""


class TransientError(DeviceError):
    """A device is away, or its answer came damaged; trying again can help."""


class RunLostError(DeviceError):
    """A command on a device ended without an exit code: the device was restarted, or the system killed the command."""


class OverdueError(DeviceError):
    """A command on a device did not end before its deadline, and was stopped."""
