"""The state of a device's processor (cores, frequencies, temperatures), and pauses until it no longer throttles."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from autotailor.profiling.host import sysfs
from autotailor.profiling.host.sysfs import ROOT, number
from autotailor.profiling.transports.base import Transport

CPU = "devices/system/cpu"
PATTERNS = (
    f"{CPU}/online",
    *(
        f"{CPU}/cpu[0-9]*/cpufreq/{name}"
        for name in ("scaling_governor", "scaling_cur_freq", "scaling_max_freq", "cpuinfo_max_freq")
    ),
    f"{CPU}/cpu[0-9]*/thermal_throttle/core_throttle_count",
    "class/thermal/thermal_zone*/type",
    "class/thermal/thermal_zone*/temp",
    "class/thermal/thermal_zone*/trip_point_*_type",
    "class/thermal/thermal_zone*/trip_point_*_temp",
    "class/thermal/cooling_device*/type",
    "class/thermal/cooling_device*/cur_state",
)
PROCESSOR_COOLING = re.compile("cpu|processor", re.IGNORECASE)
"""Cooling devices that slow the processor (``cpufreq-cpu0``, ``thermal-cpufreq-0``, ``Processor``), unlike fans."""

logger = logging.getLogger(__name__)

PAUSE, PATIENCE = 10.0, 300.0
"""Seconds of one pause, and of all pauses of one call."""


@dataclass(frozen=True)
class Core:
    """One core's clock.

    Attributes:
        governor: the kernel's policy that chooses the frequency.
        mhz: the present frequency.
        limit_mhz: the highest frequency that is allowed now.
        highest_mhz: the highest frequency of which the core is capable.
    """

    governor: str | None
    mhz: float | None
    limit_mhz: float | None
    highest_mhz: float | None


@dataclass(frozen=True)
class Zone:
    """One thermal zone.

    Attributes:
        name: the zone's name.
        celsius: the zone's temperature.
        trip_celsius: the temperature at which the system begins to throttle; None where the system does not tell.
    """

    name: str
    celsius: float
    trip_celsius: float | None


@dataclass(frozen=True)
class Machine:
    """The state of a device's processor at one moment. A field is empty where the device's system does not tell.

    Attributes:
        online: numbers of the cores that are switched on.
        cores: core number to the core's clock.
        zones: thermal zones.
        throttle_events: how often cores were throttled since the system started, all cores together.
        cooling: names of the cooling devices that slow the processor at this moment.
    """

    online: frozenset[int]
    cores: Mapping[int, Core]
    zones: tuple[Zone, ...]
    throttle_events: int | None
    cooling: tuple[str, ...]

    def throttled_since(self, before: Machine | None = None) -> str:
        """Why the processor is slowed down against heat, or was since ``before``; empty where it was not."""
        if self.cooling:
            return f"cooling in force: {', '.join(self.cooling)}"
        events = (self.throttle_events or 0) - ((before.throttle_events if before else self.throttle_events) or 0)
        return f"throttled {events} times meanwhile" if events > 0 else ""


def look(transport: Transport, root: PurePosixPath = ROOT) -> Machine:
    """The state of a device's processor at this moment.

    Raises:
        DeviceError: the device cannot be asked.
    """
    return parse(sysfs.read(transport, PATTERNS, root))


def parse(files: Mapping[str, str]) -> Machine:
    """The state of a processor, from files of ``/sys``."""
    counts = [value for path in files if path.endswith("throttle_count") and (value := number(files, path)) is not None]
    return Machine(
        frozenset(core_numbers(files.get(f"{CPU}/online", ""))),
        {index: _core(files, index) for index in _indices(files, rf"{CPU}/cpu(\d+)/cpufreq/")},
        tuple(_zones(files)),
        round(sum(counts)) if counts else None,
        tuple(_cooling(files)),
    )


def core_numbers(text: str) -> list[int]:
    """Numbers in a list as the kernel writes it, for instance ``0-3,6``."""
    numbers: list[int] = []
    for first, last in re.findall(r"(\d+)(?:-(\d+))?", text):
        numbers += range(int(first), int(last or first) + 1)
    return numbers


def _indices(files: Mapping[str, str], pattern: str) -> list[int]:
    return sorted({int(match[1]) for path in files if (match := re.match(pattern, path))})


def _core(files: Mapping[str, str], index: int) -> Core:
    def mhz(name: str) -> float | None:
        khz = number(files, f"{CPU}/cpu{index}/cpufreq/{name}")
        return None if khz is None else khz / 1000

    names = ("scaling_cur_freq", "scaling_max_freq", "cpuinfo_max_freq")
    return Core(files.get(f"{CPU}/cpu{index}/cpufreq/scaling_governor"), *(mhz(name) for name in names))


def _zones(files: Mapping[str, str]) -> list[Zone]:
    zones = []
    for index in _indices(files, r"class/thermal/thermal_zone(\d+)/temp"):
        folder = f"class/thermal/thermal_zone{index}"
        value = number(files, f"{folder}/temp")
        trips = [
            trip / 1000
            for point in _indices(files, rf"{folder}/trip_point_(\d+)_temp")
            if files.get(f"{folder}/trip_point_{point}_type") == "passive"
            and (trip := number(files, f"{folder}/trip_point_{point}_temp")) is not None
            and trip > 0
        ]
        if value is not None and value > 0:  # zones that are switched off report 0 or less
            zones.append(Zone(files.get(f"{folder}/type", f"zone {index}"), value / 1000, min(trips, default=None)))
    return zones


def _cooling(files: Mapping[str, str]) -> list[str]:
    folders = (f"class/thermal/cooling_device{i}" for i in _indices(files, r"class/thermal/cooling_device(\d+)/type"))
    return [
        files[f"{folder}/type"]
        for folder in folders
        if PROCESSOR_COOLING.search(files[f"{folder}/type"]) and (number(files, f"{folder}/cur_state") or 0) > 0
    ]


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
