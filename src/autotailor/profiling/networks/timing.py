"""Times whole networks on a device, interleaved with each other and with the anchor operator."""

import logging
import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.errors import ProfilingError
from autotailor.profiling.host.machine import wait_until_cool
from autotailor.profiling.measuring.session import Session, session_on
from autotailor.profiling.networks.following import following, scale
from autotailor.profiling.networks.kept import KeptRounds
from autotailor.profiling.records.batch import NETWORK_PASSES, Batch
from autotailor.profiling.records.differential import robust
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.table.lut import LUT
from autotailor.profiling.table.same_device import check_same_device

logger = logging.getLogger(__name__)

NETWORKS_PER_BATCH = 32
ATTEMPTS = 3
"""How often a round measures a network at most, while the machine's speed differs from its speed for the LUT."""


@dataclass(frozen=True)
class Measurement:
    """Latency of a whole network, without the cost of calling the runtime.

    Attributes:
        key: the network's name.
        latency_ms: milliseconds, drift corrected where a reference was given.
        standard_error: standard error of the latency, in milliseconds.
        repeats: number of passes in which the network was measured.
        raw_ms: milliseconds without drift correction.
        anchor_drift: how much slower the anchor was than its reference, relative; below 0: faster.
        follows: the share of the anchor's slowdown that the network's own batches show, from 0 to 1 (``following``).
    """

    key: str
    latency_ms: float
    standard_error: float
    repeats: int
    raw_ms: float
    anchor_drift: float = 0.0
    follows: float = 1.0


def measure_networks(
    networks: Mapping[str, tuple[Path, tuple[int, ...]]],
    device: DeviceConfig | Session,
    *,
    seconds_each: float = 0.5,
    lut: LUT | None = None,
    anchor_ms: float | None = None,
) -> list[Measurement]:
    """Times whole networks in one round, see ``measure_rounds``."""
    return measure_rounds(networks, device, 1, seconds_each=seconds_each, lut=lut, anchor_ms=anchor_ms)[0]


def measure_rounds(
    networks: Mapping[str, tuple[Path, tuple[int, ...]]],
    device: DeviceConfig | Session,
    rounds: int,
    *,
    seconds_each: float = 0.5,
    lut: LUT | None = None,
    anchor_ms: float | None = None,
    kept: Path | None = None,
) -> list[list[Measurement]]:
    """Times whole networks in several rounds, interleaved with each other and with the anchor operator.

    The anchor corrects small drifts only, because a machine's slowdown differs from network to network. So with a LUT,
    networks in whose batch the anchor's latency is off by more than the device's ``drift`` are measured again, up to
    three times in all; of each network the batch with the smallest drift counts. A network is scaled as far as its
    batches show that it follows the anchor.

    Args:
        networks: name to (folder of the converted network, input shape ``[1, 3, r, r]``).
        device: the device, or a session that is open on it.
        rounds: how often each network is timed; its files go to the device once.
        seconds_each: seconds of measuring for each network and round.
        lut: latencies are scaled to the machine's speed at the time of this LUT, if the LUT holds the anchor.
        anchor_ms: latency of the anchor to scale to, instead of the LUT's.
        kept: a folder that keeps each round, with which an interrupted measurement goes on; None: nothing is kept.

    Returns:
        For each round a list with one measurement for each network, in the order of ``networks``.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: the runtime cannot run a network, or the LUT was measured on another machine, with another
            runtime, or with other settings.
    """
    with session_on(device) as session:
        if lut is not None:
            check_same_device(lut, session.fingerprint, session.device.name)
        anchor = session.anchor.key
        usual_ms = lut.latencies().get(anchor) if lut else None
        files = KeptRounds(kept, list(networks), session.fingerprint.id) if kept else None
        done = files.read(rounds) if files else []
        if done:
            logger.info("%d of %d rounds were measured before the rule was interrupted", len(done), rounds)
        programs = [
            session.network(key, path, (shape[1:],)) for key, (path, shape) in networks.items() if len(done) < rounds
        ]
        strayed: set[str] = set()
        while len(done) < rounds:
            records, left = _measure_round(session, programs, seconds_each, usual_ms)
            done.append(records)
            strayed |= left
            if files:
                files.write(len(done) - 1, done[-1])
        _warn_of(strayed, session.device)
    follows = _followings([record for records in done for record in records], anchor)
    return [_measurements(list(networks), each, follows, anchor, usual_ms, anchor_ms) for each in done]


def mean_of_rounds(rounds: Sequence[Sequence[Measurement]]) -> list[Measurement]:
    """Mean of each network's measurements in several rounds, with the standard error of that mean.

    Args:
        rounds: two or more rounds, as ``measure_rounds`` returns them.
    """
    return [_mean(measurements) for measurements in zip(*rounds, strict=True)]


def _mean(measurements: Sequence[Measurement]) -> Measurement:
    latencies = [m.latency_ms for m in measurements]
    error = statistics.stdev(latencies) / math.sqrt(len(measurements))
    return Measurement(
        measurements[0].key,
        statistics.mean(latencies),
        error,
        sum(m.repeats for m in measurements),
        *(statistics.mean(getattr(m, name) for m in measurements) for name in ("raw_ms", "anchor_drift", "follows")),
    )


def _measure_round(
    session: Session, programs: Sequence[Program], seconds_each: float, usual_ms: float | None
) -> tuple[list[Record], set[str]]:
    """Times each network in one batch, or in several while the machine drifts. A throttled device may cool down first.

    Args:
        session: an open session on the device.
        programs: the networks.
        seconds_each: seconds of measuring for each network.
        usual_ms: the anchor's latency in the LUT; None where no network is to be measured again.

    Returns:
        The records, and the names of the networks in all of whose batches the machine had drifted.

    Raises:
        ProfilingError: the runtime cannot run a network.
    """
    records: list[Record] = []
    left = list(programs)
    for _ in range(ATTEMPTS):
        wait_until_cool(session.transport, session.device.name)
        records += _measured(session, left, seconds_each)
        closest = _closest(records, usual_ms)
        left = [p for p in programs if _distance(closest[p.key], usual_ms) > session.device.drift]
        if not left:
            break
    _check_positive([closest[program.key] for program in left], session.device)
    return records, {program.key for program in left}


def _distance(record: Record, usual_ms: float | None) -> float:
    """How far a batch's anchor is off; infinite where interruptions made the latency, a difference, negative."""
    if robust(record.blocks, record.passes).latency_ms <= 0:
        return math.inf
    return record.drift(usual_ms) if usual_ms else 0.0


def _check_positive(records: Sequence[Record], device: DeviceConfig) -> None:
    """Raises ProfilingError where no batch has given a network a latency above 0."""
    wrong = [record.key for record in records if math.isinf(_distance(record, None))]
    if wrong:
        raise ProfilingError(
            f"device {device.name}: {', '.join(wrong)}: no latency above 0 in {ATTEMPTS} batches, because something "
            f"else interrupts the measurement; end it, ask `autotailor doctor --device {device.name}`, and run again"
        )


def _warn_of(strayed: Collection[str], device: DeviceConfig) -> None:
    """Warns once of all rounds in which the machine had drifted."""
    if strayed:
        logger.warning(
            "device %s: %d networks were measured while the anchor was off by more than %.0f %% from the LUT's: "
            "is something else running there? End it, and run the rule again",
            device.name,
            len(strayed),
            100 * device.drift,
        )


def _closest(records: Sequence[Record], usual_ms: float | None) -> dict[str, Record]:
    """Name of each network to its record in the batch with the smallest drift; without ``usual_ms`` to its first."""
    closest: dict[str, Record] = {}
    for record in records:
        nearest = closest.setdefault(record.key, record)
        if _distance(record, usual_ms) < _distance(nearest, usual_ms):
            closest[record.key] = record
    return closest


def _measured(session: Session, programs: Sequence[Program], seconds_each: float) -> list[Record]:
    """The records of some networks and of the anchor; ProfilingError where the runtime cannot run a network."""
    groups = [programs[i : i + NETWORKS_PER_BATCH] for i in range(0, len(programs), NETWORKS_PER_BATCH)]
    records: list[Record] = []
    batches = [Batch(tuple(group), seconds_each * len(group), NETWORK_PASSES) for group in groups]
    failures = session.measure(batches, records.extend)
    if failures:
        raise ProfilingError(
            f"device {session.device.name}: networks cannot be run: "
            + "; ".join(f"{key}: {reason}" for key, reason in sorted(failures.items()))
        )
    return records


def _followings(records: Sequence[Record], anchor: str) -> dict[str, float]:
    """Name of each network to how far it follows the anchor, from all batches that have timed it."""
    batches: dict[str, list[tuple[float, float]]] = {}
    for record in records:
        if record.key != anchor:
            pair = (record.anchor_ms, robust(record.blocks, 1).latency_ms)
            batches.setdefault(record.key, []).extend([pair] if pair[1] > 0 else [])
    return {key: following(*zip(*pairs, strict=True)) for key, pairs in batches.items()}


def _measurements(
    keys: Sequence[str],
    records: Sequence[Record],
    follows: Mapping[str, float],
    anchor: str,
    usual_ms: float | None,
    anchor_ms: float | None,
) -> list[Measurement]:
    """The measurements of one round, scaled to ``anchor_ms``, else to ``usual_ms``, else to the round's mean."""
    reference = anchor_ms or usual_ms
    if reference is None:
        reference = statistics.mean(record.anchor_ms for record in records if record.key == anchor)
    closest = _closest(records, usual_ms)
    return [_measurement(closest[key], follows[key], reference) for key in keys]


def _measurement(record: Record, follows: float, reference: float) -> Measurement:
    raw, factor = robust(record.blocks, record.passes), scale(record.anchor_ms, reference, follows)
    return Measurement(
        record.key,
        raw.latency_ms * factor,
        raw.standard_error * factor,
        raw.repeats,
        raw.latency_ms,
        record.anchor_ms / reference - 1,
        follows,
    )
