"""Checks of a device's processor: cores, frequency, temperature."""

from __future__ import annotations

from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.host.machine import Core, Machine

STEADY_GOVERNORS = frozenset({"performance"})
SAME_CLOCK = 0.02
"""Relative difference below which two frequencies count as the same."""
TRIP_MARGIN = 10.0
"""Distance to the throttling temperature, in degrees Celsius, below which measuring soon throttles the processor."""
HOT_CELSIUS = 80.0
"""Highest temperature of a zone that does not report its throttling temperature."""


def measured_cores(device: DeviceConfig, machine: Machine) -> dict[int, Core]:
    """The cores on which measurements run: the configured cores, or all cores where none are configured."""
    return {index: core for index, core in machine.cores.items() if not device.cores or index in device.cores}


def check_cores(device: DeviceConfig, machine: Machine) -> Finding:
    """Checks that the configured cores are online and have the same highest frequency."""
    if not machine.online:
        return Finding("cores", Verdict.UNAVAILABLE, "the device does not report its cores")
    online = sorted(machine.online)
    if missing := sorted(set(device.cores) - machine.online):
        return Finding(
            "cores", Verdict.FAILED, f"{missing} are switched off or missing", f"set device.cores to {online}"
        )
    if device.threads > len(online):
        remedy = f"set device.threads to at most {len(online)}"
        return Finding("cores", Verdict.FAILED, f"{device.threads} threads on {len(online)} cores", remedy)
    clocks = {round(core.highest_mhz) for core in measured_cores(device, machine).values() if core.highest_mhz}
    said = f"{list(device.cores) or 'any'} of {len(online)}, {device.threads} threads"
    if len(clocks) > 1:
        remedy = "set device.cores to the cores of one cluster, because each run may land on another cluster"
        return Finding("cores", Verdict.WARNING, f"{said}; of {sorted(clocks)} MHz", remedy)
    return Finding("cores", Verdict.GOOD, said)


def check_frequency(device: DeviceConfig, machine: Machine) -> Finding:
    """Checks governor, present and highest frequency, and throttling."""
    cores = measured_cores(device, machine)
    if reason := machine.throttled_since():
        return Finding("frequency", Verdict.FAILED, reason, "let the device cool down; improve its cooling")
    if not cores:
        return Finding("frequency", Verdict.UNAVAILABLE, "the device does not report frequencies (a virtual machine?)")
    governors = sorted({core.governor or "unknown" for core in cores.values()})
    said = f"governor {', '.join(governors)}; {_span([c.mhz for c in cores.values()])} of "
    said += f"{_span([c.highest_mhz for c in cores.values()])} MHz"
    capped = [
        c for c in cores.values() if c.limit_mhz and c.highest_mhz and c.limit_mhz < c.highest_mhz * (1 - SAME_CLOCK)
    ]
    if capped:
        said += f", limited to {_span([c.limit_mhz for c in capped])}"
        remedy = "keep it if networks will run so; else raise scaling_max_freq (Jetson: `sudo nvpmodel -m 0`)"
        return Finding("frequency", Verdict.WARNING, said, remedy)
    if set(governors) - STEADY_GOVERNORS:
        remedy = "fix the clock: `sudo cpupower frequency-set -g performance` (Jetson: `sudo jetson_clocks`)"
        return Finding("frequency", Verdict.WARNING, said, remedy)
    return Finding("frequency", Verdict.GOOD, said)


def check_temperature(machine: Machine) -> Finding:
    """Checks the temperature of the zone that is nearest to throttling."""
    if not machine.zones:
        return Finding("temperature", Verdict.UNAVAILABLE, "the device does not report temperatures")
    zone = min(machine.zones, key=lambda z: (z.trip_celsius or HOT_CELSIUS + TRIP_MARGIN) - z.celsius)
    said = f"{zone.name} {zone.celsius:.0f} °C" + (
        f", throttles at {zone.trip_celsius:.0f}" if zone.trip_celsius else ""
    )
    if zone.celsius > (zone.trip_celsius or HOT_CELSIUS + TRIP_MARGIN) - TRIP_MARGIN:
        return Finding("temperature", Verdict.WARNING, said, "let the device cool down before profiling")
    return Finding("temperature", Verdict.GOOD, said)


def _span(values: list[float | None]) -> str:
    known = [value for value in values if value]
    if not known:
        return "?"
    low, high = min(known), max(known)
    return f"{low:.0f}" if high - low < 1 else f"{low:.0f} to {high:.0f}"
