"""The checks of a device; each check runs after the checks that it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import PurePosixPath

import numpy as np

from autotailor.commands.doctor.finding import Finding, Verdict
from autotailor.commands.doctor.hardware import check_cores, check_frequency, check_temperature
from autotailor.ir.errors import AutoTailorError
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.energy import find_sensor
from autotailor.profiling.errors import AuthorisationError, DeviceError, UnreachableError
from autotailor.profiling.host.lock import held
from autotailor.profiling.host.machine import look
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
