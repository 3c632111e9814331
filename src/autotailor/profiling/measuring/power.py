"""Power above idle while operators run, and with it their energy: power x latency.

Sensors renew their values 1 to 100 times a second, and operators take microseconds, so measuring one operator alone
takes seconds, and there are thousands of operators. The power of a processor, however, varies far less than latencies
do, and mostly with the kind of operator. So a few operators of each kind, spread over the latencies of the kind, run in
turn for ``device.energy_seconds``, and an operator's energy is the power of its kind times its latency. That costs
``energy_seconds`` once for each kind, whatever the number of operators.
"""

import logging
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import PurePosixPath

import numpy as np

from autotailor.ir.feature import OperatorFeature
from autotailor.profiling.energy.base import Sensor
from autotailor.profiling.energy.watch import IDLE_SECONDS, Watch
from autotailor.profiling.host.sysfs import ROOT
from autotailor.profiling.measuring import pace
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.batch import Batch
from autotailor.profiling.records.events import Asked, ProgramTimed, StrangeLineError
from autotailor.profiling.records.limits import RANGES
from autotailor.profiling.runtimes.base import Program

logger = logging.getLogger(__name__)

SPREAD = 6
"""How many operators stand for their kind."""
SETTLED = 0.8
"""Share of a batch's time that counts. It ends with the batch: sensors lag, and at first programs may still load."""


def measure_power(
    session: Session,
    sensor: Sensor,
    groups: Mapping[str, Sequence[Program]],
    seconds: float,
    *,
    root: PurePosixPath = ROOT,
    idle_seconds: float = IDLE_SECONDS,
) -> dict[str, float]:
    """Power above idle while the programs of each group run in turn, and nothing else runs.

    Args:
        session: an open session on the device.
        sensor: a sensor of that device.
        groups: name of a group to its programs.
        seconds: how long each group runs.
        root: where the device's ``/sys`` is.
        idle_seconds: how long idle power is measured before.

    Returns:
        Watts of each group. Groups whose power is not above idle, or was not read, are left out, with a warning.

    Raises:
        DeviceError: the device cannot be used, or it hangs.
    """
    watch, ends = Watch(sensor, root, idle_seconds), dict[int, float]()
    batches = [Batch(tuple(programs), seconds) for programs in groups.values()]

    manifest = Asked(batches)

    def on_line(text: str) -> None:
        if watch.take(text):
            return
        with suppress(StrangeLineError):  # a kind of operator of which the device tells too little has no power
            if isinstance(event := manifest.event(text), ProgramTimed):
                ends.setdefault(event.batch, watch.now)

    settings = session.runtime.settings() | {"evict_mb": 0.0}
    path = session.send(batches, (), settings)
    planned = idle_seconds + sum(pace.planned_seconds(b.programs, seconds, b.least_passes, settings) for b in batches)
    allowed = pace.allowed_seconds(planned, session.device.hang_minutes)
    session.transport.run(watch.command(session.runtime.runner(path)), on_line, allowed)
    powers = {}
    for index, name in enumerate(groups):
        watts = watch.watts(ends[index] - SETTLED * seconds, ends[index]) if index in ends else math.nan
        if watts > 0 and RANGES["watts"].has(watts):
            powers[name] = watts
    if missing := [name for name in groups if name not in powers]:
        logger.warning(
            "device %s: energy unavailable for %s: %s showed no power above idle; raise device.energy_seconds",
            session.device.name,
            ", ".join(missing),
            sensor.name,
        )
    return powers


def representatives(features: Sequence[OperatorFeature], latencies: Mapping[str, float]) -> list[OperatorFeature]:
    """Some operators of one kind, evenly spread over the kind's sorted latencies."""
    ordered = sorted(features, key=lambda feature: latencies[feature.id])
    chosen = np.linspace(0, len(ordered) - 1, min(SPREAD, len(ordered))).round().astype(int)
    return [ordered[index] for index in dict.fromkeys(chosen.tolist())]


def measure_kinds(
    session: Session,
    sensor: Sensor,
    features: Sequence[OperatorFeature],
    latencies: Mapping[str, float],
    powers: Mapping[str, float],
    *,
    root: PurePosixPath = ROOT,
    idle_seconds: float = IDLE_SECONDS,
) -> dict[str, float]:
    """Kind of operator to its power above idle, in watts, for the kinds that ``powers`` lacks.

    Args:
        session: an open session on the device.
        sensor: a sensor of that device.
        features: the operators.
        latencies: operator id to latency in milliseconds.
        powers: kinds whose power need not be measured.
        root: where the device's ``/sys`` is.
        idle_seconds: how long idle power is measured before.
    """
    kinds: dict[str, list[OperatorFeature]] = {}
    for feature in features:
        if feature.kind not in powers:
            kinds.setdefault(feature.kind, []).append(feature)
    if not kinds:
        return {}
    groups = {
        kind: [session.runtime.replicas(feature) for feature in representatives(members, latencies)]
        for kind, members in kinds.items()
    }
    seconds = session.device.energy_seconds
    logger.info("energy: %s, %d kinds of operators, %.0f s each", sensor.name, len(groups), seconds)
    return measure_power(session, sensor, groups, seconds, root=root, idle_seconds=idle_seconds)
