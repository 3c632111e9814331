"""The checks of a device and of its processor; each check runs after the checks that it depends on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.ir.errors import AutoTailorError
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.energy import find_sensor
from autotailor.profiling.errors import AuthorisationError, DeviceError, UnreachableError
from autotailor.profiling.host.lock import held
from autotailor.profiling.host.machine import Core, Machine, look
from autotailor.profiling.host.sysfs import ROOT
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes import open_runtime
from autotailor.profiling.transports import Transport, open_transport

NOISE_BATCHES, NOISE_SECONDS = 4, 0.5
NOISE_WARNING, NOISE_LIMIT = 0.03, 0.10
"""Limits for the anchor's coefficient of variation and drift: above the first limit, profiling takes long; above the
second, it fails."""
DF_SECONDS = 60.0
NEEDED_MB, AMPLE_MB = 16, 256
"""Free space: what the runner and its manifests need, and what is enough for large networks, too."""

STEADY_GOVERNORS = frozenset({"performance"})
SAME_CLOCK = 0.02
"""Relative difference below which two frequencies count as the same."""
TRIP_MARGIN = 10.0
"""Distance to the throttling temperature, in degrees Celsius, below which measuring soon throttles the processor."""
HOT_CELSIUS = 80.0
"""Highest temperature of a zone that does not report its throttling temperature."""


def examine(device: DeviceConfig, root: PurePosixPath = ROOT) -> Iterator[Finding]:
    """Checks a device. Checks that depend on a failed check are left out.

    Args:
        device: the configuration of the device.
        root: path of ``/sys`` on the device.

    Yields:
        Each finding as soon as its check is done.
    """
    try:
        transport = open_transport(device)
    except DeviceError as error:
        yield _failure("reachable", device, error)
        return
    with transport:
        reached = True
        for finding in _check_transport(device, transport):
            reached &= finding.verdict is not Verdict.FAILED
            yield finding
        if not reached:
            return
        try:
            with held(transport, device.name) as user:
                yield _lock_finding(user)
                if user is None:
                    yield from _check_state(device, transport, root)
        except DeviceError as error:
            yield _failure("answers", device, error)
            return
    yield from _check_runtime(device, free=user is None)


def _failure(check: str, device: DeviceConfig, error: Exception) -> Finding:
    """Turns an error into a finding; an error's message ends with the remedy."""
    said, _, remedy = str(error).removeprefix(f"device {device.name}: ").partition(": ")
    return Finding(check, Verdict.FAILED, said, remedy)


def _check_transport(device: DeviceConfig, transport: Transport) -> Iterator[Finding]:
    reached = Finding("reachable", Verdict.GOOD, transport.identity)
    allowed = Finding("authorised", Verdict.GOOD, "this user may run commands and write files")
    try:
        transport.check()
    except UnreachableError as error:
        yield _failure("reachable", device, error)
    except AuthorisationError as error:
        yield from (reached, _failure("authorised", device, error))
    except DeviceError as error:
        yield from (reached, _failure("usable", device, error))
    else:
        service = f", through {transport.service}" if transport.service else ""
        yield from (replace(reached, detail=reached.detail + service), allowed)


def _check_state(device: DeviceConfig, transport: Transport, root: PurePosixPath) -> Iterator[Finding]:
    """Checks space, processor and energy; raises DeviceError when the device no longer answers."""
    yield _check_space(transport)
    machine = look(transport, root)
    sensor = find_sensor(transport, root)
    yield check_cores(device, machine)
    yield check_frequency(device, machine)
    yield check_temperature(machine)
    if sensor is None:
        yield Finding("energy", Verdict.UNAVAILABLE, "this user may read no power sensor (RAPL: root only)")
    else:
        yield Finding("energy", Verdict.GOOD, sensor.name)


def _check_space(transport: Transport) -> Finding:
    """Checks the free space in the device's folder for runs."""
    lines: list[str] = []
    transport.run(["df", "-Pk", "."], lines.append, DF_SECONDS)
    columns = lines[-1].split() if lines else []
    if len(columns) < 4 or not columns[3].isdigit():
        return Finding("space", Verdict.UNAVAILABLE, "the device does not report its free space")
    free = int(columns[3]) / 1024
    said, remedy = f"{free:,.0f} MiB free", "remove files there, or set device.folder"
    if free < NEEDED_MB:
        return Finding("space", Verdict.FAILED, f"{said}, at least {NEEDED_MB} are needed", remedy)
    return Finding(
        "space", Verdict.WARNING if free < AMPLE_MB else Verdict.GOOD, said, remedy if free < AMPLE_MB else ""
    )


def _lock_finding(user: str | None) -> Finding:
    """Reports whether another run uses the device."""
    if user is None:
        return Finding("lock", Verdict.GOOD, "free")
    return Finding("lock", Verdict.WARNING, f"in use by {user}", "wait until it is done; a run would wait, too")


def _check_runtime(device: DeviceConfig, free: bool) -> Iterator[Finding]:
    """Checks the runtime, and how steadily the runtime measures the anchor operator."""
    try:
        runtime = open_runtime(device)
        runtime.check()
    except AutoTailorError as error:
        yield _failure("runtime", device, error)
        return
    if not free:
        yield Finding("runtime", Verdict.GOOD, runtime.name)
        yield Finding("noise", Verdict.UNAVAILABLE, "not measured while another run uses the device")
        return
    records: list[Record] = []
    try:
        with Session(device) as session:
            facts = session.fingerprint.facts["runtime"]
            session.measure([Batch((), NOISE_SECONDS)] * NOISE_BATCHES, records.extend)
    except AutoTailorError as error:
        yield _failure("runtime", device, error)
        return
    yield Finding("runtime", Verdict.GOOD, _describe(facts))
    yield judge_noise(records)


def _describe(facts: dict[str, object]) -> str:
    """Name and version of the runtime, and the options that are switched on."""
    options = facts.get("options")
    chosen = [f"{k}={v}" if v is not True else k for k, v in options.items() if v] if isinstance(options, dict) else []
    return f"{facts.get('name')} {facts.get('version')}" + (f", {', '.join(chosen)}" if chosen else "")


def judge_noise(records: list[Record]) -> Finding:
    """Judges the coefficient of variation of the anchor's blocks, and the drift from the first to the last batch."""
    if not records:
        return Finding(
            "noise", Verdict.FAILED, "the runtime has not measured the anchor operator", "see the runtime's log"
        )
    blocks = np.array([block for record in records for block in record.blocks])
    variation = float(blocks.std(ddof=1) / blocks.mean())
    ends = [float(np.mean(record.blocks)) for record in (records[0], records[-1])]
    drift = ends[1] / ends[0] - 1
    said = f"anchor {blocks.mean():.4f} ms, coefficient of variation {variation:.1%}, drift {drift:+.1%}"
    remedy = "stop other programs on the device, pin cores (device.cores), fix the clock, improve the cooling"
    if max(variation, abs(drift)) > NOISE_LIMIT:
        return Finding("noise", Verdict.FAILED, f"{said} (limit {NOISE_LIMIT:.0%})", remedy)
    if max(variation, abs(drift)) > NOISE_WARNING:
        return Finding("noise", Verdict.WARNING, said, remedy)
    return Finding("noise", Verdict.GOOD, said)


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
    numbers = [value for value in values if value]
    if not numbers:
        return "?"
    low, high = min(numbers), max(numbers)
    return f"{low:.0f}" if high - low < 1 else f"{low:.0f} to {high:.0f}"
