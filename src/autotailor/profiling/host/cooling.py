"""Cooling pauses: a device that throttles is left alone until it has stopped throttling."""

import logging
import time
from pathlib import PurePosixPath

from autotailor.profiling.host.machine import Machine, look
from autotailor.profiling.host.sysfs import ROOT
from autotailor.profiling.transports.base import Transport

logger = logging.getLogger(__name__)

PAUSE, PATIENCE = 10.0, 300.0
"""Seconds of one pause, and of all pauses of one call."""


def wait_until_cool(
    transport: Transport,
    name: str,
    before: Machine | None = None,
    *,
    root: PurePosixPath = ROOT,
    pause: float = PAUSE,
    patience: float = PATIENCE,
) -> Machine:
    """Looks at a device, and waits while the device slows its processor against heat.

    Args:
        transport: transport to the device.
        name: the device's name, for messages.
        before: the device's state at an earlier look; throttling since then asks for one pause, too.
        root: where the device's ``/sys`` is.
        pause: seconds of one pause.
        patience: seconds of all pauses; after them a warning says that measuring goes on nevertheless.

    Returns:
        The device's state afterwards.

    Raises:
        DeviceError: the device cannot be asked.
    """
    machine, waited = look(transport, root), 0.0
    while reason := machine.throttled_since(before):
        if waited >= patience:
            logger.warning(
                "device %s: still %s after %.0f s; measuring goes on while it is slow; cool it", name, reason, waited
            )
            break
        if not waited:
            logger.warning("device %s: %s: pausing until it has cooled down; a fan helps", name, reason)
        time.sleep(pause)
        waited += pause
        before, machine = machine, look(transport, root)
    return machine
