"""Operators x device -> LUT: each distinct operator is measured until it is known well enough, or time is up."""

from __future__ import annotations

import contextlib
import logging
import math
import statistics
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from autotailor.ir.feature import OperatorFeature
from autotailor.ir.space.subnet import SubNet
from autotailor.ir.supernet import SuperNet
from autotailor.profiling.device import DeviceConfig
from autotailor.profiling.energy import find_sensor
from autotailor.profiling.errors import ProfilingError, UnreachableError
from autotailor.profiling.host.machine import Machine, wait_until_cool
from autotailor.profiling.measuring.power import measure_kinds
from autotailor.profiling.measuring.programs import InPlace, Programs, Replicas
from autotailor.profiling.measuring.session import Session
from autotailor.profiling.records.batch import NETWORK_PASSES, Batch, portions
from autotailor.profiling.records.differential import estimates
from autotailor.profiling.records.record import Record
from autotailor.profiling.runtimes.base import Program
from autotailor.profiling.table.lut import LUT
from autotailor.profiling.table.store import Store
from autotailor.progress.bars import Progress

logger = logging.getLogger(__name__)

BATCH_PROGRAMS = 16
BATCH_MB = 1024.0
BATCH_MACS_M = 8000.0
"""Thirty runs of this many take half a minute on one core of a PC; `max_minutes` is exceeded by one batch at most."""
LATER_SECONDS = 0.15
"""Seconds of measuring for each operator that is visited again."""
STALLED = 0.95
"""Visiting again ends when more than this share of the visited operators is still vague: then noise is the cause."""
RESOLUTION_MS = 1e-4
"""Standard errors below this are not reduced further: clocks and calls are no more exact."""


def make_batches(programs: Sequence[Program], seconds: float) -> list[Batch]:
    """Batches of consecutive programs that fit into memory and end soon; all programs share ``seconds`` equally."""
    each = seconds / max(1, len(programs))
    batches: list[list[Program]] = []
    for program in programs:
        if not batches or _is_full((*batches[-1], program)):
            batches.append([])
        batches[-1].append(program)
    return [_batch(tuple(batch), each * (len(batch) + 1)) for batch in batches]


def _batch(programs: tuple[Program, ...], seconds: float) -> Batch:
    batch = Batch(programs, seconds)
    return replace(batch, least_passes=NETWORK_PASSES) if any(program.steps for program in programs) else batch


def _is_full(programs: Sequence[Program]) -> bool:
    """Whether these programs are too many for one batch."""
    memory_mb, macs_m = sum(p.memory_mb for p in programs), sum(p.macs_m for p in programs)
    return len(programs) > BATCH_PROGRAMS or memory_mb > BATCH_MB or macs_m > BATCH_MACS_M


def profile(
    operators: Sequence[OperatorFeature],
    device: DeviceConfig,
    store: Path,
    *,
    places: Sequence[int] | None = None,
    net: SuperNet | None = None,
    avoid: Collection[SubNet] = (),
) -> LUT:
    """Measures distinct operators on a device, most used first.

    What the store knows of the device is not measured again. First every operator is visited, for ``max_minutes`` of
    this run at most; operators that are not reached are left to the next run. Then vague operators are visited again:
    those that are not known well enough, or only from batches in which the machine had drifted. That goes on while it
    helps, and while all runs together have spent less than ``max_minutes`` on the operators. A first visit that takes
    less than ``min_minutes`` is repeated until these are over; where the store knows some operators, the share of the
    other operators in ``min_minutes`` counts.

    Args:
        operators: distinct fused operators, as the runtime's fusion rules make them.
        device: where to measure, how precisely, and for how long at most.
        store: folder of the LUT store.
        places: how many places of the SuperNet use each operator; None: the order of ``operators`` counts.
        net: the SuperNet. With it, operators are timed in place, in SubNets that cover them, where the runtime can do
            that; None: each operator is timed by itself, which is less exact.
        avoid: SubNets that must not cover operators, because predictions are judged on them.

    Returns:
        The LUT: rows in the order of ``operators``, then the anchor operator, from which later measurements learn how
        fast the machine was. The same store gives the same LUT.

    Raises:
        DeviceError: the device cannot be used.
        ProfilingError: an operator's kind is not known, the runtime cannot run an operator, or time was up before each
            operator was measured once.
        LUTError: the store cannot be used.
    """
    operators = list(dict.fromkeys(operators))
    _check_settings(operators, device)
    uses = dict(zip(operators, places, strict=True)) if places else {}
    kept = Store(store)
    with Session(device, notes=kept.path.parent) as session, _saying_what_is_kept():
        features = {f.id: f for f in sorted(operators, key=lambda f: -uses.get(f, 0))}
        programs = InPlace(session.runtime, features, net, avoid) if net else Replicas(session.runtime, features)
        seen = net.operators(fusion=session.runtime.fusion) if net else ()
        kept.register(session.fingerprint, (session.runtime.anchor(), *operators, *seen))
        _keep_what_was_left(session, kept)
        run = _Run(session, kept, programs, {key: uses.get(f, 1) for key, f in features.items()})
        run.measure()
        fingerprint = session.fingerprint.id
        if not run.missing():
            _measure_energy(session, kept, operators)
    if missing := run.missing():
        raise ProfilingError(_incomplete(device, operators, run, missing))
    return kept.lut(fingerprint, operators)


def _check_settings(operators: Sequence[OperatorFeature], device: DeviceConfig) -> None:
    """Refuses operators in settings that the device's one engine does not have."""
    own = [feature for feature in operators if feature.setting]
    if own:
        engine, setting = device.engine, ", ".join(f"{name} {value}" for name, value in own[0].setting)
        raise ProfilingError(
            f"device {device.name}: {len(own)} operators run in settings of their own, first {own[0].id} ({setting}), "
            f"and the device runs all with {engine.runtime} in {engine.precision}: take a table "
            "that holds them (lut=FILE), or leave these settings out of the space"
        )


@contextlib.contextmanager
def _saying_what_is_kept() -> Iterator[None]:
    """Adds to the error about a device that stays away that its measurements are kept."""
    try:
        yield
    except UnreachableError as error:
        raise UnreachableError(f"{error}; what was measured is kept, run again to go on") from error


def _keep_what_was_left(session: Session, store: Store) -> None:
    """Stores what the device has measured for an earlier run after that run had ended.

    Records of operators that the store does not know belong to a store that is gone. They are dropped, because their
    ids alone do not say what the operators are.
    """
    operators = store.operators()
    visits = {(record.key, record.blocks) for record in store.records(session.fingerprint.id)}

    def keep(records: list[Record]) -> None:
        new = [record for record in records if (record.key, record.blocks) not in visits]
        if left := [record for record in new if record.key in operators]:
            logger.info("device %s: %d measurements of an earlier run were still there", session.device.name, len(left))
            store.append(left)

    session.take_left(keep)


def _measure_energy(session: Session, store: Store, operators: Sequence[OperatorFeature]) -> None:
    """Measures the power of each kind of operator that the store does not know, where the device has a sensor."""
    sensor = find_sensor(session.transport) if session.device.energy_seconds > 0 else None
    if sensor is None:
        logger.info("device %s: energy unavailable: no sensor that can be read", session.device.name)
        return
    fingerprint = session.fingerprint.id
    latencies = store.lut(fingerprint, operators).latencies()
    powers = measure_kinds(session, sensor, operators, latencies, store.powers(fingerprint))
    store.add_powers(fingerprint, powers)


def _incomplete(device: DeviceConfig, operators: Sequence[OperatorFeature], run: _Run, missing: Sequence[str]) -> str:
    """The message about operators that were not measured, with the remedy."""
    kinds = Counter(feature.kind for feature in operators if feature.id in set(missing))
    share = 1 - sum(run.uses[key] for key in missing) / sum(run.uses.values())
    return (
        f"device {device.name}: {device.max_minutes:g} minutes were enough for {len(operators) - len(missing)} of "
        f"{len(operators)} operators, those used most ({share:.0%} of all uses); missing are "
        f"{', '.join(f'{count} {kind}' for kind, count in kinds.most_common())}. Nothing measured is lost: run "
        "again to go on with them, or raise profile.max_minutes"
    )


class _TimeUpError(Exception):
    """The time budget of the run is spent."""


class _Run:
    """One profiling run: a first visit of every operator, then further visits of vague ones."""

    def __init__(self, session: Session, store: Store, programs: Programs, uses: dict[str, int]) -> None:
        self.session = session
        self.store = store
        self.programs = programs
        self.uses = uses
        self.records: dict[str, list[Record]] = {}
        self.precision: dict[str, float] = {}
        self.standard_error: dict[str, float] = {}
        for row in store.imported(session.fingerprint.id).values():
            self.know(row.feature.id, row.standard_error, row.standard_error / row.latency_ms)
        earlier = store.records(session.fingerprint.id)
        self.digest(earlier)
        self.budget = session.device.max_minutes * 60
        self.least = min(session.device.min_minutes * 60, self.budget)
        self.spent = sum(record.seconds for record in earlier if record.key in uses)
        self.spent_now = 0.0
        self.machine: Machine | None = None

    def know(self, key: str, standard_error: float, precision: float) -> None:
        """Notes how well an operator is known: its standard error in milliseconds, and relative to its latency."""
        self.standard_error[key], self.precision[key] = standard_error, precision

    def digest(self, records: Iterable[Record]) -> None:
        """Notes how precisely records show their operators.

        The latencies that are compared are relative to the anchor's of the same batch, which removes drift. The
        standard error of these multiples becomes milliseconds again by the anchor's mean latency in these batches.
        """
        for record in records:
            self.records.setdefault(record.key, []).append(record)
        for key in {record.key for record in records}:
            estimate = estimates(self.records[key], "")[key]
            anchor_ms = statistics.fmean(record.anchor_ms for record in self.records[key])
            self.know(key, estimate.standard_error * anchor_ms, estimate.relative_error)

    def missing(self) -> list[str]:
        """Ids of operators that nothing is known of, most used first."""
        return [key for key in self.uses if key not in self.precision]

    def vague(self) -> list[str]:
        """Ids of operators above the precision target, or measured only while the machine had drifted; worst first.

        The worst is the one that adds most to the error of all uses together.
        """
        target, drifted = self.session.device.precision_target, self.drifted()
        noisy = {k for k in self.uses if self.precision[k] > target and self.standard_error[k] > RESOLUTION_MS}
        return sorted(noisy | drifted, key=lambda key: -self.uses[key] * self.standard_error[key])

    def drifted(self) -> set[str]:
        """Ids of operators that were measured only in batches in which the machine had drifted.

        Scaling by the anchor corrects small drifts alone, because computing and reading memory do not slow down alike.
        """
        anchors = [record.anchor_ms for record in self.records.get(self.session.fingerprint.anchor, ())]
        usual = statistics.median(anchors) if anchors else math.nan
        return {
            key
            for key in self.uses.keys() & self.records.keys()
            if all(record.drift(usual) > self.session.device.drift for record in self.records[key])
        }

    def measure(self) -> None:
        """Measures until all operators meet the target, measuring again no longer helps, or the time is spent."""
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
        with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(compact=True)) as progress:
            self.bar, self.task = progress, progress.add_task("operators measured", total=len(self.uses))
            self.show()
            with contextlib.suppress(_TimeUpError):
                least, most = self.programs.seconds
                if new := self.missing():
                    each = 0.6 * max(0.0, self.budget - self.spent) / len(new)
                    self.visit(new, min(max(each, least), most))
                self.visit_again(new, most)
                while (vague := self.vague()) and self.budget - self.spent > LATER_SECONDS:
                    affordable = math.floor(min((self.budget - self.spent) / LATER_SECONDS, len(vague)))
                    self.visit(vague[: max(1, affordable)], LATER_SECONDS)
                    if len(self.vague()) > STALLED * len(vague):
                        logger.info("device %s: noisier than the precision target", self.session.device.name)
                        break

    def visit_again(self, new: Sequence[str], seconds_each: float) -> None:
        """Repeats the visit of new operators until these have had their share of the least time."""
        least = self.least * len(new) / max(1, len(self.uses))
        if self.spent_now >= least:
            return
        begin, total = self.spent_now, round(least - self.spent_now)
        repeated = self.bar.add_task("seconds of visiting them again", total=total)
        while self.spent_now < least:
            self.visit(new, seconds_each)
            self.bar.update(repeated, completed=min(total, round(self.spent_now - begin)))

    def visit(self, keys: Sequence[str], seconds_each: float) -> None:
        """Visits some operators once, with pauses where the device throttles."""
        failures: dict[str, str] = {}
        programs = self.programs(keys, [key for key in keys if key not in self.records])
        for part in portions(make_batches(programs, seconds_each * len(keys))):
            self.machine = wait_until_cool(self.session.transport, self.session.device.name, self.machine)
            failures |= self.session.measure(part, self.take)
        if not failures:
            failures = dict.fromkeys(set(keys).intersection(self.missing()), "no program has timed it")
        if failures:
            reasons = "; ".join(f"{key}: {reason}" for key, reason in sorted(failures.items()))
            raise ProfilingError(
                f"device {self.session.device.name}: {len(failures)} operators or networks cannot be measured "
                f"({reasons}); "
                "the others are in the LUT store; correct the layer that the runtime writes for them, or leave them out"
            )

    def take(self, records: list[Record]) -> None:
        """Writes a batch's records into the store; raises _TimeUpError when the time of the run is up."""
        self.store.append(records)
        self.digest(records)
        seconds = sum(record.seconds for record in records)
        self.spent += seconds
        self.spent_now += seconds
        self.show()
        if self.spent_now > self.budget:
            raise _TimeUpError

    def show(self) -> None:
        """Shows on the progress bar how many operators are known, and how many of these are known well enough."""
        target = self.session.device.precision_target
        noise = [self.precision[key] for key in self.uses if key in self.precision]
        good = sum(precision <= target for precision in noise)
        self.bar.update(self.task, completed=len(noise), description=f"operators measured ({good} within {target:.0%})")
